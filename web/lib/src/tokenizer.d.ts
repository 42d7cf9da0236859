/**
 * `attn/tokenizer`: a model's tokenizer in one file that loads no WebAssembly. Its ids, tokens and offsets are those of
 * `TextModel.tokenize` and of the Hugging Face tokenizers.
 *
 * Its errors are instances of the `AttnError` of `attn`, and the errors of `attn` are instances of its `AttnError`.
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises'; // in a page: fetch
 * import { Tokenizer } from 'attn/tokenizer';
 *
 * const file = await readFile('models/sentiment/tokenizer.json', 'utf8');
 * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': file });
 * const { inputIds, tokens } = tokenizer.encode('A warm film.');
 * console.log(tokens[0].length, tokenizer.decode(inputIds, { skipSpecialTokens: true })); // 6 a warm film.
 * ```
 * @packageDocumentation
 */
import type { Encoding, TokenizeOptions } from './attn.js';

export { AttnError } from './attn.js';
export type { Dims, Encoding, ErrorCode, TokenizeOptions } from './attn.js';

/** A tokenizer's files by name, as text or bytes. Only tokenizer.json is required. */
export interface TokenizerFiles {
  'tokenizer.json': string | Uint8Array | ArrayBuffer;
  /** Overrides lowercasing, the padding token, `model_max_length` and sides, and adds tokens, as in transformers. */
  'tokenizer_config.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** Provides `model_type`, which selects BERT's settings if tokenizer_config.json names no class. */
  'config.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /**
   * Special tokens of older folders; used if tokenizer_config.json has no `added_tokens_decoder`, as in transformers.
   */
  'special_tokens_map.json'?: string | Uint8Array | ArrayBuffer | undefined;
  /** Tokens and ids of older folders; used under the same condition. */
  'added_tokens.json'?: string | Uint8Array | ArrayBuffer | undefined;
}

/** Options of {@link Tokenizer.encode}. */
export interface EncodeOptions extends TokenizeOptions {
  /** The side where shorter texts are padded. Default `padding_side` of tokenizer_config.json, else `'right'`. */
  paddingSide?: 'left' | 'right' | undefined;
}

/** Tokens of words, made by {@link Tokenizer.encodeWords}. */
export interface EncodedWords extends Encoding {
  /**
   * Per list: the index of each token's word (in its own list of a pair), as `word_ids()` of Hugging Face; null for
   * special tokens and padding.
   */
  readonly words: readonly (readonly (number | null)[])[];
}

/** A tokenizer, made by {@link Tokenizer.fromFiles}. */
export class Tokenizer {
  private constructor();

  /**
   * Creates a tokenizer from a model's files.
   *
   * @param files see {@link TokenizerFiles}
   * @throws {AttnError} `ARGUMENT` if tokenizer.json is missing or a file is not text or bytes
   * @throws {AttnError} `FORMAT` if a file is invalid
   * @throws {AttnError} `UNSUPPORTED` if attn does not have a part of the tokenizer, which the message names
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * console.log(tokenizer.vocabularySize); // 7600
   * ```
   */
  static fromFiles(files: TokenizerFiles): Tokenizer;

  /** Number of tokens, including added tokens. */
  readonly vocabularySize: number;

  /**
   * Tokenizes texts or pairs of texts and pads them to the longest.
   *
   * @param texts one text, several texts or several pairs; a lone surrogate counts as U+FFFD
   * @param options see {@link EncodeOptions}; `maxLength` defaults to a realistic `model_max_length` of
   * tokenizer_config.json, else there is no limit
   * @throws {AttnError} `OUT_OF_RANGE` if a text is too long and `truncation` is false, or `maxLength` leaves no room
   * for text
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * const { tokens, offsets } = tokenizer.encode('in Lyon');
   * console.log(tokens[0].join(' '), offsets[0][2]); // [CLS] in Ly ##on [SEP] [ 3, 5 ]
   * ```
   */
  encode(texts: string | readonly string[] | readonly (readonly [string, string])[], options?: EncodeOptions): Encoding;

  /**
   * Tokenizes lists of words (`is_split_into_words` in Hugging Face): one list, several lists or several pairs of
   * lists. Each word is tokenized like a text, and `offsets` refer to the word.
   *
   * @param texts one list of words, several lists or several pairs of lists
   * @param options see {@link EncodeOptions}
   * @throws {AttnError} those of {@link Tokenizer.encode}
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * const { words } = tokenizer.encodeWords(['Anna', 'lives', 'in', 'Lyon', '.']);
   * console.log(words[0].join()); // ,0,1,2,3,3,4,
   * ```
   */
  encodeWords(
    texts: readonly string[] | readonly (readonly string[])[] | readonly (readonly [readonly string[], readonly string[]])[],
    options?: EncodeOptions,
  ): EncodedWords;

  /**
   * Converts token ids to text. Unknown ids are ignored.
   *
   * @param ids token ids
   * @param options.skipSpecialTokens omits `[CLS]` and the like; default false
   * @throws {AttnError} `UNSUPPORTED` if attn does not have the tokenizer's decoder
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * const id = tokenizer.tokenToId('lives')!;
   * console.log(id, tokenizer.idToToken(id), tokenizer.decode([id])); // 1526 lives lives
   * ```
   */
  decode(ids: ArrayLike<number>, options?: { skipSpecialTokens?: boolean | undefined }): string;

  /**
   * Returns the id of a token in the vocabulary's spelling (`##ing`, `Ġthe`), or `undefined`.
   *
   * @param token one entry of the vocabulary, not a text
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * console.log(tokenizer.tokenToId('lives'), tokenizer.tokenToId('no such token')); // 1526 undefined
   * ```
   */
  tokenToId(token: string): number | undefined;
  /**
   * Returns the token of an id, or `undefined`.
   *
   * @param id a whole number
   *
   * @example
   * ```ts
   * import { readFile } from 'node:fs/promises';
   * import { Tokenizer } from 'attn/tokenizer';
   *
   * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/entities/tokenizer.json') });
   * console.log(tokenizer.idToToken(1526), tokenizer.idToToken(1e6)); // lives undefined
   * ```
   */
  idToToken(id: number): string | undefined;
}
