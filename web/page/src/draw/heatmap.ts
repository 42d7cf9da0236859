import { colour, inkOn, paint } from './palette.ts';
import type { Shown } from '../state/map_view.ts';
import { poolMax } from './pool.ts';
import { levelOf, type Scale } from './scale.ts';

export interface Look {
  readonly threshold: number;
  /** The weight with the brightest colour: the largest of the row or of the head; 'log' is logarithmic. */
  readonly scaleBy: Scale;
}

export const belowThreshold = -1;
export const notAllowed = -2;

/** (P,P): 0 ... 1 for visible cells, otherwise one of the two constants. */
export function levelsOf({ places, weights, blocked, largest }: Pick<Shown, 'places' | 'weights' | 'blocked' | 'largest'>, look: Look): Float32Array {
  const size = places.length;
  const levels = new Float32Array(size * size);
  for (let i = 0; i < size; ++i) {
    const row = weights.subarray(i * size, (i + 1) * size);
    let most = largest;
    if (look.scaleBy === 'row') most = row.reduce((a, b) => Math.max(a, b), 0);
    for (let j = 0; j < size; ++j) {
      const weight = row[j]!;
      levels[i * size + j] = blocked?.[i * size + j] ? notAllowed : weight < look.threshold ? belowThreshold : levelOf(weight, most, look.scaleBy);
    }
  }
  return levels;
}

/** Smaller cells, in pixels, have no gap. */
const leastWithGap = 6;
const leastWithNumber = 27;
const leastNumber = 0.095;

export interface Surface {
  readonly context: CanvasRenderingContext2D;
  /** Position and size of all cells; `density` is canvas pixels per unit. */
  readonly width: number;
  readonly left: number;
  readonly top: number;
  readonly density: number;
  readonly font: string;
  readonly ink: string;
}

export function imageOf(levels: Float32Array, size: number): ImageData {
  const image = new ImageData(size, size);
  for (let i = 0; i < levels.length; ++i) {
    const level = levels[i]!;
    if (level >= 0) paint(image.data, i, level);
    else if (level === notAllowed) image.data.set([128, 128, 128, 60], 4 * i);
  }
  return image;
}

/** One pixel per cell or, if cells are smaller than a pixel, their maximum. */
function drawPixels({ context, width, left, top, density }: Surface, levels: Float32Array, size: number): void {
  const pixels = Math.min(size, Math.round(width * density));
  const pooled = poolSigned(levels, size, pixels);
  const image = imageOf(pooled, pixels);
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = pixels;
  canvas.getContext('2d')!.putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(canvas, left, top, width, width);
}

/** poolMax for levels, some of which are negative. */
export function poolSigned(levels: Float32Array, from: number, to: number): Float32Array {
  if (from === to) return levels;
  const lift = -notAllowed;
  return poolMax(
    levels.map((level) => level + lift),
    from,
    to,
  ).map((level) => level - lift);
}

export function drawCells(surface: Surface, { places, weights }: Pick<Shown, 'places' | 'weights'>, levels: Float32Array): void {
  const { context, width, left, top, ink } = surface;
  const size = places.length;
  const step = width / size;
  if (step < leastWithGap) return void drawPixels(surface, levels, size);
  const side = step - 1;
  context.font = `${Math.min(12, step * 0.36)}px ${surface.font}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (let i = 0; i < size; ++i) {
    for (let j = 0; j < size; ++j) {
      const level = levels[i * size + j]!;
      const x = left + j * step;
      const y = top + i * step;
      if (level === notAllowed) {
        // A masked key is not a small weight, so it gets a stroke instead of a colour.
        context.strokeStyle = ink;
        context.globalAlpha = 0.35;
        context.beginPath();
        context.moveTo(x + step * 0.35, y + step * 0.65);
        context.lineTo(x + step * 0.65, y + step * 0.35);
        context.stroke();
        context.globalAlpha = 1;
      }
      if (level < 0) continue;
      context.fillStyle = colour(level);
      context.fillRect(x, y, side, side);
      const weight = weights[i * size + j]!;
      if (step < leastWithNumber || weight < leastNumber) continue;
      context.fillStyle = inkOn(level);
      context.fillText(weight >= 0.995 ? weight.toFixed(1) : weight.toFixed(2).slice(1), x + side / 2, y + side / 2 + 0.5);
    }
  }
}

export const labelEvery = (step: number, room = 10): number => Math.max(1, Math.ceil(room / step));
