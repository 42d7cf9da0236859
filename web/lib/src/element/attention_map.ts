import type { AttentionMap as Contract, FigureOptions, MapFigure, Weights } from '../element.js';
import { attachStyledRoot, Base, define } from './element.js';
import { figureToPng, figureToSvg, paintFigure } from './figure.js';
import { mapFigure } from './map.js';

export { viridis, writeViridis } from './colours.js';
export { figureToPng, figureToSvg, paintFigure } from './figure.js';
export { linesFigure, mapFigure } from './map.js';

const observed = ['tokens', 'keys', 'weights', 'caption', 'text', 'note', 'scale', 'threshold'] as const;
const initials = () => ({ tokens: [], keys: undefined, weights: [], caption: '', text: '', note: '', scale: 'head', threshold: 0, options: {} });
const inJson: readonly string[] = ['tokens', 'keys', 'weights'];

const styles = `
:host { display: block; position: relative; max-width: 100%; }
:host([hidden]) { display: none; }
div { position: relative; }
canvas { display: block; cursor: crosshair; touch-action: pan-y; }
canvas:focus-visible { outline: 3px solid Highlight; outline-offset: 2px; }
i { position: absolute; outline: 2px solid currentColor; outline-offset: 1px; pointer-events: none; }
@media print {
  canvas { width: auto !important; height: auto !important; max-width: 100%; }
  i { display: none; }
}
p { margin: 0; min-height: 1.5em; font: 0.85em/1.5 inherit; font-variant-numeric: tabular-nums; }
`;

function numbersOf(weights: Weights, rows: number, columns: number): ArrayLike<number> {
  if (!Array.isArray(weights)) {
    const { data, dims } = weights as Exclude<Weights, readonly ArrayLike<number>[]>;
    const inner = dims.slice(-2);
    if (dims.slice(0, -2).some((size) => size !== 1) || inner[0] !== rows || inner[1] !== columns || data.length !== rows * columns)
      throw new Error(`the weights have the shape (${dims.join(', ')}), expected (${rows}, ${columns}) as there are tokens`);
    return data;
  }
  const list = weights as readonly ArrayLike<number>[];
  const wrong = list.find((row) => row.length !== columns);
  if (list.length !== rows || wrong)
    throw new Error(`the weights are ${list.length} rows of ${(wrong ?? list[0])?.length ?? 0}, expected ${rows} of ${columns} as there are tokens`);
  return Float32Array.from(list.flatMap((row) => Array.from(row)));
}

function isLight(colour: string): boolean {
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  // color(srgb …) and oklab colours have components from 0 to 1.
  return (0.3 * r + 0.6 * g + 0.1 * b) / (colour.startsWith('color(') || colour.startsWith('ok') ? 1 : 255) > 0.55;
}

export class AttentionMap extends Base implements Contract {
  static readonly observedAttributes: readonly string[] = observed;

  declare tokens: readonly string[];
  declare keys: readonly string[] | undefined;
  declare weights: Weights;
  declare caption: string;
  declare text: string;
  declare note: string;
  declare scale: 'head' | 'row';
  declare threshold: number;
  declare options: Partial<FigureOptions>;
  cell: { readonly row: number; readonly column: number } | undefined;

  readonly #frame = document.createElement('div');
  readonly #canvas = document.createElement('canvas');
  readonly #mark = document.createElement('i');
  readonly #reading = document.createElement('p');
  #figure: MapFigure | undefined;
  #numbers: ArrayLike<number> = [];
  #waiting = false;
  #failure = '';
  readonly #watchers: { disconnect(): void }[] = [];
  readonly #scheme = matchMedia('(prefers-color-scheme: dark)');
  readonly #redraw = () => this.#later();

