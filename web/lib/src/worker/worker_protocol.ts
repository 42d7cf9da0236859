import type { ErrorCode, LoadOptions, ModelOptions, ModelSource, RuntimeInfo, Task } from '../attn.js';
import * as Comlink from './comlink.js';
import { abortError, abortName, AttnError, type Detail, reason } from '../args/error.js';
import type { ChatFiles } from '../model/chat_files.js';
import type { Leaf, Signature } from '../args/signature.js';

export type Progress = NonNullable<LoadOptions['onProgress']>;
export type PlainLoadOptions = Omit<LoadOptions, 'signal' | 'onProgress'>;

export type ModelProgress = NonNullable<ModelOptions['onProgress']>;
export type PlainModelOptions = Pick<ModelOptions, 'cache' | 'cacheDir' | 'weights' | 'sha256' | 'request'>;
export type AnyProgress = (p: never) => void;

export type AskedMethod =
  | 'tokenize'
  | 'preprocess'
  | 'parameterShapes'
  | 'stateDict'
  | 'getParameter'
  | 'tokenToId'
  | 'idToToken'
  | 'embed'
  | 'classify'
  | 'classifyTokens'
  | 'classifyZeroShot'
  | 'fillMask'
  | 'answer'
  | 'rank'
  | 'generate'
  | 'nextToken'
  | 'scoreTokens'
  | 'decode'
  | 'export'
  | 'gradients'
  | 'attribute'
  | 'fineTune';

export interface RemoteParts {
  readonly id: number;
  /** Undefined for an image model. */
  readonly words: number | undefined;
  readonly config: Readonly<Record<string, unknown>>;
  readonly task: Task;
  readonly labels: readonly string[] | undefined;
  readonly notes: readonly string[];
  readonly weights: 'float32' | 'int8';
  readonly prompts: Readonly<Record<string, string>>;
  readonly maskToken: string | undefined;
}

/** A worker holds one instance; layers have numbers. The caller's side has checked the arguments. */
export interface Host {
  /** Resolves to whether the worker holds the lock. */
  hello(lock: string | undefined): Promise<boolean>;
  load(options: PlainLoadOptions, onProgress: Progress | undefined): Promise<readonly Signature[]>;
  info(): RuntimeInfo;
  call(name: string, leaves: readonly Leaf[]): unknown;
  create(name: string, leaves: readonly Leaf[]): number;
  callModule(id: number, name: string, leaves: readonly Leaf[]): unknown;
  release(id: number): Promise<void>;
  abort(task: number): void;
  loadModel(task: number, source: ModelSource, options: PlainModelOptions, onProgress: ModelProgress | undefined): Promise<RemoteParts>;
  askModel(id: number, name: AskedMethod, args: readonly unknown[], task: number, onProgress: AnyProgress | undefined, isAborted?: boolean): unknown;
  chatFilesOf(id: number): Promise<ChatFiles>;
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

/** Comlink's own handler drops code and detail. */
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
