/**
 * `attn/static`: static embeddings of model2vec (potion), WordLlama and sentence-transformers' `StaticEmbedding`. A
 * text's vector is the mean of a table's rows, so that a query takes microseconds. It loads no WebAssembly.
 *
 * @example
 * ```ts
 * import { loadStaticModel } from 'attn/static';
 *
 * const model = await loadStaticModel('models/static/tiny-model2vec'); // or another, such as potion-base-8M
 * const { dims } = model.embed(['a warm film', 'a cold soup'], { normalize: true });
 * console.log(dims); // [ 2, 16 ]
 * ```
 * @packageDocumentation
 */
import type { Encoding, ModelSource, Tensor } from './attn.js';
import type { AbortSignal, Fetch } from './host.js';
import type { Tokenizer } from './tokenizer.js';

export { AttnError } from './attn.js';
export type { Encoding, ErrorCode, ModelSource, Tensor } from './attn.js';

/** Options of {@link loadStaticModel}. */
export interface StaticModelOptions {
  /** Uses only the first dimensions, for models trained for it (Matryoshka). Default all. */
  dim?: number | undefined;
  /** Function to use instead of the global `fetch`. */
  fetch?: Fetch | undefined;
  /** Rejects with `ABORTED` when it aborts. */
  signal?: AbortSignal | undefined;
}

/** Options of {@link StaticModel.tokenize}. */
export interface StaticTokenizeOptions {
  /** The largest number of tokens. Default {@link StaticModel.maxLength}. */
  maxLength?: number | undefined;
  /** False: a longer text is an `OUT_OF_RANGE` error. Default true. */
  truncation?: boolean | undefined;
}

/** Options of {@link StaticModel.embed}. */
export interface StaticEmbedOptions extends StaticTokenizeOptions {
  /** Scales each vector to length 1. Default `normalize` of config.json, or whether modules.json has `Normalize`. */
  normalize?: boolean | undefined;
  /** Text in front of each text. Default none. */
  prompt?: string | undefined;
}

/** Static embeddings, made by {@link loadStaticModel}. */
export class StaticModel {
  private constructor();

  /** Dimensions of a vector: `dim` of the options, else the width of the matrix. */
  readonly hiddenSize: number;
  /** Contents of config.json, frozen; empty without it. */
  readonly config: Readonly<Record<string, unknown>>;
  /** The largest number of tokens of a text: model2vec's `max_length`, else 2³¹ − 1. */
  readonly maxLength: number;
  /** The tokenizer, which would add special tokens; the model does not. */
  readonly tokenizer: Tokenizer;
  /** Empty; for `attn/search`, which reads the `prompts` of a model. */
  readonly prompts: Readonly<Record<string, string>>;

  /**
   * Computes one vector per text: the mean of its tokens' rows. As in model2vec, its models leave out unknown tokens and
   * read at most `maxLength` tokens, and at most `maxLength` times the median length of a token in characters. A text
   * without tokens has a vector of zeros.
   *
   * @param texts one text or several
   * @param options see {@link StaticEmbedOptions}
   * @returns (N,E) in the order of the texts, and `truncated` per text
   * @throws {AttnError} `OUT_OF_RANGE` if a text is too long and `truncation` is false
   *
   * @example
   * ```ts
   * import { loadStaticModel } from 'attn/static';
   *
   * const model = await loadStaticModel('models/static/tiny-model2vec');
   * const { dims, truncated } = model.embed('a warm film');
   * console.log(dims, truncated); // [ 1, 16 ] [ false ]
   * ```
   */
  embed(texts: string | readonly string[], options?: StaticEmbedOptions): Tensor & { readonly truncated: readonly boolean[] };

  /**
   * Tokenizes texts without special tokens and pads them to the longest.
   *
   * @param texts one text or several
   * @param options see {@link StaticTokenizeOptions}
   * @throws {AttnError} `OUT_OF_RANGE` if a text is too long and `truncation` is false
   *
   * @example
   * ```ts
   * import { loadStaticModel } from 'attn/static';
   *
   * const model = await loadStaticModel('models/static/tiny-model2vec');
   * console.log(model.tokenize('a warm film').tokens[0].length); // 3
   * ```
   */
  tokenize(texts: string | readonly string[], options?: StaticTokenizeOptions): Encoding;

  /**
   * Looks up the row of each token, times its weight; zeros for padding and tokens that `embed` leaves out.
   *
   * @param inputs the result of {@link StaticModel.tokenize}
   * @returns `lastHiddenState` (B,L,E)
   *
   * @example
   * ```ts
   * import { loadStaticModel } from 'attn/static';
   *
   * const model = await loadStaticModel('models/static/tiny-model2vec');
   * const { lastHiddenState } = model.forward(model.tokenize('a warm film'));
   * console.log(lastHiddenState.dims); // [ 1, 3, 16 ]
   * ```
   */
  forward(inputs: Pick<Encoding, 'inputIds' | 'attentionMask' | 'dims'>): { lastHiddenState: Tensor };
}

/**
 * Loads static embeddings from `model.safetensors`, `tokenizer.json` and `config.json`, or from the folder
 * `0_StaticEmbedding` of sentence-transformers. Matrices in F64, F32, F16, BF16 and I8 stay in their format.
 *
 * @param source the URL of a folder (also `hub('owner/name')` of `attn`), in Node 20.16 or later also its path, or an
 * object of files by name
 * @param options see {@link StaticModelOptions}
 * @throws {AttnError} `NETWORK` or `ARGUMENT` if a file is missing
 * @throws {AttnError} `FORMAT` if a file is invalid, `MISMATCH` if the matrix does not have a row for each token
 * @throws {AttnError} `UNSUPPORTED` if the file has no such matrix, or attn does not have a part of the tokenizer
 * @throws {AttnError} `ABORTED` if `signal` aborts
 *
 * @example
 * ```ts
 * import { loadStaticModel } from 'attn/static';
 *
 * const model = await loadStaticModel('models/static/tiny-model2vec', { dim: 8 });
 * console.log(model.hiddenSize); // 8
 * ```
 */
export function loadStaticModel(source: ModelSource, options?: StaticModelOptions): Promise<StaticModel>;
