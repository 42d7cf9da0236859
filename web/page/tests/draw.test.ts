import { expect, it } from 'vitest';
import { belowThreshold, levelsOf, notAllowed } from '../src/draw/heatmap.ts';
import { curve, rowLines, strongest } from '../src/draw/lines.ts';
import { headColour } from '../src/draw/overlay.ts';
import { poolMax } from '../src/draw/pool.ts';
import { leastOf, levelOf, scaleFor } from '../src/draw/scale.ts';
import { placesOf } from '../src/state/map_view.ts';

const places = placesOf({ texts: ['ab'], tokens: ['a', 'b'], offsets: [[0, 1], [1, 2]] }, 'show', false); // prettier-ignore
const shown = { places, weights: Float32Array.from([0.75, 0.25, 0.5, 0.5]), blocked: undefined, largest: 0.75 };

it('colours show weights relative to the largest weight of the head or of the row', () => {
  expect([...levelsOf(shown, { threshold: 0, scaleBy: 'head' })].map((x) => x.toFixed(3))).toEqual(['1.000', '0.333', '0.667', '0.667']);
  expect([...levelsOf(shown, { threshold: 0, scaleBy: 'row' })].map((x) => x.toFixed(3))).toEqual(['1.000', '0.333', '1.000', '1.000']);
});
it('colours on a logarithmic scale show powers of ten', () => {
  for (const [weight, level] of [
    [0.5, 1],
    [0.05, 2 / 3],
    [leastOf(0.5), 0],
    [1e-9, 0],
    [0, 0],
  ] as const)
    expect(levelOf(weight, 0.5, 'log'), String(weight)).toBeCloseTo(level, 6);
  const logarithmic = levelsOf(shown, { threshold: 0, scaleBy: 'log' });
  expect(logarithmic[0]).toBe(1);
  expect(logarithmic[1]).toBeCloseTo(1 - Math.log10(3) / 3, 6);
});
it('the scale is logarithmic if one weight is far above the others', () => {
  expect(scaleFor(shown.weights, shown.largest)).toBe('head');
  const size = 100;
  const even = new Float32Array(size * size).fill(1 / size);
  expect(scaleFor(even, 1 / size), 'all weights are equal').toBe('head');
  even[5] = 0.9;
  expect(scaleFor(even, 0.9), 'one weight is far above the others').toBe('log');
  expect([scaleFor(new Float32Array(), 0), scaleFor(new Float32Array(4), 0)]).toEqual(['head', 'head']);
});
it('heads that share a map have distinct colours', () => {
  for (const count of [1, 4, 12]) {
    const colours = Array.from({ length: count }, (_, head) => headColour(head, count));
    expect(new Set(colours.map(String)).size).toBe(count);
    expect(colours.flat().every((part) => Number.isInteger(part) && part >= 0 && part <= 255)).toBe(true);
  }
});
it('weights below the threshold and blocked cells have separate levels', () => {
  const blocked = Uint8Array.from([0, 0, 1, 0]);
  expect([...levelsOf({ ...shown, blocked }, { threshold: 0.3, scaleBy: 'row' })]).toEqual([1, belowThreshold, notAllowed, 1]);
});
it('a smaller picture keeps the largest weight of each patch', () => {
  const from = 5;
  const weights = new Float32Array(from * from);
  weights[4 * from + 1] = 0.9;
  weights[0] = 0.2;
  expect([...poolMax(weights, from, 2)].map((x) => x.toFixed(1))).toEqual(['0.2', '0.0', '0.9', '0.0']);
  const same = poolMax(weights, from, from);
  expect(same).toEqual(weights);
  expect(same).not.toBe(weights);
});
it('only the strongest lines are drawn, with the strongest one last', () => {
  const size = 40;
  const weights = Float32Array.from({ length: size * size }, (_, i) => ((i * 7919) % (size * size)) / (size * size));
  const sorted = [...weights].sort((a, b) => a - b).slice(-50);
  expect(strongest(weights, size, 0, 50).map(({ weight }) => weight)).toEqual(sorted);
  expect(strongest(weights, size, 0.99, 50)).toHaveLength(sorted.filter((weight) => weight >= Math.fround(0.99)).length);
  const [first] = strongest(Float32Array.from([0, 0.5, 0, 0]), 2, 0, 50);
  expect(first).toEqual({ row: 0, column: 1, weight: 0.5 });
  expect(strongest(new Float32Array(4), 2, 0, 50)).toEqual([]);
});
it('the lines of one row leave out weights below the threshold', () => {
  expect(rowLines(shown.weights, 2, 0, 0.3)).toEqual([{ row: 0, column: 0, weight: 0.75 }]);
  expect(curve({ row: 0, column: 2 })).toBe('M0 0.5C50 0.5 50 2.5 100 2.5');
});
