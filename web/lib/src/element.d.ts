/// <reference lib="dom" />
/**
 * `attn/element`: the elements `<attention-map>`, which shows attention weights between words, and `<attention-image>`,
 * which shows them over an image. Each also gives its picture as SVG or PNG. They draw weights that you pass to them and
 * load no WebAssembly. The import has no side effects: call {@link defineAttentionMap} or {@link defineAttentionImage}
 * to register an element.
 *
 * ```html
 * <attention-map tokens='["a","b"]' weights='[[0.9,0.1],[0.4,0.6]]' caption="Layer 1, head 2"></attention-map>
 * <script type="module">
 *   import { defineAttentionMap } from 'attn/element';
 *   defineAttentionMap();
 * </script>
 * ```
 * @packageDocumentation
 */

/**
 * Weights of queries (rows) and keys (columns): an array of rows, or a row-major tensor (..,queries,keys) whose leading
 * sizes are 1.
 */
export type Weights = readonly ArrayLike<number>[] | { readonly data: ArrayLike<number>; readonly dims: readonly number[] };

/** A part of a figure, with sizes in pixels. Every colour has the form `#rrggbb`. */
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
      /** Transformation a, b, c, d, e, f as in SVG. */
      readonly matrix?: readonly number[];
      /** Keeps the stroke width unaffected by the matrix. */
      readonly nonScaling?: boolean;
    }
  | {
      readonly kind: 'text';
      readonly x: number;
      /** Position of the baseline. */
      readonly y: number;
      readonly text: string;
      readonly size: number;
      readonly fill: string;
      readonly anchor: 'start' | 'middle' | 'end';
      readonly weight?: string;
      readonly family?: string;
      readonly opacity?: number;
      /** Rotates the text by 90° so that it reads upwards. */
      readonly turned?: boolean;
      readonly matrix?: readonly number[];
    }
  | {
      /** Many cells as one image. Levels are from 0 to 1; cells with a level below 0 are not drawn. */
      readonly kind: 'cells';
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly rows: number;
      readonly columns: number;
      readonly levels: Float32Array;
      readonly opacity?: number;
    }
  | {
      readonly kind: 'picture';
      readonly x: number;
      readonly y: number;
      readonly width: number;
      readonly height: number;
      readonly image: HTMLCanvasElement;
    };

/** A picture as a list of parts. */
export interface Figure {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  /** Background colour `#rrggbb`. Default none. */
  readonly background?: string;
  readonly parts: readonly FigurePart[];
}

/** A map of {@link mapFigure}. */
export interface MapFigure extends Figure {
  /** Position of the first cell and width of each cell, in pixels. */
  readonly cells: { readonly left: number; readonly top: number; readonly cell: number };
}

/** Options of {@link mapFigure} and {@link linesFigure}. */
export interface FigureOptions {
  /** Labels of the queries (rows). */
  readonly tokens: readonly string[];
  /** Labels of the keys (columns). Default `tokens`. */
  readonly keys?: readonly string[];
  /** Weights (rows,columns) from 0 to 1, row-major. */
  readonly weights: ArrayLike<number>;
  /** Weight of the brightest colour of a map: the largest of all (`'head'`, default) or of each row. */
  readonly scale?: 'head' | 'row';
  /** Least weight to draw. Default 0. */
  readonly threshold?: number;
  /**
   * Colours of a map's cells, instead of `scale` and `threshold`: (rows,columns) from 0 to 1; −1 draws nothing, −2
   * draws a stroke for a masked key.
   */
  readonly levels?: Float32Array;
  /** Labels of the ends of a map's colour scale. Default 0 and the largest weight. */
  readonly legend?: { readonly low: string; readonly high: string };
  readonly title?: string;
  /** A sentence below the title. */
  readonly text?: string;
  /** A note at the bottom. */
  readonly note?: string;
  /** Title of the queries. Default `'looks (query)'`. */
  readonly rowsTitle?: string;
  /** Title of the keys. Default `'is looked at (key)'`. */
  readonly columnsTitle?: string;
  /** Default `'light'`. */
  readonly theme?: 'light' | 'dark';
  /** Set to false for no background. Default that of the theme. */
  readonly background?: false;
  /** Maximal width of a map's cell in pixels. Default 34. */
  readonly cell?: number;
  /** Maximal width of a map in pixels. */
  readonly width?: number;
}

