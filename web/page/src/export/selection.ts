/** What is exported: the head in focus, exactly as it is shown. */
import type { Look } from '../draw/heatmap.ts';
import type { Run } from '../state/run.ts';
import { headInFocus, layerInFocus, shown, type Shown } from '../state/shown.ts';
import { toHash } from '../state/hash.ts';
import { initialView, type View } from '../state/view.ts';

export interface Selection {
  readonly title: string;
  /** Of the file, without its ending. */
  readonly name: string;
  readonly shown: Shown;
  readonly look: Look;
  /** For JSON: where the numbers are from. */
  readonly facts: Readonly<Record<string, unknown>>;
}

/** Changes to the model, as the page's address has them. */
const changesOf = ({ causal, padding, drawn, off, weights, change }: View) =>
  Object.fromEntries(new URLSearchParams(toHash({ ...initialView, causal, padding, drawn, off, weights, change })));

export function selectionOf({ model, view: ran, tokens }: Run, view: View): Selection | undefined {
  if (!shown.value) return undefined;
  const [layer, head] = [layerInFocus.value + 1, headInFocus.value + 1];
  const { special, mergeWords, threshold, scaleBy } = view;
  return {
    title: `${model.name}, layer ${layer}, head ${head}`,
    name: `attention-${model.name.replace(/[^\w.-]+/g, '-')}-layer-${layer}-head-${head}`,
    shown: shown.value,
    look: { threshold, scaleBy },
    facts: {
      model: model.name,
      layer,
      head,
      text: ran.text,
      ...(ran.pair !== undefined && { pair: ran.pair }),
      tokens,
      special_tokens: special,
      words_merged: mergeWords,
      drawn_from: threshold,
      changes: changesOf(ran),
    },
  };
}
