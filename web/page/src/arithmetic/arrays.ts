import type { Tensor } from 'attn';

export function product(dims: readonly number[]): number {
  return dims.reduce((a, b) => a * b, 1);
}

/** Index of the first largest value; 0 if there is none. */
export function argmax(values: ArrayLike<number>): number {
  let best = 0;
  for (let i = 1; i < values.length; ++i) if (values[i]! > values[best]!) best = i;
  return best;
}

export function fromRows(rows: readonly (readonly number[])[]): Tensor {
  return { data: Float32Array.from(rows.flat()), dims: [rows.length, rows[0]!.length] };
}

/** The dot product of row i of x and row j of y, in double precision. */
export function dotOfRows(x: Tensor, i: number, y: Tensor, j: number): number {
  const width = x.dims.at(-1)!;
  let sum = 0;
  for (let e = 0; e < width; ++e) sum += x.data[i * width + e]! * y.data[j * width + e]!;
  return sum;
}

/** (in, out) -> (out, in), PyTorch's order of weights, and back. */
export function transposed({ data, dims }: Tensor): Tensor {
  const [rows, columns] = dims as [number, number];
  const result = new Float32Array(data.length);
  for (let i = 0; i < rows; ++i) for (let j = 0; j < columns; ++j) result[j * rows + i] = data[i * columns + j]!;
  return { data: result, dims: [columns, rows] };
}

/** (B, L, H*D) -> (B, H, L, D) */
export function splitHeads({ data, dims }: Tensor, heads: number): Tensor {
  const [batch, length, width] = dims as [number, number, number];
  const headWidth = width / heads;
  const result = new Float32Array(data.length);
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let l = 0; l < length; ++l) {
        const from = (b * length + l) * width + h * headWidth;
        result.set(data.subarray(from, from + headWidth), ((b * heads + h) * length + l) * headWidth);
      }
    }
  }
  return { data: result, dims: [batch, heads, length, headWidth] };
}

/** (1, KV, L, D) -> (1, H, L, D): repeats keys or values that neighbouring query heads share. */
export function repeatHeads(x: Tensor, heads: number): Tensor {
  const [, own, length, width] = x.dims as [number, number, number, number];
  if (own === heads) return x;
  const size = length * width;
  const data = new Float32Array(heads * size);
  for (let h = 0; h < heads; ++h) data.set(x.data.subarray(Math.floor((h * own) / heads) * size).subarray(0, size), h * size);
  return { data, dims: [1, heads, length, width] };
}

/** (B, H, L, D) -> (B, L, H*D) */
export function mergeHeads({ data, dims }: Tensor): Tensor {
  const [batch, heads, length, headWidth] = dims as [number, number, number, number];
  const width = heads * headWidth;
  const result = new Float32Array(data.length);
  for (let b = 0; b < batch; ++b) {
    for (let h = 0; h < heads; ++h) {
      for (let l = 0; l < length; ++l) {
        const from = ((b * heads + h) * length + l) * headWidth;
        result.set(data.subarray(from, from + headWidth), (b * length + l) * width + h * headWidth);
      }
    }
  }
  return { data: result, dims: [batch, length, width] };
}
