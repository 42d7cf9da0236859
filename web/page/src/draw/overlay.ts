import type { Surface } from './heatmap.ts';

/** Evenly spaced hues: [red, green, blue]. */
export function headColour(head: number, count: number): readonly [number, number, number] {
  const hue = (15 + (360 * head) / count) % 360;
  // Alternating lightness also distinguishes neighbouring hues.
  const lightness = head % 2 ? 0.42 : 0.56;
  const strength = 0.8 * Math.min(lightness, 1 - lightness);
  const part = (offset: number) => {
    const k = (offset + hue / 30) % 12;
    return Math.round(255 * (lightness - strength * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}

export const cssColour = ([red, green, blue]: readonly [number, number, number]): string => `rgb(${red} ${green} ${blue})`;

const leastWithGap = 6;

/** levels and winners (size,size) */
export function drawOverlay(
  { context, width, left, top }: Surface,
  size: number,
  levels: Float32Array,
  winners: Uint8Array,
  colours: readonly (readonly [number, number, number])[],
): void {
  const step = width / size;
  if (step < leastWithGap) {
    const image = new ImageData(size, size);
    levels.forEach((level, i) => image.data.set([...colours[winners[i]!]!, 255 * level], 4 * i));
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = size;
    canvas.getContext('2d')!.putImageData(image, 0, 0);
    context.imageSmoothingEnabled = step < 1;
    context.drawImage(canvas, left, top, width, width);
    return;
  }
  levels.forEach((level, i) => {
    context.globalAlpha = level;
    context.fillStyle = cssColour(colours[winners[i]!]!);
    context.fillRect(left + (i % size) * step, top + Math.floor(i / size) * step, step - 1, step - 1);
  });
  context.globalAlpha = 1;
}
