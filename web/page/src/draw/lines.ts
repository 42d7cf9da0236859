/** Lines from queries on the left to keys on the right; 100 units wide, one unit per row. */

export interface Line {
  readonly row: number;
  readonly column: number;
  readonly weight: number;
}

export const curve = ({ row, column }: Pick<Line, 'row' | 'column'>): string =>
  `M0 ${row + 0.5}C50 ${row + 0.5} 50 ${column + 0.5} 100 ${column + 0.5}`;

/** The `most` largest weights of at least `threshold`, smallest first, so that the largest is drawn on top. */
export function strongest(weights: Float32Array, size: number, threshold: number, most: number): readonly Line[] {
  const floor = Math.max(threshold, leastOfLargest(weights, most));
  const lines: Line[] = [];
  for (let i = 0; i < weights.length; ++i)
    if (weights[i]! > 0 && weights[i]! >= floor) lines.push({ row: Math.floor(i / size), column: i % size, weight: weights[i]! });
  lines.sort((a, b) => a.weight - b.weight);
  return lines.slice(-most);
}

const bins = 4096;

/** A lower bound close to the `most`th largest, without sorting. */
function leastOfLargest(weights: Float32Array, most: number): number {
  if (weights.length <= most) return 0;
  const largest = weights.reduce((a, b) => Math.max(a, b), 0) || 1;
  const counts = new Uint32Array(bins + 1);
  for (const weight of weights) counts[Math.floor((weight / largest) * bins)]! += 1;
  let bin = bins;
  for (let count = counts[bin]!; count < most && bin > 0; count += counts[--bin]!);
  return (bin / bins) * largest;
}

export function rowLines(weights: Float32Array, size: number, row: number, threshold: number): readonly Line[] {
  const lines = Array.from(weights.subarray(row * size, (row + 1) * size), (weight, column) => ({ row, column, weight }));
  return lines.filter(({ weight }) => weight > 0 && weight >= threshold).sort((a, b) => a.weight - b.weight);
}
