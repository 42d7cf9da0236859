/** Also rejects pending calls if the worker is gone: Comlink would wait forever. */
import type * as Direct from '../attn.js';
import type * as Contract from '../worker.js';
import { readBytes } from '../args/arrays.js';
import { abortError, AttnError, errorWithHelp, isAttnError, reason, unreadable, withArticle } from '../args/error.js';
import { type CheckedLoadOptions, readLoadOptions, tell, wasmKind } from '../args/options.js';
import { defineMethods, internalClass, type LookUp, named, readArguments, type Signature, usedBy } from '../args/signature.js';
import { initialPages, pageBytes } from '../engine/native.js';
import { prepare } from '../engine/training.js';
import { writeSafetensors } from '../model/safetensors.js';
import { abortable, aborted } from '../platform/abort.js';
import { asyncDisposeSymbol, disposeSymbol, endWith, registryOf } from '../platform/dispose.js';
import { download, nameOf } from '../platform/download.js';
import { leaveOut, scriptsFailed } from '../platform/asset_urls.js';
import { type Host, keepErrors, type PlainLoadOptions, type Progress } from './worker_protocol.js';
import * as Comlink from './comlink.js';
import { forOneCall, isMarked, TransferList } from './transfer_list.js';

export interface Connection {
  readonly endpoint: Comlink.Endpoint;
  readonly help: string;
  onDeath(callback: (reason: string) => void): void;
  terminate(): void;
  /** An idle worker does not keep Node alive. */
  setWaiting(waiting: boolean): void;
}

export interface ClientPlatform {
  connect(): Connection;
  /** The worker's base URL differs. */
  locate(location: string): string;
  locks(): LockManager | undefined;
  models(): Promise<{ loadModel(context: RemoteContext, source: unknown, options: unknown): Promise<Contract.TextModel> }>;
}

