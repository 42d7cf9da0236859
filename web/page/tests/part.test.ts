import { describe, expect, it } from 'vitest';
import { cutOut, fewest, isWhole, moved, showing, within, zoomed, zoomStep } from '../src/draw/part.ts';

const size = 40;
const whole = { row: 0, column: 0, count: size };
const middle = { x: 0.5, y: 0.5 };

describe('the visible part of a map', () => {
  it('stays inside the map and does not become too small to read', () => {
    expect(within({ row: -3, column: 39, count: 10 }, size)).toEqual({ row: 0, column: 30, count: 10 });
    expect(within({ row: 7.4, column: 7.6, count: 0 }, size)).toEqual({ row: 7, column: 8, count: fewest });
    expect(within({ row: 1, column: 1, count: 99 }, size)).toEqual(whole);
    expect(within({ row: 5, column: 5, count: 3 }, 4), 'a small map is shown completely').toEqual({ row: 0, column: 0, count: 4 });
    expect([isWhole(whole, size), isWhole({ ...whole, count: 39 }, size)]).toEqual([true, false]);
  });

  it('zooms in and out around a fixed place', () => {
    const near = zoomed(whole, size, zoomStep, { x: 1, y: 0 });
    expect(near).toEqual({ row: 0, column: 13, count: 27 });
    expect(zoomed(near, size, 1 / zoomStep, { x: 1, y: 0 })).toEqual(whole);
    let part = whole;
    for (let i = 0; i < 20; ++i) part = zoomed(part, size, 1.01, middle);
    expect(part.count, 'a small step is at least one cell').toBe(20);
    for (let i = 0; i < 40; ++i) part = zoomed(part, size, 1.01, middle);
    expect(part.count).toBe(fewest);
    for (let i = 0; i < 60; ++i) part = zoomed(part, size, 1 / 1.01, middle);
    expect(part).toEqual(whole);
  });

  it('moves only within the map, and only as far as needed to show a cell', () => {
    const part = { row: 10, column: 10, count: 10 };
    expect(moved(part, size, -3, 50)).toEqual({ row: 7, column: 30, count: 10 });
    expect(showing(part, size, { row: 15, column: 19 })).toEqual(part);
    expect(showing(part, size, { row: 9, column: 20 })).toEqual({ row: 9, column: 11, count: 10 });
    expect(showing(part, size, { row: 39, column: 0 })).toEqual({ row: 30, column: 0, count: 10 });
  });

  it('contains only cells that exist', () => {
    const values = Float32Array.from({ length: 16 }, (_, i) => i);
    expect([...cutOut(values, 4, { row: 1, column: 2, count: 2 })]).toEqual([6, 7, 10, 11]);
    expect([...cutOut(Uint8Array.from(values), 4, { row: 2, column: 0, count: 2 })]).toEqual([8, 9, 12, 13]);
    expect(cutOut(values, 4, { row: 0, column: 0, count: 4 })).toBe(values);
  });
});
