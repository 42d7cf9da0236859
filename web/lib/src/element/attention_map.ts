import type { AttentionMap as Contract, FigureOptions, Weights } from '../element.js';
import { CellElement, type Drawn } from './cells.js';
import { define } from './base.js';
import { figureToPng, figureToSvg } from './figure.js';
import { mapFigure } from './map.js';

const observed = ['tokens', 'keys', 'weights', 'caption', 'text', 'note', 'scale', 'threshold'] as const;
const initials = () => ({ tokens: [], keys: undefined, weights: [], caption: '', text: '', note: '', scale: 'head', threshold: 0, options: {} });
const inJson: readonly string[] = ['tokens', 'keys', 'weights'];

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

export class AttentionMap extends CellElement implements Contract {
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
  /** Attributes that are not JSON. */
  readonly #wrong = new Set<string>();

  constructor() {
    super(initials());
  }

  attributeChangedCallback(name: (typeof observed)[number], _: string | null, value: string | null): void {
    const own = this as unknown as Record<string, unknown>;
    try {
      if (inJson.includes(name)) own[name] = value === null ? (name === 'keys' ? undefined : []) : JSON.parse(value);
      else own[name] = name === 'threshold' ? Number(value) || 0 : name === 'scale' ? (value === 'row' ? 'row' : 'head') : (value ?? '');
      this.#wrong.delete(name);
    } catch {
      this.#wrong.add(name);
      this.later();
    }
  }

  toSvg(): string {
    return figureToSvg(mapFigure(this.#given()));
  }

  toPng(density?: number): Promise<Blob> {
    return figureToPng(mapFigure(this.#given()), density);
  }

  #given(): FigureOptions {
    const { tokens, caption, text, note, scale, threshold, options } = this;
    // JSX sets '' for undefined.
    const keys = this.keys || undefined;
    for (const wrong of this.#wrong) throw new Error(`attention-map: its attribute ${wrong} is no JSON`);
    const weights = numbersOf(this.weights, tokens.length, (keys ?? tokens).length);
    return { tokens, ...(keys && { keys }), weights, scale, threshold, title: caption, text, note, ...options };
  }

  protected override drawn(theme: 'light' | 'dark', width: number): Drawn | undefined {
    const given = this.#given();
    if (given.tokens.length === 0) return undefined;
    const { tokens, caption } = this;
    const keys = given.keys ?? tokens;
    const figure = mapFigure({ ...given, theme, background: false, width });
    const { left, top, cell: size } = figure.cells;
    return {
      figure,
      rows: tokens.length,
      columns: keys.length,
      first: { left, top, width: size, height: size },
      label: `${caption || 'Attention weights'}: ${tokens.length} rows that look, ${keys.length} columns that are looked at. Arrow keys read single weights.`,
      weightOf: ({ row, column }) => given.weights[row * keys.length + column]!,
      nameOf: ({ row, column }) => `${tokens[row]!} → ${keys[column]!}`,
    };
  }
}

export const defineAttentionMap = (name = 'attention-map'): typeof AttentionMap => define(name, 'attention-map', AttentionMap);
