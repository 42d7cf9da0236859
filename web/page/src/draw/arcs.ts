/** Geometry of the first figure: columns under words, and arcs between them. */

/**
 * As near as possible to `wanted` (ascending), at least `gap` apart: isotonic regression of wanted - i gap (Robertson
 * et al. 1988). If they do not fit, they begin at `least`.
 */
export function spread(wanted: readonly number[], gap: number, least: number, most: number): readonly number[] {
  const blocks: { sum: number; count: number }[] = [];
  wanted.forEach((place, i) => {
    let block = { sum: place - i * gap, count: 1 };
    for (let before = blocks.at(-1); before && before.sum / before.count > block.sum / block.count; before = blocks.at(-1)) {
      block = { sum: before.sum + block.sum, count: before.count + block.count };
      blocks.pop();
    }
    blocks.push(block);
  });
  const last = Math.max(least, most - (wanted.length - 1) * gap);
  const starts = blocks.flatMap(({ sum, count }) => Array<number>(count).fill(Math.min(last, Math.max(least, sum / count))));
  return starts.map((start, i) => start + i * gap);
}

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** An arc above both points that rises with their distance, at most `height`; a small loop from a point to itself. */
export function arc(from: Point, to: Point, height: number): string {
  const distance = Math.abs(to.x - from.x);
  if (distance < 1 && from.y === to.y)
    return `M${from.x - 9} ${from.y}C${from.x - 20} ${from.y - 44} ${from.x + 20} ${from.y - 44} ${from.x + 9} ${from.y}`;
  // A cubic curve reaches three quarters of the height of its control points.
  const top = Math.min(from.y, to.y) - Math.min(height, 24 + 0.15 * distance) / 0.75;
  return `M${from.x} ${from.y}C${from.x} ${top} ${to.x} ${top} ${to.x} ${to.y}`;
}

/** A curve that leaves downwards and arrives from above. */
export const dropTo = (from: Point, to: Point): string => `M${from.x} ${from.y}C${from.x} ${to.y} ${to.x} ${from.y + 10} ${to.x} ${to.y}`;

/** A curve that leaves downwards and arrives from the left. */
export const flowTo = (from: Point, to: Point): string =>
  `M${from.x} ${from.y}C${from.x} ${to.y + 36} ${Math.max(from.x, to.x - 70)} ${to.y} ${to.x} ${to.y}`;
