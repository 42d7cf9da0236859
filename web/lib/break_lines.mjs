import { decode, encode } from '@jridgewell/sourcemap-codec';
import { parseSync, Visitor } from 'rolldown/utils';

/** Node prints the whole line that throws an uncaught error. */
const length = 1000;

/**
 * Ends the line before the first statement or class member after `length` characters.
 *
 * @param {string} code a minified script
 * @param {{ mappings: string }} [map] its source map, which is changed
 */
export function breakLines(code, map) {
  const { program, errors } = parseSync('script.js', code);
  if (errors.length > 0) throw new Error(errors[0].message);
  const starts = [];
  const add = ({ body }) => starts.push(...body.map(({ start }) => start));
  new Visitor({ Program: add, BlockStatement: add, ClassBody: add, StaticBlock: add }).visit(program);

  /** Per line: the columns where it is divided. */
  const lines = code.split('\n');
  const breaks = lines.map(() => []);
  let [line, begin] = [0, 0];
  for (const start of starts.sort((a, b) => a - b)) {
    for (; start > begin + lines[line].length; ++line) begin += lines[line].length + 1;
    const column = start - begin;
    if (column - (breaks[line].at(-1) ?? 0) > length) breaks[line].push(column);
  }
  if (map)
    map.mappings = encode(
      decode(map.mappings).flatMap((segments, i) => {
        const begins = [0, ...(breaks[i] ?? [])];
        return begins.map((from, k) =>
          segments.filter(([column]) => column >= from && !(column >= begins[k + 1])).map(([column, ...source]) => [column - from, ...source]),
        );
      }),
    );
  return lines.map((text, i) => [0, ...breaks[i]].map((from, k) => text.slice(from, breaks[i][k])).join('\n')).join('\n');
}
