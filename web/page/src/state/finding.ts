import { computed } from '@preact/signals';
import { hasChanges, type ModelChanges } from './changes.ts';
import { backgroundValue, shownModel } from './background.ts';
import { exampleInFocus, type Example } from './examples.ts';
import { argmax } from '../arithmetic/arrays.ts';
import { capitalized, headName } from '../formats/names.ts';
import { headMaskOf, type LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { answersOf } from './pooling.ts';
import { run, withModel, type LabelScore } from './run.ts';
import { headWeights } from './map_view.ts';
import { initialView, view } from './view.ts';

export interface Finding {
  readonly example: Example;
  readonly query: string;
  readonly key: string;
  readonly weight: number;
  readonly isMostOfHeads: boolean;
  readonly isMostOfRow: boolean;
  readonly isOff: boolean;
  /** With the head on, with it off. */
  readonly answers: readonly [LabelScore, LabelScore] | undefined;
}

/** No changes except, perhaps, the example's head switched off. */
const isPlain = (of: ModelChanges, head: number): boolean => !hasChanges({ ...of, off: [] }) && of.off.every((each) => each === head);

/** Only for the built-in model. */
const example = computed(() => {
  const [found, of] = [exampleInFocus.value, shownModel.value];
  return found && of?.id === initialView.model && isPlain(view.value, found.layer * of.heads + found.head) ? found : undefined;
});

const bestOf = (of: LoadedModel, scores: Float32Array): LabelScore => {
  const best = argmax(scores);
  return { label: of.labels![best]!, score: scores[best]! };
};

export const brokenAnswers = backgroundValue<{ readonly example: Example; readonly answers: readonly [LabelScore, LabelScore] }>(() => {
  const [found, of, attn] = [example.value, shownModel.value, engine.value];
  if (!found?.breaks || !of || !attn) return undefined;
  return async () => {
    const encoding = await of.text.tokenize(found.text);
    const answer = async (off: readonly number[]) => {
      const { logits } = await withModel(() => of.text.forward(encoding, { headMask: headMaskOf(of, off) }));
      return bestOf(of, (await answersOf(attn, of, logits!)).data);
    };
    return { example: found, answers: [await answer([]), await answer([found.layer * of.heads + found.head])] };
  };
});

export const finding = computed<Finding | undefined>(() => {
  const [found, of] = [example.value, run.value];
  if (!found || !of || of.view.text !== found.text || of.view.pair !== found.pair) return undefined;
  const { layer, head, row, column } = found;
  const length = of.tokens.length;
  if (row >= length || column >= length) return undefined;
  const at = (l: number, h: number, j: number) => headWeights(of, l, h)[row * length + j]!;
  const weight = at(layer, head, column);
  const range = (count: number) => Array.from({ length: count }, (_, i) => i);
  const broken = brokenAnswers.value.value;
  return {
    example: found,
    query: of.tokens[row]!,
    key: of.tokens[column]!,
    weight,
    isMostOfHeads: range(of.model.layers).every((l) => range(of.model.heads).every((h) => at(l, h, column) <= weight)),
    isMostOfRow: range(length).every((j) => at(layer, head, j) <= weight),
    isOff: of.view.off.length > 0,
    answers: broken?.example === found ? broken.answers : undefined,
  };
});

const percent = (share: number) => `${(100 * share).toFixed(1)}\u00a0%`;
const quoted = (token: string) => (token.startsWith('[') ? token : `“${token}”`);

export function findingText({ example: { layer, head, breaks }, query, key, weight, isMostOfHeads, isMostOfRow, isOff, answers }: Finding): string {
  const name = headName(layer, head);
  if (!breaks) {
    const rank = isMostOfHeads ? ', more than in any other head' : isMostOfRow ? ', more than on any other token' : '';
    return `In ${name}, ${quoted(query)} puts ${percent(weight)} of its weight on ${quoted(key)}${rank}.`;
  }
  const carries = `${capitalized(name)}, carries ${quoted(key)} to ${quoted(query)}${query === '[CLS]' ? ', from which the answer is read' : ''}`;
  if (!answers) return `${carries}.`;
  const [on, off] = answers.map(({ label, score }) => `${label}, ${percent(score)}`) as [string, string];
  if (answers[0].label === answers[1].label) return `${carries}. With it the answer is ${on}; without it, ${off}.`;
  if (isOff) return `${capitalized(name)}, is off, and the answer has flipped: ${on} with it; ${off} without it.`;
  return `${carries}. Switch it off and the answer flips: ${on} with it; ${off} without it.`;
}
