/** Word alignment as in SimAlign (Jalili Sabet et al. 2020), method "inter". */
import type { Tensor } from 'attn';
import { argmax, dotOfRows } from './arrays.ts';

/** (…,L,E) -> (W,E): the mean of the rows of each word's tokens. */
export function meanRows({ data, dims }: Tensor, words: readonly { readonly tokens: readonly number[] }[]): Tensor {
  const width = dims.at(-1)!;
  const result = new Float32Array(words.length * width);
  words.forEach(({ tokens }, w) => {
    for (let e = 0; e < width; ++e) {
      let sum = 0;
      for (const token of tokens) sum += data[token * width + e]!;
      result[w * width + e] = sum / tokens.length;
    }
  });
  return { data: result, dims: [words.length, width] };
}

/** (M,E), (N,E) -> (M,N). A row of zeros has the cosine 0 with every row. */
export function cosines(a: Tensor, b: Tensor): Tensor {
  const [rows, columns] = [a.dims[0]!, b.dims[0]!];
  const lengths = (x: Tensor, count: number) => Array.from({ length: count }, (_, i) => Math.sqrt(dotOfRows(x, i, x, i)));
  const [ofRows, ofColumns] = [lengths(a, rows), lengths(b, columns)];
  const data = Float32Array.from({ length: rows * columns }, (_, at) => {
    const [i, j] = [Math.floor(at / columns), at % columns];
    return dotOfRows(a, i, b, j) / (ofRows[i]! * ofColumns[j]! || 1);
  });
  return { data, dims: [rows, columns] };
}

export interface Choices {
  /** The most similar column of each row. */
  readonly ofRow: readonly number[];
  /** The most similar row of each column. */
  readonly ofColumn: readonly number[];
}

export function choicesIn({ data, dims }: Tensor): Choices {
  const [rows, columns] = dims as [number, number];
  return {
    ofRow: Array.from({ length: rows }, (_, i) => argmax(data.subarray(i * columns, (i + 1) * columns))),
    ofColumn: Array.from({ length: columns }, (_, j) => argmax(Array.from({ length: rows }, (_, i) => data[i * columns + j]!))),
  };
}

/** Rows and columns that choose each other, in the order of the rows. */
export const mutualPairs = ({ ofRow, ofColumn }: Choices): readonly { readonly row: number; readonly column: number }[] =>
  ofRow.flatMap((column, row) => (ofColumn[column] === row ? [{ row, column }] : []));
