/** A model that has been loaded, and what it says of itself. */
import type { Dims, Task, Tensor } from 'attn';
import type { TextModel } from 'attn/worker';

/** How a model's weights are kept and multiplied. */
export type DType = 'int8' | 'float32';
export const otherOf = (dtype: DType): DType => (dtype === 'int8' ? 'float32' : 'int8');

export interface LoadedModel {
  /** As View.model has it; of dropped files 'files'. */
  readonly id: string;
  /** For people. */
  readonly name: string;
  /** What was done without, in words. */
  readonly note?: string | undefined;
  readonly text: TextModel;
  readonly config: Readonly<Record<string, unknown>>;
  readonly labels: readonly string[] | undefined;
  /** What its head is for. */
  readonly task: Task;
  /** What a head for tokens tells apart. */
  readonly tokenLabels?: readonly string[] | undefined;
  readonly layers: number;
  readonly heads: number;
  readonly hiddenSize: number;
  readonly shapes: ReadonlyMap<string, Dims>;
  readonly dtype: DType;
  /** Whether its files hold int8 already; else its weights were made int8 while they came, where they are. */
  readonly isStoredAsInt8: boolean;
  /** Of the files that were read for it. */
  readonly bytes: number;
  /** By how many bytes what is in use of the WASM heap has grown. */
  readonly memory: number;
  /** Milliseconds from the first byte asked for to the model being ready. */
  readonly loadTime: number;
}

/** (layers,H): 0 for the heads that are off, layer · H + head, and 1 for the others. */
export function headMaskOf({ layers, heads }: LoadedModel, off: readonly number[]): Tensor {
  const data = new Float32Array(layers * heads).fill(1);
  for (const head of off) if (head < data.length) data[head] = 0;
  return { data, dims: [layers, heads] };
}

/**
 * What makes a classifier's answer of its logits: softmax where one label is right, sigmoid where each may be, and nothing where the labels are numbers to
 * be estimated (regression). A cross-encoder's config.json may name it by its class of torch.nn.
 */
export function answerFunction({ config, labels }: LoadedModel): 'softmax' | 'sigmoid' | 'identity' {
  const section = config['sentence_transformers'] as { readonly activation_fn?: unknown } | null | undefined;
  for (const named of [section?.activation_fn, config['sbert_ce_default_activation_function']])
    for (const kind of ['softmax', 'sigmoid', 'identity'] as const)
      if (typeof named === 'string' && named.toLowerCase().endsWith(`.${kind}`)) return kind;
  const problem = config['problem_type'];
  if (problem === 'regression') return 'identity';
  return problem === 'multi_label_classification' || labels?.length === 1 ? 'sigmoid' : 'softmax';
}

/** What one number of the answer is called. */
export const answerName = (of: LoadedModel): string => (answerFunction(of) === 'identity' ? 'value' : 'probability');
