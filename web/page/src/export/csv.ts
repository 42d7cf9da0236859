import type { Shown } from '../state/shown.ts';

/** Nine digits give the same float32 back. */
export const float32Text = (value: number): string => String(Number(value.toPrecision(9)));

/**
 * Spreadsheets compute a text that begins so, also inside quotes: a model's vocabulary could hold a formula. An apostrophe in front makes it text.
 * Only labels get one; numbers, negative ones too, stay numbers.
 */
const formula = /^[\t\r\n ]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

const quote = (text: string) => `"${(formula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

/** RFC 4180: a row for each query, a column for each key, their labels in front. */
export function toCsv({ places, weights }: Pick<Shown, 'places' | 'weights'>): string {
  const size = places.length;
  const lines = [
    ['query \\ key', ...places.map(({ label }) => label)].map(quote).join(','),
    ...places.map(({ label }, i) => [quote(label), ...Array.from(weights.subarray(i * size, (i + 1) * size), float32Text)].join(',')),
  ];
  return lines.join('\r\n') + '\r\n';
}
