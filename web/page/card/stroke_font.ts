/**
 * A stroke font, because builds cannot rely on an installed font. The baseline is 0, lowercase letters are 50 high, capitals 72.
 * "l": lines through points. "o": an arc with centre, radii and start and end angle in degrees; y points up.
 */
type Stroke = readonly ['l', ...number[]] | readonly ['o', number, number, number, number, number, number];

interface Glyph {
  readonly width: number;
  readonly strokes: readonly Stroke[];
}

const glyph = (width: number, ...strokes: readonly Stroke[]): Glyph => ({ width, strokes });
const bowl: Stroke = ['o', 22, 25, 22, 25, 0, 360];
const dotAt = (x: number, y: number): Stroke => ['l', x, y, x, y];
const capital: Stroke = ['l', 0, 72, 0, 0];

const glyphs: Readonly<Record<string, Glyph>> = {
  a: glyph(44, bowl, ['l', 44, 50, 44, 0]),
  b: glyph(44, bowl, ['l', 0, 74, 0, 0]),
  c: glyph(40, ['o', 23, 25, 23, 25, 42, 318]),
  d: glyph(44, bowl, ['l', 44, 74, 44, 0]),
  e: glyph(44, ['l', 0, 26, 44, 26], ['o', 22, 25, 22, 25, 2, 318]),
  f: glyph(27, ['l', 11, 0, 11, 58], ['o', 25, 58, 14, 15, 180, 75], ['l', 0, 47, 25, 47]),
  g: glyph(44, bowl, ['l', 44, 50, 44, -4], ['o', 22, -4, 22, 18, 0, -148]),
  h: glyph(40, ['l', 0, 74, 0, 0], ['o', 20, 30, 20, 20, 180, 0], ['l', 40, 30, 40, 0]),
  i: glyph(0, ['l', 0, 50, 0, 0], dotAt(0, 67)),
  j: glyph(10, ['l', 10, 50, 10, -8], ['o', -2, -8, 12, 14, 0, -95], dotAt(10, 67)),
  k: glyph(37, ['l', 0, 74, 0, 0], ['l', 35, 50, 0, 19], ['l', 13, 30, 37, 0]),
  l: glyph(0, ['l', 0, 74, 0, 0]),
  m: glyph(64, ['l', 0, 50, 0, 0], ['o', 16, 34, 16, 16, 180, 0], ['l', 32, 34, 32, 0], ['o', 48, 34, 16, 16, 180, 0], ['l', 64, 34, 64, 0]),
  n: glyph(40, ['l', 0, 50, 0, 0], ['o', 20, 30, 20, 20, 180, 0], ['l', 40, 30, 40, 0]),
  o: glyph(46, ['o', 23, 25, 23, 25, 0, 360]),
  p: glyph(44, bowl, ['l', 0, 50, 0, -22]),
  q: glyph(44, bowl, ['l', 44, 50, 44, -22]),
  r: glyph(26, ['l', 0, 50, 0, 0], ['o', 18, 32, 18, 18, 180, 62]),
  s: glyph(34, ['o', 17, 37, 16, 13, 28, 270], ['o', 17, 12, 17, 12, 90, -150]),
  t: glyph(27, ['l', 11, 66, 11, 13], ['o', 24, 13, 13, 13, 180, 282], ['l', 0, 48, 25, 48]),
  u: glyph(40, ['l', 0, 50, 0, 20], ['o', 20, 20, 20, 20, 180, 360], ['l', 40, 50, 40, 0]),
  v: glyph(40, ['l', 0, 50, 20, 0, 40, 50]),
  w: glyph(62, ['l', 0, 50, 15.5, 0, 31, 48, 46.5, 0, 62, 50]),
  x: glyph(38, ['l', 0, 50, 38, 0], ['l', 38, 50, 0, 0]),
  y: glyph(40, ['l', 0, 50, 20, 2], ['l', 40, 50, 12, -21]),
  z: glyph(36, ['l', 0, 50, 36, 50, 0, 0, 36, 0]),
  A: glyph(56, ['l', 0, 0, 28, 72, 56, 0], ['l', 10, 26, 46, 26]),
  B: glyph(
    44,
    capital,
    ['l', 0, 72, 22, 72],
    ['o', 22, 54.5, 18, 17.5, 90, -90],
    ['l', 22, 37, 0, 37],
    ['o', 24, 18.5, 20, 18.5, 90, -90],
    ['l', 24, 0, 0, 0],
  ),
  C: glyph(56, ['o', 34, 36, 34, 36, 48, 312]),
  D: glyph(52, capital, ['l', 0, 72, 18, 72], ['o', 18, 36, 34, 36, 90, -90], ['l', 18, 0, 0, 0]),
  E: glyph(40, ['l', 40, 72, 0, 72, 0, 0, 40, 0], ['l', 0, 37, 34, 37]),
  F: glyph(38, ['l', 38, 72, 0, 72, 0, 0], ['l', 0, 37, 32, 37]),
  G: glyph(64, ['o', 34, 36, 34, 36, 48, 360], ['l', 68, 36, 42, 36]),
  H: glyph(48, capital, ['l', 48, 72, 48, 0], ['l', 0, 37, 48, 37]),
  I: glyph(0, capital),
  J: glyph(30, ['l', 30, 72, 30, 18], ['o', 14, 18, 16, 18, 0, -150]),
  K: glyph(46, capital, ['l', 44, 72, 0, 28], ['l', 16, 44, 46, 0]),
  L: glyph(36, ['l', 0, 72, 0, 0, 36, 0]),
  M: glyph(62, ['l', 0, 0, 0, 72, 31, 20, 62, 72, 62, 0]),
  N: glyph(50, ['l', 0, 0, 0, 72, 50, 0, 50, 72]),
  O: glyph(68, ['o', 34, 36, 34, 36, 0, 360]),
  P: glyph(42, capital, ['l', 0, 72, 22, 72], ['o', 22, 52, 20, 20, 90, -90], ['l', 22, 32, 0, 32]),
  Q: glyph(68, ['o', 34, 36, 34, 36, 0, 360], ['l', 44, 18, 66, -4]),
  R: glyph(44, capital, ['l', 0, 72, 22, 72], ['o', 22, 52, 20, 20, 90, -90], ['l', 22, 32, 0, 32], ['l', 22, 32, 44, 0]),
  S: glyph(42, ['o', 21, 54, 20, 18, 30, 270], ['o', 21, 18, 21, 18, 90, -150]),
  T: glyph(48, ['l', 0, 72, 48, 72], ['l', 24, 72, 24, 0]),
  U: glyph(48, ['l', 0, 72, 0, 24], ['o', 24, 24, 24, 24, 180, 360], ['l', 48, 24, 48, 72]),
  V: glyph(52, ['l', 0, 72, 26, 0, 52, 72]),
  W: glyph(84, ['l', 0, 72, 21, 0, 42, 70, 63, 0, 84, 72]),
  X: glyph(50, ['l', 0, 72, 50, 0], ['l', 50, 72, 0, 0]),
  Y: glyph(50, ['l', 0, 72, 25, 34, 50, 72], ['l', 25, 34, 25, 0]),
  Z: glyph(46, ['l', 0, 72, 46, 72, 0, 0, 46, 0]),
  '0': glyph(44, ['o', 22, 36, 22, 36, 0, 360]),
  '1': glyph(22, ['l', 0, 58, 18, 72, 18, 0]),
  '2': glyph(42, ['o', 21, 51, 20, 21, 165, -40], ['l', 36, 38, 0, 0, 42, 0]),
  '3': glyph(40, ['o', 19, 54, 19, 18, 150, -90], ['o', 19, 18, 21, 18, 90, -150]),
  '4': glyph(46, ['l', 36, 0, 36, 72, 0, 20, 46, 20]),
  '5': glyph(42, ['l', 38, 72, 6, 72, 3, 40], ['o', 20, 23, 22, 23, 130, -140]),
  '6': glyph(44, ['o', 22, 23, 22, 23, 0, 360], ['l', 3, 32, 30, 72]),
  '7': glyph(42, ['l', 0, 72, 42, 72, 12, 0]),
  '8': glyph(42, ['o', 21, 54, 18, 18, 0, 360], ['o', 21, 18, 21, 18, 0, 360]),
  '9': glyph(44, ['o', 22, 49, 22, 23, 0, 360], ['l', 41, 40, 14, 0]),
  '.': glyph(0, dotAt(0, 1)),
  ',': glyph(4, ['l', 4, 2, 0, -12]),
  ':': glyph(0, dotAt(0, 1), dotAt(0, 38)),
  ';': glyph(4, ['l', 4, 2, 0, -12], dotAt(4, 38)),
  '!': glyph(0, ['l', 0, 72, 0, 22], dotAt(0, 1)),
  '?': glyph(36, ['o', 18, 54, 18, 18, 165, -70], ['l', 24, 37, 18, 28, 18, 20], dotAt(18, 1)),
  "'": glyph(0, ['l', 0, 74, 0, 58]),
  '’': glyph(4, ['l', 4, 74, 0, 58]),
  '"': glyph(12, ['l', 0, 74, 0, 58], ['l', 12, 74, 12, 58]),
  '-': glyph(24, ['l', 0, 26, 24, 26]),
  '#': glyph(44, ['l', 14, 72, 8, 0], ['l', 36, 72, 30, 0], ['l', 0, 48, 44, 48], ['l', 0, 24, 44, 24]),
  '[': glyph(14, ['l', 14, 80, 0, 80, 0, -12, 14, -12]),
  ']': glyph(14, ['l', 0, 80, 14, 80, 14, -12, 0, -12]),
  '(': glyph(14, ['o', 26, 34, 26, 48, 125, 235]),
  ')': glyph(14, ['o', -12, 34, 26, 48, 55, -55]),
  '&': glyph(50, ['o', 20, 56, 14, 16, -60, 240], ['l', 12, 43, 50, 0], ['o', 20, 20, 20, 20, 110, 345]),
  ' ': glyph(14),
};
/** Glyph for other characters. */
const unknown = glyph(40, ['l', 0, 0, 0, 72, 40, 72, 40, 0, 0, 0]);
const spacing = 15;

