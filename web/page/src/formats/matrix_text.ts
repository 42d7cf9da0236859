/** Reads arrays as people type or paste them: nested lists, prints of NumPy and PyTorch, rows of a table. */
import type { Tensor } from 'attn';
import { truncate, longestName } from './truncate.ts';
import { withoutPrint } from './printed_array.ts';
import { tableRows } from './table_text.ts';
import { counted } from './numbers.ts';

export class MatrixTextError extends Error {}

export const tooLarge = (number: string) => new MatrixTextError(`${number} is too large for float32. The largest number is 3.4e38.`);
export const tooDeep = () => new MatrixTextError('The lists are nested more than four deep. Give rows or a batch of rows.');

const space = /\s*/y;
const token = /(?:([[\],])|([-+]?(?:Infinity|inf|NaN|nan|(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?)|true|false|True|False)(?![\w.]))/y;

function toNumber(text: string): number {
  const word = text.replace(/^[-+]/, '').toLowerCase();
  const sign = text.startsWith('-') ? -1 : 1;
  if (word === 'true') return 1;
  if (word === 'false') return 0;
  if (word === 'nan') return NaN;
  if (word === 'infinity' || word === 'inf') return sign * Infinity;
  const value = Number(text);
  if (!Number.isFinite(Math.fround(value))) throw tooLarge(truncate(text, longestName));
  return value;
}

/** Unknown text is returned as it is, so that the list reader reports the fault. */
function asLists(text: string, minRank: number): string {
  if (!text.includes('[')) {
    const rows = tableRows(text);
    if (!rows) return text;
    const lists = rows.map((row) => `[${row.join(', ')}]`);
    return lists.length === 1 && minRank === 1 ? lists[0]! : `[${lists.join(',\n ')}]`;
  }
  const lists = withoutPrint(text);
  if (lists.includes('...'))
    throw new MatrixTextError(
      'This print omits numbers (…). Print all of them with numpy.set_printoptions(threshold=10**9) or torch.set_printoptions(threshold=10**9).',
    );
  return lists;
}

/**
 * "[[1, 2], [3, 4]]" -> dims [2, 2]. Also accepts NaN, Infinity, true and false. Throws a MatrixTextError with the
 * position.
 */
export function parseMatrixText(written: string, minRank = 2): Tensor {
  const text = asLists(written, minRank);
  const values: number[] = [];
  const dims: number[] = [];
  const counts: number[] = [];
  let position = 0;
  let rank = -1;
  let expectItem = true;
  let finished = false;

  const place = (at: number): string => {
    const before = text.slice(0, at);
    const line = before.split('\n').length;
    const found = text.slice(at).trimStart().slice(0, 12).split('\n')[0];
    return `line ${line}, column ${at - before.lastIndexOf('\n')}${found ? `, at “${found}”` : ', at the end'}`;
  };
  const where = (): string => counts.map((count) => count + 1).join(', ');

  const end = text.trimEnd().length;
  while (position < end) {
    space.lastIndex = position;
    space.exec(text);
    const start = (position = space.lastIndex);
    if (finished) throw new MatrixTextError(`There is text after the closing bracket (${place(start)}). Give one array.`);
    token.lastIndex = position;
    const match = token.exec(text);
    if (!match) throw new MatrixTextError(`This is not an array of numbers: ${place(start)}. Write rows as [[1, 0], [0, 1]].`);
    position = token.lastIndex;
    const [, mark, number] = match;

    if (mark === '[') {
      if (!expectItem) throw new MatrixTextError(`A comma is missing: ${place(start)}.`);
      if (rank >= 0 && counts.length >= rank)
        throw new MatrixTextError(`Some entries are lists and some are numbers (${place(start)}). Give every row the same form.`);
      counts.push(0);
      if (counts.length > 4) throw tooDeep();
    } else if (mark === ',') {
      if (expectItem || !counts.length) throw new MatrixTextError(`A number is missing: ${place(start)}.`);
      expectItem = true;
      continue;
    } else if (mark === ']') {
      const depth = counts.length - 1;
      if (depth < 0) throw new MatrixTextError(`There is an extra closing bracket: ${place(start)}.`);
      const count = counts[depth]!;
      if (expectItem && count > 0) throw new MatrixTextError(`A number is missing after the last comma: ${place(start)}.`);
      if (count === 0) throw new MatrixTextError(`There is an empty list: ${place(start)}. Give every row at least one number.`);
      counts.pop();
      if (dims[depth] === undefined) dims[depth] = count;
      else if (dims[depth] !== count) {
        throw new MatrixTextError(
          `Row ${where()} has ${counted(count, depth === rank - 1 ? 'number' : 'row')}, but the rows before have ${dims[depth]}. Make all rows equally long.`,
        );
      }
      if (depth > 0) counts[depth - 1]! += 1;
      else finished = true;
      expectItem = false;
      continue;
    } else {
      if (!counts.length) throw new MatrixTextError('This is a single number, or rows without brackets. Write rows as [[1, 0], [0, 1]].');
      if (!expectItem) throw new MatrixTextError(`A comma is missing: ${place(start)}.`);
      if (rank < 0) rank = counts.length;
      if (counts.length !== rank)
        throw new MatrixTextError(`Some entries are lists and some are numbers (${place(start)}). Give every row the same form.`);
      values.push(toNumber(number!));
      counts[counts.length - 1]! += 1;
      expectItem = false;
      continue;
    }
    expectItem = true;
  }
  if (!values.length) throw new MatrixTextError('This field is empty. Write rows as [[1, 0], [0, 1]].');
  if (!finished) throw new MatrixTextError(`A closing bracket is missing: ${counted(counts.length, 'list')} still open at the end.`);
  if (rank < minRank)
    throw new MatrixTextError(
      `This is a single list, not rows. For one row write [${text.trim().slice(0, 40)}${text.trim().length > 40 ? '…' : ''}].`,
    );
  return { data: Float32Array.from(values), dims };
}

export function matrixText(tensor: Tensor, write: (value: number) => string): string {
  const step = (depth: number, offset: number): string => {
    const count = tensor.dims[depth]!;
    const stride = tensor.dims.slice(depth + 1).reduce((a, b) => a * b, 1);
    const items = Array.from({ length: count }, (_, i) =>
      stride === 1 && depth === tensor.dims.length - 1 ? write(tensor.data[offset + i]!) : step(depth + 1, offset + i * stride),
    );
    return `[${items.join(depth === tensor.dims.length - 1 ? ', ' : `,\n${' '.repeat(depth + 1)}`)}]`;
  };
  return step(0, 0);
}
