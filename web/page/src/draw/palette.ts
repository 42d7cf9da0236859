/** Viridis, as in the package's figures. */
export { viridis as colour, writeViridis as paint } from 'attn/element';

/** A readable text colour on colour(value): viridis grows steadily lighter. */
export function inkOn(value: number): string {
  return value > 0.55 ? '#000' : '#fff';
}
