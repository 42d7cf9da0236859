/** What a model is made of. */
import type { Engine } from '../engine/engine.js';
import type { FileName } from '../args/model_options.js';
import type { NativeLayer } from '../engine/native.js';
import { internalClass, type Signature } from '../args/signature.js';
import type { Task } from '../attn.js';
import type { Tokenizer } from '../tokenizer/tokenizer.js';

/** What the module says of a model. */
export interface ModelFacts {
  readonly maxLength: number;
  readonly positions: number;
  /** Numbers of an embedding, by one pooling and by those that the files name. */
  readonly pooledSize: number;
  readonly embeddingSize: number;
  /** Layers × the square of the hidden size: about a twelfth of the multiplications for each token. */
  readonly work: number;
  readonly task: Task;
  readonly labels?: readonly string[];
  readonly notes: readonly string[];
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
  /** What the files call the decoder that is the word table itself; empty where there is none. */
  readonly tiedDecoder: string;
}

export interface ModelState {
  readonly context: { readonly engine: Engine };
  readonly handle: NativeLayer;
  readonly config: Readonly<Record<string, unknown>>;
  readonly about: ModelFacts;
  readonly tokenizer: Tokenizer;
  /** The small files by name, for export(), and the folder of config.json in front. */
  readonly files: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>;
  readonly base: string;
}

export const signatureOf = ({ signatures }: Engine, name: string): Signature =>
  signatures.find((each) => each.owner === internalClass && each.name === name)!;
