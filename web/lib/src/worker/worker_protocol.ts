/** What the two ends of attn/worker say to each other, through Comlink. */
import type { ErrorCode, LoadOptions, ModelOptions, ModelSource, RuntimeInfo, Task } from '../attn.js';
import * as Comlink from './comlink.js';
import { abortError, abortName, AttnError, type Detail, reason } from '../args/error.js';
import type { Leaf, Signature } from '../args/signature.js';

export type Progress = NonNullable<LoadOptions['onProgress']>;
export type PlainLoadOptions = Omit<LoadOptions, 'signal' | 'onProgress'>;

export type ModelProgress = NonNullable<ModelOptions['onProgress']>;
export type PlainModelOptions = Pick<ModelOptions, 'cache' | 'weights' | 'sha256' | 'request'>;
/** Of whatever a method reports. */
export type AnyProgress = (p: never) => void;

export type AskedMethod =
  | 'tokenize'
  | 'parameterShapes'
  | 'stateDict'
  | 'getParameter'
  | 'tokenToId'
  | 'idToToken'
  | 'embed'
  | 'classify'
  | 'classifyTokens'
  | 'fillMask'
  | 'answer'
  | 'rank'
  | 'decode'
  | 'export'
  | 'gradients'
  | 'attribute'
  | 'fineTune';

/** What the caller's side knows of a model: its number, that of its words, and what does not change. */
export interface RemoteParts {
  readonly id: number;
  readonly words: number;
  readonly config: Readonly<Record<string, unknown>>;
  readonly task: Task;
  readonly labels: readonly string[] | undefined;
  readonly notes: readonly string[];
  readonly weights: 'float32' | 'int8';
  readonly maskToken: string | undefined;
}

/** The worker's side. A worker holds one instance; modules are known by number. Arguments were read by the caller's side. */
export interface Host {
  /** Takes a lock of that name, to be held as long as the worker lives; whether that worked. */
  hello(lock: string | undefined): Promise<boolean>;
  /** Resolves to what the module has. */
  load(options: PlainLoadOptions, onProgress: Progress | undefined): Promise<readonly Signature[]>;
  info(): RuntimeInfo;
  call(name: string, leaves: readonly Leaf[]): unknown;
  create(name: string, leaves: readonly Leaf[]): number;
  callModule(id: number, name: string, leaves: readonly Leaf[]): unknown;
  release(id: number): Promise<void>;
  /** What takes long has a number of the caller's, by which it can be aborted. */
  abort(task: number): void;
  loadModel(task: number, source: ModelSource, options: PlainModelOptions, onProgress: ModelProgress | undefined): Promise<RemoteParts>;
  /** A method of a model that takes texts, tokens or names. */
  askModel(id: number, name: AskedMethod, args: readonly unknown[], task: number, onProgress: AnyProgress | undefined): unknown;
  /** What fineTune() may have changed. */
  factsOf(id: number): Pick<RemoteParts, 'config' | 'task' | 'labels'>;
  dispose(): Promise<void>;
}

interface Thrown {
  code: ErrorCode;
  name: string;
  message: string;
  detail: Detail;
  cause: string | undefined;
}

/** Comlink's own handler keeps only message, name and stack of an error. */
export function keepErrors(): void {
  const { canHandle } = Comlink.transferHandlers.get('throw')!;
  Comlink.transferHandlers.set('throw', {
    canHandle,
    serialize({ value: error }: { value: unknown }): [Thrown, Transferable[]] {
      const text = reason(error);
      if (!(error instanceof AttnError)) return [{ code: 'INTERNAL', name: '', message: text, detail: {}, cause: undefined }, []];
      const cause = error.cause === undefined ? undefined : reason(error.cause);
      return [{ code: error.code, name: error.name, message: error.message, detail: error.detail, cause }, []];
    },
    deserialize({ code, name, message, detail, cause }: Thrown): never {
      const options = cause === undefined ? undefined : { cause: new Error(cause) };
      throw name === abortName ? abortError(message, detail, options) : new AttnError(code, message, detail, options);
    },
  } as Comlink.TransferHandler<unknown, unknown>);
}
