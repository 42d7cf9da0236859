/** Regular expressions of a file are never run: published ones are recognized by their text and implemented here. */
import { LETTER, NUMBER, SPACE, is } from './unicode.js';
import { limits } from './limits.js';
import { lazyParts } from './lazy_slot.js';
import { type Section, unsupported } from './schema.js';
import { codesOf, type Matcher } from './text.js';

export function runOf(classes: number, least = 1): Matcher {
  return (codes, at, to) => {
    let end = at;
    while (end < to && is(codes[end], classes)) ++end;
    return end - at < least ? at : end;
  };
}

export function one(classes: number): Matcher {
  return (codes, at) => (is(codes[at], classes) ? at + 1 : at);
}

export function literal(text: string): Matcher {
  const wanted = codesOf(text);
  return (codes, at, to) => (at + wanted.length <= to && wanted.every((code, i) => codes[at + i] === code) ? at + wanted.length : at);
}

const contractions = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"].map(literal);
export const spaces = runOf(SPACE);
const letters = runOf(LETTER);
export const numbers = runOf(NUMBER);
export const isNewline = (code: number) => code === 10 || code === 13;

export const othersThan =
  (classes: number): Matcher =>
  (codes, at, to) => {
    while (at < to && !is(codes[at], classes)) ++at;
    return at;
  };
export const others = othersThan(SPACE | LETTER | NUMBER);

/** The last space belongs to the word after it. */
export function spaceRun(codes: readonly number[], at: number, to: number): number {
  const end = spaces(codes, at, to);
  return end < to && end - at > 1 ? end - 1 : end;
}

export function contraction(codes: readonly number[], at: number, to: number): number {
  for (const match of contractions) {
    const end = match(codes, at, to);
    if (end > at) return end;
  }
  return at;
}

/** Words of GPT-2, each with the space before it. */
export function gpt2(codes: readonly number[], at: number, to: number): number {
  const end = codes[at] === 39 ? contraction(codes, at, to) : at;
  if (end > at) return end;
  const start = codes[at] === 32 ? at + 1 : at;
  if (start === to || is(codes[start], SPACE)) return spaceRun(codes, at, to);
  if (is(codes[start], LETTER)) return letters(codes, start, to);
  return is(codes[start], NUMBER) ? numbers(codes, start, to) : others(codes, start, to);
}

/** \s{2,}|[\n\r\t] */
function spacesOrControl(codes: readonly number[], at: number, to: number): number {
  const end = spaces(codes, at, to);
  return end - at > 1 || isNewline(codes[at]) || codes[at] === 9 ? end : at;
}

function blanks(codes: readonly number[], at: number, to: number): number {
  let end = at;
  while (end < to && codes[end] === 32) ++end;
  return end - at > 1 ? end : at;
}

const known = new Map<string, Matcher>([
  [' {2,}', blanks],
  ['\\s+', spaces],
  ['\\s{2,}', runOf(SPACE, 2)],
  ['\\s{2,}|[\\n\\r\\t]', spacesOrControl],
  ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", gpt2],
]);

export interface Pattern {
  readonly match: Matcher;
  /** Steps per character. */
  readonly cost: number;
}

/** `mayBeRare`: false for parts read after the tokenizer. */
export function regex(section: Section, mayBeRare = true): Pattern {
  const pattern = section.section('pattern');
  if (pattern.has('String')) {
    const text = pattern.text('String', limits.pattern);
    return { match: literal(text), cost: text.length };
  }
  const text = pattern.string('Regex');
  const refuse = () => unsupported(pattern.at('Regex'), text, 'one of the expressions that published tokenizers have');
  const match = known.get(text) ?? (mayBeRare ? lazyParts(({ patterns }) => patterns.get(text) ?? refuse()) : refuse());
  return { match: match ?? spaces, cost: 4 };
}
