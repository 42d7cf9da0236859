export interface Part {
  readonly row: number;
  readonly column: number;
  readonly count: number;
}

/** Minimum number of rows at the largest zoom. */
export const fewest = 6;
export const zoomStep = 1.5;

export const isWhole = (part: Part, size: number): boolean => part.count >= size;

export function within({ row, column, count }: Part, size: number): Part {
  const kept = Math.min(size, Math.max(Math.min(fewest, size), Math.round(count)));
  const inside = (first: number) => Math.min(size - kept, Math.max(0, Math.round(first)));
  return { row: inside(row), column: inside(column), count: kept };
}

/** The point `at` of the part (0 ... 1) stays in place if possible. */
export function zoomed(part: Part, size: number, factor: number, at: { readonly x: number; readonly y: number }): Part {
  const wanted = part.count / factor;
  // Rounding must not cancel a zoom step.
  const count = factor > 1 ? Math.min(part.count - 1, wanted) : Math.max(part.count + 1, wanted);
  const { count: kept } = within({ ...part, count }, size);
  return within({ row: part.row + at.y * (part.count - kept), column: part.column + at.x * (part.count - kept), count: kept }, size);
}

export const moved = (part: Part, size: number, rows: number, columns: number): Part =>
  within({ ...part, row: part.row + rows, column: part.column + columns }, size);

/** The smallest move that shows the cell. */
export function showing(part: Part, size: number, cell: { readonly row: number; readonly column: number }): Part {
  const least = (first: number, place: number) => Math.min(place, Math.max(first, place - part.count + 1));
  return within({ ...part, row: least(part.row, cell.row), column: least(part.column, cell.column) }, size);
}

/** (size,size) -> (count,count) */
export function cutOut<T extends Float32Array | Uint8Array>(values: T, size: number, { row, column, count }: Part): T {
  if (count === size) return values;
  const result = new (values.constructor as new (length: number) => T)(count * count);
  for (let i = 0; i < count; ++i) result.set(values.subarray((row + i) * size + column, (row + i) * size + column + count), i * count);
  return result;
}
