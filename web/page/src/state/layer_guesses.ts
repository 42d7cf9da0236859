/** The guess after each layer: the model's head applied to every hidden state of the query (the logit lens). */
import type { LoadedModel } from '../model/loaded.ts';
import { backgroundValue } from './background.ts';
import { largestWords, query, withBlank, type Guess } from './guess.ts';
import { run, withModel, type Run } from './run.ts';
import { blanksOf } from './strongest.ts';

export interface LayerGuesses {
  readonly run: Run;
  /** Index of the token. */
  readonly query: number;
  /** Otherwise the guesses are for a blank in place of the word. */
  readonly isBlank: boolean;
  /** Before the first layer, then after each. */
  readonly rows: readonly (readonly Guess[])[];
}

const most = 3;

/** The head of a pre-norm model needs its last norm first. */
export const hasGuesses = ({ task, shapes }: LoadedModel): boolean =>
  task === 'fill-mask' && ![...shapes.keys()].some((name) => name.endsWith('final_norm.weight'));

async function guessesOf(of: Run, token: number): Promise<LayerGuesses> {
  const { model, inputs, options } = of;
  const isBlank = blanksOf(of).includes(token);
  let { hiddenStates } = of;
  if (!isBlank) {
    const asked = { ...options, outputAttentions: false, outputHiddenStates: true, outputLogits: false };
    hiddenStates = (await model.text.forward(await withBlank(model, inputs, token), asked)).hiddenStates!;
  }
  const [count, width] = [hiddenStates.length, model.hiddenSize];
  const data = new Float32Array(count * width);
  hiddenStates.forEach((state, i) => data.set(state.data.subarray(token * width, (token + 1) * width), i * width));
  const logits = await model.text.unembed({ data, dims: [1, count, width] });
  const rows = await Promise.all(Array.from({ length: count }, (_, row) => largestWords(model, logits, row, most)));
  return { run: of, query: token, isBlank, rows };
}

export const layerGuesses = backgroundValue<LayerGuesses>(() => {
  const [of, token] = [run.value, query.value];
  if (!of || !hasGuesses(of.model) || !of.encoding.offsets[0]![token]) return undefined;
  return () => withModel(() => guessesOf(of, token));
});
