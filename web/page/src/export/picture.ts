/** Where things stand in an exported picture; one unit is a pixel. */
import { labelEvery } from '../draw/heatmap.ts';
import type { Shown } from '../state/shown.ts';

export const paper = '#ffffff';
export const ink = '#16181d';
export const queryInk = '#1f4fc4';
export const keyInk = '#a03f09';
export const font = "'DejaVu Sans', Verdana, sans-serif";

const margin = 16;
const largestCell = 32;
/** Of all cells together, as far as a cell has at least two pixels. */
const wide = 1024;
/** A letter's width, generously. */
const letter = 0.68;

export interface Layout {
  readonly size: number;
  readonly cell: number;
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
  readonly fontSize: number;
  readonly titleBase: number;
  readonly titleSize: number;
  /** Every how manieth label there is. */
  readonly every: number;
}

export function layoutOf({ places }: Pick<Shown, 'places'>, title: string): Layout {
  const size = places.length;
  const cell = Math.max(2, Math.min(largestCell, Math.floor(wide / size)));
  const fontSize = Math.max(9, Math.min(13, cell * 0.7));
  const titleSize = 15;
  const longest = places.reduce((most, { label }) => Math.max(most, [...label].length), 1);
  const labels = Math.ceil(longest * fontSize * letter) + 8;
  const left = margin + labels;
  const titleBase = margin + titleSize;
  const top = titleBase + margin + labels;
  return {
    size,
    cell,
    left,
    top,
    width: Math.max(left + size * cell, margin + Math.ceil(title.length * titleSize * letter)) + margin,
    height: top + size * cell + margin,
    fontSize,
    titleBase,
    titleSize,
    every: labelEvery(cell, fontSize + 1),
  };
}
