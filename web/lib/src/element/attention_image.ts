import type { AttentionImage as Contract, ImageFigureOptions, Weights } from '../element.js';
import { define } from './base.js';
import { type Cell, CellElement, type Drawn } from './cells.js';
import { figureToPng, figureToSvg } from './figure.js';
import { imageFigure, opaque } from './image.js';

type Tensor = Exclude<Weights, readonly ArrayLike<number>[]>;

const observed = ['src', 'crop', 'grid', 'weights', 'query', 'head', 'caption', 'text', 'note'] as const;
const initials = () => ({
  src: '',
  image: undefined,
  crop: undefined,
  grid: [0, 0],
  weights: [],
  query: 0,
  head: undefined,
  caption: '',
  text: '',
  note: '',
  options: {},
});
const inJson: readonly string[] = ['crop', 'grid', 'weights', 'query', 'head'];

function tensorOf(weights: Weights): Tensor {
  if (!Array.isArray(weights)) return weights as Tensor;
  const list = weights as readonly ArrayLike<number>[];
  const columns = list[0]?.length ?? 0;
  if (list.some((row) => row.length !== columns)) throw new Error('the rows of the weights have different lengths');
  return { data: list.flatMap((row) => Array.from(row)), dims: [list.length, columns] };
}

/** Weights of the patches, and the number of tokens before them if every token has weights. */
interface Read {
  readonly weights: ArrayLike<number>;
  readonly special: number | undefined;
  readonly query: number;
}

/** Reads the weights of one query, and of one head or the mean of the heads. */
function readWeights(given: Weights, [rows, columns]: readonly [number, number], query: number, head: number | undefined): Read {
  const { data, dims } = tensorOf(given);
  const [height, width] = [dims.at(-2), dims.at(-1)];
  const patches = rows * columns;
  const outer = dims.slice(0, -2);
  const heads = outer.reduce((product, size) => product * size, 1);
  const shape = `(${dims.join(', ')})`;
  if (height === undefined || width === undefined || data.length !== heads * height * width) throw new Error(`the weights have the shape ${shape}`);
  const isMap = height === rows && width === columns;
  if (!isMap && (height !== width || width < patches))
    throw new Error(
      `the weights have the shape ${shape}, expected a grid of (${rows}, ${columns}), or tokens × tokens with ${patches} patches at the end`,
    );
  if (outer.slice(0, -1).some((size) => size !== 1)) throw new Error(`the weights have the shape ${shape}, expected those of one image`);
  if (head !== undefined && !(Number.isInteger(head) && head >= 0 && head < heads))
    throw new Error(`the head is ${head}, expected 0 to ${heads - 1}`);
  const special = isMap ? undefined : width - patches;
  if (!isMap && !(Number.isInteger(query) && query >= 0 && query < width)) throw new Error(`the query is ${query}, expected 0 to ${width - 1}`);
  const weights = new Float32Array(patches);
  const [first, last] = head === undefined ? [0, heads - 1] : [head, head];
  for (let h = first; h <= last; ++h) {
    const at = h * height * width + (isMap ? 0 : query * width + special!);
    for (let i = 0; i < patches; ++i) weights[i]! += data[at + i]! / (last - first + 1);
  }
  return { weights, special, query };
}

export class AttentionImage extends CellElement implements Contract {
  static readonly observedAttributes: readonly string[] = observed;

  declare src: string;
  declare image: Contract['image'];
  declare crop: ImageFigureOptions['crop'];
  declare grid: readonly [number, number];
  declare weights: Weights;
  declare query: number;
  declare head: number | undefined;
  declare caption: string;
  declare text: string;
  declare note: string;
  declare options: Partial<ImageFigureOptions>;
  /** Attributes that are not JSON. */
  readonly #wrong = new Set<string>();
  /** The drawn image; undefined without one, and until it is there. */
  #picture: HTMLCanvasElement | Error | undefined;
  #loading: Promise<void> | undefined;
  #isLoading = false;
  /** Ends the listeners of the last image. */
  #watch: AbortController | undefined;
  /** Tokens before the patches at the last drawing. */
  #special: number | undefined;
  /** A query that the visitor chose, and the grid that it is of. */
  #chosen = { query: 0, grid: '' };

  constructor() {
    super(initials());
  }

  attributeChangedCallback(name: (typeof observed)[number], _: string | null, value: string | null): void {
    const own = this as unknown as Record<string, unknown>;
    try {
      if (inJson.includes(name)) own[name] = value === null ? initials()[name] : JSON.parse(value);
      else own[name] = value ?? '';
      this.#wrong.delete(name);
    } catch {
      this.#wrong.add(name);
      this.later();
    }
  }

