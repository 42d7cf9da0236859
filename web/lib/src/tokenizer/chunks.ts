/**
 * Tokenizes the whole text once to choose the places; each chunk is then tokenized alone, because its first word can
 * have other tokens than in the text.
 */
import type { Chunk, ChunkOptions } from '../chunk.js';
import { describe, errorWithHelp, fail, reading } from '../args/error.js';
import { choice, readMembers, whole } from '../args/signature.js';

/** A chunk ends at the strongest boundary that it can reach. */
const [CHARACTER, TOKEN, WORD, SPACE, SENTENCE, PARAGRAPH] = [0, 1, 2, 3, 4, 5];
const kinds = ['sentence', 'paragraph', 'token'] as const;
const strengths = [SENTENCE, PARAGRAPH, SPACE];
/** Characters segmented at a time: the time of V8 and ICU grows with the square of the length. */
const windows = { sentence: 1024, word: 128 } as const;

export interface CheckedChunkOptions {
  readonly maxTokens: number | undefined;
  readonly overlap: number | undefined;
  readonly by: (typeof kinds)[number];
}

export interface ChunkLimits {
  readonly limit: number;
  readonly overlap: number;
  readonly by: (typeof kinds)[number];
  /** Tokens that the model adds. */
  readonly special: number;
}

const most = 2 ** 31 - 1;

export function readChunkText(text: unknown): string {
  if (typeof text !== 'string') fail('ARGUMENT', 'chunk', 'text', describe(text), 'a string');
  return text;
}

export const readChunkOptions = (options: unknown): CheckedChunkOptions =>
  reading('chunk', 'options', () => {
    const names = ['maxTokens', 'overlap', 'by'] as const satisfies readonly (keyof ChunkOptions)[];
    const [maxTokens, overlap, by] = options === undefined ? [] : readMembers('chunk', 'options', options, names);
    return {
      maxTokens: maxTokens === undefined ? undefined : whole('chunk', 'maxTokens', maxTokens, 1, most),
      overlap: overlap === undefined ? undefined : whole('chunk', 'overlap', overlap, 0, most),
      by: by === undefined ? 'sentence' : kinds[choice('chunk', 'by', by, kinds)]!,
    };
  });

/** `special`: number of tokens that the model adds. */
export function chunkLimits({ maxTokens, overlap = 0, by }: CheckedChunkOptions, special: number): ChunkLimits {
  if (maxTokens === undefined) fail('ARGUMENT', 'chunk', 'maxTokens', 'is missing', 'a whole number');
  const limit = maxTokens - special;
  if (limit < 1)
    fail('CONFIG', 'chunk', 'maxTokens', `is ${maxTokens}`, `a whole number of at least ${special + 1}`, `The model adds ${special} special tokens`);
  if (overlap >= limit)
    fail(
      'CONFIG',
      'chunk',
      'overlap',
      `is ${overlap}`,
      `a whole number below ${limit}`,
      `The limit is maxTokens without the ${special} special tokens that the model adds`,
    );
  return { limit, overlap, by, special };
}

/** Returns undefined in Firefox before 125. The language is fixed: places do not depend on the user's. */
function segmenter(granularity: keyof typeof windows): ((text: string, from: number, to: number) => Generator<number>) | undefined {
  if (typeof Intl !== 'object' || !('Segmenter' in Intl)) return undefined;
  const found = new Intl.Segmenter('en', { granularity });
  return function* (text, from, to) {
    for (let start = from; start < to;) {
      const end = Math.min(start + windows[granularity], text.length);
      let last = 0;
      for (const { index } of found.segment(text.slice(start, end))) {
        if (index > 0) yield start + index;
        last = index;
      }
      if (end === text.length) return;
      // The window may have cut the last segment.
      start = last > 0 ? start + last : end;
    }
  };
}

/** Marks the ends of white space: a paragraph ends at two line breaks. */
function markSpaces(text: string, strength: Uint8Array): void {
  for (const { 0: run, index } of text.matchAll(/\s+/g)) {
    const breaks = run.match(/\r\n|[\n\r\u2028\u2029]/g)?.length ?? 0;
    strength[index + run.length] = breaks > 1 || run.includes('\u2029') ? PARAGRAPH : SPACE;
  }
}

