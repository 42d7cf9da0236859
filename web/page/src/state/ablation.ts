/** Switches each head off in turn (Michel et al. 2019) and records the change of the answer. */
import { signal } from '@preact/signals';
import type { Encoding, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { editedWeights, shownModel } from './background.ts';
import { argmax } from '../arithmetic/arrays.ts';
import { headMaskOf, isDecoder, type LoadedModel } from '../model/loaded.ts';
import { wordOf } from './guess.ts';
import { engine } from './model.ts';
import { answersWithout, type Answers } from './pooling.ts';
import { withModel } from './run.ts';
import { explain } from './status.ts';
import type { Edit } from './changes.ts';
import { view } from './view.ts';

export interface Ablation {
  readonly model: LoadedModel;
  readonly text: string;
  readonly pair: string | undefined;
  readonly weights: readonly Edit[];
  readonly answer: { readonly label: string; readonly probability: number } | undefined;
  /** (layers,H): change of the answer's probability; without an answer, cosine(text vector, original vector) - 1. */
  readonly effects: Tensor;
  readonly flips: readonly number[];
}

export interface Ablating {
  readonly done: number;
  readonly total: number;
  readonly cancel: () => void;
}

export const ablation = signal<Ablation | undefined>(undefined);
export const ablating = signal<Ablating | undefined>(undefined);
export const ablationFailure = signal<string | undefined>(undefined);

/** The token whose row gives a word: the first blank, or the last token of a decoder's text. */
async function placeOfGuess(of: LoadedModel, { inputIds }: Encoding): Promise<number | undefined> {
  if (isDecoder(of)) return inputIds.length - 1;
  const mask = of.task === 'fill-mask' && of.maskToken !== undefined ? await of.text.tokenToId(of.maskToken) : undefined;
  const place = mask === undefined ? -1 : inputIds.indexOf(mask);
  return place < 0 ? undefined : place;
}

type Measured = Pick<Answers, 'probabilities'> & Partial<Answers>;

async function wordsWithout(attn: Attn, of: LoadedModel, encoding: Encoding, place: number, off: readonly number[]): Promise<Measured> {
  const { logits } = await withModel(() => of.text.forward(encoding, { headMask: headMaskOf(of, off), outputLogits: true }));
  const width = logits!.dims[2]!;
  return { probabilities: await attn.softmax({ data: logits!.data.slice(place * width, (place + 1) * width), dims: [1, width] }) };
}

export async function switchEachOff(): Promise<void> {
  const [of, attn, { text, pair }, weights] = [shownModel.value, engine.value, view.value, editedWeights.value];
  if (!of || !attn || ablating.value) return;
  let cancelled = false as boolean; // changed by cancel()
  const total = of.layers * of.heads;
  const report = (done: number) => (ablating.value = { done, total, cancel: () => (cancelled = true) });
  report(0);
  ablationFailure.value = undefined;
  try {
    const encoding = await of.text.tokenize(pair === undefined ? text : [[text, pair]]);
    const place = await placeOfGuess(of, encoding);
    const measure = (off: readonly number[]): Promise<Measured> =>
      place === undefined ? answersWithout(attn, of, encoding, off) : wordsWithout(attn, of, encoding, place, off);
    const all = await measure([]);
    const best = all.probabilities ? argmax(all.probabilities.data) : -1;
    const effect = async ({ vectors, probabilities }: Measured) =>
      probabilities ? probabilities.data[best]! - all.probabilities!.data[best]! : (await attn.linear(vectors!, all.vectors!)).data[0]! - 1;
    const effects = { data: new Float32Array(total), dims: [of.layers, of.heads] };
    const flips: number[] = [];
    for (let head = 0; head < total; ++head) {
      if (cancelled || shownModel.value !== of) return;
      const without = await measure([head]);
      effects.data[head] = await effect(without);
      if (without.probabilities && argmax(without.probabilities.data) !== best) flips.push(head);
      report(head + 1);
    }
    const label = place === undefined ? of.labels?.[best] : await wordOf(of, best);
    const answer = label === undefined ? undefined : { label, probability: all.probabilities!.data[best]! };
    ablation.value = { model: of, text, pair, weights, answer, effects, flips };
  } catch (error) {
    if (shownModel.value === of) ablationFailure.value = explain(error);
  } finally {
    ablating.value = undefined;
  }
}

export const isCurrent = (of: Ablation): boolean =>
  of.model === shownModel.value && of.text === view.value.text && of.pair === view.value.pair && of.weights === editedWeights.value;
