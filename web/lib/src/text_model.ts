/** A model, and what it can do. */
import type { EncoderTrace, Encoding, Embedding, FineTuneOptions, StateDict, TextModel as Contract, TextModelOutput, Tensor } from './attn.js';
import { aborted } from './abort.js';
import { breathe } from './breathe.js';
import { disposeSymbol } from './dispose.js';
import type { Engine } from './engine.js';
import { allocate, AttnError, describe, fail, reason } from './error.js';
import { exportFiles, membersOf } from './export_model.js';
import type { Disk } from './model_files.js';
import {
  classifyOptions,
  embedOptions,
  type FileName,
  frozen,
  readEncoded,
  readExportOptions,
  readId,
  readParameterName,
  readTextOptions,
  readTexts,
  readToken,
  type Text,
  tokenizeOptions,
  type TextOptions,
} from './model_options.js';
import type { Lent } from './model_gradients.js';
import type { NativeLayer } from './native.js';
import { internalClass, opOf, readArguments, type Signature } from './signature.js';
import { type EncodeOptions, encodingOf, type Tokenizer } from './tokenizer/tokenizer.js';

/** What an instance lends to its models. */
export interface Lender {
  readonly engine: Engine;
  readonly disk: Disk | undefined;
  /** Frees the handles of what is collected. */
  readonly forgotten: FinalizationRegistry<NativeLayer> | undefined;
  /** A layer of the class around a handle that belongs to the owner; it is there until somebody disposes of it. */
  adopt(name: string, handle: NativeLayer, owner: object): { readonly layer: { dispose(): void } | undefined };
}

/** What the module says of a model. */
export interface About {
  readonly maxLength: number;
  readonly positions: number;
  /** Numbers of an embedding, by one pooling and by those that the files name. */
  readonly pooledSize: number;
  readonly embeddingSize: number;
  readonly labels?: readonly string[];
  /** Whether texts are to be made small letters of. */
  readonly lowerCase: boolean;
  /** Whether token types are what tokenizer.json says, or all 0. */
  readonly tokenTypes: boolean;
  readonly defaultPrompt: string;
  /** By name. */
  readonly prompts: ReadonlyMap<string, string>;
  /** Whether a prompt's tokens are pooled, too. */
  readonly includePrompt: boolean;
  readonly quantized: boolean;
}

export interface Parts {
  readonly lender: Lender;
  readonly handle: NativeLayer;
  readonly config: Readonly<Record<string, unknown>>;
  readonly about: About;
  readonly tokenizer: Tokenizer;
  /** The small files by name, for export(), and the folder of config.json in front. */
  readonly files: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>;
  readonly base: string;
}

export const signatureOf = ({ signatures }: Engine, name: string): Signature =>
  signatures.find((each) => each.owner === internalClass && each.name === name)!;

/** A text's tokens, without padding. */
interface Row {
  readonly index: number;
  readonly ids: Int32Array;
  readonly types: Int32Array;
}

/** How many texts are sorted by length at a time, so that a list of any length takes no more memory than its results. */
const mostSorted = 8192;
const defaultBatch = 32;

let partsOf: (operation: string, self: TextModel) => Parts;
/** The handle of a model's words, for attn/worker. */
export let handlesOf: (model: object) => { readonly model: NativeLayer; readonly words: NativeLayer };

export class TextModel implements Contract {
  #parts: Parts | undefined;
  #words: ReturnType<Lender['adopt']> | undefined;

