/** Colour scales. */

export type Scale = 'head' | 'row' | 'log';

/** Powers of ten in the logarithmic scale, below the largest weight. */
const decades = 3;
/** With a smaller share of cells brighter than a tenth of the largest, a linear scale is almost black. */
const fewestBright = 0.06;

export function scaleFor(weights: Float32Array, largest: number): Scale {
  if (weights.length === 0 || largest === 0) return 'head';
  let bright = 0;
  for (const weight of weights) if (weight >= largest / 10) bright += 1;
  return bright < fewestBright * weights.length ? 'log' : 'head';
}

/** 0 ... 1; `largest` is that of the head or the row. */
export function levelOf(weight: number, largest: number, scale: Scale): number {
  if (scale !== 'log') return weight / (largest || 1);
  return weight > 0 ? Math.max(0, 1 + Math.log10(weight / (largest || 1)) / decades) : 0;
}

export const leastOf = (largest: number): number => largest / 10 ** decades;
