/** Everything that the visitor has chosen. It is all in the address (hash.ts); what is computed from it is in run.ts. */
import { computed, signal } from '@preact/signals';
import type { Part } from '../draw/part.ts';
import type { Scale } from '../draw/scale.ts';
import type { DType } from '../model/loaded.ts';
import { firstOf, flag, fraction, oneOf, place, places, property, readWholes, text, type Properties } from './address.ts';
import { hasChanges, kinds, noChanges, ofLayer, unlessNothing, withNewText, type LayerChanges, type ModelChanges } from './changes.ts';

export type HeadOrder = 'index' | 'entropy' | 'kind';
export type SpecialTokens = 'show' | 'hide' | 'renormalise';

export interface View extends ModelChanges {
  readonly text: string;
  /** The second text of a pair; undefined: there is none. */
  readonly pair: string | undefined;
  /** 'sentiment', 'all-MiniLM-L6-v2', or the address of a folder. Dropped files have no address: they are never in here. */
  readonly model: string;
  /** How models are loaded. The classifier in the page is float32 all the same: PyTorch's numbers, with which it is compared, are. */
  readonly dtype: DType;
  /** In focus; from 0. */
  readonly layer: number;
  readonly head: number;
  readonly cell: { readonly row: number; readonly column: number };
  readonly locked: boolean;
  readonly order: HeadOrder;
  readonly special: SpecialTokens;
  /** Smaller weights are not drawn. */
  readonly threshold: number;
  /** 'auto': the page chooses what lets most be seen. */
  readonly scaleBy: Scale | 'auto';
  /** What of the map is on the screen; undefined: all of it. */
  readonly part: Part | undefined;
  /** Heads of the layer in focus that are drawn over each other, each in its colour; none: the head in focus alone. */
  readonly overlay: readonly number[];
  readonly mergeWords: boolean;
  readonly asTable: boolean;
  /** Of the walk through one head; from 0. */
  readonly step: number;
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
      encode: ({ row, column }) => `${row}.${column}`,
      decode: (cell) => {
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
  part: property<Part | undefined>('part', undefined, {
    encode: (part) => (part ? `${part.row}.${part.column}.${part.count}` : ''),
    decode: (part) => {
      const [row = 0, column = 0, count = 0] = readWholes(part);
      return count > 0 ? { row, column, count } : undefined;
    },
  }),
  overlay: property('overlay', [], places),
  mergeWords: property('words', false, flag),
  asTable: property('table', false, flag),
  step: property('step', 0, place),
  ...kinds,
};

export const initialView = firstOf(properties);

export const view = signal<View>(initialView);

export function update(changes: Partial<View>): void {
  view.value = { ...view.value, ...changes };
}

export const setText = (text: string, pair: string | undefined): void => update({ text, pair, locked: false, ...withNewText(view.value) });

/** The changes of the layer in focus. */
export const changeInFocus = computed<LayerChanges>(() => ofLayer(view.value.change, view.value.layer));

/** Changes the layer in focus. */
export const changeLayer = (changes: Partial<Omit<LayerChanges, 'layer'>>): void =>
  update({ change: unlessNothing({ ...changeInFocus.value, ...changes }) });

export const isChanged = computed(() => hasChanges(view.value));

export const undoChanges = (): void => update(noChanges);
