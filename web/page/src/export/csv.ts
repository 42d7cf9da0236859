import type { Shown } from '../state/map_view.ts';

/** Nine digits restore the float32. */
export const float32Text = (value: number): string => String(Number(value.toPrecision(9)));

/**
 * Spreadsheets execute such text even in quotes, and a vocabulary could contain it. An apostrophe in front of a label
 * prevents it; numbers are unchanged.
 */
const formula = /^[\t\r\n ]*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

const quote = (text: string) => `"${(formula.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;

/** RFC 4180: one row per query, one column per key. */
export function toCsv({ places, weights }: Pick<Shown, 'places' | 'weights'>): string {
  const size = places.length;
  const lines = [
    ['query \\ key', ...places.map(({ label }) => label)].map(quote).join(','),
    ...places.map(({ label }, i) => [quote(label), ...Array.from(weights.subarray(i * size, (i + 1) * size), float32Text)].join(',')),
  ];
  return lines.join('\r\n') + '\r\n';
}
