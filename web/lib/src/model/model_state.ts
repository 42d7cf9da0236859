import type { Engine } from '../engine/engine.js';
import type { FileName } from '../args/model_options.js';
import type { NativeLayer } from '../engine/native.js';
import { internalClass, type Signature } from '../args/signature.js';
import type { Task } from '../attn.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/** Handles of image models, for attn/worker. */
export const imageHandles = new WeakMap<object, () => NativeLayer>();

export interface ModelFacts {
  readonly maxLength: number;
  readonly positions: number;
  /** Width with an explicit pooling, and with the one that the files specify. */
  readonly pooledSize: number;
  readonly embeddingSize: number;
  /** Layers × hidden size²: about a twelfth of the multiplications per token. */
  readonly work: number;
  readonly task: Task;
  readonly labels?: readonly string[];
  readonly notes: readonly string[];
  readonly lowerCase: boolean;
  /** Whether token types come from tokenizer.json; otherwise all are 0. */
  readonly tokenTypes: boolean;
  readonly defaultPrompt: string;
  readonly prompts: Readonly<Record<string, string>>;
  readonly includePrompt: boolean;
  /** Whether no token attends to later ones. */
  readonly causal: boolean;
  readonly quantized: boolean;
  /** Decoder that shares the embedding matrix; empty if there is none. */
  readonly tiedDecoder: string;
  readonly eos: readonly number[];
}

export interface ModelState {
  readonly context: { readonly engine: Engine };
  readonly handle: NativeLayer;
  readonly config: Readonly<Record<string, unknown>>;
  readonly about: ModelFacts;
  readonly tokenizer: Tokenizer;
  readonly files: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>;
  readonly base: string;
}

export const textLabelsOf = ({ task, labels }: ModelFacts): readonly string[] | undefined => (task === 'text-classification' ? labels : undefined);

export const signatureOf = ({ signatures }: Engine, name: string): Signature =>
  signatures.find((each) => each.owner === internalClass && each.name === name)!;
