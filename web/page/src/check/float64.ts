/** Recomputes a layer in double precision, without the module: values, and the error that float32 may cause. */

export interface Bounded {
  readonly values: Float64Array;
  readonly bounds: Float64Array;
}

/** Distance from 1 to the next float32. */
const eps = 2 ** -23;
/** Relative rounding error of a sum of `count` float32 products, with a few further roundings. */
const lossOf = (count: number) => (Math.sqrt(count) + 8) * eps;

const empty = (count: number): Bounded => ({ values: new Float64Array(count), bounds: new Float64Array(count) });

/** Writes Σ a(k) b(k) · factor to index `i`. */
function dotInto({ values, bounds }: Bounded, i: number, count: number, a: (k: number) => number, b: (k: number) => number, factor = 1): void {
  let [sum, sizes] = [0, 0];
  for (let k = 0; k < count; ++k) {
    const term = a(k) * b(k);
    sum += term;
    sizes += Math.abs(term);
  }
  values[i] = sum * factor;
  bounds[i] = lossOf(count) * sizes * Math.abs(factor);
}

/** x Wᵀ + b for a row x; weight (out,in). A plain loop, because most of the work is here. */
export function linear(x: ArrayLike<number>, weight: ArrayLike<number>, bias: ArrayLike<number> | undefined, outs: number): Bounded {
  const { values, bounds } = empty(outs);
  const ins = x.length;
  const loss = lossOf(ins);
  for (let j = 0, at = 0; j < outs; ++j) {
    const start = bias?.[j] ?? 0;
    let [sum, sizes] = [start, Math.abs(start)];
    for (let k = 0; k < ins; ++k, ++at) {
      const term = x[k]! * weight[at]!;
      sum += term;
      sizes += Math.abs(term);
    }
    values[j] = sum;
    bounds[j] = loss * sizes;
  }
  return { values, bounds };
}

/** q · k · scale for one query and all keys (S,D). */
export function scores(query: ArrayLike<number>, keys: ArrayLike<number>, scale: number): Bounded {
  const width = query.length;
  const made = empty(keys.length / width);
  made.values.forEach((_, j) =>
    dotInto(
      made,
      j,
      width,
      (d) => query[d]!,
      (d) => keys[j * width + d]!,
      scale,
    ),
  );
  return made;
}

export function mixture(shares: ArrayLike<number>, values: ArrayLike<number>): Bounded {
  const count = shares.length;
  const width = values.length / count;
  const made = empty(width);
  made.values.forEach((_, d) =>
    dotInto(
      made,
      d,
      count,
      (j) => shares[j]!,
      (j) => values[j * width + d]!,
    ),
  );
  return made;
}

/** A row without finite scores is uniform, as in transformers. */
export function softmax(row: ArrayLike<number>): Bounded {
  const all = Array.from(row);
  const largest = Math.max(...all);
  const away = all.map((value) => (largest === -Infinity ? 0 : value - largest));
  const sum = away.reduce((total, value) => total + Math.exp(value), 0);
  const made = empty(all.length);
  away.forEach((value, j) => {
    made.values[j] = Math.exp(value) / sum;
    // The rounding error of a score multiplies the exponential.
    made.bounds[j] = made.values[j] * (lossOf(all.length) + (value === -Infinity ? 0 : eps * Math.abs(value))) + 1e-37;
  });
  return made;
}

/** Biased variance. */
export function layerNorm(
  x: ArrayLike<number>,
  weight: ArrayLike<number> | undefined,
  bias: ArrayLike<number> | undefined,
  epsilon: number,
): Bounded {
  const row = Array.from(x);
  const width = row.length;
  const mean = row.reduce((sum, value) => sum + value, 0) / width;
  const size = row.reduce((sum, value) => sum + Math.abs(value), 0) / width;
  const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / width;
  const deviation = Math.sqrt(variance + epsilon);
  const made = empty(width);
  row.forEach((value, i) => {
    const [gamma, beta] = [weight?.[i] ?? 1, bias?.[i] ?? 0];
    made.values[i] = ((value - mean) / deviation) * gamma + beta;
    made.bounds[i] = lossOf(width) * (((Math.abs(value - mean) + size) / deviation) * Math.abs(gamma) + Math.abs(beta));
  });
  return made;
}

/** x / √(mean of squares + ε) · (γ + from). */
export function rmsNorm(x: ArrayLike<number>, weight: ArrayLike<number> | undefined, epsilon: number, from: number): Bounded {
  const row = Array.from(x);
  const width = row.length;
  const size = Math.sqrt(row.reduce((sum, value) => sum + value ** 2, 0) / width + epsilon);
  const made = empty(width);
  row.forEach((value, i) => {
    made.values[i] = (value / size) * ((weight?.[i] ?? 1) + from);
    made.bounds[i] = lossOf(width) * Math.abs(made.values[i]);
  });
  return made;
}

export const capped = ({ values, bounds }: Bounded, cap: number): Bounded => ({
  values: values.map((value) => cap * Math.tanh(value / cap)),
  bounds: bounds.map((bound) => bound + ownError * cap),
});

/** erf x = 2/√π e^(-x²) (x + 2x³/3 + 4x⁵/15 + …): all terms have the same sign. */
export function erf(x: number): number {
  if (Math.abs(x) > 6) return Math.sign(x);
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > 1e-17 * Math.abs(sum); ++n) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
const geluTanh = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

export const activations: Readonly<Record<string, (x: number) => number>> = {
  gelu: (x) => 0.5 * x * (1 + erf(x / Math.SQRT2)),
  gelu_new: geluTanh,
  gelu_fast: geluTanh,
  gelu_pytorch_tanh: geluTanh,
  relu: (x) => Math.max(0, x),
  silu: (x) => x * sigmoid(x),
  swish: (x) => x * sigmoid(x),
  tanh: Math.tanh,
  mish: (x) => x * Math.tanh(Math.log1p(Math.exp(x))),
  quick_gelu: (x) => x * sigmoid(1.702 * x),
};

/** Upper bound of the slope of all activations. */
const steepest = 1.2;
/** Error of the module's activations in float32. */
const ownError = 1e-6;

export const activated = ({ values, bounds }: Bounded, activation: (x: number) => number): Bounded => ({
  values: values.map(activation),
  bounds: bounds.map((bound) => steepest * bound + ownError),
});
