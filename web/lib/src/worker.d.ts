/// <reference lib="esnext.disposable" />
/**
 * `attn/worker`: the API of `attn` with the module in its own worker, so that nothing blocks the caller. Every member
 * is a promise; errors keep code and detail, and progress and abort work.
 *
 * If a worker dies, its pending calls reject with `ABORTED`, and you can call `load()` again. A worker ends with
 * `dispose()` or `terminate()`, or when its instance and everything made by it has been garbage-collected.
 *
 * @example
 * ```ts
 * import { load, transfer } from 'attn/worker';
 *
 * const attn = await load({ threads: 'auto' });
 * const mha = await new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
 * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
 * const { output } = await mha.forward(transfer(x)); // x.data moves to the worker instead of being copied
 * console.log(output.dims); // [ 1, 3, 8 ]
 * await attn.dispose();
 * ```
 * @packageDocumentation
 */
import type * as Direct from './attn.js';

export type {
  Activation,
  Answer,
  AnswerOptions,
  AttentionOptions,
  AttentionResult,
  BackwardResult,
  BatchOptions,
  ChatMessage,
  ChatTemplateOptions,
  ClassifierOptions,
  ClassifyOptions,
  ClassifyTokensOptions,
  Dims,
  EmbedOptions,
  EncoderBackwardOptions,
  EncoderBackwardResult,
  EncoderForwardOptions,
  EncoderLayerOptions,
  EncoderOptions,
  EncoderResult,
  EncoderTrace,
  EncoderTraceName,
  Encoding,
  Entity,
  ErrorCode,
  FillMaskOptions,
  FilledMask,
  FineTuneExample,
  FineTuneOptions,
  FineTuneProgress,
  FineTuneResult,
  GeneratedText,
  GenerateOptions,
  Image,
  ImageClassifyOptions,
  ImageCrop,
  ImageEmbedOptions,
  ImageForwardOptions,
  ImageInputs,
  Int8Tensor,
  LanguageExample,
  LayerPatch,
  LoadOptions,
  Loss,
  Mask,
  ModelOptions,
  ModelSource,
  MultiHeadAttentionOptions,
  NestedNumbers,
  NextToken,
  ParameterGroup,
  PromptOptions,
  RankedDocument,
  RankOptions,
  RuntimeInfo,
  SafetensorsHeader,
  ScoredText,
  StateDict,
  Task,
  Tensor,
  TextAttribution,
  TextForwardOptions,
  TextModelGradients,
  TextModelOutput,
  TokenizeOptions,
  TraceName,
  ZeroShotOptions,
} from './attn.js';
export { AttnError, encoderTraceNames, hub, readSafetensorsHeader, tensor, traceNames } from './attn.js';

/** T with promises as results. Constructors give promises of objects that `await using` can dispose of. */
export type Promisified<T> = {
  readonly [K in keyof T]: T[K] extends new (...args: infer A) => infer R
    ? new (...args: A) => Promise<Promisified<R> & AsyncDisposable>
    : T[K] extends (...args: infer A) => infer R
      ? (...args: A) => Promise<Awaited<R>>
      : Promise<T[K]>;
};

/** {@link Direct.Module | Module} in a worker. */
export type Module = Promisified<Direct.Module> & AsyncDisposable;
/** {@link Direct.MultiHeadAttention | MultiHeadAttention} in a worker. */
export type MultiHeadAttention = Promisified<Direct.MultiHeadAttention> & AsyncDisposable;
/** {@link Direct.Encoder | Encoder} in a worker. */
export type Encoder = Promisified<Direct.Encoder> & AsyncDisposable;
/** {@link Direct.Classifier | Classifier} in a worker. */
export type Classifier = Promisified<Direct.Classifier> & AsyncDisposable;
/** {@link Direct.Embedding | Embedding} in a worker. */
export type Embedding = Promisified<Direct.Embedding> & AsyncDisposable;
/** {@link Direct.Optimizer | Optimizer} in a worker. */
export type Optimizer = Promisified<Direct.Optimizer> & AsyncDisposable;

type OptimizerClass<T> = T extends new (modules: never, options?: infer O) => unknown
  ? new (modules: readonly Module[], options?: O) => Promise<Optimizer>
  : never;

/** {@link Direct.KeyValueCache | KeyValueCache} in a worker. */
export type KeyValueCache = Promisified<Direct.KeyValueCache> & AsyncDisposable;

/** {@link Direct.ImageModel | ImageModel} in a worker. */
export type ImageModel = Promisified<Direct.ImageModel> & AsyncDisposable;

/** Models in a worker by the type argument of `loadModel`. */
export interface ModelKinds {
  text: TextModel;
  image: ImageModel;
}

/** {@link Direct.TextModel | TextModel} in a worker. */
export type TextModel = Omit<Promisified<Direct.TextModel>, 'wordEmbeddings' | 'fillMask' | 'answer' | 'createCache' | 'forward'> &
  Pick<Direct.TextModel, 'fillMask' | 'answer'> &
  AsyncDisposable & {
    /** {@link Direct.TextModel.wordEmbeddings | `wordEmbeddings`} in the worker. */
    readonly wordEmbeddings: Promise<Embedding>;
    /**
     * Creates a cache in the worker; see {@link Direct.TextModel.createCache | `createCache` of attn}.
     *
     * @param options as there
     *
     * @example
     * ```ts
     * import { load } from 'attn/worker';
     *
     * await using attn = await load();
     * const model = await attn.loadModel('models/tiny-gpt2');
     * const cache = await model.createCache({ maxLength: 8 });
     * console.log(await cache.maxLength); // 8
     * ```
     */
    createCache(options?: Parameters<Direct.TextModel['createCache']>[0]): Promise<KeyValueCache>;
    /**
     * Computes the model in the worker; see {@link Direct.TextModel.forward | `forward` of attn}.
     *
     * @param inputs result of `tokenize`
     * @param options as there
     *
     * @example
     * ```ts
     * import { load } from 'attn/worker';
     *
     * await using attn = await load();
     * const model = await attn.loadModel('models/sentiment');
     * const { logits } = await model.forward(await model.tokenize('a wonderful film'));
     * console.log(logits?.dims); // [ 1, 2 ]
     * ```
     */
    forward(
      inputs: Direct.Encoding,
      options?: Omit<Direct.TextForwardOptions, 'cache'> & {
        /** A cache of this model, so that it is in the same worker. */
        cache?: KeyValueCache | Direct.KeyValueCache | undefined;
      },
    ): Promise<Direct.TextModelOutput>;
  };

