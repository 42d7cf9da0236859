import { load, type Attn } from 'attn';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { roundedTo8Bits } from '../src/model/int8.ts';

let attn: Attn;
beforeAll(async () => (attn = await load()));
afterAll(() => attn.dispose());

const rounded = (...row: number[]) => [...roundedTo8Bits(row)];

it('the whole numbers of a row that goes from 0 to 255 stay', () => {
  const row = Array.from({ length: 256 }, (_, i) => i);
  expect(rounded(...row)).toEqual(row);
  expect(rounded(...row.map((value) => value - 100))).toEqual(row.map((value) => value - 100));
  expect(rounded(...row.map((value) => -value))).toEqual(row.map((value) => 0 - value));
});

it('others go to the nearest, halves to the even one', () => {
  expect(rounded(255, 0.4, 0.5, 0.6, 1.5, 2.5, 254.5)).toEqual([255, 0, 0, 1, 2, 2, 254]);
  expect(rounded(-255, -0.5, -1.5, -2.5, -0.51)).toEqual([-255, 0, -2, -2, -1]);
});

it('0 stays 0, and so does a row that has nothing else or next to nothing', () => {
  expect(rounded(3.7, 0, -1.2)[1]).toBe(0);
  expect(rounded(0, 0, 0)).toEqual([0, 0, 0]);
  // 1e-45 / 255 is 0 in float32.
  expect(rounded(1e-45, 0)).toEqual([0, 0]);
  expect(rounded()).toEqual([]);
});

it('the scale of a row that goes over all of float32 is finite', () => {
  const most = 3.4028234663852886e38;
  expect(rounded(most, -most)[0]! / most).toBeCloseTo(127 / 127.5, 6);
});

it.each([NaN, Infinity, -Infinity])('a row with %s is NaN throughout', (value) => {
  expect(rounded(1, value, 2)).toEqual([NaN, NaN, NaN]);
});

it('no number is further away than half a step', () => {
  const row = Array.from({ length: 200 }, (_, i) => 3 * Math.sin(i * i) - 0.7);
  const step = (Math.max(...row) - Math.min(...row)) / 255;
  // 0 is a step of its own, so that the ends may be half a step outside.
  rounded(...row).forEach((value, i) => expect(Math.abs(value - row[i]!)).toBeLessThanOrEqual(step * 1.001));
  expect(new Set(rounded(...row)).size).toBeGreaterThan(100);
});
