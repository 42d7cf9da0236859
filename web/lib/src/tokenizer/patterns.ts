/**
 * What a file may ask to look for. A regular expression of a file is never run: the ones that published tokenizers have are known by their text, and
 * written out here, with the library's own letters, numbers and spaces.
 */
import { ANY_MARK, LETTER, LOWER, NUMBER, SPACE, UPPER, is } from './unicode.js';
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
const isNewline = (code: number) => code === 10 || code === 13;

/** A run of what is in none of these classes. */
const othersThan =
  (classes: number): Matcher =>
  (codes, at, to) => {
    while (at < to && !is(codes[at], classes)) ++at;
    return at;
  };
const others = othersThan(SPACE | LETTER | NUMBER);

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

/** A contraction whose case does not matter, and for which ſ is an s. */
function anyContraction(codes: readonly number[], at: number, to: number): number {
  if (codes[at] !== 39) return at;
  const ahead = codes.slice(at, Math.min(at + 3, to)).map((c) => (c === 0x17f ? 115 : c >= 65 && c <= 90 ? c + 32 : c));
  return at + contraction(ahead, 0, ahead.length);
}

/** White space up to its last line end, else without the space that belongs to the word behind it. */
function lineEndOrSpaces(codes: readonly number[], at: number, to: number): number {
  for (let end = spaces(codes, at, to); end > at; --end) if (isNewline(codes[end - 1])) return end;
  return spaceRun(codes, at, to);
}

/** The words of GPT-4's and its like: any one character may lead letters, numbers are cut every few digits, line ends close what is before them. */
function gpt4(digits: number, letter = LETTER): Matcher {
  const run = runOf(letter);
  const rest = othersThan(SPACE | letter | NUMBER);
  return (codes, at, to) => {
    const code = codes[at];
    let end = anyContraction(codes, at, to);
    if (end > at) return end;
    if (is(code, letter)) return run(codes, at, to);
    if (is(code, NUMBER)) return numbers(codes, at, Math.min(to, at + digits));
    if (!isNewline(code) && at + 1 < to && is(codes[at + 1], letter)) return run(codes, at + 1, to);
    const start = code === 32 ? at + 1 : at;
    end = rest(codes, start, to);
    if (end === start) return lineEndOrSpaces(codes, at, to);
    while (end < to && isNewline(codes[end])) ++end;
    return end;
  };
}

const upper = runOf(UPPER);
const lower = runOf(LOWER);

/** Capitals, then at least one small letter; letters without case are both. */
function smallWord(codes: readonly number[], at: number, to: number): number {
  let end = upper(codes, at, to);
  if (end < to && is(codes[end], LOWER)) return lower(codes, end, to);
  while (end > at && !is(codes[end - 1], LOWER)) --end;
  return end;
}

/** Capitals, then small letters where there are any. */
function capitalWord(codes: readonly number[], at: number, to: number): number {
  const end = upper(codes, at, to);
  return end > at ? lower(codes, end, to) : at;
}

/** The words of GPT-4o's: one begins with its capitals, and its contraction belongs to it. */
const o200k =
  (digits: number, contracts: boolean): Matcher =>
  (codes, at, to) => {
    const code = codes[at];
    const led = isNewline(code) || is(code, LETTER | NUMBER) ? at : at + 1;
    for (const word of [smallWord, capitalWord])
      for (const start of [led, at]) {
        const end = word(codes, start, to);
        if (end > start) return contracts ? anyContraction(codes, end, to) : end;
      }
    if (is(code, NUMBER)) return numbers(codes, at, Math.min(to, at + digits));
    const start = code === 32 ? at + 1 : at;
    let end = others(codes, start, to);
    if (end === start) return lineEndOrSpaces(codes, at, to);
    while (end < to && (isNewline(codes[end]) || codes[end] === 47)) ++end;
    return end;
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

const anyCase = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const ends = '|\\s+(?!\\S)|\\s+';
const gpt4Text = (letter: string, rest: string, digits: string, end: string) =>
  `${anyCase}|[^\\r\\n\\p{L}\\p{N}]?${letter}+|\\p{N}${digits}| ?[^\\s${rest}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]${end}${ends}`;
function o200kText(digits: string, contraction: string): string {
  const [lead, capitals, small] = ['[^\\r\\n\\p{L}\\p{N}]?', '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'];
  const words = `${lead}${capitals}*${small}+${contraction}|${lead}${capitals}+${small}*${contraction}`;
  return `${words}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+${ends}`;
}

const known = new Map<string, Matcher>([
  [' {2,}', blanks],
  ['\\s+', spaces],
  ['\\s{2,}', runOf(SPACE, 2)],
  ['\\s{2,}|[\\n\\r\\t]', spacesOrControl],
  ["'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+", gpt2],
  ...['', '+'].flatMap((end): [string, Matcher][] => [
    [gpt4Text('\\p{L}', '\\p{L}', '{1,3}', end), gpt4(3)],
    [gpt4Text('\\p{L}', '\\p{L}', '', end), gpt4(1)],
  ]),
  // Qwen 3.5, for which marks are letters; GPT-4o; Mistral's Tekken.
  [gpt4Text('[\\p{L}\\p{M}]', '\\p{L}\\p{M}', '', '+'), gpt4(1, LETTER | ANY_MARK)],
  [o200kText('{1,3}', `${anyCase}?`), o200k(3, true)],
  [o200kText('', ''), o200k(1, false)],
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