/**
 * A running instance in its worker, made by {@link load}. Calls run in order; only between batches of texts and while a
 * model loads do other calls run. A call that changes or frees a model waits for the earlier calls of the model.
 * `writeSafetensors` runs in the caller's thread.
 */
export type Attn = Omit<Promisified<Direct.Attn>, 'loadModel' | 'SGD' | 'Adam' | 'AdamW' | 'clipGradNorm'> &
  AsyncDisposable & {
    /** {@link Direct.Attn.SGD | `SGD`} for modules of this worker. */
    readonly SGD: OptimizerClass<Direct.Attn['SGD']>;
    /** {@link Direct.Attn.Adam | `Adam`} for modules of this worker. */
    readonly Adam: OptimizerClass<Direct.Attn['Adam']>;
    /** {@link Direct.Attn.AdamW | `AdamW`} for modules of this worker. */
    readonly AdamW: OptimizerClass<Direct.Attn['AdamW']>;
    /**
     * Limits the norm of the gradients; see {@link Direct.Attn.clipGradNorm | `clipGradNorm` of attn}.
     *
     * @param modules modules of this worker, at least one, each once
     * @param maxNorm from 0; `Infinity` only computes the norm
     *
     * @example
     * ```ts
     * import { load } from 'attn/worker';
     *
     * await using attn = await load();
     * const words = await new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
     * await words.forward([0], [1], { forBackward: true });
     * await words.backward({ data: new Float32Array([3, 4]), dims: [1, 2] });
     * console.log(await attn.clipGradNorm([words], 1)); // 5
     * ```
     */
    clipGradNorm(modules: readonly Module[], maxNorm: number): Promise<number>;
    /**
     * Loads a model in the worker; see {@link Direct.Attn.loadModel | `loadModel` of attn}. A relative URL is
     * relative to the page. The worker reads Blobs and Files itself; bytes are copied unless they are marked by
     * {@link transfer}.
     *
     * @typeParam Kind `'image'` if the folder has an image model; only TypeScript needs it
     * @param source a URL or path, or the files by name
     * @param options see {@link ModelOptions}, without `fetch`
     * @throws {AttnError} `ARGUMENT` for the option `fetch`, because a function cannot be sent to a worker
     *
     * @example
     * ```ts
     * import { load } from 'attn/worker';
     *
     * await using attn = await load();
     * const model = await attn.loadModel('models/sentiment');
     * const [[best]] = await model.classify('What a wonderful film!');
     * console.log(best.label); // positive
     *
     * const vit = await attn.loadModel<'image'>('models/tiny-vit');
     * console.log(await vit.task); // image-classification
     * ```
     */
    loadModel<Kind extends keyof ModelKinds = 'text'>(
      source: Direct.ModelSource,
      options?: Omit<Direct.ModelOptions, 'fetch'>,
    ): Promise<ModelKinds[Kind]>;
    /**
     * Ends the worker immediately; pending calls reject with `ABORTED`. `dispose()` lets earlier calls finish, except
     * `loadModel`, which rejects with `DISPOSED`.
     *
     * @example
     * ```ts
     * import { load } from 'attn/worker';
     *
     * const attn = await load();
     * const pending = attn.peak(1e9);
     * attn.terminate();
     * await pending.catch((error) => console.log(error.code, error.name)); // ABORTED AbortError
     * ```
     */
    terminate(): void;
  };

/**
 * Starts an instance in a new worker; see {@link Direct.load | `load` of attn}. A relative `wasm` is relative to the
 * page (in Node, to the working directory). If `signal` aborts, the worker ends.
 *
 * @param options see {@link LoadOptions}
 * @throws {AttnError} those of {@link Direct.load | `load` of attn}
 *
 * @example
 * ```ts
 * import { load } from 'attn/worker';
 *
 * await using attn = await load();
 * const { data } = await attn.softmax({ data: new Float32Array([0, 0]), dims: [2] });
 * console.log(...data); // 0.5 0.5
 * ```
 */
export function load(options?: Direct.LoadOptions): Promise<Attn>;

/**
 * Marks a value so that the next call moves it to the worker instead of copying it. The call detaches its buffer,
 * including all other views of the buffer. The mark applies to one call, even if the call fails. Mark the key and the
 * value of a `past` separately.
 *
 * @param value a tensor, a mask, an array or its buffer
 * @returns the value itself
 * @throws {AttnError} `ARGUMENT` if the value is not an object
 *
 * @example
 * ```ts
 * import { load, transfer } from 'attn/worker';
 *
 * await using attn = await load();
 * const x = { data: new Float32Array([0, 0]), dims: [2] };
 * await attn.softmax(transfer(x));
 * console.log(x.data.length); // 0
 * ```
 */
export function transfer<T extends Direct.Tensor | Direct.Mask | Uint8Array | ArrayBuffer | Float32Array | Int32Array>(value: T): T;
