/** What the model makes of the view: computed anew, in the worker, whenever one of the two changes. */
import { hasPositionBias } from '../model/kind.ts';
import { batch, effect, signal, untracked } from '@preact/signals';
import type { EncoderTrace, EncoderTraceName, Encoding, Tensor, TextForwardOptions } from 'attn';
import { cut, longestToken } from '../formats/cut.ts';
import { parameterReader, type LayerParameters } from './layer_parameters.ts';
import { variantOf, type Variant } from './layer_variant.ts';
import { answerFunction, type LoadedModel } from '../model/loaded.ts';
import { engine, failure, model } from './model.ts';
import { codeOf, explain, newestOnly, oneAtATime, status } from './status.ts';
import { changesOf, forwardWith, hasChanges, noChanges, type Edit } from './changes.ts';
import { view, type View } from './view.ts';

export interface LabelScore {
  readonly label: string;
  readonly score: number;
}

export interface Run {
  readonly model: LoadedModel;
  /** What it was computed from. */
  readonly view: View;
  readonly encoding: Encoding;
  readonly tokens: readonly string[];
  /** By layer (1,H,L,L). */
  readonly attentions: readonly Tensor[];
  /** Layers + 1 of (1,L,E). */
  readonly hiddenStates: readonly Tensor[];
  readonly logits: Tensor | undefined;
  /** Of the forward alone, the way to the worker and back included. */
  readonly milliseconds: number;
}

/** Everything inside one layer of the run, with what the visitor has changed. */
export interface LayerTrace {
  readonly run: Run;
  readonly layer: number;
  readonly trace: Required<EncoderTrace>;
}

/** With the weights that the layer has now. */
export type LayerInFocus = LayerTrace & LayerParameters;

export const run = signal<Run | undefined>(undefined);
/** The same text without any change. */
export const baseline = signal<Run | undefined>(undefined);
/** Of the layer in focus; comes a moment after the run. */
export const layerTrace = signal<LayerInFocus | undefined>(undefined);
/** The same layer without any change; only where there is a change. */
export const baselineTrace = signal<LayerTrace | undefined>(undefined);
export const running = signal(false);
/** A run that a visitor may want to cancel. */
export const runsLong = signal(false);
const longMilliseconds = 300;

/** Calls of the model one at a time: for a moment, while the baseline is computed, its weights are not those of the view. */
export const withModel = oneAtATime();

/** Numbers of the checkpoint that were written over, as they were; by model, since each has its own. */
const originals = new WeakMap<LoadedModel, Map<string, Tensor>>();

/** A number of the checkpoint as it was published, where it has been written over. */
export const originalOf = (of: LoadedModel, name: string, index: number): number | undefined => originals.get(of)?.get(name)?.data[index];

/** Writes the edits into the model's weights; weights that are not edited any more get their own numbers back. */
async function applyWeights(of: LoadedModel, edits: readonly Edit[]): Promise<void> {
  const kept = originals.get(of) ?? new Map<string, Tensor>();
  originals.set(of, kept);
  const names = new Set([...kept.keys(), ...edits.map(({ name }) => name)].filter((name) => of.shapes.has(name)));
  if (names.size === 0) return;
  const state = new Map<string, Tensor>();
  for (const name of names) {
    const original = kept.get(name) ?? (await of.text.getParameter(name));
    kept.set(name, original);
    const data = original.data.slice();
    for (const edit of edits) if (edit.name === name && edit.index < data.length) data[edit.index] = edit.value;
    state.set(name, { data, dims: original.dims });
    if (!edits.some((edit) => edit.name === name)) kept.delete(name);
  }
  await of.text.loadStateDict(state, { strict: false });
}

/** The model's own numbers, where some of them were written over. */
export const restoreWeights = (of: LoadedModel): Promise<void> => applyWeights(of, []);

/** What is inside of one layer of a forward with these options, and nothing else of it. */
async function traceLayer(
  of: LoadedModel,
  inputs: Encoding,
  options: TextForwardOptions,
  layer: number,
  names?: readonly EncoderTraceName[],
): Promise<EncoderTrace> {
  const { trace } = await of.text.forward(inputs, {
    ...options,
    outputAttentions: false,
    outputHiddenStates: false,
    outputLogits: false,
    trace: { layers: [layer], ...(names && { names }) },
  });
  return trace!.get(layer)!;
}

