import { ANY_MARK, LETTER, LOWER, NUMBER, SPACE, UPPER, is } from './unicode.js';
import { contraction, isNewline, numbers, others, othersThan, runOf, spaceRun, spaces } from './patterns.js';
import type { Matcher } from './text.js';

/** Ignores case; ſ counts as s. */
function anyContraction(codes: readonly number[], at: number, to: number): number {
  if (codes[at] !== 39) return at;
  const ahead = codes.slice(at, Math.min(at + 3, to)).map((c) => (c === 0x17f ? 115 : c >= 65 && c <= 90 ? c + 32 : c));
  return at + contraction(ahead, 0, ahead.length);
}

/** Up to the last line end, else without the space before a word. */
function lineEndOrSpaces(codes: readonly number[], at: number, to: number): number {
  for (let end = spaces(codes, at, to); end > at; --end) if (isNewline(codes[end - 1])) return end;
  return spaceRun(codes, at, to);
}

/** Words of GPT-4: any one character may precede letters; line ends belong to the punctuation before them. */
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

/** Letters without case count as both. */
function smallWord(codes: readonly number[], at: number, to: number): number {
  let end = upper(codes, at, to);
  if (end < to && is(codes[end], LOWER)) return lower(codes, end, to);
  while (end > at && !is(codes[end - 1], LOWER)) --end;
  return end;
}

function capitalWord(codes: readonly number[], at: number, to: number): number {
  const end = upper(codes, at, to);
  return end > at ? lower(codes, end, to) : at;
}

/** Words of GPT-4o: capitals begin a word, a contraction belongs to it. */
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

const anyCase = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const ends = '|\\s+(?!\\S)|\\s+';
const gpt4Text = (letter: string, rest: string, digits: string, end: string) =>
  `${anyCase}|[^\\r\\n\\p{L}\\p{N}]?${letter}+|\\p{N}${digits}| ?[^\\s${rest}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]${end}${ends}`;
function o200kText(digits: string, contraction: string): string {
  const [lead, capitals, small] = ['[^\\r\\n\\p{L}\\p{N}]?', '[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]', '[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]'];
  const words = `${lead}${capitals}*${small}+${contraction}|${lead}${capitals}+${small}*${contraction}`;
  return `${words}|\\p{N}${digits}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+${ends}`;
}

export const patterns = new Map<string, Matcher>([
  ...['', '+'].flatMap((end): [string, Matcher][] => [
    [gpt4Text('\\p{L}', '\\p{L}', '{1,3}', end), gpt4(3)],
    [gpt4Text('\\p{L}', '\\p{L}', '', end), gpt4(1)],
  ]),
  // Qwen 3.5 (marks are letters), GPT-4o, Mistral's Tekken.
  [gpt4Text('[\\p{L}\\p{M}]', '\\p{L}\\p{M}', '', '+'), gpt4(1, LETTER | ANY_MARK)],
  [o200kText('{1,3}', `${anyCase}?`), o200k(3, true)],
  [o200kText('', ''), o200k(1, false)],
]);
