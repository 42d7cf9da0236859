/** Sentences to begin with. Each opens on its own head and cell, found by tools/page/find_examples.mjs. */
import { computed } from '@preact/signals';
import found from './examples.json';
import { noChanges } from './changes.ts';
import { headInFocus, layerInFocus } from './shown.ts';
import { initialView, update, view } from './view.ts';

export interface Example {
  /** What it is about; those to break are called by their text. */
  readonly what?: string;
  readonly text: string;
  readonly pair?: string;
  readonly layer: number;
  readonly head: number;
  readonly row: number;
  readonly column: number;
  /** The classifier is right, but no longer when this head is off. */
  readonly breaks: boolean;
}

export const examples: readonly Example[] = found;

/** The one whose text is in the fields; -1: the text is the visitor's own. */
export const exampleInView = computed(() => examples.findIndex(({ text, pair }) => text === view.value.text && pair === view.value.pair));

/** The same, as long as its head is in focus. */
export const exampleInFocus = computed(() => {
  const example = examples[exampleInView.value];
  return example && example.layer === layerInFocus.value && example.head === headInFocus.value ? example : undefined;
});

/** The model as it was published, looking at what the example is about. */
export function openExample({ text, pair, layer, head, row, column }: Example): void {
  const { locked, special, mergeWords, part, overlay } = initialView;
  update({ text, pair, layer, head, cell: { row, column }, ...noChanges, locked, special, mergeWords, part, overlay });
}
