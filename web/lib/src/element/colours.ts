/** Interpolated linearly between nine colours of viridis. */
const stops = [0x440154, 0x472d7b, 0x3b528b, 0x2c728e, 0x21918c, 0x28ae80, 0x5ec962, 0xaddc30, 0xfde725];

const size = 256;
const bytes = new Uint8Array(3 * size);
for (let i = 0; i < size; ++i) {
  const at = (i / (size - 1)) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  for (let c = 0; c < 3; ++c) {
    const [a, b] = [stops[low]!, stops[low + 1]!].map((stop) => (stop >> (16 - 8 * c)) & 255) as [number, number];
    bytes[3 * i + c] = Math.round(a + (at - low) * (b - a));
  }
}

/** Index of a level (0 to 1) in `bytes`; NaN counts as 0. */
const place = (level: number) => 3 * Math.round(Math.min(1, Math.max(0, level || 0)) * (size - 1));

export function viridis(level: number): string {
  const at = place(level);
  return `#${((1 << 24) | (bytes[at]! << 16) | (bytes[at + 1]! << 8) | bytes[at + 2]!).toString(16).slice(1)}`;
}

export function writeViridis(rgba: Uint8ClampedArray, pixel: number, level: number): void {
  const at = place(level);
  for (let c = 0; c < 3; ++c) rgba[4 * pixel + c] = bytes[at + c]!;
  rgba[4 * pixel + 3] = 255;
}

/** The lightness of viridis grows with the level. */
export const inkOn = (level: number): string => (level > 0.55 ? '#000000' : '#ffffff');
