import type { FigurePart, ImageFigure, ImageFigureOptions } from '../element.js';
import { finished, head, inks, legendParts, margin, smallSize } from './map.js';

type Source = ImageFigureOptions['image'];
type Drawable = Exclude<Source, { data: unknown }>;

/** Canvases of this module, which are opaque already. */
const own = new WeakSet<HTMLCanvasElement>();

function sizeOf(image: Drawable): { readonly width: number; readonly height: number } {
  if ('naturalWidth' in image) return { width: image.naturalWidth, height: image.naturalHeight };
  if ('videoWidth' in image) return { width: image.videoWidth, height: image.videoHeight };
  return image;
}

function copyOf(image: Exclude<Source, Drawable>, pixels: Uint8ClampedArray): void {
  const channels = image.data.length / (pixels.length / 4);
  const green = channels > 1 ? 1 : 0;
  for (let i = 0; i < pixels.length / 4; ++i) for (let c = 0; c < 3; ++c) pixels[4 * i + c] = image.data[channels * i + c * green]!;
}

/** The pixels that a model reads, to which transparency makes no difference. */
export function opaque(image: Source): HTMLCanvasElement {
  if (own.has(image as HTMLCanvasElement)) return image as HTMLCanvasElement;
  const isBytes = 'data' in image;
  const { width, height } = isBytes ? ('dims' in image ? { width: image.dims[1], height: image.dims[0] } : image) : sizeOf(image);
  if (!(width > 0 && height > 0)) throw new Error('the image has no pixels, or has not been loaded');
  if (isBytes && ![1, 3, 4].includes(image.data.length / (height * width)))
    throw new Error(`the image has ${image.data.length} bytes, expected 1, 3 or 4 for each of ${height} × ${width} pixels`);
  const canvas = document.createElement('canvas');
  [canvas.width, canvas.height] = [width, height];
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error(`the browser has no room for a picture of ${width} × ${height} pixels`);
  if (!isBytes) context.drawImage(image, 0, 0);
  const pixels = isBytes ? context.createImageData(width, height) : context.getImageData(0, 0, width, height);
  if (isBytes) copyOf(image, pixels.data);
  for (let i = 3; i < pixels.data.length; i += 4) pixels.data[i] = 255;
  context.putImageData(pixels, 0, 0);
  own.add(canvas);
  return canvas;
}

/** The crop in grey, so that only weights have colours; black beyond the image. */
function greyed(source: Source, crop: ImageFigureOptions['crop'], width: number): HTMLCanvasElement {
  const image = opaque(source);
  const { width: sourceWidth, height: sourceHeight } = image;
  const { left, top, width: w, height: h } = crop ?? { left: 0, top: 0, width: sourceWidth, height: sourceHeight };
  const canvas = document.createElement('canvas');
  canvas.width = Math.round(width);
  canvas.height = Math.max(1, Math.round((width * h) / w));
  const context = canvas.getContext('2d', { willReadFrequently: true });
  if (!context) throw new Error(`the browser has no room for a picture of ${canvas.width} × ${canvas.height} pixels`);
  context.fillRect(0, 0, canvas.width, canvas.height);
  const [across, down] = [canvas.width / w, canvas.height / h];
  context.imageSmoothingQuality = 'high';
  // Small images show their pixels.
  context.imageSmoothingEnabled = across < 4;
  context.drawImage(image, -left * across, -top * down, sourceWidth * across, sourceHeight * down);
  const pixels = context.getImageData(0, 0, canvas.width, canvas.height);
  const { data } = pixels;
  for (let i = 0; i < data.length; i += 4) data[i] = data[i + 1] = data[i + 2] = 0.299 * data[i]! + 0.587 * data[i + 1]! + 0.114 * data[i + 2]!;
  context.putImageData(pixels, 0, 0);
  return canvas;
}

export function imageFigure(options: ImageFigureOptions): ImageFigure {
  const { image, crop, weights, query, legend, note, theme = 'light', opacity = 0.6 } = options;
  const [rows, columns] = options.grid;
  if (weights.length !== rows * columns)
    throw new Error(`there are ${weights.length} weights, expected ${rows} × ${columns} as the grid has patches`);
  const colours = inks[theme];
  const width = options.width ?? 448 + 2 * margin;
  const across = Math.max(1, Math.min(width - 2 * margin, 448));
  const picture = greyed(image, crop, Math.min(1024, 2 * across));
  const down = (across * picture.height) / picture.width;
  const { parts, end: top } = head(options, width, colours);
  let most = 0;
  for (let i = 0; i < weights.length; ++i) most = Math.max(most, weights[i]! || 0);
  const levels = Float32Array.from(weights, (weight) => Math.max(0, weight || 0) / (most || 1));
  const box = { x: margin, y: top, width: across, height: down };
  const [patchWidth, patchHeight] = [across / columns, down / rows];
  parts.push({ kind: 'picture', ...box, image: picture }, { kind: 'cells', ...box, rows, columns, levels, opacity });
  if (query) {
    const [x, y] = [margin + query.column * patchWidth, top + query.row * patchHeight];
    const d = `M${x} ${y}h${patchWidth}v${patchHeight}h${-patchWidth}z`;
    const outline = (stroke: string, strokeWidth: number): FigurePart => ({ kind: 'path', d, stroke, strokeWidth });
    parts.push(outline('#000000', 4), outline('#ffffff', 2));
  }
  const y = top + down + 14;
  const { low, high } = legend ?? { low: '0', high: most < 0.095 ? String(Number(most.toPrecision(2))) : most.toFixed(2) };
  parts.push(...legendParts(low, high, y, colours.ink));
  return {
    ...finished({ ...options, title: options.title || 'Attention over an image' }, width, colours, parts, y + smallSize, note ?? ''),
    patches: { left: margin, top, width: patchWidth, height: patchHeight },
  };
}
