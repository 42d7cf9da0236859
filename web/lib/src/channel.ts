/** What the two ends of attn/worker say to each other, through Comlink. */
import type { AttentionResult, Dims, ErrorCode, LoadOptions, RuntimeInfo, Tensor } from './attn.js';
import * as Comlink from './comlink.js';
import { AttnError, type Detail } from './error.js';

export type Progress = NonNullable<LoadOptions['onProgress']>;
export type PlainLoadOptions = Omit<LoadOptions, 'signal' | 'onProgress'>;
export type Answer = AttentionResult | Tensor | Map<string, Tensor> | Map<string, Dims> | number | undefined;

/** The worker's side. A worker holds one instance; modules are known by number. */
export interface Host {
  /** Takes a lock of that name, to be held as long as the worker lives; whether that worked. */
  hello(lock: string | undefined): Promise<boolean>;
  load(options: PlainLoadOptions, onProgress: Progress | undefined): Promise<void>;
  info(): RuntimeInfo;
  call(name: 'scaledDotProductAttention' | 'linear' | 'softmax' | 'parseSafetensors', args: readonly unknown[]): Answer;
  create(options: unknown): number;
  callModule(
    id: number,
    name: 'forward' | 'loadStateDict' | 'stateDict' | 'initialize' | 'parameterShapes' | 'parameterCount',
    args: readonly unknown[],
  ): Answer;
  release(id: number): void;
  dispose(): void;
}

interface Thrown {
  code: ErrorCode;
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
      const text = error instanceof Error ? error.message : String(error);
      if (!(error instanceof AttnError)) return [{ code: 'INTERNAL', message: text, detail: {}, cause: undefined }, []];
      const cause = error.cause instanceof Error ? error.cause.message : error.cause === undefined ? undefined : String(error.cause);
      return [{ code: error.code, message: text, detail: error.detail, cause }, []];
    },
    deserialize({ code, message, detail, cause }: Thrown): never {
      throw new AttnError(code, message, detail, cause === undefined ? undefined : { cause: new Error(cause) });
    },
  } as Comlink.TransferHandler<unknown, unknown>);
}