interface Computed {
  readonly run: Run;
  readonly inputs: Encoding;
  readonly options: TextForwardOptions;
  readonly variant: Variant | undefined;
}

async function compute(of: LoadedModel, now: View): Promise<Computed> {
  const encoding = await of.text.tokenize(now.pair === undefined ? now.text : [[now.text, now.pair]]);
  const tokens = encoding.tokens[0]!.map((token) => cut(token, longestToken));
  await applyWeights(of, now.weights);
  const plain = { outputAttentions: true, outputHiddenStates: true, outputLogits: of.labels !== undefined };
  const { inputs, options: asked } = forwardWith(now, { inputs: encoding, options: plain }, of);
  let options = asked;
  let variant: Variant | undefined;
  const { change } = now;
  if (change && change.layer < of.layers) {
    const { layer } = change;
    const edits = change.edits.filter(({ name }) => name === 'X');
    if (edits.length > 0) {
      const { hiddenStates } = await of.text.forward(inputs, { ...options, outputAttentions: false });
      const { data, dims } = hiddenStates![layer]!;
      for (const { index, value } of edits) if (index < data.length) data[index] = value;
      options = { ...options, patch: { layer, hiddenState: { data, dims } } };
    }
    if (change.factor !== 1 || change.score !== 'scaled_dot' || change.dropout > 0) {
      const trace = await traceLayer(of, inputs, options, layer, ['q', 'k', 'v', 'scores', 'masked_scores']);
      variant = await variantOf(engine.value!, trace, change, hasPositionBias(of.config));
      options = { ...options, patch: { ...options.patch, layer, merged: variant.merged } };
    }
  }
  const start = performance.now();
  const result = await of.text.forward(inputs, options);
  const milliseconds = performance.now() - start;
  const attentions = [...result.attentions!];
  if (variant) attentions[change!.layer] = variant.trace.weights;
  const made = { model: of, view: now, encoding, tokens, attentions, hiddenStates: result.hiddenStates!, logits: result.logits, milliseconds };
  return { run: made, inputs, options, variant };
}

/** Of a long text each of these is megabytes: what holds the same numbers is kept once. */
function withoutCopies(trace: Required<EncoderTrace>, attention: Tensor): Required<EncoderTrace> {
  const sameAs = (own: Tensor, other: Tensor) =>
    own.data.length === other.data.length && own.data.every((value, i) => value === other.data[i]) ? other : own;
  const weights = sameAs(trace.weights, attention);
  return { ...trace, weights, probabilities: sameAs(trace.probabilities, weights), masked_scores: sameAs(trace.masked_scores, trace.scores) };
}

async function traceOf({ run: of, inputs, options, variant }: Computed, layer: number): Promise<LayerTrace> {
  const own = await traceLayer(of.model, inputs, options, layer);
  const trace = { ...own, ...(of.view.change?.layer === layer ? variant?.trace : undefined) } as Required<EncoderTrace>;
  return { run: of, layer, trace: withoutCopies(trace, of.attentions[layer]!) };
}

/** What of the view a run depends on. */
const keyOf = (of: View) => JSON.stringify([of.text, of.pair, changesOf(of)]);
const unchanged = (of: View): View => ({ ...of, ...noChanges });

/** Counts the visitor's wishes to have the same computed once more. */
const wishes = signal(0);
/** Counts how often the visitor has cancelled what was asked for until then. */
let cancellations = 0;

/** Computes the view anew, also where nothing has changed. */
export const runAgain = (): void => void ++wishes.value;

/** What is shown stays. A forward that the worker is in the middle of is finished there, and thrown away. */
export function cancelRun(): void {
  ++cancellations;
  batch(() => {
    running.value = false;
    runsLong.value = false;
    status.value = { text: 'Cancelled. What you see is what was computed before.' };
  });
}

