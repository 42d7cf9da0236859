/** Where the names of points go, so that they do not lie on each other. */

export interface LabelledPoint {
  readonly x: number;
  readonly y: number;
  readonly text: string;
}

export interface Place {
  /** Of the baseline's middle, start or end, as `anchor` says. */
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

/** Of an average letter of a sans-serif font, as a part of its size; rather too wide than too narrow. */
const letter = 0.65;

export function boxOf({ x, y, anchor }: Place, text: string, size: number): Box {
  const width = letter * size * text.length;
  const left = anchor === 'start' ? x : anchor === 'end' ? x - width : x - width / 2;
  return { left, right: left + width, top: y - 0.8 * size, bottom: y + 0.25 * size };
}

export const overlaps = (a: Box, b: Box): boolean => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;

/** Beside, above and below the point, nearest first; then the same a little further away. */
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
 * A place for each label in the order of the points, the important ones first: inside the frame, on no label and on no other point. Undefined where there
 * is no room; such a point stays without its name.
 */
export function placeLabels(
  points: readonly LabelledPoint[],
  frame: { readonly width: number; readonly height: number },
  size: number,
  radius: number,
): readonly (Place | undefined)[] {
  const taken: Box[] = [];
  const dots = points.map(({ x, y }): Box => ({ left: x - radius, right: x + radius, top: y - radius, bottom: y + radius }));
  return points.map((point, i) => {
    const place = candidates(point, size, radius).find((each) => {
      const box = boxOf(each, point.text, size);
      if (box.left < 0 || box.right > frame.width || box.top < 0 || box.bottom > frame.height) return false;
      return !taken.some((other) => overlaps(box, other)) && !dots.some((dot, j) => j !== i && overlaps(box, dot));
    });
    if (place) taken.push(boxOf(place, point.text, size));
    return place;
  });
}

/** Points of any range into the frame, one unit as long along both axes, with a margin for the names. Up is up. */
export function fit(
  points: readonly { readonly x: number; readonly y: number }[],
  width: number,
  margin: number,
): { readonly height: number; readonly places: readonly { readonly x: number; readonly y: number }[] } {
  const range = (values: readonly number[]) => [Math.min(...values), Math.max(...values)] as const;
  const [left, right] = range(points.map(({ x }) => x));
  const [bottom, top] = range(points.map(({ y }) => y));
  const inner = Math.max(1, width - 2 * margin);
  // Not taller than a screen; a narrow one may be filled.
  const tallest = Math.max(0.55 * inner, Math.min(1.4 * inner, 400));
  const scale = Math.min(inner / (right - left || 1), tallest / (top - bottom || 1));
  const height = Math.max(120, (top - bottom) * scale + 2 * margin);
  const [middleX, middleY] = [(left + right) / 2, (bottom + top) / 2];
  return { height, places: points.map(({ x, y }) => ({ x: width / 2 + (x - middleX) * scale, y: height / 2 - (y - middleY) * scale })) };
}
