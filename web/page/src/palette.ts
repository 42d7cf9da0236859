/** viridis, from nine of its own stops; between them the colour is mixed linearly. */
const stops = [
  [68, 1, 84],
  [71, 45, 123],
  [59, 82, 139],
  [44, 114, 142],
  [33, 145, 140],
  [40, 174, 128],
  [94, 201, 98],
  [173, 220, 48],
  [253, 231, 37],
] as const;

const size = 256;
const table = new Uint8Array(size * 3);
for (let i = 0; i < size; ++i) {
  const at = (i / (size - 1)) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  for (let c = 0; c < 3; ++c) table[3 * i + c] = Math.round(stops[low]![c]! + (at - low) * (stops[low + 1]![c]! - stops[low]![c]!));
}

/** Where value (0 ... 1) is in the table of colours; NaN counts as 0. */
function index(value: number): number {
  return 3 * Math.round(Math.min(1, Math.max(0, value || 0)) * (size - 1));
}

export function colour(value: number): string {
  const i = index(value);
  return `rgb(${table[i]} ${table[i + 1]} ${table[i + 2]})`;
}

/** A text colour that stands out from colour(value): viridis grows lighter steadily. */
export function inkOn(value: number): string {
  return value > 0.55 ? '#000' : '#fff';
}

/** Writes colour(value) into pixel number `pixel` of RGBA data. */
export function paint(rgba: Uint8ClampedArray, pixel: number, value: number): void {
  const i = index(value);
  rgba[4 * pixel] = table[i]!;
  rgba[4 * pixel + 1] = table[i + 1]!;
  rgba[4 * pixel + 2] = table[i + 2]!;
  rgba[4 * pixel + 3] = 255;
}
