import { describe, expect, it } from 'vitest';
import { largestDifference } from '../src/arithmetic/differences.ts';
import { dotWorking, meanAndVariance, softmaxWorking } from '../src/arithmetic/workings.ts';

describe('how a number came about', () => {
  it('a dot product: the largest products in their own order, the others added up', () => {
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
    expect(dotWorking(Number, Number, 3).restCount, 'short ones are written out').toBe(0);
  });

  it('softmax: exponentials below one, and nothing where everything is blocked', () => {
    const { largest, exponentials, sum } = softmaxWorking(Float32Array.of(2, 4, -Infinity))!;
    expect([largest, ...exponentials]).toEqual([4, Math.exp(-2), 1, 0]);
    expect(sum).toBe(1 + Math.exp(-2));
    expect(softmaxWorking(Float32Array.of(-Infinity, -Infinity))).toBeUndefined();
  });

  it('a norm: mean and biased variance', () => {
    expect(meanAndVariance(Float32Array.of(1, 3, 5, 7))).toEqual({ mean: 4, variance: 5 });
  });

  it('differences: equal infinities are none, NaN and another length are infinite', () => {
    expect(largestDifference([1, -Infinity, 3], [1.5, -Infinity, 1])).toBe(2);
    expect(largestDifference([-Infinity], [0])).toBe(Infinity);
    expect(largestDifference([NaN], [0])).toBe(Infinity);
    expect(largestDifference([NaN, 0], [0, 1])).toBe(Infinity);
    expect(largestDifference([1, 2], [1])).toBe(Infinity);
  });
});
