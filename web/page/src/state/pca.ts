/** The first two principal components (Pearson 1901). */
import type { Dims, Tensor } from 'attn';

/** x weightᵀ, as Attn.linear. */
export type Linear = (x: Tensor, weight: Tensor) => Promise<Tensor>;

export interface Projection {
  readonly points: readonly (readonly [number, number])[];
  readonly shares: readonly [number, number];
}

/** float32 limits power iteration. */
const tolerance = 1e-6;
const mostSteps = 500;

function centred({ data, dims }: Tensor): Tensor {
  const [count, width] = dims as [number, number];
  const result = new Float32Array(data.length);
  for (let e = 0; e < width; ++e) {
    let sum = 0;
    for (let i = 0; i < count; ++i) sum += data[i * width + e]!;
    for (let i = 0; i < count; ++i) result[i * width + e] = data[i * width + e]! - sum / count;
  }
  return { data: result, dims };
}

const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);

/** Gram-Schmidt: returns the old lengths; rows no longer than `least` become 0. */
function orthonormalise(first: Float32Array, second: Float32Array, least: number): readonly [number, number] {
  const shrink = (row: Float32Array) => {
    const length = Math.sqrt(dot(row, row));
    row.forEach((value, i) => (row[i] = length > least ? value / length : 0));
    return length > least ? length : 0;
  };
  const length = shrink(first);
  // Twice, because rounding leaves a remainder.
  for (let time = 0; time < 2; ++time) {
    const along = dot(first, second);
    second.forEach((value, i) => (second[i] = value - along * first[i]!));
  }
  return [length, shrink(second)];
}

/** x (N,E). The Gram matrix has the scatter matrix's eigenvalues, and its eigenvectors are the points, up to length. */
export async function principalComponents(x: Tensor, linear: Linear): Promise<Projection> {
  const count = x.dims[0]!;
  const rows = centred(x);
  const gram = await linear(rows, rows);
  let trace = 0;
  for (let i = 0; i < count; ++i) trace += gram.data[i * (count + 1)]!;
  const vectors: { data: Float32Array; dims: Dims } = { data: new Float32Array(2 * count), dims: [2, count] };
  // Irregular, so that it is not orthogonal to a component of symmetric data.
  for (let i = 0; i < 2 * count; ++i) vectors.data[i] = ((Math.sin(12.9898 * (i + 1)) * 43758.5453) % 1) + 0.01;
  const halves = (data: Float32Array) => [data.subarray(0, count), data.subarray(count)] as const;
  orthonormalise(...halves(vectors.data), 0);
  let values: readonly [number, number] = [0, 0];
  for (let step = 0; step < mostSteps && trace > 0; ++step) {
    const before = vectors.data;
    vectors.data = (await linear(vectors, gram)).data;
    values = orthonormalise(...halves(vectors.data), 1e-6 * trace);
    if (vectors.data.every((value, i) => Math.abs(value - before[i]!) < tolerance)) break;
  }
  const along = halves(vectors.data).map((row, k) => {
    // The sign is arbitrary: make the largest coordinate positive.
    const furthest = row.reduce((most, value) => (Math.abs(value) > Math.abs(most) ? value : most), 0);
    const length = Math.sqrt(values[k]!) * (furthest < 0 ? -1 : 1);
    return Array.from(row, (value) => value * length);
  });
  return {
    points: Array.from({ length: count }, (_, i) => [along[0]![i]!, along[1]![i]!] as const),
    shares: trace > 0 ? [values[0] / trace, values[1] / trace] : [0, 0],
  };
}
