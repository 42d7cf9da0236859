/** The head in focus as displayed, for export. */
import type { Look } from '../draw/heatmap.ts';
import type { Run } from '../state/run.ts';
import { headInFocus, layerInFocus, scaleInUse, shown, type Shown } from '../state/map_view.ts';
import { toHash } from '../state/hash.ts';
import { initialView, type View } from '../state/view.ts';

export interface Selection {
  readonly title: string;
  readonly sentence: string;
  readonly notes: readonly string[];
  readonly name: string;
  readonly shown: Shown;
  readonly look: Look;
  readonly facts: Readonly<Record<string, unknown>>;
}

const changesOf = ({ causal, padding, drawn, off, weights, change }: View) =>
  Object.fromEntries(new URLSearchParams(toHash({ ...initialView, causal, padding, drawn, off, weights, change })));

function notesOf({ special, threshold, mergeWords }: View, shown: Shown, isChanged: boolean): readonly string[] {
  return [
    special !== 'show' && 'Special tokens are hidden.',
    special === 'renormalise' && 'Each row is divided by its remaining sum.',
    mergeWords && 'Sub-words are merged.',
    threshold > 0 && `Weights below ${threshold} are not drawn.`,
    shown.blocked && 'A stroke marks a masked key.',
    isChanged && 'The model was changed.',
  ].filter((each) => typeof each === 'string');
}

export function selectionOf({ model, view: ran, tokens }: Run, view: View): Selection | undefined {
  if (!shown.value) return undefined;
  const [layer, head] = [layerInFocus.value + 1, headInFocus.value + 1];
  const { special, mergeWords, threshold } = view;
  return {
    title: `${model.name}, layer ${layer}, head ${head}`,
    sentence: [ran.text, ran.pair].filter(Boolean).join(' / '),
    notes: notesOf(view, shown.value, Object.keys(changesOf(ran)).length > 0),
    name: `attention-${model.name.replace(/[^\w.-]+/g, '-')}-layer-${layer}-head-${head}`,
    shown: shown.value,
    look: { threshold, scaleBy: scaleInUse.value },
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
