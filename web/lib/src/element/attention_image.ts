import type { AttentionImage as Contract, ImageFigureOptions, Weights } from '../element.js';
import { define } from './base.js';
import { type Cell, CellElement, type Drawn } from './cells.js';
import { figureToPng, figureToSvg } from './figure.js';
import { imageFigure } from './image.js';

type Tensor = Exclude<Weights, readonly ArrayLike<number>[]>;
type Drawable = ImageFigureOptions['image'];

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
}

/** Of one query and one head, or of the mean of the heads. */
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
  return { weights, special };
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
  #failure = '';
  #given: Contract['image'] | string = '';
  /** What is drawn of it, once it is there. */
  #picture: Drawable | Error | undefined;

  constructor() {
    super(initials());
  }

  attributeChangedCallback(name: (typeof observed)[number], _: string | null, value: string | null): void {
    const own = this as unknown as Record<string, unknown>;
    try {
      if (inJson.includes(name)) own[name] = value === null ? initials()[name] : JSON.parse(value);
      else own[name] = value ?? '';
      this.#failure = '';
    } catch {
      this.#failure = `its attribute ${name} is no JSON`;
    }
  }

  toSvg(): string {
    return figureToSvg(imageFigure(this.#options().options));
  }

  toPng(density?: number): Promise<Blob> {
    return figureToPng(imageFigure(this.#options().options), density);
  }

  /** Begins to load another image; undefined until it is there. */
  #drawable(): Drawable | undefined {
    const given = this.image ?? this.src;
    if (given !== this.#given) {
      this.#given = given;
      this.#picture = undefined;
      if (given) this.#load(given);
    }
    if (this.#picture instanceof Error) throw this.#picture;
    return this.#picture;
  }

  #load(given: NonNullable<Contract['image']> | string): void {
    const end = (picture: Drawable | Error) => {
      if (this.#given !== given) return;
      this.#picture = picture;
      this.later();
    };
    if (given instanceof Blob) {
      createImageBitmap(given, { premultiplyAlpha: 'none', colorSpaceConversion: 'none' }).then(end, () =>
        end(new Error('the image cannot be decoded')),
      );
      return;
    }
    if (typeof given !== 'string' && !(given instanceof HTMLImageElement)) {
      this.#picture = given;
      return;
    }
    const image = typeof given === 'string' ? new Image() : given;
    if (typeof given === 'string') {
      // Pixels of other sites can be read only if they allow it.
      image.crossOrigin = 'anonymous';
      image.src = given;
    }
    image.decode().then(
      () => end(image),
      () => end(new Error(`the image ${image.src} cannot be loaded`)),
    );
  }

  #options(): { readonly options: ImageFigureOptions; readonly special: number | undefined } {
    const { crop, grid, query, head, caption, text, note, options } = this;
    if (this.#failure) throw new Error(`attention-image: ${this.#failure}`);
    const image = this.#drawable();
    if (!image) throw new Error('attention-image: there is no image yet');
    const { weights, special } = readWeights(this.weights, grid, query, head);
    const patch = special === undefined ? -1 : query - special;
    return {
      options: {
        image,
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

  protected override drawn(theme: 'light' | 'dark', width: number): Drawn | undefined {
    if (!this.#drawable() || this.grid[0] * this.grid[1] === 0) return undefined;
    const { options, special } = this.#options();
    const figure = imageFigure({ ...options, theme, background: false, width });
    const [rows, columns] = this.grid;
    const { query } = options;
    const from = query ? `${placeOf(query)} → ` : special === undefined ? '' : `${this.query === 0 ? '[CLS]' : `token ${this.query}`} → `;
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

  /** Shows the weights of this patch; if it shows them, those of [CLS]. */
  protected override use({ row, column }: Cell): void {
    const { special } = this.#options();
    if (special === undefined) return;
    const token = special + row * this.grid[1] + column;
    this.query = token === this.query ? 0 : token;
  }

  protected override leave(): void {
    this.query = 0;
  }
}

const placeOf = ({ row, column }: Cell) => `row ${row + 1}, column ${column + 1}`;

export const defineAttentionImage = (name = 'attention-image'): typeof AttentionImage => define(name, 'attention-image', AttentionImage);
