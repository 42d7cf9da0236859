/** Units are pixels; colours are #rrggbb. */
import type { Figure, FigurePart } from '../element.js';
import { viridis, writeViridis } from './colours.js';

export const font = "'DejaVu Sans', Verdana, sans-serif";
type Cells = Extract<FigurePart, { kind: 'cells' }>;

/** XML forbids control characters, even as escapes. */
const escaped = (text: string) =>
  text
    .replace(/[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"]/g, (sign) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[sign]!);

const round = (value: number) => String(Math.round(100 * value) / 100);
const attributes = (of: Readonly<Record<string, string | number | undefined>>) =>
  Object.entries(of)
    .map(([name, value]) => (value === undefined ? '' : ` ${name}="${typeof value === 'number' ? round(value) : escaped(value)}"`))
    .join('');

const matrixText = (matrix: readonly number[]) => `matrix(${matrix.map((each) => Math.round(1e4 * each) / 1e4).join(' ')})`;

/** For matrices too large for one rectangle per cell. */
function picture({ rows, columns, levels }: Cells): HTMLCanvasElement {
  const canvas = document.createElement('canvas');
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(columns, rows);
  levels.forEach((level, i) => {
    if (level >= 0) writeViridis(image.data, i, level);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function partText(part: FigurePart): string {
  const { kind } = part;
  if (kind === 'cells') {
    const { x, y, width, height, opacity } = part;
    return `<image${attributes({ x, y, width, height, opacity, href: picture(part).toDataURL('image/png') })} image-rendering="pixelated" preserveAspectRatio="none"/>`;
  }
  if (kind === 'picture') {
    const { x, y, width, height, image } = part;
    return `<image${attributes({ x, y, width, height, href: image.toDataURL('image/png') })} preserveAspectRatio="none"/>`;
  }
  if (kind === 'rect') {
    const { x, y, width, height, fill, title } = part;
    const start = `<rect${attributes({ x, y, width, height, fill })}`;
    return title === undefined ? `${start}/>` : `${start}><title>${escaped(title)}</title></rect>`;
  }
  const transform = part.matrix && matrixText(part.matrix);
  if (kind === 'path') {
    const { d, fill = 'none', stroke, strokeWidth, opacity, dash, cap, nonScaling } = part;
    const look = {
      fill,
      'fill-opacity': fill === 'none' ? undefined : opacity,
      stroke,
      'stroke-width': strokeWidth,
      'stroke-opacity': stroke && opacity,
      'stroke-dasharray': dash,
      'stroke-linecap': cap,
      'vector-effect': nonScaling ? 'non-scaling-stroke' : undefined,
    };
    return `<path${attributes({ d, ...look, transform })}/>`;
  }
  const { x, y, text, size, fill, anchor, weight, turned, family, opacity } = part;
  const turn = turned ? `translate(${round(x)} ${round(y)}) rotate(-90)` : transform;
  return `<text${attributes({
    ...(turned ? {} : { x, y }),
    'font-size': size,
    'font-weight': weight,
    'font-family': family,
    'text-anchor': anchor === 'start' ? undefined : anchor,
    fill,
    'fill-opacity': opacity,
    transform: turn,
  })}>${escaped(text)}</text>`;
}

export function figureToSvg({ width, height, title, background, parts }: Figure): string {
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" viewBox="0 0 ${round(width)} ${round(height)}" font-family="${font}">
<title>${escaped(title)}</title>
${background === undefined ? '' : `<rect width="100%" height="100%"${attributes({ fill: background })}/>\n`}${parts.map(partText).join('\n')}
</svg>
`;
}

function paintPart(context: CanvasRenderingContext2D, part: FigurePart): void {
  const { kind } = part;
  if (kind === 'cells' || kind === 'picture') {
    const { x, y, width, height } = part;
    context.save();
    context.imageSmoothingEnabled = kind === 'picture';
    if (kind === 'cells') context.globalAlpha = part.opacity ?? 1;
    context.drawImage(kind === 'cells' ? picture(part) : part.image, x, y, width, height);
    context.restore();
    return;
  }
  if (kind === 'rect') {
    context.fillStyle = part.fill;
    context.fillRect(part.x, part.y, part.width, part.height);
    return;
  }
  context.save();
  const isFree = kind === 'path' && part.nonScaling === true && part.matrix !== undefined;
  if (part.matrix && !isFree) context.transform(...(part.matrix as [number, number, number, number, number, number]));
  context.globalAlpha = part.opacity ?? 1;
  if (kind === 'path') {
    const path = isFree ? new Path2D() : new Path2D(part.d);
    if (isFree) path.addPath(new Path2D(part.d), new DOMMatrix([...part.matrix!]));
    if (part.fill !== undefined && part.fill !== 'none') {
      context.fillStyle = part.fill;
      context.fill(path);
    }
    if (part.stroke !== undefined) {
      context.strokeStyle = part.stroke;
      context.lineWidth = part.strokeWidth ?? 1;
      context.lineCap = part.cap ?? 'butt';
      context.setLineDash(part.dash?.split(/[\s,]+/).map(Number) ?? []);
      context.stroke(path);
    }
  } else {
    context.translate(part.x, part.y);
    if (part.turned) context.rotate(-Math.PI / 2);
    context.font = `${part.weight ?? ''} ${part.size}px ${part.family ?? font}`;
    context.textAlign = part.anchor === 'middle' ? 'center' : part.anchor;
    context.textBaseline = 'alphabetic';
    context.fillStyle = part.fill;
    context.fillText(part.text, 0, 0);
  }
  context.restore();
}

export function paintFigure({ width, height, background, parts }: Figure, context: CanvasRenderingContext2D): void {
  if (background !== undefined) {
    context.fillStyle = background;
    context.fillRect(0, 0, width, height);
  }
  for (const part of parts) paintPart(context, part);
}

/** `density` is pixels per unit. */
export async function figureToPng(figure: Figure, density = 2): Promise<Blob> {
  const canvas = document.createElement('canvas');
  canvas.width = Math.ceil(figure.width * density);
  canvas.height = Math.ceil(figure.height * density);
  const context = canvas.getContext('2d');
  if (!context) throw new Error(`The browser has no room for a picture of ${canvas.width} × ${canvas.height} pixels.`);
  context.scale(density, density);
  paintFigure(figure, context);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('The browser could not write the picture.'))), 'image/png'),
  );
}

/** Paths, because rectangles are cells. */
export function colourBar(x: number, y: number, width: number, height: number): readonly FigurePart[] {
  const steps = 64;
  const step = width / steps;
  return Array.from({ length: steps }, (_, i) => ({
    kind: 'path' as const,
    // Overlapping, so that no gap shows.
    d: `M${round(x + i * step)} ${y}h${round(step + (i < steps - 1 ? 0.5 : 0))}v${height}H${round(x + i * step)}z`,
    fill: viridis(i / (steps - 1)),
  }));
}
