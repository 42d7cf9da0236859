import type { Tensor } from 'attn';

/** Equal infinities do not differ; NaN or another length is infinitely far. */
export function largestDifference(a: ArrayLike<number>, b: ArrayLike<number>): number {
  if (a.length !== b.length) return Infinity;
  let largest = 0;
  for (let i = 0; i < a.length; ++i) {
    const [x, y] = [a[i]!, b[i]!];
    if (x === y) continue;
    const difference = Math.abs(x - y);
    if (!(difference <= largest)) largest = Number.isNaN(difference) ? Infinity : difference;
  }
  return largest;
}

/** a − b */
export const difference = (a: Tensor, b: Tensor): Tensor => ({ data: a.data.map((value, i) => value - b.data[i]!), dims: a.dims });
