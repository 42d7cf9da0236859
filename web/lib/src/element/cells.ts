/** Base of the elements that draw weights: a canvas, one selected cell, and its weight in words. */
import type { Figure } from '../element.js';
import { attachStyledRoot, Base } from './base.js';
import { paintFigure } from './figure.js';

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

export interface Cell {
  readonly row: number;
  readonly column: number;
}

/** A figure with cells. */
export interface Drawn {
  readonly figure: Figure;
  readonly rows: number;
  readonly columns: number;
  /** The first cell, in pixels. */
  readonly first: { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
  /** For screen readers. */
  readonly label: string;
  weightOf(cell: Cell): number;
  /** Name of a cell, before its weight. */
  nameOf(cell: Cell): string;
}

function isLight(colour: string): boolean {
  const [r = 0, g = 0, b = 0] = (colour.match(/[\d.]+/g) ?? []).map(Number);
  // color(srgb …) and oklab colours have components from 0 to 1.
  return (0.3 * r + 0.6 * g + 0.1 * b) / (colour.startsWith('color(') || colour.startsWith('ok') ? 1 : 255) > 0.55;
}

export abstract class CellElement extends Base {
  cell: Cell | undefined;

  readonly #frame = document.createElement('div');
  readonly #canvas = document.createElement('canvas');
  readonly #mark = document.createElement('i');
  readonly #reading = document.createElement('p');
  #drawn: Drawn | undefined;
  #waiting = false;
  readonly #watchers: { disconnect(): void }[] = [];
  readonly #scheme = matchMedia('(prefers-color-scheme: dark)');
  readonly #redraw = () => this.later();

  /** `initials`: the properties, which redraw the element. */
  constructor(initials: Readonly<Record<string, unknown>>) {
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
    this.#canvas.addEventListener('click', (event) => this.#point(event));
    this.#canvas.addEventListener('keydown', (event) => this.#key(event));
    // Draw once after all properties that change together.
    for (const [name, initial] of Object.entries(initials)) {
      // The page may have set it before the element was defined.
      let value: unknown = Object.hasOwn(this, name) ? this[name as keyof this] : initial;
      Object.defineProperty(this, name, {
        configurable: true,
        enumerable: true,
        get: () => value,
        set: (next: unknown) => {
          value = next;
          this.changed?.(name);
          this.later();
        },
      });
    }
  }

  /** Throws an Error for contradictory properties. Undefined: nothing to draw. While it loads, the last figure stays. */
  protected abstract drawn(theme: 'light' | 'dark', width: number): Drawn | 'loading' | undefined;

  /** A property was set. */
  protected changed?(name: string): void;

  /** Enter, Space or a click on a cell of the figure. */
  protected use?(cell: Cell): void;

  /** Escape; returns whether something changed. */
  protected leave?(): boolean;

  connectedCallback(): void {
    const sizes = new ResizeObserver(this.#redraw);
    sizes.observe(this);
    // Pages with a theme switch set it on their root element.
    const theme = new MutationObserver(this.#redraw);
    theme.observe(document.documentElement, { attributeFilter: ['class', 'data-theme', 'style'] });
    this.#watchers.push(sizes, theme);
    this.#scheme.addEventListener('change', this.#redraw);
    this.later();
  }

  disconnectedCallback(): void {
    for (const each of this.#watchers.splice(0)) each.disconnect();
    this.#scheme.removeEventListener('change', this.#redraw);
  }

  /** Draws in the next frame. */
  protected later(): void {
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
    try {
      const drawn = this.drawn(isLight(getComputedStyle(this).color) ? 'dark' : 'light', width);
      this.#canvas.ariaBusy = String(drawn === 'loading');
      if (drawn === 'loading') return;
      this.#drawn = drawn;
    } catch (error) {
      this.#drawn = undefined;
      this.#frame.hidden = true;
      this.#reading.textContent = (error as Error).message;
      return;
    }
    this.#frame.hidden = !this.#drawn;
    if (this.#drawn) {
      const { figure, label } = this.#drawn;
      const density = Math.min(devicePixelRatio || 1, 3);
      const canvas = this.#canvas;
      canvas.width = Math.round(figure.width * density);
      canvas.height = Math.round(figure.height * density);
      // A Content-Security-Policy does not restrict styles that scripts set.
      canvas.style.width = `${figure.width}px`;
      canvas.style.height = `${figure.height}px`;
      const context = canvas.getContext('2d')!;
      context.scale(density, density);
      paintFigure(figure, context);
      canvas.setAttribute('aria-label', label);
    }
    this.#show();
  }

  /** The selected cell, if the figure has it. */
  get #selected(): Cell | undefined {
    const { cell } = this;
    const drawn = this.#drawn;
    return drawn && cell && cell.row < drawn.rows && cell.column < drawn.columns ? cell : undefined;
  }

  #show(): void {
    const cell = this.#selected;
    const drawn = this.#drawn;
    this.#mark.hidden = !cell;
    if (!drawn || !cell) {
      this.#reading.textContent = '';
      return;
    }
    const { left, top, width, height } = drawn.first;
    const { style } = this.#mark;
    style.left = `${left + cell.column * width}px`;
    style.top = `${top + cell.row * height}px`;
    style.width = `${Math.max(1, width - 1)}px`;
    style.height = `${Math.max(1, height - 1)}px`;
    this.#reading.textContent = `${drawn.nameOf(cell)}: ${drawn.weightOf(cell).toFixed(4)}`;
  }

  #move(row: number, column: number): void {
    const drawn = this.#drawn;
    if (!drawn || drawn.rows === 0 || drawn.columns === 0) return;
    const next = { row: Math.min(drawn.rows - 1, Math.max(0, row)), column: Math.min(drawn.columns - 1, Math.max(0, column)) };
    if (next.row === this.cell?.row && next.column === this.cell.column) return;
    this.cell = next;
    this.#show();
    const detail = { ...next, weight: drawn.weightOf(next) };
    this.dispatchEvent(new CustomEvent('attention-cell', { bubbles: true, composed: true, detail }));
  }

  #point({ type, offsetX, offsetY }: MouseEvent): void {
    const drawn = this.#drawn;
    if (!drawn) return;
    const { left, top, width, height } = drawn.first;
    const [row, column] = [Math.floor((offsetY - top) / height), Math.floor((offsetX - left) / width)];
    if (row < 0 || column < 0 || row >= drawn.rows || column >= drawn.columns) return;
    this.#move(row, column);
    if (type === 'click') this.use?.({ row, column });
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const { row, column } = this.cell ?? { row: -1, column: -1 };
    const use = () => this.#selected && this.use!(this.#selected);
    const actions: Readonly<Record<string, (() => unknown) | undefined>> = {
      ArrowUp: () => this.#move(row - 1, column),
      ArrowDown: () => this.#move(row + 1, column),
      ArrowLeft: () => this.#move(row, column - 1),
      ArrowRight: () => this.#move(row, column + 1),
      Home: () => this.#move(row, 0),
      End: () => this.#move(row, Infinity),
      Enter: this.use && use,
      ' ': this.use && use,
      Escape: this.leave && (() => this.leave!()),
    };
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    // An Escape that changes nothing closes a dialog around the element.
    if (action && action() !== false) event.preventDefault();
  }
}
