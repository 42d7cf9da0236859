import type {
  Attn,
  ChatMessage,
  ChatTemplateOptions,
  EncoderTrace,
  Encoding,
  Embedding,
  FineTuneOptions,
  StateDict,
  Task,
  TextModel as Contract,
  TextModelOutput,
  Tensor,
} from '../attn.js';
import { disposeSymbol } from '../platform/dispose.js';
import { instanceKey } from '../platform/instance.js';
import { assertTask, encodeOptionsOf, inBatches, type ModelAccess, promptOf, tokenized } from './batches.js';
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
import { type ChatFiles, readChatFiles } from './chat_files.js';
import { KeyValueCache } from './key_value_cache.js';
import type { ModelContext } from './model_context.js';
import { gradients } from './model_gradients.js';
import { imageHandles, type ModelState, signatureOf } from './model_state.js';
import { internalClass, opOf, readArguments } from '../args/signature.js';
import { type EncodeOptions, type Tokenizer, useEarlyEnd } from '../tokenizer/tokenizer.js';

/** Characters from which loading the script for truncation pays. */
const long = 2 ** 15;

type LazyTask = 'classifyTokens' | 'classifyZeroShot' | 'fillMask' | 'answer' | 'rank' | 'generate' | 'nextToken' | 'scoreTokens';
type OwnState = ModelState & { readonly context: ModelContext };
type OwnAccess = Omit<ModelAccess, 'find'> & { find(): OwnState };

let stateOf: (operation: string, self: TextModel) => OwnState;
export let handlesOf: (model: object) => { readonly model: NativeLayer; readonly words: NativeLayer | undefined };
export const chatFilesOf = (model: object): ChatFiles => readChatFiles(stateOf('applyChatTemplate', model as TextModel));

export class TextModel implements Contract {
  #state: OwnState | undefined;
  #words: ReturnType<ModelContext['adopt']> | undefined;

  constructor(state: OwnState) {
    this.#state = state;
    state.context.forgotten?.register(this, state.handle, this);
  }