  constructor() {
    super();
    const root = attachStyledRoot(this, styles);
    this.#canvas.tabIndex = 0;
    this.#canvas.setAttribute('role', 'application');
    this.#mark.hidden = true;
    this.#reading.setAttribute('aria-live', 'polite');
    this.#frame.append(this.#canvas, this.#mark);
    root.append(this.#frame, this.#reading);
    this.#canvas.addEventListener('pointermove', (event) => this.#point(event));
    this.#canvas.addEventListener('pointerdown', (event) => this.#point(event));
    this.#canvas.addEventListener('keydown', (event) => this.#key(event));
    // Draw once after all properties that change together.
    for (const [name, initial] of Object.entries(initials())) {
      // The page may have set it before the element was defined.
      let value: unknown = Object.hasOwn(this, name) ? this[name as keyof this] : initial;
      Object.defineProperty(this, name, {
        configurable: true,
        enumerable: true,
        get: () => value,
        set: (next: unknown) => {
          value = next;
          this.#later();
        },
      });
    }
  }

  connectedCallback(): void {
    const sizes = new ResizeObserver(this.#redraw);
    sizes.observe(this);
    // Pages with a theme switch set it on their root element.
    const theme = new MutationObserver(this.#redraw);
    theme.observe(document.documentElement, { attributeFilter: ['class', 'data-theme', 'style'] });
    this.#watchers.push(sizes, theme);
    this.#scheme.addEventListener('change', this.#redraw);
    this.#later();
  }

  disconnectedCallback(): void {
    for (const each of this.#watchers.splice(0)) each.disconnect();
    this.#scheme.removeEventListener('change', this.#redraw);
  }

  attributeChangedCallback(name: (typeof observed)[number], _: string | null, value: string | null): void {
    const own = this as unknown as Record<string, unknown>;
    try {
      if (inJson.includes(name)) own[name] = value === null ? (name === 'keys' ? undefined : []) : JSON.parse(value);
      else own[name] = name === 'threshold' ? Number(value) || 0 : name === 'scale' ? (value === 'row' ? 'row' : 'head') : (value ?? '');
      this.#failure = '';
    } catch {
      this.#failure = `its attribute ${name} is no JSON`;
    }
  }

  toSvg(): string {
    return figureToSvg(mapFigure(this.#given()));
  }

  toPng(density?: number): Promise<Blob> {
    return figureToPng(mapFigure(this.#given()), density);
  }

  #given(): FigureOptions {
    const { tokens, keys, caption, text, note, scale, threshold, options } = this;
    if (this.#failure) throw new Error(`attention-map: ${this.#failure}`);
    const weights = numbersOf(this.weights, tokens.length, (keys ?? tokens).length);
    return { tokens, ...(keys && { keys }), weights, scale, threshold, title: caption, text, note, ...options };
  }

  #later(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      if (this.isConnected) this.#draw();
    });
  }

  #draw(): void {
    const width = this.clientWidth;
    if (width === 0) return;
    let given: FigureOptions;
    try {
      given = this.#given();
    } catch (error) {
      this.#frame.hidden = true;
      this.#reading.textContent = (error as Error).message;
      return;
    }
    this.#frame.hidden = given.tokens.length === 0;
    this.#numbers = given.weights;
    const theme = isLight(getComputedStyle(this).color) ? 'dark' : 'light';
    this.#figure = mapFigure({ ...given, theme, background: false, width });
    const density = Math.min(devicePixelRatio || 1, 3);
    const canvas = this.#canvas;
    canvas.width = Math.round(this.#figure.width * density);
    canvas.height = Math.round(this.#figure.height * density);
    // A Content-Security-Policy does not restrict styles that scripts set.
    canvas.style.width = `${this.#figure.width}px`;
    canvas.style.height = `${this.#figure.height}px`;
    const context = canvas.getContext('2d')!;
    context.scale(density, density);
    paintFigure(this.#figure, context);
    const columns = (this.keys ?? this.tokens).length;
    canvas.setAttribute(
      'aria-label',
      `${this.caption || 'Attention weights'}: ${this.tokens.length} rows that look, ${columns} columns that are looked at. Arrow keys read single weights.`,
    );
    this.#show();
  }

  #show(): void {
    const { cell } = this;
    const at = this.#figure?.cells;
    const [row, column] = cell ? [this.tokens[cell.row], (this.keys ?? this.tokens)[cell.column]] : [];
    const isThere = at !== undefined && cell !== undefined && row !== undefined && column !== undefined;
    this.#mark.hidden = !isThere;
    if (!isThere) {
      this.#reading.textContent = '';
      return;
    }
    const { style } = this.#mark;
    style.left = `${at.left + cell.column * at.cell}px`;
    style.top = `${at.top + cell.row * at.cell}px`;
    style.width = style.height = `${Math.max(1, at.cell - 1)}px`;
    this.#reading.textContent = `${row} → ${column}: ${this.#numbers[cell.row * (this.keys ?? this.tokens).length + cell.column]!.toFixed(4)}`;
  }

  #move(row: number, column: number): void {
    const columns = (this.keys ?? this.tokens).length;
    if (this.tokens.length === 0 || columns === 0) return;
    const next = { row: Math.min(this.tokens.length - 1, Math.max(0, row)), column: Math.min(columns - 1, Math.max(0, column)) };
    if (next.row === this.cell?.row && next.column === this.cell.column) return;
    this.cell = next;
    this.#show();
    const detail = { ...next, weight: this.#numbers[next.row * columns + next.column]! };
    this.dispatchEvent(new CustomEvent('attention-cell', { bubbles: true, composed: true, detail }));
  }

  #point({ offsetX, offsetY }: PointerEvent): void {
    const at = this.#figure?.cells;
    if (!at) return;
    const [row, column] = [Math.floor((offsetY - at.top) / at.cell), Math.floor((offsetX - at.left) / at.cell)];
    if (row >= 0 && column >= 0 && row < this.tokens.length && column < (this.keys ?? this.tokens).length) this.#move(row, column);
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { row, column } = this.cell ?? { row: -1, column: -1 };
    const moves: Readonly<Record<string, readonly [number, number]>> = {
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      Home: [row, 0],
      End: [row, Infinity],
    };
    const move = Object.hasOwn(moves, event.key) ? moves[event.key] : undefined;
    if (!move) return;
    event.preventDefault();
    this.#move(...move);
  }
}

export const defineAttentionMap = (name = 'attention-map'): typeof AttentionMap => define(name, 'attention-map', AttentionMap);
