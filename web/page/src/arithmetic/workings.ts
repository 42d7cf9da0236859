export interface Term {
  readonly index: number;
  readonly a: number;
  readonly b: number;
}

export interface DotWorking {
  /** The largest products, in their original order. */
  readonly terms: readonly Term[];
  readonly restCount: number;
  readonly rest: number;
  readonly sum: number;
}

/** Σ a_i b_i over `count` terms, with the `limit` largest products written out. */
export function dotWorking(a: (index: number) => number, b: (index: number) => number, count: number, limit = 16): DotWorking {
  const all = Array.from({ length: count }, (_, index): Term => ({ index, a: a(index), b: b(index) }));
  const size = ({ a, b }: Term) => Math.abs(a * b);
  const kept = new Set([...all].sort((x, y) => size(y) - size(x)).slice(0, limit));
  const sumOf = (terms: readonly Term[]) => terms.reduce((sum, { a, b }) => sum + a * b, 0);
  const others = all.filter((term) => !kept.has(term));
  return { terms: all.filter((term) => kept.has(term)), restCount: others.length, rest: sumOf(others), sum: sumOf(all) };
}

export interface SoftmaxWorking {
  /** Subtracted first, so that exponentials do not overflow. */
  readonly largest: number;
  readonly exponentials: readonly number[];
  readonly sum: number;
}

/** exp(x - largest) and the sum; undefined if the whole row is masked. */
export function softmaxWorking(row: ArrayLike<number>): SoftmaxWorking | undefined {
  const values = Array.from(row);
  const largest = values.reduce((a, b) => Math.max(a, b), -Infinity);
  if (largest === -Infinity) return undefined;
  const exponentials = values.map((value) => Math.exp(value - largest));
  return { largest, exponentials, sum: exponentials.reduce((a, b) => a + b, 0) };
}

/** Biased variance. */
export function meanAndVariance(row: ArrayLike<number>): { readonly mean: number; readonly variance: number } {
  const values = Array.from(row);
  const mean = values.reduce((a, b) => a + b, 0) / values.length;
  return { mean, variance: values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / values.length };
}
