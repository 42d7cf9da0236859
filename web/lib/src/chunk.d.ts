/**
 * `attn/chunk`: divides long texts into chunks that a model can take, by the tokenizer of `attn/tokenizer`. It is a
 * separate file that loads no WebAssembly.
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises';
 * import { chunk } from 'attn/chunk';
 * import { Tokenizer } from 'attn/tokenizer';
 *
 * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/sentiment/tokenizer.json') });
 * const text = 'A warm film. The cast is good, and the end is sad.';
 * for (const { start, end, tokenCount } of chunk(tokenizer, text, { maxTokens: 14 })) console.log(start, end, tokenCount);
 * // 0 12 6
 * // 13 50 13
 * ```
 * @packageDocumentation
 */
import type { Tokenizer } from './tokenizer.js';

export { AttnError } from './attn.js';

/** Options of {@link chunk}. */
export interface ChunkOptions {
  /** The largest number of tokens of a chunk, including the special tokens that the model adds. */
  maxTokens: number;
  /**
   * The largest number of tokens of a chunk that repeat the end of the chunk before it. The repetition begins at a
   * sentence or paragraph (`by`) if one fits, else at a word. Default 0.
   */
  overlap?: number | undefined;
  /**
   * Where chunks end: as many whole sentences (default) or paragraphs as fit, or with `'token'` as many words. A
   * paragraph that does not fit is divided into sentences, a sentence at white space.
   */
  by?: 'sentence' | 'paragraph' | 'token' | undefined;
}

/** A part of a text: `text.slice(start, end)`, without white space around it. */
export interface Chunk {
  /** First UTF-16 code unit. */
  readonly start: number;
  /** The UTF-16 code unit after the last. */
  readonly end: number;
  readonly text: string;
  /** Number of tokens of `text`, including special tokens. */
  readonly tokenCount: number;
}

/**
 * Divides a text into chunks of at most `maxTokens` tokens, in the order of the text. Together they have every
 * character except white space between them; a text of white space has none.
 *
 * Sentences are those of `Intl.Segmenter`. Without it (Firefox before 125) they end at `.`, `!`, `?` and their
 * counterparts in Chinese and Japanese. A line break ends a sentence, if the next line does not begin in lowercase. Two
 * line breaks end a paragraph.
 *
 * Words are not cut. Only a run of characters without white space that has more than `maxTokens` tokens is divided:
 * at the words that `Intl.Segmenter` finds in it (Chinese, Thai, addresses), else between two tokens, else between two
 * characters.
 *
 * @param tokenizer a tokenizer of `attn/tokenizer`
 * @param text the text; a lone surrogate counts as U+FFFD
 * @param options see {@link ChunkOptions}
 * @throws {AttnError} `ARGUMENT` if an argument has the wrong type or `maxTokens` is missing
 * @throws {AttnError} `CONFIG` if `maxTokens` leaves no room for text, or `overlap` no room for new text
 * @throws {AttnError} `OUT_OF_RANGE` if one character has more than `maxTokens` tokens
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises';
 * import { chunk } from 'attn/chunk';
 * import { Tokenizer } from 'attn/tokenizer';
 *
 * const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await readFile('models/sentiment/tokenizer.json') });
 * const chunks = chunk(tokenizer, 'A warm film. The cast is good.', { maxTokens: 8 });
 * console.log(chunks.map(({ text }) => text).join(' | ')); // A warm film. | The cast is good.
 * ```
 */
export function chunk(tokenizer: Pick<Tokenizer, 'encode'>, text: string, options: ChunkOptions): Chunk[];
