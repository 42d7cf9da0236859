/**
 * `attn/tokenizer`: a model's tokenizer by itself, a file of its own that loads no WebAssembly. It gives the ids, tokens and offsets that
 * `TextModel.tokenize` gives, which are those of Hugging Face's library.
 *
 * @example
 * ```ts
 * import { Tokenizer } from 'attn/tokenizer';
 *
 * const text = async (name: string) => (await fetch(`models/sentiment/${name}`)).text();
 * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await text('tokenizer.json') });
 * const { inputIds, tokens } = tokenizer.encode('A warm film.');
 * console.log(tokens[0], tokenizer.decode(inputIds, { skipSpecialTokens: true }));
 * ```
 *
 * Its `AttnError` is that of this file: `instanceof` tells it from that of 'attn', `code` does not.
 * @packageDocumentation
 */
import type { Encoding, TokenizeOptions } from './attn.js';

export { AttnError } from './attn.js';
export type { Dims, Encoding, ErrorCode, TokenizeOptions } from './attn.js';

/** A model's files by name, as text or bytes. */
export interface TokenizerFiles {
  'tokenizer.json': string | Uint8Array | ArrayBuffer;
  /** What it sets anew: letters, the padding token, and `model_max_length`. */
  'tokenizer_config.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** For its `model_type`: BERT's tokenizer has settings of its own where tokenizer_config.json names no class. */
  'config.json'?: string | Uint8Array | ArrayBuffer | undefined;
}

export interface EncodeOptions extends TokenizeOptions {
  /** Tokens of a text, special ones included. Default: tokenizer_config.json's `model_max_length` where it is a real limit, else none. */
  maxLength?: number | undefined;
  /** Whether `[CLS]` and the like are put around a text. Default true. */
  addSpecialTokens?: boolean | undefined;
  /** Where what is too long is cut. Default `'right'`: its end goes. */
  truncationSide?: 'left' | 'right' | undefined;
}

/** A tokenizer, made by {@link Tokenizer.fromFiles}. */
export class Tokenizer {
  private constructor();

  /**
   * @throws AttnError `ARGUMENT` for files that are none; `FORMAT` for a tokenizer.json that is not as it should be; `UNSUPPORTED` for a part that
   *   attn does not know, by its name
   */
  static fromFiles(files: TokenizerFiles): Tokenizer;

  /** How many tokens there are, added ones included. */
  readonly vocabularySize: number;

  /**
   * Tokens of texts, or of pairs, padded to the longest.
   *
   * @throws AttnError `OUT_OF_RANGE` for a text that is too long where `truncation` is false, or a `maxLength` without room; `ARGUMENT`
   */
  encode(texts: string | readonly string[] | readonly (readonly [string, string])[], options?: EncodeOptions): Encoding;

  /**
   * The text of tokens. Ids that the vocabulary does not have are left out.
   *
   * @param options `skipSpecialTokens`: leave out `[CLS]` and the like; default false
   * @throws AttnError `UNSUPPORTED` for a decoder that attn does not have; `ARGUMENT`
   */
  decode(ids: ArrayLike<number>, options?: { skipSpecialTokens?: boolean | undefined }): string;

  tokenToId(token: string): number | undefined;
  idToToken(id: number): string | undefined;
}
