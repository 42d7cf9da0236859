/** The choices of the visitor; hash.ts writes them into the address. */
import { computed, signal } from '@preact/signals';
import type { Part } from '../draw/part.ts';
import type { Scale } from '../draw/scale.ts';
import type { DType } from '../model/loaded.ts';
import { firstOf, flag, fraction, oneOf, place, places, property, readWholes, text, type Properties } from './address.ts';
import { hasChanges, kinds, noChanges, ofLayer, unlessNothing, withNewText, type LayerChanges, type ModelChanges } from './changes.ts';

export type HeadOrder = 'index' | 'entropy' | 'kind';
export type SpecialTokens = 'show' | 'hide' | 'renormalise';

export interface Cell {
  readonly row: number;
  readonly column: number;
}
export const anywhere: Cell = { row: -1, column: -1 };
export const isAnywhere = ({ row }: Cell): boolean => row < 0;

export interface View extends ModelChanges {
  readonly text: string;
  readonly pair: string | undefined;
  /** Never dropped files, which have no address. */
  readonly model: string;
  /** The built-in classifier is always float32, as its PyTorch references. */
  readonly dtype: DType;
  /** 0-based. */
  readonly layer: number;
  readonly head: number;
  /** `anywhere`: the strongest link between two words (focus.ts). */
  readonly cell: Cell;
  readonly locked: boolean;
  readonly order: HeadOrder;
  readonly special: SpecialTokens;
  readonly threshold: number;
  /** 'auto': the scale that shows most. */
  readonly scaleBy: Scale | 'auto';
  /** undefined: all of the map. 'auto': all of it, or of a long text the part around the strongest link. */
  readonly part: Part | 'auto' | undefined;
  /** Heads that share the map; if empty, the head in focus. */
  readonly overlay: readonly number[];
  readonly mergeWords: boolean;
  readonly asTable: boolean;
  /** 0-based step of the walk through one head. */
  readonly step: number;
  /** The tables of its steps are open. */
  readonly showsNumbers: boolean;
}

export const properties: Properties<View> = {
  model: property('model', 'sentiment', text),
  dtype: property<DType>('dtype', 'int8', oneOf('int8', 'float32')),
  text: property('text', 'A film with wonderful actors and a terrible script.', text),
  pair: property<string | undefined>('pair', undefined, { encode: (pair) => pair ?? '', decode: (pair) => pair }),
  layer: property('layer', 1, place),
  head: property('head', 3, place),
  cell: property(
    'cell',
    { row: 4, column: 8 },
    {
      encode: (cell) => (isAnywhere(cell) ? 'auto' : `${cell.row}.${cell.column}`),
      decode: (cell) => {
        if (cell === 'auto') return anywhere;
        const [row = 0, column = 0] = readWholes(cell);
        return { row, column };
      },
    },
  ),
  locked: property('locked', false, flag),
  order: property<HeadOrder>('order', 'index', oneOf('index', 'entropy', 'kind')),
  special: property<SpecialTokens>('special', 'show', oneOf('show', 'hide', 'renormalise')),
  threshold: property('threshold', 0, fraction(1)),
  scaleBy: property<View['scaleBy']>('colours', 'auto', oneOf('auto', 'head', 'row', 'log')),
  part: property<View['part']>('part', undefined, {
    encode: (part) => (typeof part === 'object' ? `${part.row}.${part.column}.${part.count}` : (part ?? '')),
    decode: (part) => {
      if (part === 'auto') return part;
      const [row = 0, column = 0, count = 0] = readWholes(part);
      return count > 0 ? { row, column, count } : undefined;
    },
  }),
  overlay: property('overlay', [], places),
  mergeWords: property('words', false, flag),
  asTable: property('table', false, flag),
  step: property('step', 0, place),
  showsNumbers: property('numbers', false, flag),
  ...kinds,
};

/** Links in circulation rely on these values. */
export const initialView = firstOf(properties);

/** The mask model fills a blank, and the focus is on head 8 of 12, which finds the words that decide. */
export const firstVisit: View = { ...initialView, model: 'masks', text: 'She drank a cup of [MASK].', cell: anywhere };

export const view = signal<View>(initialView);

export function update(changes: Partial<View>): void {
  view.value = { ...view.value, ...changes };
}

/** Above this number of tokens, the cells of a whole map are too small to tell apart. */
export const mostReadable = 48;
/** A word has at least one token, and so has a Chinese character. */
const isLong = (text: string, pair = ''): boolean => (`${text} ${pair}`.match(/\p{sc=Han}|[^\s\p{sc=Han}]+/gu)?.length ?? 0) > mostReadable;

/** A text that becomes long is shown in part; after that, the visitor's zoom counts. */
export function setText(text: string, pair: string | undefined): void {
  const before = view.value;
  let { part } = before;
  if (!isLong(text, pair)) part = part === 'auto' ? undefined : part;
  else if (part === undefined && !isLong(before.text, before.pair)) part = 'auto';
  update({ text, pair, cell: anywhere, locked: false, part, ...withNewText(before) });
}

export const changeInFocus = computed<LayerChanges>(() => ofLayer(view.value.change, view.value.layer));

export const changeLayer = (changes: Partial<Omit<LayerChanges, 'layer'>>): void =>
  update({ change: unlessNothing({ ...changeInFocus.value, ...changes }) });

export const isChanged = computed(() => hasChanges(view.value));

export const undoChanges = (): void => update(noChanges);