  constructor(parts: Parts) {
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

  get weights(): 'float32' | 'int8' {
    return partsOf('weights', this).about.quantized ? 'int8' : 'float32';
  }

  get wordEmbeddings(): Embedding {
    const { lender } = partsOf('wordEmbeddings', this);
    if (!this.#words?.layer) this.#words = lender.adopt('Embedding', handlesOf(this).words, this);
    return this.#words.layer as Embedding;
  }

  tokenize(texts: Parameters<Contract['tokenize']>[0], options?: Parameters<Contract['tokenize']>[1]): Encoding {
    partsOf('tokenize', this);
    const list = readTexts('tokenize', texts, true);
    const { plain } = readTextOptions('tokenize', options, tokenizeOptions);
    const { tokenizer, about } = partsOf('tokenize', this); // once more: a getter may have disposed of it
    return tokenizer.encode(list, limits('tokenize', about, plain));
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
    const { config, about, files, base } = partsOf('export', this); // once more: a getter may have disposed of it
    const shapes = shapesOf('export', this);
    const quantized = new Set((ask(this, 'export', 'quantizedShapes') as typeof shapes).keys());
    const values = (index: number) => (ask(this, 'export', 'getParameter', index) as Tensor).data;
    const rows = (index: number) => ask(this, 'export', 'getQuantized', index) as { bytes: Uint8Array; scales: Float32Array };
    return exportFiles({ config, hasHead: about.labels !== undefined, files, base, shapes, quantized, values, rows }, kind);
  }

  tokenToId(token: string): number | undefined {
    return partsOf('tokenToId', this).tokenizer.tokenToId(readToken('tokenToId', token));
  }

  idToToken(id: number): string | undefined {
    return partsOf('idToToken', this).tokenizer.idToToken(readId('idToToken', id));
  }

  async embed(texts: string | readonly string[], options?: Parameters<Contract['embed']>[1]): Promise<Tensor> {
    const { about, tokenizer } = partsOf('embed', this);
    const given = readTexts('embed', texts, false) as string[];
    const { plain, signal, onProgress } = readTextOptions('embed', options, embedOptions);
    const { pooling, normalize } = plain;
    const prompt = promptOf(about, plain);
    const list = prompt === '' ? given : given.map((text) => prompt + text);
    const promptLength = prompt === '' || about.includePrompt ? undefined : lengthOf(tokenizer, prompt);
    const width = pooling === undefined ? about.embeddingSize : about.pooledSize;
    const data = allocate('embed', 4 * list.length * width, () => new Float32Array(list.length * width));
    await inBatches(this, 'embed', list, plain, signal, onProgress, { options: { pooling, normalize, promptLength } }, (rows, result) =>
      rows.forEach(({ index }, i) => data.set(result.data.subarray(i * width, (i + 1) * width), index * width)),
    );
    return { data, dims: [list.length, width] };
  }

  async classify(
    texts: Parameters<Contract['classify']>[0],
    options?: Parameters<Contract['classify']>[1],
  ): Promise<{ label: string; score: number }[][]> {
    const { about } = partsOf('classify', this);
    const list = readTexts('classify', texts, true);
    const { plain, signal, onProgress } = readTextOptions('classify', options, classifyOptions);
    const { labels } = about;
    if (!labels) throw new AttnError('UNSUPPORTED', 'classify: this checkpoint has no classification head', { op: 'classify' });
    const results = new Array<{ label: string; score: number }[]>(list.length);
    await inBatches(this, 'classify', list, plain, signal, onProgress, {}, (rows, { data }) =>
      rows.forEach(({ index }, i) => {
        const scored = labels.map((label, c) => ({ label, score: data[i * labels.length + c]! }));
        results[index] = scored.sort((a, b) => b.score - a.score);
      }),
    );
    return results;
  }

  gradients(inputs: Encoding, options: Parameters<Contract['gradients']>[1]): ReturnType<Contract['gradients']> {
    const lent = this.#lend('gradients');
    return lent.find().lender.engine.gradientsOf('gradients').gradients(lent, inputs, options);
  }

  async attribute(text: string, options?: Parameters<Contract['attribute']>[1]): ReturnType<Contract['attribute']> {
    const lent = this.#lend('attribute');
    return lent.find().lender.engine.gradientsOf('attribute').attribute(lent, this, text, options);
  }

  async fineTune(examples: Parameters<Contract['fineTune']>[0], options?: FineTuneOptions): ReturnType<Contract['fineTune']> {
    const lent = this.#lend('fineTune');
    return lent.find().lender.engine.gradientsOf('fineTune').fineTune(lent, this, examples, options);
  }

  #lend(operation: string): Lent {
    const find = () => partsOf(operation, this);
    const renew: Lent['renew'] = (labels, files, config) => {
      const parts = find();
      this.#parts = { ...parts, files, config: frozen(config), about: { ...parts.about, labels: frozen(labels) } };
    };
    return { find, limits, signatureOf, readEncoded, padded, tokenized, membersOf, renew };
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

/** What goes before each text: of both the prompt counts, as in sentence-transformers. */
function promptOf({ prompts, defaultPrompt }: About, { prompt, promptName }: TextOptions): string {
  if (prompt !== undefined) return prompt;
  if (promptName === undefined) return defaultPrompt;
  return prompts.get(promptName) ?? fail('CONFIG', 'embed', 'promptName', JSON.stringify(promptName), `one of ${[...prompts.keys()].join(', ')}`);
}

/** Tokens with which a prompt begins a text, special ones included, but for one at its end. */
function lengthOf(tokenizer: Tokenizer, prompt: string): number {
  const { dims, offsets } = tokenizer.encode([prompt], { maxLength: 2 ** 31 - 1, truncation: true, tokenTypes: false });
  return dims[1]! - (offsets[0]!.at(-1) === null ? 1 : 0);
}

/** What the caller's options say beside what the checkpoint does. */
export function limits(operation: string, { maxLength, positions, tokenTypes }: About, options: TextOptions): EncodeOptions {
  const wanted = options.maxLength ?? maxLength;
  if (wanted > positions)
    throw new AttnError('OUT_OF_RANGE', `${operation}: maxLength is ${wanted}, expected at most ${positions}, the positions of the model`, {
      op: operation,
      argument: 'maxLength',
      expected: `at most ${positions}`,
      got: String(wanted),
    });
  return { maxLength: wanted, truncation: options.truncation ?? true, tokenTypes };
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

/** Rows side by side, filled up to the longest. With what does not matter: it is masked, and nothing is made of it. */
export function padded(operation: string, rows: readonly Row[]): Omit<Encoding, 'tokens' | 'offsets' | 'truncated'> {
  const length = Math.max(...rows.map(({ ids }) => ids.length));
  const size = rows.length * length;
  const [inputIds, attentionMask, tokenTypeIds] = encodingOf(operation, size);
  rows.forEach(({ ids, types }, i) => {
    inputIds.set(ids, i * length);
    tokenTypeIds.set(types, i * length);
    attentionMask.fill(1, i * length, i * length + ids.length);
  });
  return { inputIds, attentionMask, tokenTypeIds, dims: [rows.length, length] };
}

/** Calls `use` with the result of each batch. Long texts go first, so that what does not fit into memory is known at once. */
async function inBatches(
  model: TextModel,
  name: 'embed' | 'classify',
  texts: readonly Text[],
  options: TextOptions,
  signal: AbortSignal | undefined,
  onProgress: ((p: { done: number; total: number }) => void) | undefined,
  others: Readonly<Record<string, unknown>>,
  use: (rows: readonly Row[], result: Tensor) => void,
): Promise<void> {
  const { lender, about, tokenizer } = partsOf(name, model);
  lender.engine.assertUsable(name);
  const signature = signatureOf(lender.engine, name);
  const limit = limits(name, about, options);
  const { batchSize = defaultBatch } = options;
  const turn = async () => {
    await breathe();
    if (signal?.aborted) throw aborted(signal, name);
  };
  let done = 0;
  const report = () => {
    try {
      onProgress?.({ done, total: texts.length });
    } catch (cause) {
      throw new AttnError('ARGUMENT', `${name}: onProgress threw (${reason(cause)})`, { op: name, argument: 'onProgress' }, { cause });
    }
  };
  if (signal?.aborted) throw aborted(signal, name);
  report();
  for (let start = 0; start < texts.length; start += mostSorted) {
    const rows: Row[] = [];
    for (let from = start; from < Math.min(start + mostSorted, texts.length); from += batchSize) {
      if (from > start) await turn();
      const end = Math.min(from + batchSize, start + mostSorted, texts.length);
      for (let index = from; index < end; ++index) rows.push(tokenized(name, tokenizer, texts[index]!, index, limit));
    }
    rows.sort((a, b) => b.ids.length - a.ids.length);
    for (let from = 0; from < rows.length; from += batchSize) {
      await turn();
      const batch = rows.slice(from, from + batchSize);
      const leaves = readEncoded(name, signature, padded(name, batch), others);
      use(batch, lender.engine.call(name, signature, leaves, partsOf(name, model).handle) as Tensor);
      done += batch.length;
      report();
    }
  }
}

export function tokenized(operation: string, tokenizer: Tokenizer, text: Text, index: number, limit: EncodeOptions): Row {
  try {
    const { inputIds: ids, tokenTypeIds: types } = tokenizer.encode([text], limit);
    return { index, ids, types };
  } catch (error) {
    if (!(error instanceof AttnError) || error.detail['index'] !== 0) throw error;
    // The tokenizer knows of one text; the caller has many.
    const message = error.message.replace(/^\w+:/, `${operation}:`).replace(/\btext(s\[0\]| 0\b)/, `texts[${index}]`);
    throw new AttnError(error.code, message, { ...error.detail, op: operation, index });
  }
}
