/**
 * What a file may ask to look for. A regular expression of a file is never run: the ones that published tokenizers have are known by their text, and
 * written out here, with the library's own letters, numbers and spaces.
 */
import { LETTER, NUMBER, SPACE, is } from './unicode.js';
import { limits } from './limits.js';
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
const spaces = runOf(SPACE);
const letters = runOf(LETTER);
const numbers = runOf(NUMBER);
const isOther = (code: number) => !is(code, SPACE | LETTER | NUMBER);
const isNewline = (code: number) => code === 10 || code === 13;

function others(codes: readonly number[], at: number, to: number): number {
  while (at < to && isOther(codes[at])) ++at;
  return at;
}

/** Ends a run of white space: the last space belongs to the word that follows it. */
function spaceRun(codes: readonly number[], at: number, to: number): number {
  const end = spaces(codes, at, to);
  return end < to && end - at > 1 ? end - 1 : end;
}

function contraction(codes: readonly number[], at: number, to: number): number {
  for (const match of contractions) {
    const end = match(codes, at, to);
    if (end > at) return end;
  }
  return at;
}

/** The words of GPT-2: a contraction; letters, digits or other characters, each with the space before them; white space. */
export function gpt2(codes: readonly number[], at: number, to: number): number {
  const end = codes[at] === 39 ? contraction(codes, at, to) : at;
  if (end > at) return end;
  const start = codes[at] === 32 ? at + 1 : at;
  if (start === to || is(codes[start], SPACE)) return spaceRun(codes, at, to);
  if (is(codes[start], LETTER)) return letters(codes, start, to);
  return is(codes[start], NUMBER) ? numbers(codes, start, to) : others(codes, start, to);
}

/** The words of GPT-4's and its like: any one character may lead letters, numbers are cut every few digits, line ends close what is before them. */
const gpt4 =
  (digits: number): Matcher =>
  (codes, at, to) => {
    const code = codes[at];
    if (code === 39) {
      // Case does not matter there, and ſ is an s.
      const ahead = codes.slice(at, Math.min(at + 3, to)).map((c) => (c === 0x17f ? 115 : c >= 65 && c <= 90 ? c + 32 : c));
      const end = contraction(ahead, 0, ahead.length);
      if (end > 0) return at + end;
    }
    if (is(code, LETTER)) return letters(codes, at, to);
    if (is(code, NUMBER)) return numbers(codes, at, Math.min(to, at + digits));
    if (!isNewline(code) && at + 1 < to && is(codes[at + 1], LETTER)) return letters(codes, at + 1, to);
    const start = code === 32 ? at + 1 : at;
    let end = others(codes, start, to);
    if (end > start) {
      while (end < to && isNewline(codes[end])) ++end;
      return end;
    }
    for (end = spaces(codes, at, to); end > at; --end) if (isNewline(codes[end - 1])) return end;
    return spaceRun(codes, at, to);
  };

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

const gpt4Text = (digits: string, end: string) =>
  `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]${end}|\\s+(?!\\S)|\\s+`;

const known = new Map<string, Matcher>([
  [' {2,}', blanks],
  ['\\s+', spaces],
  ['\\s{2,}', runOf(SPACE, 2)],
  ['\\s{2,}|[\\n\\r\\t]', spacesOrControl],
  ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", gpt2],
  ...['', '+'].flatMap((end): [string, Matcher][] => [
    [gpt4Text('{1,3}', end), gpt4(3)],
    [gpt4Text('', end), gpt4(1)],
  ]),
]);

export interface Pattern {
  readonly match: Matcher;
  /** Steps for each character of a text. */
  readonly cost: number;
}

/** The "pattern" of a section: {"String": …} or {"Regex": …}. */
export function regex(section: Section): Pattern {
  const pattern = section.section('pattern');
  if (pattern.has('String')) {
    const text = pattern.text('String', limits.pattern);
    return { match: literal(text), cost: text.length };
  }
  const text = pattern.string('Regex');
  const match = known.get(text) ?? unsupported(pattern.at('Regex'), text, 'one of the expressions that published tokenizers have');
  return { match, cost: 4 };
}
