/** The worker's end of attn/worker. */
import type { Attn, load as Load } from './attn.js';
import { type Host, keepErrors } from './channel.js';
import * as Comlink from './comlink.js';
import type { Engine } from './engine.js';
import { AttnError } from './error.js';
import { engineOf } from './instance.js';
import type { NativeLayer } from './native.js';
import { opOf } from './signature.js';

/** Buffers of an answer: they are nobody else's, so they move instead of being copied. */
function buffersOf(answer: unknown, into: ArrayBuffer[] = []): ArrayBuffer[] {
  if (answer instanceof Float32Array) into.push(answer.buffer as ArrayBuffer);
  else if (answer instanceof Map) for (const value of answer.values()) buffersOf(value, into);
  else if (typeof answer === 'object' && answer !== null) for (const value of Object.values(answer)) buffersOf(value, into);
  return into;
}

function move(answer: unknown): unknown {
  return typeof answer === 'object' && answer !== null ? Comlink.transfer(answer, buffersOf(answer)) : answer;
}

export function serve(load: typeof Load, endpoint: Comlink.Endpoint): void {
  let attn: Attn | undefined;
  let loaded: Engine | undefined;
  const modules = new Map<number, { owner: string; layer: NativeLayer }>();
  let lastId = 0;

  function engine(): Engine {
    if (!loaded) throw new AttnError('INTERNAL', 'attn/worker: nothing is loaded yet');
    return loaded;
  }
  const signature = (name: string, owner?: string) => engine().signatures.find((each) => each.name === name && each.owner === owner)!;

  const host: Host = {
    hello(lock) {
      return new Promise((held) => {
        if (lock === undefined) return held(false);
        const forever = new Promise<never>(() => {});
        // Refused where the origin is opaque.
        navigator.locks.request(lock, () => (held(true), forever)).catch(() => held(false));
      });
    },
    async load(options, onProgress) {
      // Each report is answered, so load() resolves after the last of them has been seen, or rejects with what the callback threw.
      const reports: Promise<unknown>[] = [];
      try {
        attn = await load({
          ...options,
          ...(onProgress && {
            onProgress(p) {
              const report = Promise.resolve(onProgress(p));
              report.catch(() => {}); // looked at below
              reports.push(report);
            },
          }),
        });
      } finally {
        const seen = await Promise.allSettled(reports);
        const failed = seen.find((report) => report.status === 'rejected');
        if (failed) throw failed.reason;
        (onProgress as Comlink.ProxyMethods | undefined)?.[Comlink.releaseProxy]();
      }
      loaded = engineOf(attn);
      return loaded.signatures;
    },
    info: () => engine().info,
    call: (name, leaves) => move(engine().call(name, signature(name), leaves)),
    create(owner, leaves) {
      modules.set(++lastId, { owner, layer: engine().create(owner, leaves) });
      return lastId;
    },
    callModule(id, name, leaves) {
      const module = modules.get(id);
      if (!module) throw new AttnError('DISPOSED', `${name}: this module was disposed of`, { op: name });
      const { owner, layer } = module;
      return move(engine().call(opOf(owner, name), signature(name, owner), leaves, layer));
    },
    release(id) {
      const module = modules.get(id);
      modules.delete(id);
      if (module) engine().free(module.layer);
    },
    dispose() {
      attn?.dispose();
    },
  };
  keepErrors();
  Comlink.expose(host, endpoint);
}
