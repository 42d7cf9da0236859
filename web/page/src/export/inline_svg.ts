/** Computed styles become attributes, colours #rrggbb. */
import type { Figure, FigurePart } from 'attn/element';

const shapes = 'path, rect, circle, ellipse, line, polyline, polygon, text';
/** Their children are not drawn in place. */
const definitions = 'defs, marker, clipPath, mask, pattern, symbol';

interface Colour {
  readonly hex: string;
  readonly alpha: number;
}

const known = new Map<string, Colour>();
let pixel: CanvasRenderingContext2D | undefined;

/** Any CSS colour, as the browser paints it. */
export function colourOf(css: string): Colour {
  const found = known.get(css);
  if (found) return found;
  if (!pixel) {
    const canvas = document.createElement('canvas');
    canvas.width = canvas.height = 1;
    pixel = canvas.getContext('2d', { willReadFrequently: true })!;
  }
  pixel.clearRect(0, 0, 1, 1);
  pixel.fillStyle = css;
  pixel.fillRect(0, 0, 1, 1);
  const [r = 0, g = 0, b = 0, a = 0] = pixel.getImageData(0, 0, 1, 1).data;
  const colour = { hex: `#${((1 << 24) | (r << 16) | (g << 8) | b).toString(16).slice(1)}`, alpha: a / 255 };
  known.set(css, colour);
  return colour;
}

function outlineOf(shape: SVGElement): string | undefined {
  const number = (name: string) => Number.parseFloat(getComputedStyle(shape).getPropertyValue(name)) || Number(shape.getAttribute(name)) || 0;
  switch (shape.localName) {
    case 'path':
      return shape.getAttribute('d') ?? undefined;
    case 'line':
      return `M${number('x1')} ${number('y1')}L${number('x2')} ${number('y2')}`;
    case 'polyline':
    case 'polygon': {
      const points = (shape.getAttribute('points') ?? '').trim();
      return points && `M${points}${shape.localName === 'polygon' ? 'z' : ''}`;
    }
    case 'rect': {
      const [x, y, width, height] = ['x', 'y', 'width', 'height'].map(number) as [number, number, number, number];
      const r = Math.min(number('rx') || number('ry'), width / 2, height / 2);
      if (!r) return `M${x} ${y}h${width}v${height}h${-width}z`;
      const turn = (dx: number, dy: number) => `a${r} ${r} 0 0 1 ${dx} ${dy}`;
      return `M${x + r} ${y}h${width - 2 * r}${turn(r, r)}v${height - 2 * r}${turn(-r, r)}h${2 * r - width}${turn(-r, -r)}v${2 * r - height}${turn(r, -r)}z`;
    }
    default: {
      const [x, y] = [number('cx'), number('cy')];
      const [rx, ry] = shape.localName === 'circle' ? [number('r'), number('r')] : [number('rx'), number('ry')];
      return `M${x - rx} ${y}a${rx} ${ry} 0 1 0 ${2 * rx} 0a${rx} ${ry} 0 1 0 ${-2 * rx} 0z`;
    }
  }
}

function opacityOf(element: Element, root: Element): number {
  let opacity = 1;
  for (let at: Element | null = element; at && at !== root.parentElement; at = at.parentElement) opacity *= Number(getComputedStyle(at).opacity);
  return opacity;
}

const rounded = (opacity: number) => Math.round(1000 * opacity) / 1000;

/** The lines of a text: its tspans if they are positioned, otherwise the text itself. */
function linesOf(element: SVGTextElement): readonly { readonly text: string; readonly x: number; readonly y: number }[] {
  const first = (list: SVGAnimatedLengthList) => (list.baseVal.numberOfItems > 0 ? list.baseVal.getItem(0).value : undefined);
  const [x, y] = [(first(element.x) ?? 0) + (first(element.dx) ?? 0), (first(element.y) ?? 0) + (first(element.dy) ?? 0)];
  const spans = [...element.querySelectorAll('tspan')].filter((each) => each.hasAttribute('x') || each.hasAttribute('y') || each.hasAttribute('dy'));
  if (spans.length === 0) return [{ text: element.textContent, x, y }];
  let down = y;
  return spans.map((span) => {
    down = (first(span.y) ?? down) + (first(span.dy) ?? 0);
    return { text: span.textContent, x: first(span.x) ?? x, y: down };
  });
}

