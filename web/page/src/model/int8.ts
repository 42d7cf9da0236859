/** Reproduces the rounding of a row before an int8 product, to spell products out. */

/** Returns (q - z) s, with s = (max - min) / 255 over the row and 0, zero point z, and q from 0 to 255. */
export function roundedTo8Bits(row: ArrayLike<number>): Float32Array {
  const values = Float32Array.from(row);
  let [least, most] = [0, 0];
  for (const value of values) {
    // A row with a NaN or infinity has no scale; its products are NaN.
    if (!Number.isFinite(value)) return values.fill(NaN);
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  const { fround } = Math;
  const scale = fround(fround(most / 255) - fround(least / 255));
  if (scale === 0) return values.fill(0);
  const within = (value: number) => Math.min(255, Math.max(0, value));
  const zero = within(nearestEven(fround(-least / scale)));
  return values.map((value) => (within(nearestEven(fround(value / scale)) + zero) - zero) * scale);
}

/** Rounds a half to the even neighbour. */
function nearestEven(value: number): number {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}