  toSvg(): string {
    return figureToSvg(imageFigure(this.#options().options));
  }

  async toPng(density?: number): Promise<Blob> {
    this.#start();
    await this.#loading;
    return figureToPng(imageFigure(this.#options().options), density);
  }

  protected override changed(name: string): void {
    if (name !== 'image' && name !== 'src') return;
    this.#watch?.abort();
    this.#watch = this.#loading = undefined;
    this.#isLoading = false;
    // The last picture stays until the next one is there.
    if (this.#picture instanceof Error) this.#picture = undefined;
  }

  /** Begins to read the image, once for each assignment. */
  #start(): void {
    const given = this.image || this.src;
    if (!given) this.#picture = undefined;
    if (this.#watch || !given) return;
    this.#watch = new AbortController();
    const { signal } = this.#watch;
    this.#loading = new Promise((resolve) => {
      const end = (read: () => HTMLCanvasElement) => {
        if (signal.aborted) return;
        try {
          this.#picture = read();
        } catch (error) {
          this.#picture = error as Error;
        }
        this.#isLoading = false;
        resolve();
        this.later();
        this.dispatchEvent(new Event(this.#picture instanceof Error ? 'error' : 'load'));
      };
      const failed = (words: string) =>
        end(() => {
          throw new Error(words);
        });
      this.#isLoading = true;
      signal.addEventListener('abort', () => resolve());
      if (given instanceof Blob) {
        createImageBitmap(given, { premultiplyAlpha: 'none', colorSpaceConversion: 'none' }).then(
          (bitmap) => end(() => opaque(bitmap)),
          () => failed('the image cannot be decoded'),
        );
        return;
      }
      if (typeof given !== 'string' && !(given instanceof HTMLImageElement)) return end(() => opaque(given));
      const image = typeof given === 'string' ? new Image() : given;
      // The page may give its own image another address.
      image.addEventListener('load', () => end(() => opaque(image)), { signal });
      image.addEventListener('error', () => failed(`the image ${image.src} cannot be loaded`), { signal });
      if (typeof given === 'string') {
        // Pixels of other sites can be read only if they allow it.
        image.crossOrigin = 'anonymous';
        image.src = given;
      } else if (image.complete && image.naturalWidth > 0) end(() => opaque(image));
    });
  }

  #options(): { readonly options: ImageFigureOptions; readonly special: number | undefined } {
    const { crop, grid, caption, text, note, options } = this;
    for (const wrong of this.#wrong) throw new Error(`attention-image: its attribute ${wrong} is no JSON`);
    this.#start();
    if (this.#picture instanceof Error) throw this.#picture;
    if (!this.#picture) throw new Error('attention-image: there is no image yet');
    // JSX sets '' or null for undefined.
    const head = (this.head as unknown) === '' ? undefined : (this.head ?? undefined);
    const { weights, special, query } = readWeights(this.weights, grid, this.#query, head);
    const patch = special === undefined ? -1 : query - special;
    return {
      options: {
        image: this.#picture,
        ...(crop && { crop }),
        grid,
        weights,
        ...(patch >= 0 && { query: { row: Math.floor(patch / grid[1]), column: patch % grid[1] } }),
        title: caption,
        text,
        note,
        ...options,
      },
      special,
    };
  }

  /** A choice of the visitor is of one grid only. */
  get #query(): number {
    const query = this.query || 0;
    return query === this.#chosen.query && this.#chosen.grid !== this.grid.join() ? 0 : query;
  }

  protected override drawn(theme: 'light' | 'dark', width: number): Drawn | 'loading' | undefined {
    this.#start();
    if (this.#isLoading) return 'loading';
    if (!this.#watch || this.grid[0] * this.grid[1] === 0) return undefined;
    if (this.query !== this.#query) this.query = this.#query;
    const { options, special } = this.#options();
    this.#special = special;
    const figure = imageFigure({ ...options, theme, background: false, width });
    const [rows, columns] = this.grid;
    const { query } = options;
    const token = this.#query;
    const from = query ? `${placeOf(query)} → ` : special === undefined ? '' : `${token === 0 ? '[CLS]' : `token ${token}`} → `;
    const keys = special === undefined ? 'read single weights' : 'read single weights, Enter shows those of a patch, Escape those of [CLS]';
    return {
      figure,
      rows,
      columns,
      first: figure.patches,
      label: `${this.caption || 'Attention over an image'}: ${rows} rows and ${columns} columns of patches. Arrow keys ${keys}.`,
      weightOf: ({ row, column }) => options.weights[row * columns + column]!,
      nameOf: (cell) => from + placeOf(cell),
    };
  }

  #choose(query: number): void {
    this.#chosen = { query, grid: this.grid.join() };
    this.query = query;
    this.dispatchEvent(new CustomEvent('attention-query', { bubbles: true, composed: true, detail: { query } }));
  }

  /** Shows the weights of this patch; if it shows them, those of [CLS]. */
  protected override use({ row, column }: Cell): void {
    if (this.#special === undefined) return;
    const token = this.#special + row * this.grid[1] + column;
    this.#choose(token === this.#query ? 0 : token);
  }

  protected override leave(): boolean {
    if (this.#special === undefined || this.#query === 0) return false;
    this.#choose(0);
    return true;
  }
}

const placeOf = ({ row, column }: Cell) => `row ${row + 1}, column ${column + 1}`;

export const defineAttentionImage = (name = 'attention-image'): typeof AttentionImage => define(name, 'attention-image', AttentionImage);
