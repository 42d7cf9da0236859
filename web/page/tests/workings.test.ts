import { describe, expect, it } from 'vitest';
import { largestDifference } from '../src/arithmetic/differences.ts';
import { dotWorking, meanAndVariance, softmaxWorking } from '../src/arithmetic/workings.ts';

describe('the steps of a calculation', () => {
  it('list the largest products of a dot product in order and sum up the others', () => {
    const a = [1, 2, 0.1, -3];
    const b = [10, 0.5, 1, 2];
    const working = dotWorking(
      (i) => a[i]!,
      (i) => b[i]!,
      4,
      2,
    );
    expect(working.terms).toEqual([
      { index: 0, a: 1, b: 10 },
      { index: 3, a: -3, b: 2 },
    ]);
    expect(working.restCount).toBe(2);
    expect(working.rest).toBeCloseTo(1.1, 12);
    expect(working.sum).toBeCloseTo(5.1, 12);
    expect(dotWorking(Number, Number, 3).restCount, 'short dot products are listed completely').toBe(0);
  });

  it('include the softmax exponentials, and are undefined if every score is blocked', () => {
    const { largest, exponentials, sum } = softmaxWorking(Float32Array.of(2, 4, -Infinity))!;
    expect([largest, ...exponentials]).toEqual([4, Math.exp(-2), 1, 0]);
    expect(sum).toBe(1 + Math.exp(-2));
    expect(softmaxWorking(Float32Array.of(-Infinity, -Infinity))).toBeUndefined();
  });

  it('include the mean and the biased variance of a norm', () => {
    expect(meanAndVariance(Float32Array.of(1, 3, 5, 7))).toEqual({ mean: 4, variance: 5 });
  });

  it('have a difference of 0 for equal infinities, and of Infinity for NaN or unequal lengths', () => {
    expect(largestDifference([1, -Infinity, 3], [1.5, -Infinity, 1])).toBe(2);
    expect(largestDifference([-Infinity], [0])).toBe(Infinity);
    expect(largestDifference([NaN], [0])).toBe(Infinity);
    expect(largestDifference([NaN, 0], [0, 1])).toBe(Infinity);
    expect(largestDifference([1, 2], [1])).toBe(Infinity);
  });
});
