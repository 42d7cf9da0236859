/** The logit lens: the model's last norm and head, applied to every hidden state of the query. */
import type { Tensor } from 'attn';
import { gainFromOne, hasRmsNorm, normEpsilon } from '../model/kind.ts';
import { isDecoder, type LoadedModel } from '../model/loaded.ts';
import { backgroundValue } from './background.ts';
import { largestWords, query, withBlank, type Guess } from './guess.ts';
import { engine } from './model.ts';
import { run, withModel, type Run } from './run.ts';
import { blanksOf } from './strongest.ts';

export interface LayerGuesses {
  readonly run: Run;
  readonly query: number;
  /** `word`: they are for a blank in place of the word. `next`: for the word after it. */
  readonly kind: 'blank' | 'word' | 'next';
  /** Before the first layer, then after each. */
  readonly rows: readonly (readonly Guess[])[];
}

const most = 3;

export const hasGuesses = (of: LoadedModel): boolean => of.task === 'fill-mask' || isDecoder(of);

/** Its name in the families that have one. */
const isLastNorm = /^(?:(?:transformer|model|gpt_neox)\.)?(?:ln_f|norm|final_norm|final_layer_norm)\.weight$/;

/** Applies the last norm of a pre-norm model to the rows (N,E); those of other models stay as they are. */
export async function lastNorm({ text, config, shapes }: LoadedModel, x: Tensor): Promise<Tensor> {
  const name = [...shapes.keys()].find((each) => isLastNorm.test(each));
  const attn = engine.value;
  if (name === undefined || !attn || x.data.length === 0) return x;
  const weight = await text.getParameter(name);
  if (hasRmsNorm(config)) {
    const gain = { data: weight.data.map((value) => value + gainFromOne(config)), dims: weight.dims };
    return attn.rmsNorm(x, gain, normEpsilon(config));
  }
  const bias = name.replace(/weight$/, 'bias');
  return attn.layerNorm(x, weight, shapes.has(bias) ? await text.getParameter(bias) : undefined, normEpsilon(config));
}

async function guessesOf(of: Run, token: number): Promise<LayerGuesses> {
  const { model, inputs, options } = of;
  const kind = isDecoder(model) ? 'next' : blanksOf(of).includes(token) ? 'blank' : 'word';
  let { hiddenStates } = of;
  if (kind === 'word') {
    const asked = { ...options, outputAttentions: false, outputHiddenStates: true, outputLogits: false };
    hiddenStates = (await model.text.forward(await withBlank(model, inputs, token), asked)).hiddenStates!;
  }
  const [count, width] = [hiddenStates.length, model.hiddenSize];
  const data = new Float32Array(count * width);
  hiddenStates.forEach((state, i) => data.set(state.data.subarray(token * width, (token + 1) * width), i * width));
  // The last hidden state is after the norm.
  const normed = await lastNorm(model, { data: data.slice(0, (count - 1) * width), dims: [count - 1, width] });
  data.set(normed.data);
  const logits = await model.text.unembed({ data, dims: [1, count, width] });
  const rows = await Promise.all(Array.from({ length: count }, (_, row) => largestWords(model, logits, row, most)));
  return { run: of, query: token, kind, rows };
}

export const layerGuesses = backgroundValue<LayerGuesses>(() => {
  const [of, token] = [run.value, query.value];
  if (!of || !hasGuesses(of.model) || !of.encoding.offsets[0]![token]) return undefined;
  return () => withModel(() => guessesOf(of, token));
});
