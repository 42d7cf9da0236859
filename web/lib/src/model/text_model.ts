/** A model, and what it can do. */
import type { EncoderTrace, Encoding, Embedding, FineTuneOptions, StateDict, Task, TextModel as Contract, TextModelOutput, Tensor } from '../attn.js';
import { disposeSymbol } from '../platform/dispose.js';
import { assertTask, inBatches, type Lent, limits, padded, promptOf, tokenized } from './batches.js';
import { allocate, AttnError, describe, fail } from '../args/error.js';
import {
  classifyOptions,
  encodeOptions,
  embedOptions,
  frozen,
  readDecodeOptions,
  readEncoded,
  readExportOptions,
  readId,
  readIds,
  readParameterName,
  readTextOptions,
  readTexts,
  readToken,
  type Text,
} from '../args/model_options.js';
import type { NativeLayer } from '../engine/native.js';
import type { Lender } from './lender.js';
import { type Parts, signatureOf } from './model_parts.js';
import { internalClass, opOf, readArguments } from '../args/signature.js';
import type { EncodeOptions, Tokenizer } from '../tokenizer/tokenizer.js';

/** Characters of a text that takes longer than a script to come. */
const long = 2 ** 15;

type OwnParts = Parts & { readonly lender: Lender };
type OwnLent = Omit<Lent, 'find'> & { find(): OwnParts };

let partsOf: (operation: string, self: TextModel) => OwnParts;
/** The handle of a model's words, for attn/worker. */
export let handlesOf: (model: object) => { readonly model: NativeLayer; readonly words: NativeLayer };

export class TextModel implements Contract {
  #parts: OwnParts | undefined;
  #words: ReturnType<Lender['adopt']> | undefined;

  constructor(parts: OwnParts) {
    this.#parts = parts;
    parts.lender.forgotten?.register(this, parts.handle, this);
  }

