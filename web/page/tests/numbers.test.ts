import { describe, expect, it } from 'vitest';
import { mergeHeads, splitHeads, transposed } from '../src/arithmetic/arrays.ts';
import { bracketed, fixed, joined, median, shortestFloat32, shortNumber, teaching } from '../src/formats/numbers.ts';

describe('numbers formatted as text', () => {
  it('are ASCII with fixed decimals and no negative zero', () => {
    expect(fixed(-1.5, 4)).toBe('-1.5000');
    expect(fixed(-1e-9)).toBe('0.000000');
    expect(fixed(-0)).toBe('0.000000');
    expect(fixed(-Infinity)).toBe('-Infinity');
    expect(fixed(NaN)).toBe('NaN');
    expect(fixed(3.4e38, 2)).toBe('3.40e+38');
  });

  it('have no decimals in a table of whole numbers and keep tiny values readable in other tables', () => {
    expect([4, -Infinity, 0].map(teaching([4, -Infinity, 0]))).toEqual(['4', '-Infinity', '0']);
    expect([2, 0, 6.0337e-6, 0.5].map(teaching([2, 0, 6.0337e-6, 0.5]))).toEqual(['2.000000', '0', '6.0337e-6', '0.500000']);
  });

  it('are as short as float32 allows', () => {
    expect([0.1, 1 / 3, 16777217].map((value) => shortestFloat32(Math.fround(value)))).toEqual(['0.1', '0.33333334', '16777216']);
  });

  it('are joined by their sign, and negative factors are in parentheses', () => {
    expect([0.5, -0.5, 0].map(joined)).toEqual(['+ 0.5', '- 0.5', '+ 0']);
    expect([0.5, -0.03145, -2].map(bracketed)).toEqual(['0.5', '(-0.03145)', '(-2)']);
  });

  it('can be rounded to two digits', () => {
    expect([0, 1.7321, 0.6, 0.00446, 3.14e-6, 23456].map(shortNumber)).toEqual(['0', '1.7', '0.6', '0.0045', '3.1e-6', '2.3e+4']);
  });

  it('have a median', () => {
    expect(median([3, 1, 2])).toBe(2);
    expect(median([4, 1, 2, 3])).toBe(2.5);
  });
});

describe('rearranging numbers', () => {
  const counting = (dims: number[]) => ({ data: Float32Array.from({ length: dims.reduce((a, b) => a * b, 1) }, (_, i) => i), dims });

  it('transposes a matrix', () => expect(transposed(counting([2, 3]))).toEqual({ data: Float32Array.of(0, 3, 1, 4, 2, 5), dims: [3, 2] }));

  it('moves the first D columns to head 0 and the next D columns to head 1 for every batch item', () => {
    const split = splitHeads(counting([2, 2, 4]), 2);
    expect(split).toEqual({ data: Float32Array.of(0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15), dims: [2, 2, 2, 2] });
    expect(mergeHeads(split)).toEqual(counting([2, 2, 4]));
  });
});