  static {
    stateOf = (operation, self) => {
      if (typeof self !== 'object' || self === null || !(#state in self))
        throw new AttnError('WRONG_INSTANCE', `${operation}: this is another object, expected a model`, { op: operation });
      const state = self.#state;
      const gone = state?.context.engine.disposed ? 'instance' : 'model';
      if (!state || gone === 'instance') throw new AttnError('DISPOSED', `${operation}: this ${gone} was disposed of`, { op: operation });
      return state;
    };
    handlesOf = (model) => {
      const image = imageHandles.get(model);
      if (image) return { model: image(), words: undefined };
      const { context, handle } = stateOf('wordEmbeddings', model as TextModel);
      return { model: handle, words: context.engine.part('wordEmbeddings', handle, 'wordEmbeddings') };
    };
  }

  get config(): Readonly<Record<string, unknown>> {
    return stateOf('config', this).config;
  }

  get labels(): readonly string[] {
    // Undefined without a head: a getter cannot be an optional property.
    return stateOf('labels', this).about.labels as readonly string[];
  }

  get task(): Task {
    return stateOf('task', this).about.task;
  }

  get notes(): readonly string[] {
    return stateOf('notes', this).about.notes;
  }

  get weights(): 'float32' | 'int8' {
    return stateOf('weights', this).about.quantized ? 'int8' : 'float32';
  }

  get prompts(): Readonly<Record<string, string>> {
    return stateOf('prompts', this).about.prompts;
  }

  get maskToken(): string | undefined {
    const { tokenizer } = stateOf('maskToken', this);
    return tokenizer.maskId === undefined ? undefined : tokenizer.idToToken(tokenizer.maskId);
  }

  get wordEmbeddings(): Embedding {
    const { context } = stateOf('wordEmbeddings', this);
    if (!this.#words?.layer) this.#words = context.adopt('Embedding', handlesOf(this).words!, this);
    return this.#words.layer as Embedding;
  }

  tokenize(texts: Parameters<Contract['tokenize']>[0], options?: Parameters<Contract['tokenize']>[1]): Encoding {
    stateOf('tokenize', this);
    const list = readTexts('tokenize', texts, true);
    const { plain } = readTextOptions('tokenize', options, encodeOptions);
    const { tokenizer, about } = stateOf('tokenize', this); // a getter may have disposed of the model
    return tokenizer.encode(list, { ...(plain as EncodeOptions), ...encodeOptionsOf('tokenize', about, plain) });
  }

  forward(inputs: Encoding, options?: Parameters<Contract['forward']>[1]): TextModelOutput {
    return call(this, 'forward', inputs, { options }) as TextModelOutput;
  }

  traceLayer(inputs: Encoding, layer: number, names?: Parameters<Contract['traceLayer']>[2]): EncoderTrace {
    return call(this, 'traceLayer', inputs, { layer, names }) as EncoderTrace;
  }

  unembed(hiddenStates: Tensor): Tensor {
    return ask(this, 'unembed', 'unembed', hiddenStates) as Tensor;
  }

  parameterShapes(): ReturnType<Contract['parameterShapes']> {
    return shapesOf('parameterShapes', this);
  }

  stateDict(): ReturnType<Contract['stateDict']> {
    // One by one: the module holds no second copy of all weights.
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
    stateOf('export', this);
    const kind = readExportOptions(options) ?? this.weights;
    const { exportFiles } = await this.#lazyTasks('export');
    const { config, about, files, base } = stateOf('export', this); // a getter may have disposed of the model
    const shapes = shapesOf('export', this);
    const none: typeof shapes = new Map<string, readonly number[]>();
    const quantized = kind === 'int8' ? (ask(this, 'export', 'quantizedShapes') as typeof shapes) : none;
    const values = (index: number) => (ask(this, 'export', 'getParameter', index) as Tensor).data;
    const rows = (index: number) => ask(this, 'export', 'getQuantized', index) as { bytes: Uint8Array; scales: Float32Array };
    return exportFiles({ config, about, files, base, shapes, quantized, values, rows }, kind);
  }

  createCache(options?: Parameters<Contract['createCache']>[0]): KeyValueCache {
    const state = stateOf('createCache', this);
    const free = (number: number) => {
      const { engine } = state.context;
      if (this.#state && !engine.disposed) engine.call('dispose', signatureOf(engine, 'freeCache'), [number], state.handle);
    };
    return new KeyValueCache((op, name, ...args) => ask(this, op, name, ...args), free, options);
  }

  decode(ids: ArrayLike<number>, options?: Parameters<Contract['decode']>[1]): string {
    const { tokenizer } = stateOf('decode', this);
    const list = readIds(ids);
    return tokenizer.decode(list, readDecodeOptions(options));
  }

  tokenToId(token: string): number | undefined {
    return stateOf('tokenToId', this).tokenizer.tokenToId(readToken('tokenToId', token));
  }

  idToToken(id: number): string | undefined {
    return stateOf('idToToken', this).tokenizer.idToToken(readId('idToToken', id));
  }

  async embed(texts: string | readonly string[], options?: Parameters<Contract['embed']>[1]): ReturnType<Contract['embed']> {
    const { about, tokenizer } = stateOf('embed', this);
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
    const limit = encodeOptionsOf('embed', about, plain);
    const truncated: boolean[] = [];
    await inBatches('embed', () => stateOf('embed', this), read, {
      count: list.length,
      rowsOf: (index) => {
        const row = tokenized('embed', tokenizer, list[index]!, index, limit);
        truncated[index] = row.truncated;
        return [row];
      },
      method: 'embed',
      others: () => [{ pooling, normalize, promptLength }],
      use: (rows, result) => rows.forEach(({ index }, i) => data.set(result.data.subarray(i * width, (i + 1) * width), index * width)),
    });
    return { data, dims: [list.length, width], truncated };
  }

  async classify(
    texts: Parameters<Contract['classify']>[0],
    options?: Parameters<Contract['classify']>[1],
  ): Promise<{ label: string; score: number }[][]> {
    const { about, tokenizer } = stateOf('classify', this);
    const list = readTexts('classify', texts, true);
    const read = readTextOptions('classify', options, classifyOptions);
    assertTask('classify', about, 'text-classification');
    await this.#prepare('classify', list);
    const labels = about.labels!;
    const limit = encodeOptionsOf('classify', about, read.plain);
    const results = new Array<{ label: string; score: number }[]>(list.length);
    await inBatches('classify', () => stateOf('classify', this), read, {
      count: list.length,
      rowsOf: (index) => [tokenized('classify', tokenizer, list[index]!, index, limit)],
      method: 'classify',
      others: () => [typeof list[0] !== 'string'],
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

  async classifyZeroShot(...args: Parameters<Contract['classifyZeroShot']>): ReturnType<Contract['classifyZeroShot']> {
    return this.#task('classifyZeroShot', args);
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

  async generate(...args: Parameters<Contract['generate']>): ReturnType<Contract['generate']> {
    return this.#task('generate', args);
  }

  async nextToken(...args: Parameters<Contract['nextToken']>): ReturnType<Contract['nextToken']> {
    return this.#task('nextToken', args);
  }

  async scoreTokens(...args: Parameters<Contract['scoreTokens']>): ReturnType<Contract['scoreTokens']> {
    return this.#task('scoreTokens', args);
  }

  async applyChatTemplate(messages: readonly ChatMessage[], options?: ChatTemplateOptions): Promise<string> {
    const { formatChat } = await stateOf('applyChatTemplate', this).context.chat();
    return formatChat(chatFilesOf(this), messages, options);
  }

  gradients(inputs: Encoding, options: Parameters<Contract['gradients']>[1]): ReturnType<Contract['gradients']> {
    return gradients(this.#access('gradients'), inputs, options);
  }

  async attribute(text: string, options?: Parameters<Contract['attribute']>[1]): ReturnType<Contract['attribute']> {
    const { attribute } = await this.#lazyTasks('attribute');
    return attribute(this.#access('attribute'), text, options);
  }

  async fineTune(examples: Parameters<Contract['fineTune']>[0], options?: FineTuneOptions): ReturnType<Contract['fineTune']> {
    const { fineTune } = await this.#lazyTasks('fineTune');
    return fineTune(this.#access('fineTune'), this, examples, options);
  }

  async #task(name: LazyTask, args: readonly unknown[]): Promise<never> {
    const task = (await this.#lazyTasks(name))[name] as (find: () => ModelState, ...args: readonly unknown[]) => Promise<never>;
    return task(() => stateOf(name, this), ...args);
  }

  async #lazyTasks(operation: string): ReturnType<ModelContext['lazyTasks']> {
    const tasks = await stateOf(operation, this).context.lazyTasks();
    useEarlyEnd(tasks.earlyEnd); // not by a statement of that script: bundlers drop it, because the package has no side effects
    return tasks;
  }

  /** Without this script tokenizing long texts is only slower. */
  async #prepare(operation: string, texts: readonly Text[]): Promise<void> {
    if (texts.flat().some(({ length }) => length > long)) await this.#lazyTasks(operation).catch(() => {});
  }

  #access(operation: string): OwnAccess {
    const find = () => stateOf(operation, this);
    const replaceHead: ModelAccess['replaceHead'] = (labels, files, config) => {
      const state = find();
      this.#state = { ...state, files, config: frozen(config), about: { ...state.about, task: 'text-classification', labels: frozen(labels) } };
    };
    return { find, replaceHead };
  }

  get [instanceKey](): Attn {
    return stateOf('model', this).context.instance();
  }

  dispose(): void {
    const state = this.#state;
    if (!state) return;
    this.#state = undefined;
    this.#words?.layer?.dispose();
    state.context.forgotten?.unregister(this);
    state.context.engine.free(state.handle);
  }

  [disposeSymbol](): void {
    this.dispose();
  }
}

/** Counts tokens, special ones included, except a final one. */
function lengthOf(tokenizer: Tokenizer, prompt: string, addSpecialTokens: boolean | undefined): number {
  const { parts, length } = tokenizer.row([prompt], 0, { maxLength: 2 ** 31 - 1, truncation: true, addSpecialTokens });
  return length - (parts.filter(({ ids }) => ids.length > 0).at(-1)?.special ? 1 : 0);
}

function ask(model: TextModel, operation: string, name: string, ...args: readonly unknown[]): unknown {
  const { context } = stateOf(operation, model);
  context.engine.assertUsable(operation);
  const signature = signatureOf(context.engine, name);
  const leaves = readArguments(operation, signature, args);
  return context.engine.call(operation, signature, leaves, stateOf(operation, model).handle);
}

function shapesOf(operation: string, model: TextModel): ReturnType<Contract['parameterShapes']> {
  return ask(model, operation, 'parameterShapes') as ReturnType<Contract['parameterShapes']>;
}

function call(model: TextModel, name: 'forward' | 'traceLayer', inputs: unknown, others: Readonly<Record<string, unknown>>): unknown {
  const { context } = stateOf(name, model);
  context.engine.assertUsable(name);
  const signature = signatureOf(context.engine, name);
  const operation = opOf(internalClass, name);
  const leaves = readEncoded(operation, signature, inputs, others);
  return context.engine.call(operation, signature, leaves, stateOf(name, model).handle);
}
