/** Example sentences. Each opens on its own head and cell, found by tools/page/find_examples.mjs. */
import { computed } from '@preact/signals';
import found from './examples.json';
import { noChanges } from './changes.ts';
import { headInFocus, layerInFocus } from './map_view.ts';
import { initialView, update, view } from './view.ts';

export interface Example {
  readonly what?: string;
  readonly text: string;
  readonly pair?: string;
  readonly layer: number;
  readonly head: number;
  readonly row: number;
  readonly column: number;
  /** The classifier is right only if this head is on. */
  readonly breaks: boolean;
}

export const examples: readonly Example[] = found;

/** -1: the text is the visitor's own. */
export const exampleInView = computed(() => examples.findIndex(({ text, pair }) => text === view.value.text && pair === view.value.pair));

export const exampleInFocus = computed(() => {
  const example = examples[exampleInView.value];
  return example && example.layer === layerInFocus.value && example.head === headInFocus.value ? example : undefined;
});

export function openExample({ text, pair, layer, head, row, column }: Example): void {
  const { locked, special, mergeWords, part, overlay } = initialView;
  update({ text, pair, layer, head, cell: { row, column }, ...noChanges, locked, special, mergeWords, part, overlay });
}