class Link {
  readonly #connection: Connection;
  readonly #host: Comlink.Remote<Host>;
  /** Pending rejections, and objects to keep alive until they settle. */
  readonly #waiting = new Map<(error: AttnError) => void, object | undefined>();
  readonly #asked = new Set<Promise<unknown>>();
  #gone: AttnError | undefined;
  #onEnd = (): void => {};

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#host = Comlink.wrap<Host>(connection.endpoint);
    connection.onDeath((why) => this.end(new AttnError('ABORTED', `attn/worker: the worker is gone (${why})`)));
  }

  end(error: AttnError): void {
    if (this.#gone) return;
    this.#gone = error;
    this.#connection.terminate();
    for (const reject of this.#waiting.keys()) reject(error);
    this.#waiting.clear();
    this.#onEnd();
  }

  whenEnded(callback: () => void): void {
    this.#onEnd = callback;
  }

  /** Sends a request before returning, so that calls keep their order. */
  ask<T>(question: (host: Comlink.Remote<Host>) => Promise<T>, asker?: object): Promise<T> {
    const asked = this.#ask(question, asker);
    const answered = () => void this.#asked.delete(asked);
    this.#asked.add(asked);
    asked.then(answered, answered);
    return asked;
  }

  async answered(): Promise<void> {
    await Promise.allSettled(this.#asked);
  }

  #ask<T>(question: (host: Comlink.Remote<Host>) => Promise<T>, asker: object | undefined): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#gone) throw this.#gone;
      const done = () => {
        this.#waiting.delete(reject);
        if (this.#waiting.size === 0) this.#connection.setWaiting(false);
      };
      this.#waiting.set(reject, asker);
      this.#connection.setWaiting(true);
      const failed = (error: unknown) => reject(isAttnError(error) ? error : unsent(error));
      (async () => question(this.#host))().finally(done).then(resolve, failed);
    });
  }
}

/** The data is plain, so either a buffer cannot be transferred (a WebAssembly memory) or memory ran out. */
function unsent(cause: unknown): AttnError {
  const isFull = cause instanceof RangeError || /out of memory/i.test(reason(cause));
  return new AttnError(isFull ? 'MEMORY' : 'ARGUMENT', `attn/worker: the arguments could not be sent (${reason(cause)})`, {}, { cause });
}

const ending = (link: Link) => () => link.end(abortError('attn/worker: the worker was stopped, because its instance was garbage-collected'));

/** Everything made from an instance holds this. If it is garbage-collected without a pending call, the worker ends. */
export class Session {
  readonly #link: Link;
  disposed = false;

  constructor(link: Link) {
    this.#link = link;
    endWith(this, ending(link));
  }

  end(error: AttnError): void {
    this.#link.end(error);
  }

  ask<T>(question: (host: Comlink.Remote<Host>) => Promise<T>): Promise<T> {
    return this.#link.ask(question, this);
  }

  answered(): Promise<void> {
    return this.#link.answered();
  }

  assertUsable(op: string): void {
    if (this.disposed) throw new AttnError('DISPOSED', `${op}: this instance was disposed of`, { op });
  }

  call(op: string, question: (host: Comlink.Remote<Host>) => Promise<unknown>): Promise<never> {
    this.assertUsable(op);
    return this.ask(question) as Promise<never>;
  }
}

/** Its handle belongs to `owner`, which it keeps alive. */
export interface Adopted {
  readonly owner: object;
  layer: object | undefined;
}

interface LayerClass {
  readonly create: object;
  adopt(id: number, owner: object): Adopted;
}

function createClass({ session, signatures, forgotten, lookUps }: RemoteContext, constructor: Signature): LayerClass {
  const name = constructor.owner!;
  let find: (op: string, self: RemoteLayer) => number;
  let call: (self: RemoteLayer, op: string, signature: Signature, args: readonly unknown[]) => Promise<unknown>;
  class RemoteLayer {
    readonly #id: number;
    readonly #adopted: Adopted | undefined;
    readonly #uses: readonly LookUp[];
    #disposed = false;

    constructor(id: number, adopted?: Adopted, uses: readonly LookUp[] = []) {
      this.#id = id;
      this.#adopted = adopted;
      this.#uses = uses;
      if (!uses.length) lookUps.set(this, (op) => find(op, this));
      if (!adopted) forgotten?.register(this, id, this);
    }

    static {
      find = (op, self) => {
        session.assertUsable(op);
        if (self.#disposed) throw new AttnError('DISPOSED', `${op}: this module was disposed of`, { op });
        for (const each of self.#uses) each(op);
        return self.#id;
      };
      call = async (self, op, signature, args) => {
        if (typeof self !== 'object' || self === null || !(#id in self))
          throw new AttnError('WRONG_INSTANCE', `${op}: this is another object, expected ${withArticle(name)} of this instance`, { op });
        const leaves = forOneCall(args, () => {
          find(op, self);
          return new TransferList().leaves(readArguments(op, signature, args));
        });
        find(op, self); // a getter may have disposed of the module
        return session.call(op, (host) => host.callModule(self.#id, signature.name, leaves));
      };
    }

    async dispose(): Promise<void> {
      if (this.#disposed) return;
      this.#disposed = true;
      if (this.#adopted) return void (this.#adopted.layer = undefined);
      forgotten?.unregister(this);
      if (!session.disposed) await session.ask((host) => host.release(this.#id)).catch(() => {});
    }

    [disposeSymbol](): Promise<void> {
      return this.dispose();
    }

    [asyncDisposeSymbol](): Promise<void> {
      return this.dispose();
    }
  }
  defineMethods(RemoteLayer, name, signatures, call!);

  async function create(args: readonly unknown[]): Promise<RemoteLayer> {
    session.assertUsable(name);
    const [leaves, sent] = forOneCall(args, () => {
      const read = readArguments(name, constructor, args);
      return [read, new TransferList().leaves(read)] as const;
    });
    return new RemoteLayer(await session.call(name, (host) => host.create(name, sent)), undefined, usedBy(leaves));
  }
  // `new` on a function that returns an object yields that object: the promise.
  const made = named(name, function (...args: unknown[]) {
    return create(args);
  });
  return {
    create: made,
    adopt(id, owner) {
      const adopted: Adopted = { owner, layer: undefined };
      adopted.layer = new RemoteLayer(id, adopted);
      return adopted;
    },
  };
}

export function watched<P>(op: string, callback: ((p: P) => void) | undefined, argument?: string): ((p: P) => void) | undefined {
  return callback && ((p) => tell(op, callback, p, argument));
}

export interface RemoteContext {
  readonly session: Session;
  readonly signatures: readonly Signature[];
  readonly platform: ClientPlatform;
  /** Tasks that dispose() aborts. */
  readonly loads: Set<number>;
  readonly forgotten: FinalizationRegistry<number> | undefined;
  readonly lookUps: WeakMap<object, LookUp>;
  adopt(name: string, id: number, owner: object): Adopted;
  instance(): Contract.Attn;
}

function createRemote(session: Session, signatures: readonly Signature[], platform: ClientPlatform, lookUps: WeakMap<object, LookUp>): Contract.Attn {
  let disposing: Promise<void> | undefined;
  const loads = new Set<number>();
  /** Includes the time before the worker is asked. */
  const loading = new Set<Promise<unknown>>();

  /** Calls made before still get their answers. */
  function dispose(): Promise<void> {
    disposing ??= Promise.all(loading)
      .then(() => session.ask((host) => host.dispose()))
      .catch(() => {}) // the worker may already be gone
      .then(() => session.answered())
      .then(() => session.end(new AttnError('DISPOSED', 'attn/worker: this instance was disposed of')));
    session.disposed = true;
    for (const task of loads) session.ask((host) => host.abort(task)).catch(() => {});
    return disposing;
  }

  const all: Record<PropertyKey, unknown> = {
    get info() {
      return (async () => session.call('info', (host) => host.info()))();
    },
    // Sending the tensors would be as much work.
    async writeSafetensors(...args: readonly unknown[]) {
      session.assertUsable('writeSafetensors');
      return writeSafetensors(...args);
    },
    dispose,
    [disposeSymbol]: dispose,
    [asyncDisposeSymbol]: dispose,
    terminate: () => session.end(abortError('attn/worker: the worker was terminated')),
  };
  const classes = new Map<string, LayerClass>();
  const context: RemoteContext = {
    session,
    signatures,
    platform,
    loads,
    lookUps,
    forgotten: registryOf((id) => void session.ask((host) => host.release(id)).catch(() => {})),
    adopt: (name, id, owner) => classes.get(name)!.adopt(id, owner),
    instance: () => attn,
  };
  async function loadModel(source: unknown, options: unknown): Promise<Contract.TextModel> {
    session.assertUsable('loadModel');
    const scripts = await platform.models().catch(scriptsFailed);
    return scripts.loadModel(context, source, options);
  }
  all['loadModel'] = (source: unknown, options?: unknown) => {
    const model = loadModel(source, options);
    const forget = () => void loading.delete(done);
    const done = model.then(forget, forget);
    loading.add(done);
    return model;
  };
  for (const signature of signatures) {
    const { name, owner } = signature;
    if (owner === internalClass) continue;
    if (owner === undefined)
      all[name] = named(name, async (...args: unknown[]) => {
        const leaves = forOneCall(args, () => {
          session.assertUsable(name);
          return new TransferList().leaves(readArguments(name, signature, args));
        });
        return session.call(name, (host) => host.call(name, leaves));
      });
    else if (name === 'constructor') {
      classes.set(owner, createClass(context, signature));
      all[owner] = classes.get(owner)!.create;
    }
  }
  const attn = Object.freeze(all) as unknown as Contract.Attn;
  return attn;
}

async function plainWasm(
  platform: ClientPlatform,
  { wasm, signal }: CheckedLoadOptions,
  report: Progress | undefined,
  transfers: TransferList,
): Promise<Direct.LoadOptions['wasm']> {
  if (wasm === undefined) return undefined;
  switch (wasmKind(wasm)) {
    case 'location':
      return platform.locate(String(wasm as string | URL));
    case 'response': {
      const response = wasm as Response;
      const bytes = await abortable(signal, () =>
        download(response, nameOf(response), signal, (phase, loaded, total) =>
          report?.(total === undefined ? { phase, loaded } : { phase, loaded, total }),
        ),
      );
      return transfers.array(bytes, 'Uint8Array', true);
    }
    case 'module':
      return wasm;
    case 'bytes':
      return transfers.array(readBytes('load', 'wasm', wasm), 'Uint8Array', isMarked(wasm as Uint8Array));
  }
}

/** Milliseconds: a script blocked by a proxy or a policy causes no event. */
const patience = 60_000;

/** Waits for a lock that the worker holds: a terminated worker, or one out of memory, sends no event. */
async function watch(link: Link, locks: LockManager | undefined): Promise<void> {
  const name = locks && `attn-worker-${crypto.randomUUID()}`;
  const timer = setTimeout(() => link.end(new AttnError('ABORTED', `attn/worker: no answer in ${patience / 1000} seconds`)), patience);
  const held = await link.ask((host) => host.hello(name)).finally(() => clearTimeout(timer));
  if (!locks || !name || !held) return;
  let waiting: AbortController;
  const wait = () => {
    const { signal } = (waiting = new AbortController());
    const over = () => {
      if (!signal.aborted) link.end(new AttnError('ABORTED', 'attn/worker: the worker is gone'));
    };
    locks.request(name, { signal }, over).catch(() => {});
  };
  wait();
  // Browsers do not keep a page with locks in their back-forward cache.
  const ask = (lock?: string) => link.ask((host) => host.hello(lock));
  const leave = () => {
    waiting.abort();
    ask().catch(() => {});
  };
  const comeBack = ({ persisted }: PageTransitionEvent) => {
    if (persisted) ask(name).then(wait, () => {});
  };
  addEventListener('pagehide', leave);
  addEventListener('pageshow', comeBack);
  link.whenEnded(() => {
    waiting.abort();
    removeEventListener('pagehide', leave);
    removeEventListener('pageshow', comeBack);
  });
}

export function remoteLoader(platform: ClientPlatform): typeof Contract.load {
  const start: typeof Contract.load = async (options) => {
    const checked = readLoadOptions(options, initialPages * pageBytes);
    const { variant, threads, maximumMemory, signal, onProgress } = checked;
    if (signal?.aborted) throw aborted(signal);
    keepErrors();
    const report = watched('load', onProgress);
    const transfers = new TransferList();
    const wasm = await plainWasm(platform, checked, report, transfers).catch((error: unknown) => {
      throw unreadable('load', 'options', error);
    });
    const plain: PlainLoadOptions = { variant, threads, wasm, maximumMemory };

    let connection: Connection;
    try {
      connection = platform.connect();
    } catch (cause) {
      if (cause instanceof AttnError) throw cause;
      throw errorWithHelp('ENVIRONMENT', `load: a worker could not be started (${reason(cause)})`, leaveOut, { op: 'load' }, { cause });
    }
    const link = new Link(connection);
    const onAbort = () => link.end(aborted(signal!));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal?.aborted) throw aborted(signal);
      await watch(link, platform.locks()).catch((error: unknown) => {
        if (signal?.aborted || !(error instanceof AttnError) || error.code !== 'ABORTED') throw error;
        throw errorWithHelp('ENVIRONMENT', `load: the worker did not start (${error.message})`, connection.help, { op: 'load' }, { cause: error });
      });
      const signatures = await link.ask((host) => host.load(transfers.seal(plain), report && Comlink.proxy(report)));
      const lookUps = new WeakMap<object, LookUp>();
      prepare(signatures, lookUps);
      return createRemote(new Session(link), signatures, platform, lookUps);
    } catch (error) {
      link.end(error as AttnError);
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  };
  return (options) => forOneCall(options, () => start(options));
}
