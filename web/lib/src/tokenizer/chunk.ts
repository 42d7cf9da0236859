/** attn/chunk: chunks of texts for users of attn/tokenizer. */
import { AttnError, describe, fail, reading } from '../args/error.js';
import type { Chunk, ChunkOptions } from '../chunk.js';
import type { Tokenizer } from '../tokenizer.js';
import { chunkLimits, chunksOf, readChunkOptions, readChunkText } from './chunks.js';

export { AttnError };

const noLimit = 2 ** 31 - 1;

export function chunk(tokenizer: Pick<Tokenizer, 'encode'>, text: string, options: ChunkOptions): Chunk[] {
  reading('chunk', 'tokenizer', () => {
    if (typeof (tokenizer as Partial<Tokenizer> | null | undefined)?.encode === 'function') return;
    fail('ARGUMENT', 'chunk', 'tokenizer', describe(tokenizer), 'a Tokenizer of attn/tokenizer');
  });
  const given = readChunkText(text);
  const read = readChunkOptions(options);
  const encode = (each: string, addSpecialTokens = false) => tokenizer.encode(each, { maxLength: noLimit, addSpecialTokens });
  const limits = chunkLimits(read, encode('', true).dims[1]! - encode('').dims[1]!);
  return chunksOf(given, limits, (each) => encode(each).offsets[0]!.map((place) => place![1]));
}
