/**
 * The caller's end of attn/worker: checks arguments as the direct package does, sends them, and answers for a worker
 * that is gone, for which Comlink would wait for ever.
 */
import type * as Direct from './attn.js';
import type * as Contract from './worker.js';
import { abortable, aborted } from './abort.js';
import { arrayBuffer, arrayLength, type Checked, failDetached, readBytes, readStateDict, readTensor } from './arrays.js';
import { type Host, keepErrors, type PlainLoadOptions, type Progress } from './channel.js';
import * as Comlink from './comlink.js';
import { asyncDisposeSymbol, disposeSymbol } from './dispose.js';
import { download, nameOf, reason } from './download.js';
import { AttnError } from './error.js';
import { initialPages, pageBytes } from './native.js';
import {
  type CheckedLoadOptions,
  readAttentionOptions,
  readDim,
  readInitializeOptions,
  readLoadOptions,
  readMultiHeadAttentionOptions,
  readStrict,
  wasmKind,
} from './options.js';

/** A worker that was just started. */
export interface Connection {
  readonly endpoint: Comlink.Endpoint;
  /** Calls back when the worker fails or ends. */
  onDeath(callback: (reason: string) => void): void;
  terminate(): void;
  /** Whether an answer is waited for: in Node an idle worker does not keep the process. */
  setWaiting(waiting: boolean): void;
}

export interface ClientPlatform {
  connect(): Connection;
  /** What a location means to the caller, in a form that means the same to the worker. */
  locate(location: string): string;
  /** Locks that end with the worker that holds them, where other signs of its end are missing. */
  locks(): LockManager | undefined;
}

const marked = new WeakSet<object>();

export const transfer: typeof Contract.transfer = (value) => {
  marked.add(value);
  return value;
};

/** Arguments on their way, and the buffers that move with them. */
class Parcel {
  readonly #buffers = new Set<ArrayBuffer>();

  array<A extends Float32Array | Uint8Array>(array: A, moves: boolean): A {
    const buffer = arrayBuffer(array) as ArrayBuffer;
    // Cloning a view would clone the whole buffer.
    const own = moves || array.byteLength === buffer.byteLength ? array : (array.slice() as A);
    if (moves || own !== array) this.#buffers.add(own.buffer as ArrayBuffer);
    return own;
  }

  tensor<A extends Float32Array | Uint8Array>(checked: Checked<A>): { data: A; dims: Direct.Dims } {
    const { op, argument, data, dims, size, source, copied } = checked;
    // A getter among later arguments may have taken the buffer away since it was checked.
    if (arrayLength(data) !== size) failDetached(op, argument, size);
    return { data: this.array(data, copied || marked.has(source)), dims };
  }

  attentionOptions(op: string, options: unknown): Direct.AttentionOptions {
    const { mask, keyPaddingMask, scale, ...rest } = readAttentionOptions(op, options);
    return {
      ...rest,
      ...(scale !== undefined && { scale }),
      ...(mask && { mask: { kind: mask.kind, ...this.tensor(mask) } }),
      ...(keyPaddingMask && { keyPaddingMask: { kind: keyPaddingMask.kind, ...this.tensor(keyPaddingMask) } }),
    };
  }

