import { errorWithHelp, fail } from '../args/error.js';
import type { Part } from '../tokenizer/post_processors.js';
import type { EncodeOptions, Tokenizer } from '../tokenizer/tokenizer.js';

export interface Sequence {
  readonly ids: Int32Array;
  readonly types: Int32Array;
  readonly tokens: readonly string[];
  /** Index of each token's text; -1 for special tokens. */
  readonly texts: Int32Array;
  /** Range in that text, and number of the word. */
  readonly starts: Int32Array;
  readonly ends: Int32Array;
  readonly words: Int32Array;
}

function sequenceOf(parts: readonly Part[], texts: readonly Part[], tokenTypes: boolean | undefined): Sequence {
  const numbers = (get: (part: Part) => Iterable<number>) => Int32Array.from(parts.flatMap((part) => [...get(part)]));
  const alike = (get: (part: Part) => number) => numbers((part) => part.ids.map(() => get(part)));
  const places = (list: 'starts' | 'ends' | 'words') => numbers((part) => (part.special ? part.ids.map(() => -1) : part[list]));
  return {
    ids: numbers(({ ids }) => ids),
    types: alike(({ type }) => (tokenTypes === false ? 0 : type)),
    tokens: parts.flatMap(({ tokens }) => tokens),
    texts: alike(({ ids }) => texts.findIndex((text) => text.ids === ids)),
    starts: places('starts'),
    ends: places('ends'),
    words: places('words'),
  };
}

/** With a stride, splits the last text into windows that share `stride` tokens. */
export function sequences(
  tokenizer: Tokenizer,
  operation: string,
  texts: readonly string[],
  { maxLength, truncation, tokenTypes, addSpecialTokens = true, truncationSide: side = tokenizer.truncationSide }: EncodeOptions,
  stride?: number,
): Sequence[] {
  const before = texts.slice(0, -1).map((text, i) => ({ ...tokenizer.split(text), type: i }));
  const added = addSpecialTokens ? tokenizer.added(texts.length) : 0;
  const room = maxLength - added - before.reduce((sum, { ids }) => sum + ids.length, 0);
  const most = truncation && stride === undefined && room > 0 ? room : Infinity;
  const last = { ...tokenizer.split(texts[before.length]!, most, side), type: before.length };
  const count = last.ids.length;
  const refuse = (problem: string, help?: string) => {
    const detail = { op: operation, index: 0, tokens: maxLength - room + count, maxLength };
    throw errorWithHelp('OUT_OF_RANGE', `${operation}: ${problem}`, help, detail);
  };
  const pieces: [from: number, to: number][] = [];
  const refuseStride = () =>
    fail('CONFIG', operation, 'stride', `is ${stride}`, `a number below ${room}`, 'Each window has that many tokens of the text');
  // Of a single text the room is known: a short one is refused as a long one would be.
  if (before.length === 0 && truncation && room > 0 && stride !== undefined && stride >= room) refuseStride();
  if (count <= room) pieces.push([0, count]);
  else if (!truncation) refuse(`text 0 has ${maxLength - room + count} tokens, expected at most ${maxLength} tokens`);
  else if (room < 1) refuse(`maxLength is ${maxLength}, expected a number of at least ${maxLength - room + 1}`, 'There is no room for the last text');
  else if (stride === undefined) pieces.push(side === 'left' ? [count - room, count] : [0, room]);
  else if (stride >= room) refuseStride();
  else
    for (let from = 0; ; from += room - stride) {
      const to = Math.min(from + room, count);
      pieces.push(side === 'left' ? [count - to, count - from] : [from, to]);
      if (to === count) break;
    }
  const cut = ({ ids, tokens, starts, ends, words, ...others }: Part, from: number, to: number): Part => ({
    ...others,
    ids: ids.slice(from, to),
    tokens: tokens.slice(from, to),
    starts: starts.slice(from, to),
    ends: ends.slice(from, to),
    words: words.slice(from, to),
  });
  return pieces.map(([from, to]) => {
    const given = [...before.map((part) => cut(part, 0, part.ids.length)), cut(last, from, to)];
    const parts = tokenizer.process(given).filter(({ special }) => addSpecialTokens || !special);
    return sequenceOf(parts, given, tokenTypes);
  });
}
