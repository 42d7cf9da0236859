/** src/command/written.cpp writes the same bytes. */
import { printable } from './printable.js';

/** Finds the shortest decimal number that rounds to this float32. */
export function number(value: number): string {
  if (!Number.isFinite(value)) return 'null';
  const single = Math.fround(value);
  for (let digits = 6; digits < 9; ++digits) {
    const short = Number(single.toPrecision(digits));
    if (Math.fround(short) === single) return String(short);
  }
  return String(Number(single.toPrecision(9)));
}

export const columns = (words: readonly string[]) => words.map((word) => printable(word.replace(/[\t\r\n]/g, ' '))).join('\t');
const member = ([name, value]: readonly [string, string]) => `${JSON.stringify(name)}:${value}`;
export const object = (members: Readonly<Record<string, string>>) => `{${Object.entries(members).map(member).join(',')}}`;
export const array = (items: readonly string[]) => `[${items.join(',')}]`;
