/** Everything that the visitor has chosen. It is all in the address (hash.ts); what is computed from it is in run.ts. */
import { computed, signal } from '@preact/signals';
import type { Part } from '../draw/part.ts';
import type { Scale } from '../draw/scale.ts';
import type { DType } from '../model/loaded.ts';

export type HeadOrder = 'index' | 'entropy' | 'kind';
export type SpecialTokens = 'show' | 'hide' | 'renormalise';
export type ScoreFunction = 'scaled_dot' | 'dot' | 'general' | 'additive';

/** One number that was written over another. */
export interface Edit {
  /** 'X' for what goes into the layer, else the name of a parameter in the checkpoint. */
  readonly name: string;
  /** Row-major. */
  readonly index: number;
  readonly value: number;
}

/** What one layer does otherwise than its checkpoint says; the layers after it follow. */
export interface LayerChanges {
  readonly layer: number;
  /** Of the scale that the layer has, 1/√D. */
  readonly factor: number;
  readonly score: ScoreFunction;
  readonly dropout: number;
  readonly seed: number;
  readonly edits: readonly Edit[];
}

export interface View {
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

  // Changes to the whole model: to every layer.
  readonly causal: boolean;
  /** Tokens that nobody may look at, as if they were padding. */
  readonly padding: readonly number[];
  /** Cells of the drawn mask, row · L + column: what is blocked. */
  readonly drawn: readonly number[];
  /** Heads that are switched off, layer · H + head. */
  readonly off: readonly number[];
  /** Numbers of weights that were written over. */
  readonly weights: readonly Edit[];
  readonly change: LayerChanges | undefined;
}

export const initialView: View = {
  text: 'A film with wonderful actors and a terrible script.',
  pair: undefined,
  model: 'sentiment',
  dtype: 'int8',
  layer: 1,
  head: 3,
  cell: { row: 4, column: 8 },
  locked: false,
  order: 'index',
  special: 'show',
  threshold: 0,
  scaleBy: 'auto',
  part: undefined,
  overlay: [],
  mergeWords: false,
  asTable: false,
  step: 0,
  causal: false,
  padding: [],
  drawn: [],
  off: [],
  weights: [],
  change: undefined,
};

export const view = signal<View>(initialView);

export function update(changes: Partial<View>): void {
  view.value = { ...view.value, ...changes };
}

/** New text: what was said of single tokens is about other ones now. */
export function setText(text: string, pair: string | undefined): void {
  const { change } = view.value;
  const kept = change && { ...change, edits: change.edits.filter(({ name }) => name !== 'X') };
  update({ text, pair, locked: false, padding: [], drawn: [], change: kept });
}

const noChange = { factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] } as const;

/** Changes the layer in focus. What another layer had been changed to is let go: one layer at a time. */
export function changeLayer(changes: Partial<Omit<LayerChanges, 'layer'>>): void {
  const { layer, change } = view.value;
  const now = { ...(change?.layer === layer ? change : { ...noChange, layer }), ...changes };
  const nothing = now.factor === 1 && now.score === 'scaled_dot' && now.dropout === 0 && now.edits.length === 0;
  update({ change: nothing ? undefined : now });
}

/** The changes of the layer in focus. */
export const changeInFocus = computed<LayerChanges>(() => {
  const { layer, change } = view.value;
  return change?.layer === layer ? change : { ...noChange, layer };
});

export const isChanged = computed(() => {
  const { causal, padding, drawn, off, weights, change } = view.value;
  return causal || padding.length > 0 || drawn.length > 0 || off.length > 0 || weights.length > 0 || change !== undefined;
});

/** The model as its authors published it. */
export function undoChanges(): void {
  const { causal, padding, drawn, off, weights, change } = initialView;
  update({ causal, padding, drawn, off, weights, change });
}

/** With one edit more; an edit of the same number is replaced. */
export const withEdit = (edits: readonly Edit[], edit: Edit): readonly Edit[] => [
  ...edits.filter(({ name, index }) => name !== edit.name || index !== edit.index),
  edit,
];

/** Without that number if it is there, else with it, in order. */
export const toggled = (list: readonly number[], number: number): readonly number[] =>
  list.includes(number) ? list.filter((each) => each !== number) : [...list, number].sort((a, b) => a - b);