export type Point = readonly [x: number, y: number];

function arc([, x, y, rx, ry, from, to]: Extract<Stroke, readonly ['o', ...unknown[]]>): readonly Point[] {
  const count = Math.max(2, Math.ceil(Math.abs(to - from) / 12));
  return Array.from({ length: count + 1 }, (_, i) => {
    const angle = ((from + ((to - from) * i) / count) * Math.PI) / 180;
    return [x + rx * Math.cos(angle), y + ry * Math.sin(angle)] as const;
  });
}

const pointsOf = (stroke: Stroke): readonly Point[] => {
  if (stroke[0] === 'o') return arc(stroke);
  const numbers = stroke.slice(1) as readonly number[];
  return Array.from({ length: numbers.length / 2 }, (_, i) => [numbers[2 * i]!, numbers[2 * i + 1]!] as const);
};

const glyphOf = (letter: string) => glyphs[letter] ?? unknown;

/** Width of a text whose capitals are `size` high. */
export function widthOf(text: string, size: number): number {
  const letters = Array.from(text);
  const units = letters.reduce((sum, letter) => sum + glyphOf(letter).width, 0) + spacing * Math.max(0, letters.length - 1);
  return (units * size) / 72;
}

/** Polylines of a text that starts at the origin; y points up. */
export function linesOf(text: string, size: number): readonly (readonly Point[])[] {
  const scale = size / 72;
  let start = 0;
  return Array.from(text).flatMap((letter) => {
    const { width, strokes } = glyphOf(letter);
    const lines = strokes.map((stroke) => pointsOf(stroke).map(([x, y]) => [(start + x) * scale, y * scale] as const));
    start += width + spacing;
    return lines;
  });
}
