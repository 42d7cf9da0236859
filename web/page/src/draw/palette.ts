/** The colours of weights: viridis, as the package's figures have it. */
export { viridis as colour, writeViridis as paint } from 'attn/element';

/** A text colour that stands out from colour(value): viridis grows lighter steadily. */
export function inkOn(value: number): string {
  return value > 0.55 ? '#000' : '#fff';
}
