/** A model in the worker: its arguments are checked here, and all the work is done there. */
import type { Encoding, ModelSource, Tensor, TextModel as Direct } from './attn.js';
import type * as Contract from './worker.js';
import { abortable, aborted } from './abort.js';
import type { AskedMethod, BatchProgress, RemoteParts } from './channel.js';
import { type Adopted, isMarked, Parcel, type RemoteLender, watched } from './client.js';
import * as Comlink from './comlink.js';
import { asyncDisposeSymbol, disposeSymbol } from './dispose.js';
import { AttnError, fail } from './error.js';
import {
  type CheckedTextOptions,
  classifyOptions,
  embedOptions,
  frozen,
  readEncoded,
  readId,
  readModelOptions,
  readParameterName,
  readSource,
  readTextOptions,
  readTexts,
  readToken,
  tokenizeOptions,
} from './model_options.js';
import { internalClass, opOf, readArguments } from './signature.js';

let lastTask = 0;

/** Work in the worker that a signal ends: there, and here at once. */
async function abortableTask<T>(
  { session }: RemoteLender,
  op: string,
  signal: AbortSignal | undefined,
  work: (task: number) => Promise<T>,
): Promise<T> {
  const task = ++lastTask;
  const onAbort = () => void session.ask((host) => host.abort(task)).catch(() => {});
  if (signal?.aborted) throw aborted(signal, op);
  signal?.addEventListener('abort', onAbort, { once: true });
  try {
    return await abortable(signal, () => work(task), op);
  } finally {
    signal?.removeEventListener('abort', onAbort);
  }
}

class RemoteTextModel {
  readonly #lender: RemoteLender;
  readonly #parts: RemoteParts;
  #words: Adopted | undefined;
  #disposed = false;

  constructor(lender: RemoteLender, parts: RemoteParts) {
    this.#lender = lender;
    this.#parts = { ...parts, config: frozen(parts.config), labels: parts.labels && frozen(parts.labels) };
    lender.forgotten?.register(this, parts.id, this);
  }

  #assertUsable(op: string): void {
    this.#lender.session.assertUsable(op);
    if (this.#disposed) throw new AttnError('DISPOSED', `${op}: this model was disposed of`, { op });
  }

