import type { Tensor } from 'attn';
import { assert } from 'chai';

export interface Distribution {
  readonly deviation: number;
  /** Largest possible absolute value. */
  readonly bound: number;
}
export const uniform = (bound: number): Distribution => ({ deviation: bound / Math.sqrt(3), bound });
export const normal = (deviation: number): Distribution => ({ deviation, bound: Infinity });

export function moments(t: Tensor): { mean: number; deviation: number; largest: number } {
  const n = t.data.length;
  const mean = t.data.reduce((a, b) => a + b, 0) / n;
  return {
    mean,
    deviation: Math.sqrt(t.data.reduce((a, b) => a + (b - mean) ** 2, 0) / n),
    largest: t.data.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
  };
}

/**
 * Checks bounds, and moments within six standard errors: σ/√n for the mean, at most σ/√(2n) for the deviation of both
 * distributions.
 */
export function assertDistribution(t: Tensor, { deviation, bound }: Distribution, name: string): void {
  const m = moments(t);
  const n = t.data.length;
  assert.isBelow(Math.abs(m.mean), (6 * deviation) / Math.sqrt(n), `${name}: mean`);
  assert.closeTo(m.deviation / deviation, 1, 6 / Math.sqrt(2 * n), `${name}: deviation`);
  if (bound < Infinity) {
    assert.isAtMost(m.largest, bound * (1 + 1e-6), `${name}: bound`);
    // The largest of n uniform numbers misses the bound by a fraction of 20 / n with probability e^-20.
    assert.isAbove(m.largest, bound * (1 - 20 / n), `${name} reaches its bound`);
  } else if (n > 5000) assert.isAbove(m.largest, 3 * deviation, `${name} has tails`);
}
