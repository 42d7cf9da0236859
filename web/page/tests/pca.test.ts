import type { Tensor } from 'attn';
import { describe, expect, it } from 'vitest';
import { principalComponents } from '../src/state/pca.ts';

const linear = async (x: Tensor, weight: Tensor): Promise<Tensor> => {
  const [rows, width] = x.dims as [number, number];
  const columns = weight.dims[0]!;
  const data = new Float32Array(rows * columns);
  for (let i = 0; i < rows; ++i)
    for (let j = 0; j < columns; ++j) for (let e = 0; e < width; ++e) data[i * columns + j]! += x.data[i * width + e]! * weight.data[j * width + e]!;
  return { data, dims: [rows, columns] };
};

const fromRows = (rows: readonly (readonly number[])[]): Tensor => ({ data: Float32Array.from(rows.flat()), dims: [rows.length, rows[0]!.length] });

describe('principal components', () => {
  it('place points of a line on the first axis and preserve their distances', async () => {
    const { points, shares } = await principalComponents(
      fromRows([
        [1, 1, 7],
        [4, 5, 7],
        [10, 13, 7],
      ]),
      linear,
    );
    const xs = points.map(([x]) => x).sort((a, b) => a - b);
    expect(xs[1]! - xs[0]!).toBeCloseTo(5, 4);
    expect(xs[2]! - xs[1]!).toBeCloseTo(10, 4);
    for (const [, y] of points) expect(y).toBeCloseTo(0, 4);
    expect(shares[0]).toBeCloseTo(1, 5);
    expect(shares[1]).toBeCloseTo(0, 5);
  });

  it('align with the sides of a rectangle, the longer first, at any position and angle', async () => {
    const turn = Math.PI / 6;
    const corners = [
      [-3, -1],
      [-3, 1],
      [3, -1],
      [3, 1],
    ].map(([x, y]) => [50 + x! * Math.cos(turn) - y! * Math.sin(turn), -20 + x! * Math.sin(turn) + y! * Math.cos(turn), 0, 4]);
    const { points, shares } = await principalComponents(fromRows(corners), linear);
    for (const [x, y] of points) {
      expect(Math.abs(x)).toBeCloseTo(3, 3);
      expect(Math.abs(y)).toBeCloseTo(1, 3);
    }
    expect(shares[0]).toBeCloseTo(0.9, 4);
    expect(shares[1]).toBeCloseTo(0.1, 4);
  });

  it('place equal rows and a single row at the centre, and two rows at their distance', async () => {
    const equal = await principalComponents(
      fromRows([
        [1, 2],
        [1, 2],
        [1, 2],
      ]),
      linear,
    );
    expect(equal.points.flat().every((value) => value === 0)).toBe(true);
    expect(equal.shares).toEqual([0, 0]);
    expect((await principalComponents(fromRows([[3, 4]]), linear)).points).toEqual([[0, 0]]);
    const two = await principalComponents(
      fromRows([
        [0, 0],
        [6, 8],
      ]),
      linear,
    );
    expect(Math.abs(two.points[0]![0] - two.points[1]![0])).toBeCloseTo(10, 4);
  });

  it('have the same signs every time', async () => {
    const rows = fromRows([
      [1, 0, 3],
      [2, 2, -1],
      [-4, 1, 0],
      [0.5, -3, 2],
    ]);
    expect(await principalComponents(rows, linear)).toEqual(await principalComponents(rows, linear));
    const { points } = await principalComponents(rows, linear);
    for (const k of [0, 1] as const) {
      const furthest = points.reduce((most, point) => (Math.abs(point[k]) > Math.abs(most) ? point[k] : most), 0);
      expect(furthest).toBeGreaterThan(0);
    }
  });
});