  static {
    partsOf = (operation, self) => {
      if (typeof self !== 'object' || self === null || !(#parts in self))
        throw new AttnError('WRONG_INSTANCE', `${operation}: called on what is not a model`, { op: operation });
      const parts = self.#parts;
      const gone = parts?.lender.engine.disposed ? 'instance' : 'model';
      if (!parts || gone === 'instance') throw new AttnError('DISPOSED', `${operation}: this ${gone} was disposed of`, { op: operation });
      return parts;
    };
    handlesOf = (model) => {
      const { lender, handle } = partsOf('wordEmbeddings', model as TextModel);
      return { model: handle, words: lender.engine.part('wordEmbeddings', handle, 'wordEmbeddings') };
    };
  }

  get config(): Readonly<Record<string, unknown>> {
    return partsOf('config', this).config;
  }

  get labels(): readonly string[] {
    // undefined without a head: an optional property, which a getter cannot be.
    return partsOf('labels', this).about.labels as readonly string[];
  }

  get task(): Task {
    return partsOf('task', this).about.task;
  }

  get notes(): readonly string[] {
    return partsOf('notes', this).about.notes;
  }

  get weights(): 'float32' | 'int8' {
    return partsOf('weights', this).about.quantized ? 'int8' : 'float32';
  }

  get maskToken(): string | undefined {
    const { tokenizer } = partsOf('maskToken', this);
    return tokenizer.maskId === undefined ? undefined : tokenizer.idToToken(tokenizer.maskId);
  }

  get wordEmbeddings(): Embedding {
    const { lender } = partsOf('wordEmbeddings', this);
    if (!this.#words?.layer) this.#words = lender.adopt('Embedding', handlesOf(this).words, this);
    return this.#words.layer as Embedding;
  }

  tokenize(texts: Parameters<Contract['tokenize']>[0], options?: Parameters<Contract['tokenize']>[1]): Encoding {
    partsOf('tokenize', this);
    const list = readTexts('tokenize', texts, true);
    const { plain } = readTextOptions('tokenize', options, encodeOptions);
    const { tokenizer, about } = partsOf('tokenize', this); // once more: a getter may have disposed of it
    return tokenizer.encode(list, { ...(plain as EncodeOptions), ...limits('tokenize', about, plain) });
  }

  forward(inputs: Encoding, options?: Parameters<Contract['forward']>[1]): TextModelOutput {
    return call(this, 'forward', inputs, { options }) as TextModelOutput;
  }

  traceLayer(inputs: Encoding, layer: number, names?: Parameters<Contract['traceLayer']>[2]): EncoderTrace {
    return call(this, 'traceLayer', inputs, { layer, names }) as EncoderTrace;
  }

  parameterShapes(): ReturnType<Contract['parameterShapes']> {
    return shapesOf('parameterShapes', this);
  }

  stateDict(): ReturnType<Contract['stateDict']> {
    // One after another: the module holds no second copy of all weights.
    return new Map(Array.from(shapesOf('stateDict', this).keys(), (name, index) => [name, ask(this, 'stateDict', 'getParameter', index) as Tensor]));
  }

  getParameter(name: string): Tensor {
    const names = [...shapesOf('getParameter', this).keys()];
    const index = names.indexOf(readParameterName(name));
    if (index < 0) fail('OUT_OF_RANGE', 'getParameter', 'name', describe(name), 'one of parameterShapes()');
    return ask(this, 'getParameter', 'getParameter', index) as Tensor;
  }

  loadStateDict(state: StateDict, options?: { strict?: boolean }): void {
    ask(this, 'loadStateDict', 'loadStateDict', state, options);
  }

  async export(options?: Parameters<Contract['export']>[0]): ReturnType<Contract['export']> {
    partsOf('export', this);
    const kind = readExportOptions(options) ?? this.weights;
    const { exportFiles } = await this.#onDemand('export');
    const { config, about, files, base } = partsOf('export', this); // once more: a getter may have disposed of it
    const shapes = shapesOf('export', this);
    const quantized = new Set((ask(this, 'export', 'quantizedShapes') as typeof shapes).keys());
    const values = (index: number) => (ask(this, 'export', 'getParameter', index) as Tensor).data;
    const rows = (index: number) => ask(this, 'export', 'getQuantized', index) as { bytes: Uint8Array; scales: Float32Array };
    return exportFiles({ config, about, files, base, shapes, quantized, values, rows }, kind);
  }

  decode(ids: ArrayLike<number>, options?: Parameters<Contract['decode']>[1]): string {
    const { tokenizer } = partsOf('decode', this);
    const list = readIds(ids);
    return tokenizer.decode(list, readDecodeOptions(options));
  }

  tokenToId(token: string): number | undefined {
    return partsOf('tokenToId', this).tokenizer.tokenToId(readToken('tokenToId', token));
  }

  idToToken(id: number): string | undefined {
    return partsOf('idToToken', this).tokenizer.idToToken(readId('idToToken', id));
  }

  async embed(texts: string | readonly string[], options?: Parameters<Contract['embed']>[1]): ReturnType<Contract['embed']> {
    const { about, tokenizer } = partsOf('embed', this);
    const given = readTexts('embed', texts, false) as string[];
    const read = readTextOptions('embed', options, embedOptions);
    const { plain } = read;
    const { pooling, normalize } = plain;
    const prompt = promptOf('embed', about, plain);
    const list = prompt === '' ? given : given.map((text) => prompt + text);
    await this.#prepare('embed', list);
    const promptLength = prompt === '' || about.includePrompt ? undefined : lengthOf(tokenizer, prompt, plain.addSpecialTokens);
    const width = pooling === undefined ? about.embeddingSize : about.pooledSize;
    const data = allocate('embed', 4 * list.length * width, () => new Float32Array(list.length * width));
    const limit = limits('embed', about, plain);
    const truncated: boolean[] = [];
    await inBatches('embed', () => partsOf('embed', this), read, {
      count: list.length,
      rowsOf: (index) => {
        const row = tokenized('embed', tokenizer, list[index]!, index, limit);
        truncated[index] = row.truncated;
        return [row];
      },
      method: 'embed',
      others: () => ({ options: { pooling, normalize, promptLength } }),
      use: (rows, result) => rows.forEach(({ index }, i) => data.set(result.data.subarray(i * width, (i + 1) * width), index * width)),
    });
    return { data, dims: [list.length, width], truncated };
  }

  async classify(
    texts: Parameters<Contract['classify']>[0],
    options?: Parameters<Contract['classify']>[1],
  ): Promise<{ label: string; score: number }[][]> {
    const { about, tokenizer } = partsOf('classify', this);
    const list = readTexts('classify', texts, true);
    const read = readTextOptions('classify', options, classifyOptions);
    assertTask('classify', about, 'text-classification');
    await this.#prepare('classify', list);
    const labels = about.labels!;
    const limit = limits('classify', about, read.plain);
    const results = new Array<{ label: string; score: number }[]>(list.length);
    await inBatches('classify', () => partsOf('classify', this), read, {
      count: list.length,
      rowsOf: (index) => [tokenized('classify', tokenizer, list[index]!, index, limit)],
      method: 'classify',
      others: () => ({ pairs: typeof list[0] !== 'string' }),
      use: (rows, { data }) =>
        rows.forEach(({ index }, i) => {
          const scored = labels.map((label, c) => ({ label, score: data[i * labels.length + c]! }));
          results[index] = scored.sort((a, b) => b.score - a.score).slice(0, read.plain.topK);
        }),
    });
    return results;
  }

  async classifyTokens(...args: Parameters<Contract['classifyTokens']>): ReturnType<Contract['classifyTokens']> {
    return this.#task('classifyTokens', args);
  }

  async fillMask(...args: readonly unknown[]): Promise<never> {
    return this.#task('fillMask', args);
  }

  async answer(...args: readonly unknown[]): Promise<never> {
    return this.#task('answer', args);
  }

  async rank(...args: Parameters<Contract['rank']>): ReturnType<Contract['rank']> {
    return this.#task('rank', args);
  }

  gradients(inputs: Encoding, options: Parameters<Contract['gradients']>[1]): ReturnType<Contract['gradients']> {
    const lent = this.#lend('gradients');
    return lent.find().lender.gradientsOf('gradients').gradients(lent, inputs, options);
  }

  async attribute(text: string, options?: Parameters<Contract['attribute']>[1]): ReturnType<Contract['attribute']> {
    const lent = this.#lend('attribute');
    return lent.find().lender.gradientsOf('attribute').attribute(lent, this, text, options);
  }

  async fineTune(examples: Parameters<Contract['fineTune']>[0], options?: FineTuneOptions): ReturnType<Contract['fineTune']> {
    const lent = this.#lend('fineTune');
    return lent.find().lender.gradientsOf('fineTune').fineTune(lent, this, examples, options);
  }

  async #task(name: 'classifyTokens' | 'fillMask' | 'answer' | 'rank', args: readonly unknown[]): Promise<never> {
    const task = (await this.#onDemand(name))[name] as (find: () => Parts, ...args: readonly unknown[]) => Promise<never>;
    return task(() => partsOf(name, this), ...args);
  }

  #onDemand(operation: string): ReturnType<Lender['onDemand']> {
    return partsOf(operation, this).lender.onDemand();
  }

  /** Brings what leaves unread of long texts what is cut off; without it they take their time. */
  async #prepare(operation: string, texts: readonly Text[]): Promise<void> {
    if (texts.flat().some(({ length }) => length > long)) await this.#onDemand(operation).catch(() => {});
  }

  #lend(operation: string): OwnLent {
    const find = () => partsOf(operation, this);
    const renew: Lent['renew'] = (labels, files, config) => {
      const parts = find();
      this.#parts = { ...parts, files, config: frozen(config), about: { ...parts.about, task: 'text-classification', labels: frozen(labels) } };
    };
    return { find, limits, signatureOf, readEncoded, padded, tokenized, renew };
  }