/** Distance of the baseline below the text's position, in font sizes. */
const shifts: Readonly<Record<string, number>> = { middle: 0.36, central: 0.36, hanging: 0.78, 'text-before-edge': 0.9 };

function partsOf(shape: SVGGraphicsElement, root: SVGSVGElement, left: number, top: number): readonly FigurePart[] {
  const style = getComputedStyle(shape);
  const at = shape.getScreenCTM();
  if (!at || style.visibility === 'hidden' || shape.getClientRects().length === 0) return [];
  const matrix = [at.a, at.b, at.c, at.d, at.e - left, at.f - top];
  const opacity = opacityOf(shape, root);
  const [fill, stroke] = [style.fill, style.stroke].map((css) => (css === 'none' || css.startsWith('url(') ? undefined : colourOf(css)));
  const fillOpacity = fill ? rounded(opacity * fill.alpha * Number(style.fillOpacity)) : 0;
  if (shape instanceof SVGTextElement) {
    if (!fill || fillOpacity === 0) return [];
    const size = Number.parseFloat(style.fontSize);
    const anchor = style.textAnchor === 'middle' || style.textAnchor === 'end' ? style.textAnchor : 'start';
    const shift = (shifts[style.dominantBaseline] ?? 0) * size;
    const look = { size, fill: fill.hex, anchor, matrix, ...(fillOpacity < 1 && { opacity: fillOpacity }) } as const;
    const weight = Number(style.fontWeight) >= 600 ? { weight: style.fontWeight } : {};
    return linesOf(shape).map(({ text, x, y }) => ({ kind: 'text', text, x, y: y + shift, ...look, ...weight }));
  }
  const d = outlineOf(shape);
  if (!d) return [];
  const strokeOpacity = stroke ? rounded(opacity * stroke.alpha * Number(style.strokeOpacity)) : 0;
  const strokeWidth = Number.parseFloat(style.strokeWidth);
  const dash = style.strokeDasharray === 'none' ? undefined : style.strokeDasharray.replaceAll('px', '');
  return [
    ...(fill && fillOpacity > 0 ? [{ kind: 'path', d, matrix, fill: fill.hex, ...(fillOpacity < 1 && { opacity: fillOpacity }) } as const] : []),
    ...(stroke && strokeOpacity > 0 && strokeWidth > 0
      ? [
          {
            kind: 'path',
            d,
            matrix,
            stroke: stroke.hex,
            strokeWidth,
            cap: style.strokeLinecap as 'butt' | 'round' | 'square',
            ...(strokeOpacity < 1 && { opacity: strokeOpacity }),
            ...(dash !== undefined && { dash }),
            ...(style.vectorEffect === 'non-scaling-stroke' && { nonScaling: true }),
          } as const,
        ]
      : []),
  ];
}

const margin = 12;
const titleSize = 15;

/** In the light theme on white, with a title above. Markers, gradients and HTML are left out. */
export function figureOfSvg(svg: SVGSVGElement, title: string): Figure {
  const root = document.documentElement;
  const theme = root.dataset['theme'];
  root.dataset['theme'] = 'light';
  try {
    const { left, top, width, height } = svg.getBoundingClientRect();
    const below = 2 * margin + titleSize;
    const drawn = [...svg.querySelectorAll<SVGGraphicsElement>(shapes)].filter((each) => !each.closest(definitions));
    const parts = drawn.flatMap((each) => partsOf(each, svg, left - margin, top - below));
    return {
      width: Math.ceil(Math.max(width + 2 * margin, 2 * margin + 0.64 * titleSize * title.length)),
      height: Math.ceil(height + below + margin),
      title,
      background: '#ffffff',
      parts: [
        { kind: 'text', x: margin, y: margin + titleSize, text: title, size: titleSize, fill: '#16181d', anchor: 'start', weight: '600' },
        ...parts,
      ],
    };
  } finally {
    if (theme === undefined) delete root.dataset['theme'];
    else root.dataset['theme'] = theme;
  }
}
