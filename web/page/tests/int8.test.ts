import { load, type Attn } from 'attn';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { roundedTo8Bits } from '../src/model/int8.ts';

let attn: Attn;
beforeAll(async () => (attn = await load()));
afterAll(() => attn.dispose());

const rounded = (...row: number[]) => [...roundedTo8Bits(row)];

it('rounding to 8 bits keeps the whole numbers of a row that spans 0 to 255', () => {
  const row = Array.from({ length: 256 }, (_, i) => i);
  expect(rounded(...row)).toEqual(row);
  expect(rounded(...row.map((value) => value - 100))).toEqual(row.map((value) => value - 100));
  expect(rounded(...row.map((value) => -value))).toEqual(row.map((value) => 0 - value));
});

it('rounding to 8 bits selects the nearest step, and the even one for ties', () => {
  expect(rounded(255, 0.4, 0.5, 0.6, 1.5, 2.5, 254.5)).toEqual([255, 0, 0, 1, 2, 2, 254]);
  expect(rounded(-255, -0.5, -1.5, -2.5, -0.51)).toEqual([-255, 0, -2, -2, -1]);
});

it('rounding to 8 bits keeps 0, and rows of zeros and tiny values become 0', () => {
  expect(rounded(3.7, 0, -1.2)[1]).toBe(0);
  expect(rounded(0, 0, 0)).toEqual([0, 0, 0]);
  // 1e-45 / 255 is 0 in float32.
  expect(rounded(1e-45, 0)).toEqual([0, 0]);
  expect(rounded()).toEqual([]);
});

it('rounding to 8 bits uses a finite scale for a row that spans all of float32', () => {
  const most = 3.4028234663852886e38;
  expect(rounded(most, -most)[0]! / most).toBeCloseTo(127 / 127.5, 6);
});

it.each([NaN, Infinity, -Infinity])('rounding to 8 bits fills a row that contains %s with NaN', (value) => {
  expect(rounded(1, value, 2)).toEqual([NaN, NaN, NaN]);
});

it('rounding to 8 bits changes a number by at most half a step', () => {
  const row = Array.from({ length: 200 }, (_, i) => 3 * Math.sin(i * i) - 0.7);
  const step = (Math.max(...row) - Math.min(...row)) / 255;
  // 0 maps to a whole step, so the range may shift by half a step.
  rounded(...row).forEach((value, i) => expect(Math.abs(value - row[i]!)).toBeLessThanOrEqual(step * 1.001));
  expect(new Set(rounded(...row)).size).toBeGreaterThan(100);
});