  dispose(): void {
    const parts = this.#parts;
    if (!parts) return;
    this.#parts = undefined;
    this.#words?.layer?.dispose();
    parts.lender.forgotten?.unregister(this);
    parts.lender.engine.free(parts.handle);
  }

  [disposeSymbol](): void {
    this.dispose();
  }
}

/** Tokens with which a prompt begins a text, special ones included, but for one at its end. */
function lengthOf(tokenizer: Tokenizer, prompt: string, addSpecialTokens: boolean | undefined): number {
  const { dims, offsets } = tokenizer.encode([prompt], { maxLength: 2 ** 31 - 1, truncation: true, tokenTypes: false, addSpecialTokens });
  return dims[1]! - (offsets[0]!.at(-1) === null ? 1 : 0);
}

/** A method of the module whose arguments are as it says. */
function ask(model: TextModel, operation: string, name: string, ...args: readonly unknown[]): unknown {
  const { lender } = partsOf(operation, model);
  lender.engine.assertUsable(operation);
  const signature = signatureOf(lender.engine, name);
  const leaves = readArguments(operation, signature, args);
  return lender.engine.call(operation, signature, leaves, partsOf(operation, model).handle);
}

function shapesOf(operation: string, model: TextModel): ReturnType<Contract['parameterShapes']> {
  return ask(model, operation, 'parameterShapes') as ReturnType<Contract['parameterShapes']>;
}

function call(model: TextModel, name: 'forward' | 'traceLayer', inputs: unknown, others: Readonly<Record<string, unknown>>): unknown {
  const { lender } = partsOf(name, model);
  lender.engine.assertUsable(name);
  const signature = signatureOf(lender.engine, name);
  const operation = opOf(internalClass, name);
  const leaves = readEncoded(operation, signature, inputs, others);
  return lender.engine.call(operation, signature, leaves, partsOf(name, model).handle);
}
