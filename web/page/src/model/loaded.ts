import type { Dims, Task, Tensor } from 'attn';
import type { TextModel } from 'attn/worker';

export type DType = 'int8' | 'float32';
export const otherOf = (dtype: DType): DType => (dtype === 'int8' ? 'float32' : 'int8');

export interface LoadedModel {
  /** As View.model; 'files' for dropped files. */
  readonly id: string;
  readonly name: string;
  /** A replacement that the visitor should know of. */
  readonly note?: string | undefined;
  /** Replaced by a copy if the model is loaded again. */
  text: TextModel;
  readonly config: Readonly<Record<string, unknown>>;
  readonly labels: readonly string[] | undefined;
  readonly task: Task;
  readonly tokenLabels?: readonly string[] | undefined;
  readonly maskToken?: string | undefined;
  readonly layers: number;
  readonly heads: number;
  readonly hiddenSize: number;
  readonly shapes: ReadonlyMap<string, Dims>;
  readonly dtype: DType;
  /** Otherwise int8 weights are converted during loading. */
  readonly isStoredAsInt8: boolean;
  readonly bytes: number;
  /** Growth of the used WASM heap in bytes. */
  readonly memory: number;
  /** Milliseconds from the first request until the model is ready. */
  readonly loadTime: number;
}

export const isDecoder = ({ task }: Pick<LoadedModel, 'task'>): boolean => task === 'text-generation';

/** (layers,H): 0 for heads (layer · H + head) that are off, otherwise 1. */
export function headMaskOf({ layers, heads }: LoadedModel, off: readonly number[]): Tensor {
  const data = new Float32Array(layers * heads).fill(1);
  for (const head of off) if (head < data.length) data[head] = 0;
  return { data, dims: [layers, heads] };
}

/** The config.json of a cross-encoder may name a torch.nn class. */
export function answerFunction({ config, labels }: LoadedModel): 'softmax' | 'sigmoid' | 'identity' {
  const section = config['sentence_transformers'] as { readonly activation_fn?: unknown } | null | undefined;
  for (const named of [section?.activation_fn, config['sbert_ce_default_activation_function']])
    for (const kind of ['softmax', 'sigmoid', 'identity'] as const)
      if (typeof named === 'string' && named.toLowerCase().endsWith(`.${kind}`)) return kind;
  const problem = config['problem_type'];
  if (problem === 'regression') return 'identity';
  return problem === 'multi_label_classification' || labels?.length === 1 ? 'sigmoid' : 'softmax';
}

export const answerName = (of: LoadedModel): string => (answerFunction(of) === 'identity' ? 'value' : 'probability');