/** Begins to follow the view and the model. */
export function follow(): void {
  const inTurn = newestOnly();
  const parameters = parameterReader();
  let computed: Computed | undefined;
  let plain: Computed | undefined;
  let key = '';
  let fulfilled = 0;
  effect(() => {
    const of = model.value;
    const now = view.value;
    const wish = wishes.value;
    if (!of) return;
    const before = cancellations;
    const cancelled = () => cancellations !== before;
    const job = () =>
      withModel(async () => {
        if (cancelled()) return;
        running.value = true;
        const timer = setTimeout(() => (runsLong.value = !cancelled()), longMilliseconds);
        try {
          if (!computed || computed.run.model !== of || key !== keyOf(now) || fulfilled !== wish) {
            const base = baseline.value;
            const isPlain = !hasChanges(now);
            if (!isPlain && (base?.model !== of || base.view.text !== now.text || base.view.pair !== now.pair)) {
              const made = await compute(of, unchanged(now));
              if (cancelled()) return;
              plain = made;
              baseline.value = made.run;
            }
            const made = await compute(of, now);
            if (cancelled()) return;
            computed = made;
            key = keyOf(now);
            fulfilled = wish;
            batch(() => {
              if (isPlain) {
                plain = made;
                baseline.value = made.run;
              }
              run.value = made.run;
            });
            const { tokens, milliseconds } = computed.run;
            const text = `Ready: ${of.name}, ${of.layers} × ${of.heads} heads over ${tokens.length} tokens in ${milliseconds.toFixed(1)} ms.`;
            const limit = (await engine.peek()?.info)?.notes.find((note) => note.includes('this build'));
            status.value = { text: limit ? `${text} It uses ${limit}.` : text };
          }
          // What is inside a layer of a long text takes longer than its maps: typing goes first.
          if (computed.run.tokens.length > 128) await new Promise((resolve) => setTimeout(resolve, 200));
          if (cancelled() || model.peek() !== of || key !== keyOf(view.peek()) || now.layer !== view.peek().layer) return;
          const layer = Math.min(now.layer, of.layers - 1);
          if (layerTrace.value?.run !== computed.run || layerTrace.value.layer !== layer)
            layerTrace.value = { ...(await traceOf(computed, layer)), ...(await parameters(of, layer, now.weights)) };
          if (!hasChanges(now)) baselineTrace.value = undefined;
          else if (plain && (baselineTrace.value?.run !== plain.run || baselineTrace.value.layer !== layer)) {
            await applyWeights(of, []);
            baselineTrace.value = await traceOf(plain, layer);
            await applyWeights(of, now.weights);
          }
        } catch (error) {
          // A model that was put away meanwhile is followed by another.
          if (model.value === of && !cancelled()) {
            status.value = { text: `The attention could not be computed. ${explain(error)}`, failed: true };
            if (codeOf(error) === 'ABORTED' || codeOf(error) === 'INTERNAL')
              failure.value = {
                what: 'The module has stopped.',
                cause: explain(error),
                fix: 'Start it again: the text and the view stay.',
                code: codeOf(error),
              };
          }
        } finally {
          clearTimeout(timer);
          batch(() => {
            running.value = false;
            runsLong.value = false;
          });
        }
      });
    // What a job reads before its first await is none of the effect's business.
    untracked(() => void inTurn(job));
  });
}

function labelScores(of: LoadedModel, logits: readonly number[]): readonly number[] {
  const kind = answerFunction(of);
  if (kind === 'identity') return logits;
  if (kind === 'sigmoid') return logits.map((value) => 1 / (1 + Math.exp(-value)));
  const largest = Math.max(...logits);
  const exp = logits.map((value) => Math.exp(value - largest));
  const sum = exp.reduce((a, b) => a + b, 0);
  return exp.map((value) => value / sum);
}

/** What a classifier makes of its logits, by falling score; as TextModel.classify gives them. */
export function answers(of: Run): readonly LabelScore[] {
  const { labels } = of.model;
  if (!of.logits || !labels) return [];
  const scores = labelScores(of.model, Array.from(of.logits.data));
  return labels.map((label, i) => ({ label, score: scores[i]! })).sort((a, b) => b.score - a.score);
}
