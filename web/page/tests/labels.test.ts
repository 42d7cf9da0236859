import { describe, expect, it } from 'vitest';
import { boxOf, fit, overlaps, placeLabels } from '../src/draw/labels.ts';

describe('labels of points', () => {
  const frame = { width: 300, height: 200 };
  // Irregular and crowded in places.
  const points = Array.from({ length: 40 }, (_, i) => ({ x: (i * 7919) % 300, y: (i * 104729) % 200, text: 'word'.repeat(1 + (i % 3)) }));

  it('stay inside the frame and overlap neither other labels nor other points', () => {
    const places = placeLabels(points, frame, 12, 4);
    const boxes = places.flatMap((place, i) => (place ? [{ i, box: boxOf(place, points[i]!.text, 12) }] : []));
    expect(boxes.length).toBeGreaterThan(15);
    for (const { i, box } of boxes) {
      expect(Math.min(box.left, box.top, frame.width - box.right, frame.height - box.bottom)).toBeGreaterThanOrEqual(0);
      for (const other of boxes) if (other.i !== i) expect(overlaps(box, other.box)).toBe(false);
      points.forEach(({ x, y }, j) => {
        if (j !== i) expect(overlaps(box, { left: x - 4, right: x + 4, top: y - 4, bottom: y + 4 })).toBe(false);
      });
    }
  });

  it('are to the right of the point if there is space, and to the left at the edge', () => {
    expect(placeLabels([{ x: 100, y: 100, text: 'a' }], frame, 12, 4)[0]).toMatchObject({ anchor: 'start', x: 107 });
    expect(placeLabels([{ x: 295, y: 100, text: 'long name' }], frame, 12, 4)[0]).toMatchObject({ anchor: 'end' });
  });

  it('are left out if there is no space, the later ones first', () => {
    const crowd = Array.from({ length: 60 }, () => ({ x: 150, y: 100, text: 'the same place' }));
    const places = placeLabels([{ x: 20, y: 20, text: 'alone' }, ...crowd], frame, 12, 0);
    expect(places[0]).toBeDefined();
    expect(places[1]).toBeDefined();
    expect(places.at(-1)).toBeUndefined();
  });
});

describe('points fitted into a frame', () => {
  it('have the same scale on both axes, with larger y values further up', () => {
    const { places, height } = fit(
      [
        { x: 0, y: 0 },
        { x: 4, y: 0 },
        { x: 0, y: 2 },
      ],
      440,
      20,
    );
    expect(places[1]!.x - places[0]!.x).toBeCloseTo(400);
    expect(places[0]!.y - places[2]!.y).toBeCloseTo(200);
    expect(height).toBeCloseTo(340);
  });

  it('need no points for the height of the frame', () => {
    const { height } = fit(
      [
        { x: 1, y: 5 },
        { x: 2, y: 1 },
      ],
      440,
      20,
    );
    expect(fit([], 440, 20)).toEqual({ height, places: [] });
    expect(fit([], 1000, 20).height).toBeCloseTo(0.4 * 960 + 40);
  });

  it('are centred if they all coincide', () => {
    const { places, height } = fit(
      [
        { x: 3, y: 3 },
        { x: 3, y: 3 },
      ],
      400,
      20,
    );
    expect(places).toEqual([
      { x: 200, y: height / 2 },
      { x: 200, y: height / 2 },
    ]);
  });
});
