import { fail } from '../args/error.js';
import { limits } from './limits.js';

/** Limits the length, which a file's rules can double repeatedly, and the steps of all stages. */
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

  fits(characters: number): boolean {
    return characters <= this.#characters;
  }

  hold(characters: number): void {
    if (this.fits(characters)) return;
    const most = this.#characters;
    fail(
      most > limits.moreGrowth ? 'MEMORY' : 'UNSUPPORTED',
      'tokenize',
      this.#what,
      'is longer once it is normalized',
      `at most ${most} characters`,
    );
  }

  /** Counts steps before they are taken, or after the single token that needed them. */
  spend(steps: number): void {
    if (this.#steps + steps > this.#most)
      fail(
        'UNSUPPORTED',
        'tokenize',
        this.#what,
        `needs more than ${limits.steps} steps per character with this tokenizer.json`,
        `at most ${this.#most} steps for ${this.#length} characters`,
      );
    this.#steps += steps;
  }
}

/** Each code point has its range in the original (UTF-16 units). Every stage keeps the ranges. */
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

/** A lone surrogate becomes U+FFFD, as in UTF-8. */
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

export function utf8(code: number): number[] {
  if (code < 0x80) return [code];
  const tail = (shift: number) => 0x80 | ((code >> shift) & 0x3f);
  if (code < 0x800) return [0xc0 | (code >> 6), tail(0)];
  if (code < 0x10000) return [0xe0 | (code >> 12), tail(6), tail(0)];
  return [0xf0 | (code >> 18), tail(12), tail(6), tail(0)];
}

/** Characters of the 256 bytes in byte-level tokens: printable ones themselves, the others from U+0100. */
export const byteCodes: readonly number[] = (() => {
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => ((byte > 32 && byte < 127) || (byte > 160 && byte !== 173) ? byte : next++));
})();

/** Each byte has the range of its character. */
export function pushBytes(out: Text, { codes, starts, ends }: Text, from: number, to: number): void {
  for (let i = from; i < to; ++i) for (const byte of utf8(codes[i])) push(out, byteCodes[byte], starts[i], ends[i]);
}

/** In chunks: engines limit the number of arguments. */
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
 * `changes` per new character: 0 takes the range of the next old one, 1 shares the range of the one before, -n takes
 * the next range and drops n characters after it.
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

/** `added`: id of an added token, which later stages leave unchanged. */
export interface Piece {
  readonly text: Text;
  readonly from: number;
  to: number;
  readonly added?: number;
}

/** Returns the end of the match, or `at`. */
export type Matcher = (codes: readonly number[], at: number, to: number) => number;
export type Behavior = 'Removed' | 'Isolated' | 'MergedWithPrevious' | 'MergedWithNext' | 'Contiguous';

/** `invert` swaps matches and the rest. */
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
