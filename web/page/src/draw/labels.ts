export interface LabelledPoint {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

export interface Place {
  readonly x: number;
  readonly y: number;
  readonly anchor: 'start' | 'middle' | 'end';
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

/** Width of an average sans-serif letter relative to the font size, rather too wide. */
const letter = 0.65;

export function boxOf({ x, y, anchor }: Place, text: string, size: number): Box {
  const width = letter * size * text.length;
  const left = anchor === 'start' ? x : anchor === 'end' ? x - width : x - width / 2;
  return { left, right: left + width, top: y - 0.8 * size, bottom: y + 0.25 * size };
}

export const overlaps = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

function candidates({ x, y }: LabelledPoint, size: number, radius: number): readonly Place[] {
  const middle = 0.3 * size;
  return [radius + 3, radius + 9].flatMap((gap): readonly Place[] => [
    { x: x + gap, y: y + middle, anchor: 'start' },
    { x: x - gap, y: y + middle, anchor: 'end' },
    { x, y: y - gap, anchor: 'middle' },
    { x, y: y + gap + 0.8 * size, anchor: 'middle' },
    { x: x + 0.7 * gap, y: y - 0.7 * gap, anchor: 'start' },
    { x: x + 0.7 * gap, y: y + 0.7 * gap + 0.8 * size, anchor: 'start' },
    { x: x - 0.7 * gap, y: y - 0.7 * gap, anchor: 'end' },
    { x: x - 0.7 * gap, y: y + 0.7 * gap + 0.8 * size, anchor: 'end' },
  ]);
}

/**
 * In the order of the points, inside the frame, not over other labels or points; the first ones rather over a point
 * than not at all. Undefined if there is no space.
 */
export function placeLabels(
  points: readonly LabelledPoint[],
  frame: { readonly width: number; readonly height: number },
  size: number,
  radius: number,
  first = 0,
): readonly (Place | undefined)[] {
  const taken: Box[] = [];
  const dots = points.map(({ x, y }): Box => ({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius }));
  return points.map((point, i) => {
    const free = candidates(point, size, radius).filter((each) => {
      const box = boxOf(each, point.text, size);
      if (box.left < 0 || box.right > frame.width || box.top < 0 || box.bottom > frame.height) return false;
      return !taken.some((other) => overlaps(box, other));
    });
    const isClear = (each: Place) => !dots.some((dot, j) => j !== i && overlaps(boxOf(each, point.text, size), dot));
    const place = free.find(isClear) ?? (i < first ? free[0] : undefined);
    if (place) taken.push(boxOf(place, point.text, size));
    return place;
  });
}

/**
 * Scales equally along both axes, with a margin for names; y points up. The height depends on the width alone, so that
 * other points move nothing below.
 */
export function fit(
  points: readonly { readonly x: number; readonly y: number }[],
  width: number,
  margin: number,
): { readonly height: number; readonly places: readonly { readonly x: number; readonly y: number }[] } {
  const range = (values: readonly number[]) => (values.length > 0 ? ([Math.min(...values), Math.max(...values)] as const) : ([0, 0] as const));
  const [left, right] = range(points.map(({ x }) => x));
  const [bottom, top] = range(points.map(({ y }) => y));
  const inner = Math.max(1, width - 2 * margin);
  const innerHeight = Math.max(0.4 * inner, Math.min(inner, 300));
  const scale = Math.min(inner / (right - left || 1), innerHeight / (top - bottom || 1));
  const height = innerHeight + 2 * margin;
  const [middleX, middleY] = [(left + right) / 2, (bottom + top) / 2];
  return { height, places: points.map(({ x, y }) => ({ x: width / 2 + (x - middleX) * scale, y: height / 2 - (y - middleY) * scale })) };
}
