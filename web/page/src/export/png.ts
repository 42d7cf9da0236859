import { drawCells, levelsOf } from '../draw/heatmap.ts';
import { font, ink, keyInk, layoutOf, paper, queryInk } from './picture.ts';
import type { Selection } from './selection.ts';

/** Pixels for each unit of the layout. */
const density = 2;

function canvasOf(width: number, height: number): readonly [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  if (!context) throw new Error(`The browser has no room for a picture of ${width} × ${height} pixels.`);
  return [canvas, context];
}

const blobOf = (canvas: HTMLCanvasElement): Promise<Blob> =>
  new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The browser could not write the picture.'))), 'image/png'),
  );

export async function toPng({ title, shown, look }: Pick<Selection, 'title' | 'shown' | 'look'>): Promise<Blob> {
  const { size, cell, left, top, width, height, fontSize, titleBase, titleSize, every } = layoutOf(shown, title);
  const [canvas, context] = canvasOf(width * density, height * density);
  context.scale(density, density);
  context.fillStyle = paper;
  context.fillRect(0, 0, width, height);
  context.fillStyle = ink;
  context.font = `${titleSize}px ${font}`;
  context.fillText(title, left, titleBase);
  drawCells({ context, width: size * cell, left, top, density, font, ink }, shown, levelsOf(shown, look));
  context.font = `${fontSize}px ${font}`;
  context.textBaseline = 'middle';
  for (let i = 0; i < size; i += every) {
    const { label } = shown.places[i]!;
    const middle = (i + 0.5) * cell;
    context.textAlign = 'end';
    context.fillStyle = queryInk;
    context.fillText(label, left - 6, top + middle);
    context.save();
    context.translate(left + middle, top - 6);
    context.rotate(-Math.PI / 2);
    context.textAlign = 'start';
    context.fillStyle = keyInk;
    context.fillText(label, 0, 0);
    context.restore();
  }
  return blobOf(canvas);
}

/** The cells alone, one pixel each: for the middle of a large SVG. */
export function cellsAddress({ shown, look }: Pick<Selection, 'shown' | 'look'>): string {
  const size = shown.places.length;
  const [canvas, context] = canvasOf(size, size);
  drawCells({ context, width: size, left: 0, top: 0, density: 1, font, ink }, shown, levelsOf(shown, look));
  return canvas.toDataURL('image/png');
}