function* sentenceEnds(text: string): Generator<number> {
  // A line that goes on in lowercase was wrapped.
  const joined = text.replace(/\r?\n(?=[^\S\n]*\p{Ll})/gu, (breaks) => ' '.repeat(breaks.length));
  const found = segmenter('sentence');
  if (found) yield* found(joined, 0, joined.length);
  else
    for (const { 0: end, index } of joined.matchAll(/[.!?…]["'’”»)\]]*(?=\s)|[。！？｡．]["'’”」』）]*|[\n\r\u2028\u2029]/g)) yield index + end.length;
}

function markSentences(text: string, strength: Uint8Array): void {
  const space = /\s*/y;
  let at = 0;
  for (const end of sentenceEnds(text)) {
    if (end < at) continue;
    space.lastIndex = end;
    at = end + space.exec(text)![0].length;
    strength[at] = Math.max(strength[at]!, SENTENCE);
  }
}

function markWords(text: string, from: number, to: number, strength: Uint8Array): void {
  const mark = (at: number) => void (strength[at] = Math.max(strength[at]!, WORD));
  const found = segmenter('word');
  if (found) for (const at of found(text, from, to)) mark(at);
  else
    for (const { 0: word, index } of text.slice(from, to).matchAll(/[\p{L}\p{M}\p{N}\p{Pc}]+/gu)) {
      mark(from + index);
      mark(from + index + word.length);
    }
}

const isInsidePair = (text: string, at: number) => text.codePointAt(at - 1)! > 0xffff;

/** `tokenEnds`: the end of each token of a text, in UTF-16 code units. */
export function chunksOf(text: string, { limit, overlap, by, special }: ChunkLimits, tokenEnds: (text: string) => ArrayLike<number>): Chunk[] {
  const { length } = text;
  // Tokens that end at or before a place.
  const before = new Uint32Array(length + 1);
  const ends = tokenEnds(text);
  for (let i = 0; i < ends.length; ++i) ++before[ends[i]!]!;
  const strength = new Uint8Array(length + 1);
  for (let at = 1; at <= length; ++at) {
    if (before[at]! > 0 && !isInsidePair(text, at)) strength[at] = TOKEN;
    before[at]! += before[at - 1]!;
  }
  markSpaces(text, strength);
  const unit = strengths[kinds.indexOf(by)]!;
  if (unit > SPACE) markSentences(text, strength);
  strength[length] = PARAGRAPH;

  /** Finds the last place with at most `tokens` tokens from `from`. */
  const reach = (from: number, tokens: number) => {
    let [low, high] = [from, length];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (before[middle]! - before[from]! <= tokens) low = middle;
      else high = middle - 1;
    }
    return low;
  };
  const isCut = (at: number, least: number) => strength[at]! >= least && (least > CHARACTER || !isInsidePair(text, at));
  /** The last boundary in (from, to], or `from`. */
  const lastCut = (from: number, to: number, least: number) => {
    let at = to;
    while (at > from && !isCut(at, least)) --at;
    return at;
  };
  /** The first boundary in [from, to), or `to`. */
  const firstCut = (from: number, to: number, least: number) => {
    let at = from;
    while (at < to && !isCut(at, least)) ++at;
    return at;
  };
  const skipSpace = (at: number) => {
    while (at < length && /\s/.test(text[at]!)) ++at;
    return at;
  };
  const trimEnd = (from: number, to: number) => {
    while (to > from && /\s/.test(text[to - 1]!)) --to;
    return to;
  };

  /** Ends a chunk after the text before `fresh`. */
  const endOf = (start: number, fresh: number, tokens: number): readonly [end: number, strength: number] => {
    const far = tokens < 0 ? start : reach(start, tokens);
    for (let least = unit; far > fresh && least >= CHARACTER; --least) {
      if (least === WORD) markWords(text, fresh, far, strength);
      const end = lastCut(fresh, far, least);
      if (end > fresh) return [end, least];
    }
    return [fresh, CHARACTER];
  };

  /** Starts a chunk that repeats some of the text before `fresh`. */
  const startOf = (previous: number, fresh: number, least: number) => {
    // A repetition must not cost the end of a sentence.
    const needed = firstCut(fresh + 1, length, least);
    for (let most = overlap, less = 1; most > 0; most -= less, less *= 2) {
      let low = previous + 1;
      while (low < fresh && (before[fresh]! - before[low]! > most || before[needed]! - before[low]! > limit)) ++low;
      const cuts = [unit, SPACE, WORD].map((strong) => firstCut(low, fresh, strong));
      const start = skipSpace(cuts.find((at) => at < fresh) ?? fresh);
      if (start === fresh) break;
      const excess = tokenEnds(text.slice(start, trimEnd(start, fresh))).length - overlap;
      if (excess <= 0) return start;
      less = Math.max(less, excess);
    }
    return fresh;
  };

  const chunks: Chunk[] = [];
  let previous = 0;
  for (let fresh = skipSpace(0); fresh < length; fresh = skipSpace(fresh)) {
    let start = chunks.length > 0 && overlap > 0 ? startOf(previous, fresh, endOf(fresh, fresh, limit)[1]) : fresh;
    for (let tokens = limit, less = 1; ; less *= 2) {
      let [end] = endOf(start, fresh, tokens);
      if (end === fresh && start < fresh) {
        [start, tokens, less] = [fresh, limit, 1];
        [end] = endOf(start, fresh, tokens);
      }
      const isLeast = end === fresh;
      if (isLeast) end = fresh + (isInsidePair(text, fresh + 1) ? 2 : 1);
      const chunk = text.slice(start, trimEnd(start, end));
      const count = tokenEnds(chunk).length;
      if (count <= limit) {
        chunks.push({ start, end: start + chunk.length, text: chunk, tokenCount: count + special });
        [previous, fresh] = [start, end];
        break;
      }
      if (isLeast) {
        const [expected, got] = [`at most ${limit} tokens`, `${count} tokens`];
        const detail = { op: 'chunk', argument: 'text', expected, got, index: fresh };
        throw errorWithHelp('OUT_OF_RANGE', `chunk: the character at ${fresh} has ${got}, expected ${expected}`, 'Use a larger maxTokens', detail);
      }
      less = Math.max(less, count - limit);
      tokens = Math.min(tokens, before[end]! - before[start]!) - less;
    }
  }
  return chunks;
}
