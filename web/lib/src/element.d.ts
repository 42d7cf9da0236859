/// <reference lib="dom" />
/**
 * `attn/element`: a map of attention weights as an element of a page, and the same picture as SVG or PNG. It computes nothing and loads nothing.
 * Importing it changes nothing either: `defineAttentionMap()` makes the element known.
 *
 * ```html
 * <attention-map tokens='["a","b"]' weights='[[0.9,0.1],[0.4,0.6]]' caption="Layer 1, head 2"></attention-map>
 * <script type="module">
 *   import { defineAttentionMap } from 'attn/element';
 *   defineAttentionMap();
 * </script>
 * ```
 */

/** Rows of numbers, or a tensor (queries, keys), row-major. A tensor of more dimensions may have sizes of 1 in front. */
export type Weights = readonly ArrayLike<number>[] | { readonly data: ArrayLike<number>; readonly dims: readonly number[] };

/** What is drawn, in pixels. Every colour is `#rrggbb`, which every program reads. */
export type FigurePart =
  | {
      readonly kind: 'rect';
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly fill: string;
      readonly title?: string;
    }
  | {
      readonly kind: 'path';
      readonly d: string;
      readonly fill?: string;
      readonly stroke?: string;
      readonly strokeWidth?: number;
      readonly opacity?: number;
      readonly dash?: string;
      readonly cap?: 'butt' | 'round' | 'square';
      /** a, b, c, d, e, f as in SVG. */
      readonly matrix?: readonly number[];
      /** The line is as wide as it says, whatever the matrix does. */
      readonly nonScaling?: boolean;
    }
  | {
      readonly kind: 'text';
      readonly x: number;
      /** Of the baseline. */
      readonly y: number;
      readonly text: string;
      readonly size: number;
      readonly fill: string;
      readonly anchor: 'start' | 'middle' | 'end';
      readonly weight?: string;
      readonly family?: string;
      readonly opacity?: number;
      /** Read from below upwards. */
      readonly turned?: boolean;
      readonly matrix?: readonly number[];
    }
  | {
      /** Too many for rectangles of their own: levels of 0 … 1, below 0 is not drawn. */
      readonly kind: 'cells';
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly rows: number;
      readonly columns: number;
      readonly levels: Float32Array;
    };

export interface Figure {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** `#rrggbb`; left out: none. */
  readonly background?: string;
  readonly parts: readonly FigurePart[];
}

export interface MapFigure extends Figure {
  /** Where the cells begin, and how wide one is. */
  readonly cells: { readonly left: number; readonly top: number; readonly cell: number };
}

export interface FigureOptions {
  /** Of the rows: what looks. */
  readonly tokens: readonly string[];
  /** Of the columns: what is looked at. Default: `tokens`. */
  readonly keys?: readonly string[];
  /** (rows, columns), row-major, 0 … 1. */
  readonly weights: ArrayLike<number>;
  /** What the brightest colour stands for: the largest weight of the whole, or of each row. Default `'head'`. */
  readonly scale?: 'head' | 'row';
  /** Smaller weights are not drawn. Default 0. */
  readonly threshold?: number;
  /** Instead of scale and threshold: (rows, columns) of 0 … 1; -1 is not drawn, -2 gets a stroke, for a key that may not be seen. */
  readonly levels?: Float32Array;
  /** What stands at the ends of the colour scale. Default: 0 and the largest weight. */
  readonly legend?: { readonly low: string; readonly high: string };
  readonly title?: string;
  /** The sentence, under the title. */
  readonly text?: string;
  /** At the foot. */
  readonly note?: string;
  readonly rowsTitle?: string;
  readonly columnsTitle?: string;
  /** Default `'light'`. */
  readonly theme?: 'light' | 'dark';
  /** false: none. Default: that of the theme. */
  readonly background?: false;
  /** The most pixels that a cell is wide. Default 34. */
  readonly cell?: number;
  /** The most pixels that all of it is wide. */
  readonly width?: number;
}

/** Rows and columns with labels, cells in viridis with their numbers where they fit, titles of the axes, a colour scale. */
export function mapFigure(options: FigureOptions): MapFigure;
/** The same as lines from tokens on the left to tokens on the right. */
export function linesFigure(options: FigureOptions): Figure;
/** A file of its own. With more than 128 × 128 cells it needs a document, for they are a picture in it. */
export function figureToSvg(figure: Figure): string;
/** Needs a document. Default: two pixels for each unit. */
export function figureToPng(figure: Figure, density?: number): Promise<Blob>;
export function paintFigure(figure: Figure, context: CanvasRenderingContext2D): void;
/** The colour of a level of 0 … 1. */
export function viridis(level: number): string;
/** Writes it into pixel number `pixel` of RGBA data. */
export function writeViridis(rgba: Uint8ClampedArray, pixel: number, level: number): void;

/**
 * `<attention-map>`. Attributes: `tokens`, `keys` and `weights` as JSON, `caption`, `text`, `note`, `scale`, `threshold`. Pointing at a cell, or the arrow keys, reads its weight;
 * `attention-cell` says so, with `{ row, column, weight }` as detail. It is as wide as its place, light or dark as the text around it.
 */
export class AttentionMap extends HTMLElement {
  tokens: readonly string[];
  /** undefined: the tokens. */
  keys: readonly string[] | undefined;
  weights: Weights;
  /** What stands above the map: a title, and the sentence. */
  caption: string;
  text: string;
  note: string;
  scale: 'head' | 'row';
  threshold: number;
  /** Options that are not attributes: levels, legend, titles of the axes. */
  options: Partial<FigureOptions>;
  /** The cell that is read now; undefined: none. */
  readonly cell: { readonly row: number; readonly column: number } | undefined;
  /** A file of what is shown, on white. */
  toSvg(): string;
  toPng(density?: number): Promise<Blob>;
}

/** Makes the element known under this name, `attention-map` by default, once. */
export function defineAttentionMap(name?: string): typeof AttentionMap;

/** What `<attention-map>` takes in JSX: text for an attribute, or the value of the property. */
export interface AttentionMapAttributes {
  tokens?: string | readonly string[] | undefined;
  keys?: string | readonly string[] | undefined;
  weights?: string | Weights | undefined;
  caption?: string | undefined;
  text?: string | undefined;
  note?: string | undefined;
  scale?: 'head' | 'row' | undefined;
  threshold?: string | number | undefined;
  options?: Partial<FigureOptions> | undefined;
  'onattention-cell'?: ((event: HTMLElementEventMap['attention-cell']) => void) | undefined;
  'on:attention-cell'?: ((event: HTMLElementEventMap['attention-cell']) => void) | undefined;
}

// JSX of each framework. Its module may be missing, which TypeScript refuses unless it is told to ignore that.
/* eslint-disable @typescript-eslint/ban-ts-comment, @typescript-eslint/no-redundant-type-constituents */
// @ts-ignore
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & DetailedHTMLProps<HTMLAttributes<AttentionMap>, AttentionMap>;
    }
  }
}
// @ts-ignore
declare module 'preact' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & import('preact').HTMLAttributes<AttentionMap>;
    }
  }
}
// @ts-ignore
declare module 'solid-js/jsx-runtime' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & HTMLAttributes<AttentionMap>;
    }
  }
}
/* eslint-enable */

declare global {
  interface HTMLElementTagNameMap {
    'attention-map': AttentionMap;
  }
  interface HTMLElementEventMap {
    'attention-cell': CustomEvent<{ readonly row: number; readonly column: number; readonly weight: number }>;
  }
}