  async #property<T>(name: string, value: T): Promise<T> {
    this.#assertUsable(name);
    return value;
  }

  get config(): Promise<Readonly<Record<string, unknown>>> {
    return this.#property('config', this.#parts.config);
  }

  get labels(): Promise<readonly string[] | undefined> {
    return this.#property('labels', this.#parts.labels);
  }

  get wordEmbeddings(): Promise<object> {
    if (!this.#words?.layer) this.#words = this.#lender.adopt('Embedding', this.#parts.words, this);
    return this.#property('wordEmbeddings', this.#words.layer!);
  }

  async #ask(name: AskedMethod, args: readonly unknown[], options?: CheckedTextOptions): Promise<unknown> {
    this.#assertUsable(name);
    const { session } = this.#lender;
    const { signal, onProgress } = options ?? {};
    const report: BatchProgress | undefined = watched(name, onProgress);
    return abortableTask(this.#lender, name, signal, (task) =>
      session.call(name, (host) => host.askModel(this.#parts.id, name, args, task, report && Comlink.proxy(report)) as Promise<unknown>),
    );
  }

  async #encoded(name: 'forward' | 'traceLayer', inputs: unknown, others: Readonly<Record<string, unknown>>): Promise<unknown> {
    const { session } = this.#lender;
    const op = opOf(internalClass, name);
    const leaves = new Parcel().leaves(readEncoded(op, this.#signature(name), inputs, others));
    this.#assertUsable(op);
    return session.call(op, (host) => host.callModule(this.#parts.id, name, leaves) as Promise<unknown>);
  }

  #signature(name: string) {
    return this.#lender.signatures.find((each) => each.owner === internalClass && each.name === name)!;
  }

  async tokenize(texts: unknown, options?: unknown): Promise<Encoding> {
    const list = readTexts('tokenize', texts, true);
    const read = readTextOptions('tokenize', options, tokenizeOptions);
    return (await this.#ask('tokenize', [list, read.plain])) as Encoding;
  }

  async forward(inputs: unknown, options?: unknown): Promise<unknown> {
    return this.#encoded('forward', inputs, { options });
  }

  async traceLayer(inputs: unknown, layer: unknown, names?: unknown): Promise<unknown> {
    return this.#encoded('traceLayer', inputs, { layer, names });
  }

  async parameterShapes(): Promise<ReadonlyMap<string, unknown>> {
    return (await this.#ask('parameterShapes', [])) as ReadonlyMap<string, unknown>;
  }

  async stateDict(): Promise<unknown> {
    return this.#ask('stateDict', []);
  }

  async getParameter(name: unknown): Promise<unknown> {
    return this.#ask('getParameter', [readParameterName(name)]);
  }

  async loadStateDict(state: unknown, options?: unknown): Promise<unknown> {
    const op = 'loadStateDict';
    const leaves = new Parcel().leaves(readArguments(op, this.#signature(op), [state, options]));
    this.#assertUsable(op);
    return this.#lender.session.call(op, (host) => host.callModule(this.#parts.id, op, leaves) as Promise<unknown>);
  }

  async tokenToId(token: unknown): Promise<number | undefined> {
    return (await this.#ask('tokenToId', [readToken('tokenToId', token)])) as number | undefined;
  }

  async idToToken(id: unknown): Promise<string | undefined> {
    return (await this.#ask('idToToken', [readId('idToToken', id)])) as string | undefined;
  }

  async embed(texts: unknown, options?: unknown): Promise<Tensor> {
    const list = readTexts('embed', texts, false);
    const read = readTextOptions('embed', options, embedOptions);
    return (await this.#ask('embed', [list, read.plain], read)) as Tensor;
  }

  async classify(texts: unknown, options?: unknown): Promise<Awaited<ReturnType<Direct['classify']>>> {
    const list = readTexts('classify', texts, true);
    const read = readTextOptions('classify', options, classifyOptions);
    return (await this.#ask('classify', [list, read.plain], read)) as Awaited<ReturnType<Direct['classify']>>;
  }

  async dispose(): Promise<void> {
    if (this.#disposed) return;
    this.#disposed = true;
    const { session, forgotten } = this.#lender;
    forgotten?.unregister(this);
    // An instance that is gone has taken its models along.
    if (!session.disposed) await session.ask((host) => host.release(this.#parts.id)).catch(() => {});
  }

  [disposeSymbol](): Promise<void> {
    return this.dispose();
  }

  [asyncDisposeSymbol](): Promise<void> {
    return this.dispose();
  }
}

/** What a URL, a path or files are to the worker. */
function sent({ platform }: RemoteLender, given: unknown): ModelSource {
  const source = readSource(given);
  if (!('files' in source)) return platform.locate(source.location);
  const parcel = new Parcel();
  return parcel.seal(
    Object.fromEntries(
      source.files.map(([name, content, original]) => [
        name,
        typeof content === 'object' && 'buffer' in content ? parcel.array(content, 'Uint8Array', isMarked(original as object)) : content,
      ]),
    ),
  );
}

export async function loadModel(lender: RemoteLender, source: unknown, options: unknown): Promise<Contract.TextModel> {
  const op = 'loadModel';
  const { session } = lender;
  const { fetch, cache, sha256, signal, onProgress } = readModelOptions(options);
  if (fetch) fail('ARGUMENT', op, 'fetch', 'is a function, which cannot be sent to a worker', 'none; the worker has a fetch of its own');
  const report = watched(op, onProgress);
  const made = await abortableTask(lender, op, signal, async (task) => {
    const plain = { cache, sha256: Object.fromEntries(sha256) };
    const files = sent(lender, source);
    const parts = (await session.call(op, (host) => host.loadModel(task, files, plain, report && Comlink.proxy(report)))) as RemoteParts;
    // It may have been too late for the worker to hear of it.
    if (signal?.aborted) session.ask((host) => host.release(parts.id)).catch(() => {});
    return parts;
  });
  return new RemoteTextModel(lender, made) as unknown as Contract.TextModel;
}