/** What {@link imageFigure} draws: an image that a canvas can draw, or its bytes (grey, RGB or RGBA). */
export type DrawnImage =
  | HTMLImageElement
  | HTMLVideoElement
  | HTMLCanvasElement
  | OffscreenCanvas
  | ImageBitmap
  | { readonly data: Uint8Array | Uint8ClampedArray; readonly width: number; readonly height: number }
  | { readonly data: Uint8Array | Uint8ClampedArray; readonly dims: readonly [height: number, width: number, channels: number] };

/** Options of {@link imageFigure}. */
export interface ImageFigureOptions {
  readonly image: DrawnImage;
  /** The part of the image that the patches cover, in its pixels. Default all of it. Beyond the image it is black. */
  readonly crop?: { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
  /** Rows and columns of patches. */
  readonly grid: readonly [rows: number, columns: number];
  /** Weights (rows,columns) of the patches, row-major. */
  readonly weights: ArrayLike<number>;
  /** A patch to outline, usually the one that looks. */
  readonly query?: { readonly row: number; readonly column: number };
  /** Opacity of the colours over the image, from 0 to 1. Default 0.6. */
  readonly opacity?: number;
  /** Labels of the ends of the colour scale. Default 0 and the largest weight. */
  readonly legend?: { readonly low: string; readonly high: string };
  readonly title?: string;
  /** A sentence below the title. */
  readonly text?: string;
  /** A note at the bottom. */
  readonly note?: string;
  /** Default `'light'`. */
  readonly theme?: 'light' | 'dark';
  /** Set to false for no background. Default that of the theme. */
  readonly background?: false;
  /** Maximal width in pixels. The image is at most 448 pixels wide. */
  readonly width?: number;
}

/** A picture of {@link imageFigure}. */
export interface ImageFigure extends Figure {
  /** Position of the first patch, and size of each patch, in pixels. */
  readonly patches: { readonly left: number; readonly top: number; readonly width: number; readonly height: number };
}

/**
 * Draws weights of patches over an image in viridis colours. The image is grey, so that every colour is a weight. Needs
 * a `document`.
 *
 * @param options see {@link ImageFigureOptions}
 * @throws {Error} if the weights do not fit the grid, or the image has no pixels
 *
 * @example
 * ```ts
 * import { figureToPng, imageFigure } from 'attn/element';
 *
 * const image = document.createElement('canvas');
 * [image.width, image.height] = [40, 30];
 * const figure = imageFigure({ image, grid: [2, 2], weights: [0.1, 0.2, 0.3, 0.4], title: 'Layer 1, head 2' });
 * console.log((await figureToPng(figure)).type); // image/png
 * ```
 */
export function imageFigure(options: ImageFigureOptions): ImageFigure;
/**
 * Draws weights as a map: cells in viridis colours, with their numbers if they fit, labels, axis titles and a colour
 * scale.
 *
 * @param options see {@link FigureOptions}
 *
 * @example
 * ```ts
 * import { figureToSvg, mapFigure } from 'attn/element';
 *
 * const figure = mapFigure({ tokens: ['a', 'b'], weights: [0.9, 0.1, 0.4, 0.6], title: 'Layer 1, head 2' });
 * console.log(figureToSvg(figure).match(/<title>.*?<\/title>/)![0]); // <title>Layer 1, head 2</title>
 * ```
 */
export function mapFigure(options: FigureOptions): MapFigure;
/**
 * Draws weights as lines from the queries on the left to the keys on the right. Thicker lines have larger weights; at
 * most 300 lines are drawn.
 *
 * @param options see {@link FigureOptions}; the options of maps have no effect
 *
 * @example
 * ```ts
 * import { linesFigure } from 'attn/element';
 *
 * const { parts } = linesFigure({ tokens: ['a', 'b'], weights: [0.9, 0.1, 0.4, 0.6], threshold: 0.3 });
 * console.log(parts.filter(({ kind }) => kind === 'path').length); // 3
 * ```
 */
export function linesFigure(options: FigureOptions): Figure;
/**
 * Converts a figure to the text of an SVG file. A map of more than 128 × 128 cells and the figure of an image contain
 * pictures, which need a `document`.
 *
 * @param figure from {@link mapFigure}, {@link linesFigure} or {@link imageFigure}
 *
 * @example
 * ```ts
 * import { figureToSvg, linesFigure } from 'attn/element';
 *
 * console.log(figureToSvg(linesFigure({ tokens: ['a'], weights: [1] })).slice(0, 4)); // <svg
 * ```
 */
export function figureToSvg(figure: Figure): string;
/**
 * Converts a figure to a PNG file. Needs a `document`.
 *
 * @param figure from {@link mapFigure}, {@link linesFigure} or {@link imageFigure}
 * @param density pixels per unit; default 2
 * @throws {Error} if the browser cannot create the picture
 *
 * @example
 * ```ts
 * import { figureToPng, mapFigure } from 'attn/element';
 *
 * const image = document.createElement('img');
 * const blob = await figureToPng(mapFigure({ tokens: ['a'], weights: [1] }));
 * image.src = URL.createObjectURL(blob);
 * console.log(blob.type); // image/png
 * ```
 */
export function figureToPng(figure: Figure, density?: number): Promise<Blob>;
/**
 * Paints a figure on a canvas, one unit per pixel of the context's current scale.
 *
 * @param figure from {@link mapFigure}, {@link linesFigure} or {@link imageFigure}
 * @param context of the canvas
 *
 * @example
 * ```ts
 * import { mapFigure, paintFigure } from 'attn/element';
 *
 * const figure = mapFigure({ tokens: ['a'], weights: [1] });
 * const canvas = document.createElement('canvas');
 * [canvas.width, canvas.height] = [figure.width, figure.height];
 * const context = canvas.getContext('2d')!;
 * paintFigure(figure, context);
 * console.log(...context.getImageData(0, 0, 1, 1).data); // 255 255 255 255
 * ```
 */
export function paintFigure(figure: Figure, context: CanvasRenderingContext2D): void;
/**
 * Returns the viridis colour of a level.
 *
 * @param level from 0 to 1; other numbers are clamped, NaN counts as 0
 * @returns `#rrggbb`
 *
 * @example
 * ```ts
 * import { viridis } from 'attn/element';
 *
 * console.log(viridis(0), viridis(1)); // #440154 #fde725
 * ```
 */
export function viridis(level: number): string;
/**
 * Writes the viridis colour of a level into RGBA data.
 *
 * @param rgba such as the data of an ImageData
 * @param pixel index of the pixel
 * @param level see {@link viridis}
 *
 * @example
 * ```ts
 * import { writeViridis } from 'attn/element';
 *
 * const rgba = new Uint8ClampedArray(4);
 * writeViridis(rgba, 0, 1);
 * console.log(...rgba); // 253 231 37 255
 * ```
 */
export function writeViridis(rgba: Uint8ClampedArray, pixel: number, level: number): void;

/**
 * The element `<attention-map>`. Attributes: `tokens`, `keys` and `weights` as JSON, `caption`, `text`, `note`, `scale`
 * and `threshold`.
 *
 * It fills the width of its container and is light or dark depending on the colour of the surrounding text. The pointer
 * and the arrow keys select a cell, show its weight and dispatch `attention-cell` with the detail
 * `{ row, column, weight }`.
 *
 * @example
 * ```ts
 * import { defineAttentionMap } from 'attn/element';
 *
 * defineAttentionMap();
 * const map = document.createElement('attention-map');
 * Object.assign(map, { tokens: ['a', 'b'], weights: [[0.9, 0.1], [0.4, 0.6]], caption: 'Layer 1, head 2' });
 * document.body.append(map);
 * console.log(map.toSvg().includes('Layer 1, head 2')); // true
 * ```
 */
export class AttentionMap extends HTMLElement {
  /** Labels of the queries (rows). */
  tokens: readonly string[];
  /** Labels of the keys (columns). Default `tokens`. */
  keys: readonly string[] | undefined;
  weights: Weights;
  /** Title above the map. */
  caption: string;
  /** See {@link FigureOptions.text}. */
  text: string;
  /** See {@link FigureOptions.note}. */
  note: string;
  /** See {@link FigureOptions.scale}. */
  scale: 'head' | 'row';
  /** See {@link FigureOptions.threshold}. */
  threshold: number;
  /** Options without an attribute, such as `levels`, `legend` and the axis titles. */
  options: Partial<FigureOptions>;
  /** The selected cell, or `undefined`. */
  readonly cell: { readonly row: number; readonly column: number } | undefined;
  /**
   * Returns the map as the text of an SVG file with the light theme.
   *
   * @throws {Error} if an attribute is not JSON, or the weights do not fit the tokens
   *
   * @example
   * ```ts
   * import { defineAttentionMap } from 'attn/element';
   *
   * defineAttentionMap();
   * const map = document.createElement('attention-map');
   * Object.assign(map, { tokens: ['a', 'b'], weights: [[0.9, 0.1], [0.4, 0.6]] });
   * console.log(map.toSvg().startsWith('<svg')); // true
   * ```
   */
  toSvg(): string;
  /**
   * Returns the map as a PNG file with the light theme.
   *
   * @param density pixels per unit; default 2
   * @throws {Error} if an attribute is not JSON, or the weights do not fit the tokens
   *
   * @example
   * ```ts
   * import { defineAttentionMap } from 'attn/element';
   *
   * defineAttentionMap();
   * const map = document.createElement('attention-map');
   * Object.assign(map, { tokens: ['a', 'b'], weights: [[0.9, 0.1], [0.4, 0.6]] });
   * console.log((await map.toPng()).type); // image/png
   * ```
   */
  toPng(density?: number): Promise<Blob>;
}

/**
 * Registers the element. If the name is already registered, nothing changes.
 *
 * @param name default `attention-map`
 * @returns the class of the element
 *
 * @example
 * ```ts
 * import { defineAttentionMap } from 'attn/element';
 *
 * defineAttentionMap('weight-map');
 * console.log('toSvg' in document.createElement('weight-map')); // true
 * ```
 */
export function defineAttentionMap(name?: string): typeof AttentionMap;

/** Attributes of `<attention-map>` in JSX: text for an attribute, or the value of the property. */
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

/**
 * The element `<attention-image>`: attention weights of an image model over the image. Attributes: `src`, an address of
 * an image; `crop`, `grid`, `weights`, `query` and `head` as JSON; `caption`, `text` and `note`.
 *
 * The pointer and the arrow keys select a patch, show its weight and dispatch `attention-cell` with the detail
 * `{ row, column, weight }`. If the weights are those of all tokens, a click or Enter shows those of that patch, and a
 * second one or Escape those of [CLS]; each dispatches `attention-query` with the detail `{ query }`. `load` and `error`
 * tell that the image has been read, or why not.
 *
 * @example
 * ```ts
 * import { defineAttentionImage } from 'attn/element';
 *
 * // Of a model: const { pixelValues, grid, crops } = await model.preprocess(image), and weights = attentions.at(-1) of
 * // model.forward({ pixelValues }, { outputAttentions: true }); then assign crop = crops[0] as well.
 * const [image, grid] = [new ImageData(40, 30), [2, 2] as const];
 * const weights = { data: new Float32Array(5 * 5).fill(0.2), dims: [1, 1, 5, 5] };
 *
 * defineAttentionImage();
 * const map = document.createElement('attention-image');
 * Object.assign(map, { image, grid, weights, head: 0, caption: 'Layer 2, head 1' });
 * document.body.append(map);
 * await map.toPng();
 * console.log(map.toSvg().includes('Layer 2, head 1')); // true
 * ```
 */
export class AttentionImage extends HTMLElement {
  /** Address of the image, if `image` is `undefined`. Another site must allow its use (CORS). */
  src: string;
  /** The image, or a `Blob` or `File` with it. Assign a canvas or video again to show its new pixels. */
  image: DrawnImage | Blob | undefined;
  /** See {@link ImageFigureOptions.crop}; `crops[0]` of the inputs. */
  crop: ImageFigureOptions['crop'];
  /** Rows and columns of patches; `grid` of the inputs. */
  grid: readonly [rows: number, columns: number];
  /**
   * Weights of the patches (rows,columns), or those of all tokens (L,L) with the patches at the end. One more size before
   * these is that of the heads, so that a layer of `attentions` fits, (1,H,L,L).
   */
  weights: Weights;
  /** Index of the token that looks at the others. Default 0, which is [CLS]. */
  query: number;
  /** Index of the head. Default `undefined`, the mean of all heads. */
  head: number | undefined;
  /** Title above the image. */
  caption: string;
  /** See {@link ImageFigureOptions.text}. */
  text: string;
  /** See {@link ImageFigureOptions.note}. */
  note: string;
  /** Options without an attribute, such as `opacity` and `legend`. */
  options: Partial<ImageFigureOptions>;
  /** The selected patch, or `undefined`. */
  readonly cell: { readonly row: number; readonly column: number } | undefined;
  /**
   * Returns the picture as the text of an SVG file with the light theme.
   *
   * @throws {Error} if there is no image yet, an attribute is not JSON, or the weights do not fit the grid
   *
   * @example
   * ```ts
   * import { defineAttentionImage } from 'attn/element';
   *
   * defineAttentionImage();
   * const map = document.createElement('attention-image');
   * Object.assign(map, { image: new ImageData(8, 8), grid: [2, 2], weights: [[0.1, 0.2], [0.3, 0.4]] });
   * console.log(map.toSvg().startsWith('<svg')); // true
   * ```
   */
  toSvg(): string;
  /**
   * Returns the picture as a PNG file with the light theme, once the image has been read.
   *
   * @param density pixels per unit; default 2
   * @throws {Error} if there is no image, an attribute is not JSON, or the weights do not fit the grid
   *
   * @example
   * ```ts
   * import { defineAttentionImage } from 'attn/element';
   *
   * defineAttentionImage();
   * const map = document.createElement('attention-image');
   * Object.assign(map, { image: new ImageData(8, 8), grid: [2, 2], weights: [[0.1, 0.2], [0.3, 0.4]] });
   * console.log((await map.toPng()).type); // image/png
   * ```
   */
  toPng(density?: number): Promise<Blob>;
}

/**
 * Registers the element. If the name is already registered, nothing changes.
 *
 * @param name default `attention-image`
 * @returns the class of the element
 *
 * @example
 * ```ts
 * import { defineAttentionImage } from 'attn/element';
 *
 * defineAttentionImage('patch-map');
 * console.log('toSvg' in document.createElement('patch-map')); // true
 * ```
 */
export function defineAttentionImage(name?: string): typeof AttentionImage;

/** Attributes of `<attention-image>` in JSX: text for an attribute, or the value of the property. */
export interface AttentionImageAttributes {
  src?: string | undefined;
  image?: DrawnImage | Blob | undefined;
  crop?: string | ImageFigureOptions['crop'];
  grid?: string | readonly [rows: number, columns: number] | undefined;
  weights?: string | Weights | undefined;
  query?: string | number | undefined;
  head?: string | number | undefined;
  caption?: string | undefined;
  text?: string | undefined;
  note?: string | undefined;
  options?: Partial<ImageFigureOptions> | undefined;
  'onattention-cell'?: ((event: HTMLElementEventMap['attention-cell']) => void) | undefined;
  'onattention-query'?: ((event: HTMLElementEventMap['attention-query']) => void) | undefined;
  'on:attention-cell'?: ((event: HTMLElementEventMap['attention-cell']) => void) | undefined;
  'on:attention-query'?: ((event: HTMLElementEventMap['attention-query']) => void) | undefined;
}

// JSX of each framework. If its module is missing, TypeScript reports an error, hence @ts-ignore.
/* eslint-disable @typescript-eslint/ban-ts-comment, @typescript-eslint/no-redundant-type-constituents */
// @ts-ignore
declare module 'react' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & DetailedHTMLProps<HTMLAttributes<AttentionMap>, AttentionMap>;
      // @ts-ignore
      'attention-image': AttentionImageAttributes & DetailedHTMLProps<HTMLAttributes<AttentionImage>, AttentionImage>;
    }
  }
}
// @ts-ignore
declare module 'preact' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & import('preact').HTMLAttributes<AttentionMap>;
      // @ts-ignore
      'attention-image': AttentionImageAttributes & import('preact').HTMLAttributes<AttentionImage>;
    }
  }
}
// @ts-ignore
declare module 'solid-js/jsx-runtime' {
  namespace JSX {
    interface IntrinsicElements {
      // @ts-ignore
      'attention-map': AttentionMapAttributes & HTMLAttributes<AttentionMap>;
      // @ts-ignore
      'attention-image': AttentionImageAttributes & HTMLAttributes<AttentionImage>;
    }
  }
}
/* eslint-enable */

declare global {
  interface HTMLElementTagNameMap {
    'attention-map': AttentionMap;
    'attention-image': AttentionImage;
  }
  interface HTMLElementEventMap {
    'attention-cell': CustomEvent<{ readonly row: number; readonly column: number; readonly weight: number }>;
    'attention-query': CustomEvent<{ readonly query: number }>;
  }
}
