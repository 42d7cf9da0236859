/// <reference lib="esnext.disposable" />
/**
 * The same names for a module that lives in a worker of its own, so that nothing blocks the caller: every member is a
 * promise. Errors keep code and detail; progress and abort work. A worker that dies rejects what is pending with `ABORTED`,
 * and `load()` may be called again. A worker ends when it is told to, and when an instance and all that it has made are collected.
 *
 * @example
 * ```ts
 * import { load, transfer } from 'attn/worker';
 *
 * const attn = await load({ threads: 'auto' });
 * const mha = await new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
 * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
 * const { output } = await mha.forward(transfer(x)); // x.data moves to the worker instead of being copied
 * console.log(output.dims); // [1, 3, 8]
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
  ClassifierOptions,
  Dims,
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
  Int8Tensor,
  LoadOptions,
  Loss,
  Mask,
  ModelOptions,
  ModelSource,
  MultiHeadAttentionOptions,
  ParameterGroup,
  PromptOptions,
  RankedDocument,
  RuntimeInfo,
  SafetensorsHeader,
  StateDict,
  Task,
  Tensor,
  TextAttribution,
  TextForwardOptions,
  TextModelGradients,
  TextModelOutput,
  TokenizeOptions,
  TraceName,
} from './attn.js';
export { AttnError, encoderTraceNames, readSafetensorsHeader, traceNames } from './attn.js';

/** T with a promise in the place of everything that it gives; what a constructor gives can be disposed of by `await using`. */
export type Promisified<T> = {
  readonly [K in keyof T]: T[K] extends new (...args: infer A) => infer R
    ? new (...args: A) => Promise<Promisified<R> & AsyncDisposable>
    : T[K] extends (...args: infer A) => infer R
      ? (...args: A) => Promise<Awaited<R>>
      : Promise<T[K]>;
};

export type Module = Promisified<Direct.Module> & AsyncDisposable;
export type MultiHeadAttention = Promisified<Direct.MultiHeadAttention> & AsyncDisposable;
export type Encoder = Promisified<Direct.Encoder> & AsyncDisposable;
export type Classifier = Promisified<Direct.Classifier> & AsyncDisposable;
export type Embedding = Promisified<Direct.Embedding> & AsyncDisposable;
export type Optimizer = Promisified<Direct.Optimizer> & AsyncDisposable;

type OptimizerClass<T> = T extends new (modules: never, options?: infer O) => unknown
  ? new (modules: readonly Module[], options?: O) => Promise<Optimizer>
  : never;

export type TextModel = Omit<Promisified<Direct.TextModel>, 'wordEmbeddings' | 'fillMask' | 'answer'> &
  Pick<Direct.TextModel, 'fillMask' | 'answer'> &
  AsyncDisposable & {
    readonly wordEmbeddings: Promise<Embedding>;
  };

/**
 * One running instance in its worker. Calls run in the order in which they are made; only between the batches of `embed` and `classify`, and while a
 * model loads, others get their turn. What changes or ends a model waits for what was asked of it before. `writeSafetensors` runs here.
 */
export type Attn = Omit<Promisified<Direct.Attn>, 'loadModel' | 'SGD' | 'Adam' | 'AdamW' | 'clipGradNorm'> &
  AsyncDisposable & {
    readonly SGD: OptimizerClass<Direct.Attn['SGD']>;
    readonly Adam: OptimizerClass<Direct.Attn['Adam']>;
    readonly AdamW: OptimizerClass<Direct.Attn['AdamW']>;
    clipGradNorm(modules: readonly Module[], maxNorm: number): Promise<number>;
    /**
     * As `loadModel` of `attn`: the worker reads the files, makes tokens and computes. A relative URL is relative to the page; Blobs and Files are
     * read where they are, bytes are copied unless they are marked by {@link transfer}. `fetch` is an `ARGUMENT` error: a function cannot be sent.
     */
    loadModel(source: Direct.ModelSource, options?: Omit<Direct.ModelOptions, 'fetch'>): Promise<TextModel>;
    /**
     * Ends the worker at once, in the middle of a call too; what is pending rejects with `ABORTED`. `dispose()` lets earlier calls finish, but for
     * `loadModel`, which rejects with `DISPOSED`.
     */
    terminate(): void;
  };

/** As `load` of `attn`, in a new worker. A relative `wasm` is relative to the page (in Node, to the working directory). Aborting ends the worker. */
export function load(options?: Direct.LoadOptions): Promise<Attn>;

/**
 * Marks a value to be moved to the worker by the call that it is given to, instead of being copied. Its buffer is then
 * detached here, with everything else that lies on the buffer. The mark counts for one call, even if that fails. Of a `past` key and value are marked each.
 *
 * @returns the value itself
 */
export function transfer<T extends Direct.Tensor | Direct.Mask | Uint8Array | ArrayBuffer | Float32Array | Int32Array>(value: T): T;
