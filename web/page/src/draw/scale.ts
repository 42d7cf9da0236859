/** What a colour stands for. */

export type Scale = 'head' | 'row' | 'log';

/** A logarithmic scale goes so many powers of ten down from the largest weight. */
const decades = 3;
/** Where fewer cells than this are brighter than a tenth of the brightest, a linear scale is near black. */
const fewestBright = 0.06;

/** 'log' where a linear scale would show next to nothing. */
export function scaleFor(weights: Float32Array, largest: number): Scale {
  if (weights.length === 0 || largest === 0) return 'head';
  let bright = 0;
  for (const weight of weights) if (weight >= largest / 10) bright += 1;
  return bright < fewestBright * weights.length ? 'log' : 'head';
}

/** 0 ... 1; `largest` of the head, or of the row. */
export function levelOf(weight: number, largest: number, scale: Scale): number {
  if (scale !== 'log') return weight / (largest || 1);
  return weight > 0 ? Math.max(0, 1 + Math.log10(weight / (largest || 1)) / decades) : 0;
}

/** The weight that the darkest colour of a logarithmic scale stands for. */
export const leastOf = (largest: number): number => largest / 10 ** decades;
