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
 * Errors of this file are instances of the `AttnError` of `attn`, too, and the other way round.
 * @packageDocumentation
 */
import type { Encoding, TokenizeOptions } from './attn.js';

export { AttnError } from './attn.js';
export type { Dims, Encoding, ErrorCode, TokenizeOptions } from './attn.js';

/** A model's files by name, as text or bytes. */
export interface TokenizerFiles {
  'tokenizer.json': string | Uint8Array | ArrayBuffer;
  /** What it sets anew: letters, the padding token, and `model_max_length`; tokens that only it has are added, as by transformers. */
  'tokenizer_config.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** For its `model_type`: BERT's tokenizer has settings of its own where tokenizer_config.json names no class. */
  'config.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** Tokens of older folders. As to transformers it counts if tokenizer_config.json has no `added_tokens_decoder`. */
  'special_tokens_map.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** The same of tokens and their ids. */
  'added_tokens.json'?: string | Uint8Array | ArrayBuffer | undefined;
}

export interface EncodeOptions extends TokenizeOptions {
  /** Where shorter texts are filled up. Default: tokenizer_config.json's `padding_side`, else `'right'`. */
  paddingSide?: 'left' | 'right' | undefined;
}

/** Tokens, and the words that they are of. */
export interface EncodedWords extends Encoding {
  /**
   * Per list, in line with its ids: the place in it (of a pair: in its own one) of the word that the token is of, as `word_ids()` of Hugging Face's
   * library; null for special tokens and padding.
   */
  readonly words: readonly (readonly (number | null)[])[];
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
   * @param options `maxLength` is by default tokenizer_config.json's `model_max_length` where that is a real limit, else there is none
   * @throws AttnError `OUT_OF_RANGE` for a text that is too long where `truncation` is false, or a `maxLength` without room; `ARGUMENT`
   */
  encode(texts: string | readonly string[] | readonly (readonly [string, string])[], options?: EncodeOptions): Encoding;

  /**
   * The same of what is words already (`is_split_into_words` of Hugging Face's tokenizers): of one list of words, of several lists, or of pairs of
   * lists. Each word is tokenized as a text by itself, and `offsets` are places in it.
   *
   * @example
   * ```ts
   * const { inputIds, words } = tokenizer.encodeWords(['Anna', 'lives', 'in', 'Lyon', '.']);
   * // words[0]: null for [CLS], then the place in the list of the word that each token is of
   * ```
   */
  encodeWords(
    texts: readonly string[] | readonly (readonly string[])[] | readonly (readonly [readonly string[], readonly string[]])[],
    options?: EncodeOptions,
  ): EncodedWords;

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
