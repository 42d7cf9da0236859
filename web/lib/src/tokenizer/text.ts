import { fail } from '../args/error.js';
import { limits } from './limits.js';

/** What a text may cost: characters that it becomes at once, since a file's rules can double it again and again, and steps until it is tokens. */
export class Budget {
  readonly #what: string;
  readonly #length: number;
  readonly #characters: number;
  readonly #most: number;
  #steps = 0;

  constructor(length: number, what = 'the text') {
    const { growth, longGrowth, moreGrowth, steps, moreSteps } = limits;
    this.#what = what;
    this.#length = length;
    this.#characters = Math.min(growth * length + 4096, longGrowth * length + moreGrowth);
    this.#most = steps * length + moreSteps;
  }

  get steps(): number {
    return this.#steps;
  }

  /** Whether it may become so many characters. */
  fits(characters: number): boolean {
    return characters <= this.#characters;
  }

  /** Refuses a text of so many characters. */
  hold(characters: number): void {
    if (this.fits(characters)) return;
    const most = this.#characters;
    fail(most > limits.moreGrowth ? 'MEMORY' : 'UNSUPPORTED', 'tokenize', this.#what, 'becomes longer', `at most ${most} characters`);
  }

  /** Before the steps are taken, or behind the one token that they were for: what is refused has not been done, and does not count. */
  spend(steps: number): void {
    if (this.#steps + steps > this.#most)
      fail(
        'UNSUPPORTED',
        'tokenize',
        this.#what,
        `takes more than ${limits.steps} steps a character by this tokenizer.json`,
        `at most ${this.#most} for ${this.#length} characters`,
      );
    this.#steps += steps;
  }
}

/**
 * A text as the stages of tokenizing hand it on: code points, each with the place in the original that it came from, in UTF-16 units.
 * Stages that change characters keep those places, so a token's offsets are the places of its first and last character.
 */
export interface Text {
  readonly codes: number[];
  readonly starts: number[];
  readonly ends: number[];
  readonly budget: Budget;
}

export function emptyText(budget: Budget): Text {
  return { codes: [], starts: [], ends: [], budget };
}

export function push(text: Text, code: number, start: number, end: number): void {
  text.budget.hold(text.codes.length + 1);
  text.codes.push(code);
  text.starts.push(start);
  text.ends.push(end);
}

/** The code points of a string; a surrogate without its other half is U+FFFD, as in UTF-8. */
export function codesOf(text: string): number[] {
  const codes: number[] = [];
  for (let i = 0; i < text.length; ++i) {
    const code = text.codePointAt(i)!;
    if (code > 0xffff) ++i;
    codes.push(code >= 0xd800 && code < 0xe000 ? 0xfffd : code);
  }
  return codes;
}

export function readText(text: string, budget?: Budget): Text {
  const codes = codesOf(text);
  let at = 0;
  const ends = codes.map((code) => (at += code > 0xffff ? 2 : 1));
  return { codes, starts: ends.map((end, i) => (codes[i] > 0xffff ? end - 2 : end - 1)), ends, budget: budget ?? new Budget(codes.length) };
}

/** The bytes of one code point. */
export function utf8(code: number): number[] {
  if (code < 0x80) return [code];
  const tail = (shift: number) => 0x80 | ((code >> shift) & 0x3f);
  if (code < 0x800) return [0xc0 | (code >> 6), tail(0)];
  if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)];
  return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)];
}

/** The characters that stand for the 256 bytes in byte-level tokens: printable ones for themselves, the others from U+0100 on. */
export const byteCodes: readonly number[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => ((byte > 32 && byte < 127) || (byte > 160 && byte !== 173) ? byte : next++));
})();

/** Characters [from, to) of a text by their bytes, each in the place of its character. */
export function pushBytes(out: Text, { codes, starts, ends }: Text, from: number, to: number): void {
  for (let i = from; i < to; ++i) for (const byte of utf8(codes[i])) push(out, byteCodes[byte], starts[i], ends[i]);
}

/** In pieces, since an engine takes only so many arguments. */
export function stringOf(codes: readonly number[], from = 0, to = codes.length): string {
  if (to - from < 4096) return String.fromCodePoint(...codes.slice(from, to));
  let text = '';
  for (let i = from; i < to; i += 4096) text += String.fromCodePoint(...codes.slice(i, Math.min(i + 4096, to)));
  return text;
}

export function slice(text: Text, from: number, to: number): Text {
  const { codes, starts, ends, budget } = text;
  if (from === 0 && to === codes.length) return text;
  return { codes: codes.slice(from, to), starts: starts.slice(from, to), ends: ends.slice(from, to), budget };
}

/**
 * New characters in place of the old ones. A change says how: 0 takes the place of the next old character, 1 is added and shares the place of the one
 * before it, -n takes the next place and drops the n characters after it.
 */
export function transform(text: Text, codes: number[], changes: readonly number[]): Text {
  const last = text.codes.length - 1;
  const [starts, ends]: [number[], number[]] = [[], []];
  let next = 0;
  for (const change of changes) {
    const place = Math.min(Math.max(change > 0 ? next - 1 : next, 0), last);
    starts.push(text.starts[place]);
    ends.push(text.ends[place]);
    if (change <= 0) next += 1 - change;
  }
  return { codes, starts, ends, budget: text.budget };
}

/** Part of a text between two cuts; `added` is the id where an added token was found, and no later stage touches such a piece. */
export interface Piece {
  readonly text: Text;
  readonly from: number;
  to: number;
  readonly added?: number;
}

/** The end of what matches at a place, or the place itself. */
export type Matcher = (codes: readonly number[], at: number, to: number) => number;
export type Behavior = 'Removed' | 'Isolated' | 'MergedWithPrevious' | 'MergedWithNext' | 'Contiguous';

/** Cuts pieces where something matches; what becomes of the match is the behavior, `invert` calls the rest a match. */
export function split(pieces: readonly Piece[], match: Matcher, behavior: Behavior, invert = false): Piece[] {
  const out: Piece[] = [];
  for (const piece of pieces) {
    if (piece.added !== undefined) {
      out.push(piece);
      continue;
    }
    const { text, from, to } = piece;
    let previous = false;
    const cut = (start: number, end: number, matches: boolean) => {
      const joins =
        (behavior === 'Contiguous' && matches === previous && start > from) ||
        (behavior === 'MergedWithPrevious' && matches && !previous && start > from) ||
        (behavior === 'MergedWithNext' && !matches && previous);
      if (joins) out.at(-1)!.to = end;
      else if (behavior !== 'Removed' || !matches) out.push({ text, from: start, to: end });
      previous = matches;
    };
    let start = from;
    for (let at = from; at < to;) {
      const end = match(text.codes, at, to);
      if (end > at) {
        if (start < at) cut(start, at, invert);
        cut(at, end, !invert);
        start = at = end;
      } else ++at;
    }
    if (start < to) cut(start, to, invert);
  }
  return out;
}

/** Rewrites what is in the pieces, into one new text. */
export function rewrite(pieces: readonly Piece[], write: (piece: Piece, out: Text) => void): Piece[] {
  if (pieces.length === 0) return [];
  const text = emptyText(pieces[0].text.budget);
  return pieces.map((piece) => {
    if (piece.added !== undefined) return piece;
    const from = text.codes.length;
    write(piece, text);
    return { text, from, to: text.codes.length };
  });
}
