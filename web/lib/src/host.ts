/** The worker's end of attn/worker. */
import type { Attn, load as Load, MultiHeadAttention, MultiHeadAttentionOptions, Tensor } from './attn.js';
import { type Answer, type Host, keepErrors } from './channel.js';
import * as Comlink from './comlink.js';
import { AttnError } from './error.js';

/** Buffers of an answer: they are nobody else's, so they move instead of being copied. */
function buffersOf(answer: unknown, into: ArrayBuffer[] = []): ArrayBuffer[] {
  if (answer instanceof Float32Array) into.push(answer.buffer as ArrayBuffer);
  else if (answer instanceof Map) for (const value of answer.values()) buffersOf(value, into);
  else if (typeof answer === 'object' && answer !== null && !Array.isArray(answer)) for (const value of Object.values(answer)) buffersOf(value, into);
  return into;
}

function move<T extends Answer>(answer: T): T {
  return typeof answer === 'object' ? Comlink.transfer(answer, buffersOf(answer)) : answer;
}

type AnyFunction = (...args: readonly unknown[]) => Answer;

export function serve(load: typeof Load, endpoint: Comlink.Endpoint): void {
  let loaded: Attn | undefined;
  const modules = new Map<number, MultiHeadAttention>();
  let lastId = 0;

  function attn(): Attn {
    if (!loaded) throw new AttnError('INTERNAL', 'attn/worker: nothing is loaded yet');
    return loaded;
  }

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
      if (!onProgress) {
        loaded = await load(options);
        return;
      }
      // Each report is answered, so load() resolves after the last of them has been seen, or rejects with what the callback threw.
      const reports: Promise<unknown>[] = [];
      try {
        loaded = await load({
          ...options,
          onProgress(p) {
            const report = Promise.resolve(onProgress(p));
            report.catch(() => {}); // looked at below
            reports.push(report);
          },
        });
      } finally {
        const seen = await Promise.allSettled(reports);
        const failed = seen.find((report) => report.status === 'rejected');
        if (failed) throw failed.reason;
        (onProgress as unknown as Comlink.ProxyMethods)[Comlink.releaseProxy]();
      }
    },
    info: () => attn().info,
    call: (name, args) => move((attn()[name] as AnyFunction)(...args)),
    create(options) {
      modules.set(++lastId, new (attn().MultiHeadAttention)(options as MultiHeadAttentionOptions));
      return lastId;
    },
    callModule(id, name, args) {
      const module = modules.get(id);
      if (!module) throw new AttnError('DISPOSED', `${name}: this module was disposed of`, { op: name });
      if (name === 'parameterCount') return module.parameterCount;
      return move((module[name] as AnyFunction).apply(module, args as Tensor[]));
    },
    release(id) {
      modules.get(id)?.dispose();
      modules.delete(id);
    },
    dispose() {
      loaded?.dispose();
    },
  };
  keepErrors();
  Comlink.expose(host, endpoint);
}