  /** Marks args so that Comlink moves the buffers with them. */
  seal<T extends object>(args: T): T {
    return Comlink.transfer(args, [...this.#buffers]);
  }
}

/** A worker with an instance in it, and everything that waits for it. */
class Session {
  readonly #connection: Connection;
  readonly #host: Comlink.Remote<Host>;
  readonly #waiting = new Set<(error: AttnError) => void>();
  #gone: AttnError | undefined;
  disposed = false;

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#host = Comlink.wrap<Host>(connection.endpoint);
    connection.onDeath((why) => this.end(new AttnError('ABORTED', `attn/worker: the worker is gone (${why})`)));
  }

  /** Ends the worker; whoever waits gets this error. */
  end(error: AttnError): void {
    if (this.#gone) return;
    this.#gone = error;
    this.#connection.terminate();
    for (const reject of this.#waiting) reject(error);
    this.#waiting.clear();
  }

  /** One question to the worker. Sent before this returns, so calls keep their order. */
  ask<T>(question: (host: Comlink.Remote<Host>) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#gone) throw this.#gone;
      const done = () => {
        this.#waiting.delete(reject);
        if (this.#waiting.size === 0) this.#connection.setWaiting(false);
      };
      this.#waiting.add(reject);
      this.#connection.setWaiting(true);
      // What cannot be cloned throws here; everything that we send is plain, so this is about running out of memory.
      let answer: Promise<T>;
      try {
        answer = question(this.#host);
      } catch (cause) {
        done();
        throw new AttnError('MEMORY', `attn/worker: the arguments could not be sent (${reason(cause)})`, {}, { cause });
      }
      answer.finally(done).then(resolve, reject);
    });
  }

  call(op: string, question: (host: Comlink.Remote<Host>) => Promise<unknown>): Promise<never> {
    if (this.disposed) throw new AttnError('DISPOSED', `${op}: this instance was disposed of`, { op });
    return this.ask(question) as Promise<never>;
  }
}

function createModuleClass(session: Session): Contract.Attn['MultiHeadAttention'] {
  const forgotten =
    typeof FinalizationRegistry === 'undefined'
      ? undefined
      : new FinalizationRegistry<number>((id) => void session.ask((host) => host.release(id)).catch(() => {}));

  class RemoteMultiHeadAttention implements Contract.MultiHeadAttention {
    readonly #id: number;
    #disposed = false;

    constructor(id: number) {
      this.#id = id;
      forgotten?.register(this, id, this);
    }

    #call(op: Parameters<Host['callModule']>[1], args: readonly unknown[] = []): Promise<never> {
      if (this.#disposed) throw new AttnError('DISPOSED', `${op}: this module was disposed of`, { op });
      return session.call(op, (host) => host.callModule(this.#id, op, args));
    }

    async forward(
      query: Direct.Tensor,
      key?: Direct.Tensor,
      value?: Direct.Tensor,
      options?: Direct.AttentionOptions,
    ): Promise<Direct.AttentionResult> {
      const op = 'MultiHeadAttention';
      const parcel = new Parcel();
      const tensors = [
        readTensor(op, 'query', query),
        key === undefined ? undefined : readTensor(op, 'key', key),
        value === undefined ? undefined : readTensor(op, 'value', value),
      ];
      const plain = parcel.attentionOptions(op, options);
      return this.#call('forward', parcel.seal([...tensors.map((tensor) => tensor && parcel.tensor(tensor)), plain]));
    }

    async loadStateDict(state: Direct.StateDict, options?: { strict?: boolean }): Promise<void> {
      const parcel = new Parcel();
      const tensors = readStateDict('loadStateDict', state);
      const strict = readStrict(options);
      return this.#call('loadStateDict', parcel.seal([new Map(tensors.map(([name, tensor]) => [name, parcel.tensor(tensor)])), { strict }]));
    }

    async stateDict(): Promise<Map<string, Direct.Tensor>> {
      return this.#call('stateDict');
    }

    async initialize(options?: Parameters<Direct.Module['initialize']>[0]): Promise<void> {
      return this.#call('initialize', [readInitializeOptions(options)]);
    }

    get parameterCount(): Promise<number> {
      return (async () => this.#call('parameterCount'))();
    }

    async parameterShapes(): Promise<Map<string, Direct.Dims>> {
      return this.#call('parameterShapes');
    }

    async dispose(): Promise<void> {
      if (this.#disposed) return;
      this.#disposed = true;
      forgotten?.unregister(this);
      // An instance that is gone has taken its modules along.
      if (!session.disposed) await session.ask((host) => host.release(this.#id)).catch(() => {});
    }

    [disposeSymbol](): Promise<void> {
      return this.dispose();
    }

    [asyncDisposeSymbol](): Promise<void> {
      return this.dispose();
    }
  }

  async function create(options: unknown): Promise<RemoteMultiHeadAttention> {
    const plain = readMultiHeadAttentionOptions(options);
    const { scale, ...rest } = plain;
    return new RemoteMultiHeadAttention(await session.call('MultiHeadAttention', (host) => host.create(scale === undefined ? rest : plain)));
  }
  // `new` of a function that returns an object gives that object: here the promise.
  return function MultiHeadAttention(options: unknown) {
    return create(options);
  } as unknown as Contract.Attn['MultiHeadAttention'];
}

function createRemote(session: Session): Contract.Attn {
  let disposing: Promise<void> | undefined;

  /** Calls made before still get their answers. */
  function dispose(): Promise<void> {
    disposing ??= session
      .ask((host) => host.dispose())
      .catch(() => {}) // the worker may be gone already
      .then(() => session.end(new AttnError('DISPOSED', 'attn/worker: this instance was disposed of')));
    session.disposed = true;
    return disposing;
  }

  return Object.freeze<Contract.Attn>({
    get info() {
      return (async () => session.call('info', (host) => host.info()))();
    },

    async scaledDotProductAttention(query, key, value, options) {
      const op = 'scaledDotProductAttention';
      const parcel = new Parcel();
      const tensors = [readTensor(op, 'query', query), readTensor(op, 'key', key), readTensor(op, 'value', value)];
      const plain = parcel.attentionOptions(op, options);
      const args = parcel.seal([...tensors.map((tensor) => parcel.tensor(tensor)), plain]);
      return session.call(op, (host) => host.call(op, args));
    },

    async linear(x, weight, bias) {
      const op = 'linear';
      const parcel = new Parcel();
      const tensors = [readTensor(op, 'x', x), readTensor(op, 'weight', weight), ...(bias === undefined ? [] : [readTensor(op, 'bias', bias)])];
      const args = parcel.seal(tensors.map((tensor) => parcel.tensor(tensor)));
      return session.call(op, (host) => host.call(op, args));
    },

    async softmax(x, dim) {
      const op = 'softmax';
      const parcel = new Parcel();
      const tensor = readTensor(op, 'x', x);
      const axis = readDim(dim);
      const args = parcel.seal([parcel.tensor(tensor), axis]);
      return session.call(op, (host) => host.call(op, args));
    },

    async parseSafetensors(bytes) {
      const op = 'parseSafetensors';
      const parcel = new Parcel();
      const args = parcel.seal([parcel.array(readBytes(op, 'bytes', bytes), marked.has(bytes))]);
      return session.call(op, (host) => host.call(op, args));
    },

    MultiHeadAttention: createModuleClass(session),

    dispose,
    [disposeSymbol]: dispose,
    [asyncDisposeSymbol]: dispose,
    terminate: () => session.end(new AttnError('ABORTED', 'attn/worker: the worker was terminated')),
  });
}

/** The caller's `wasm` in a form that a worker can be sent. */
async function plainWasm(
  platform: ClientPlatform,
  { wasm, signal }: CheckedLoadOptions,
  report: Progress | undefined,
  parcel: Parcel,
): Promise<Direct.LoadOptions['wasm']> {
  if (wasm === undefined) return undefined;
  switch (wasmKind(wasm)) {
    case 'location':
      return platform.locate(String(wasm));
    case 'response': {
      const response = wasm as Response;
      const bytes = await abortable(signal, () =>
        download(response, nameOf(response), signal, (phase, loaded, total) =>
          report?.(total === undefined ? { phase, loaded } : { phase, loaded, total }),
        ),
      );
      return parcel.array(bytes, true);
    }
    case 'module':
      return wasm;
    case 'bytes':
      return parcel.array(readBytes('load', 'wasm', wasm), marked.has(wasm as Uint8Array));
  }
}

/** Whether the worker lives is told by a lock that it holds: a worker that was terminated, or ran out of memory, sends no event. */
async function watch(session: Session, locks: LockManager | undefined): Promise<void> {
  const name = locks && `attn-worker-${crypto.randomUUID()}`;
  const held = await session.ask((host) => host.hello(name));
  if (!locks || !name || !held) return;
  locks.request(name, () => session.end(new AttnError('ABORTED', 'attn/worker: the worker is gone'))).catch(() => {});
}

/** load() for one host. */
export function remoteLoader(platform: ClientPlatform): typeof Contract.load {
  return async (options) => {
    const checked = readLoadOptions(options, initialPages * pageBytes);
    const { variant, threads, maximumMemory, signal, onProgress } = checked;
    if (signal?.aborted) throw aborted(signal);
    keepErrors();
    const report: Progress | undefined =
      onProgress &&
      ((p) => {
        try {
          onProgress(p);
        } catch (cause) {
          throw new AttnError('ARGUMENT', `load: onProgress threw (${reason(cause)})`, { op: 'load', argument: 'onProgress' }, { cause });
        }
      });
    const parcel = new Parcel();
    const wasm = await plainWasm(platform, checked, report, parcel);
    const plain: PlainLoadOptions = { variant, threads, ...(wasm !== undefined && { wasm }), ...(maximumMemory !== undefined && { maximumMemory }) };

    let connection: Connection;
    try {
      connection = platform.connect();
    } catch (cause) {
      throw new AttnError('ENVIRONMENT', `load: a worker could not be started (${reason(cause)})`, { op: 'load' }, { cause });
    }
    const session = new Session(connection);
    const onAbort = () => session.end(aborted(signal!));
    signal?.addEventListener('abort', onAbort, { once: true });
    try {
      if (signal?.aborted) throw aborted(signal);
      await watch(session, platform.locks());
      await session.ask((host) => host.load(parcel.seal(plain), report && Comlink.proxy(report)));
      return createRemote(session);
    } catch (error) {
      session.end(error as AttnError);
      throw error;
    } finally {
      signal?.removeEventListener('abort', onAbort);
    }
  };
}
