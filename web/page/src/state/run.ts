/** Runs the model on the view in the worker, whenever either changes. */
import { nameInSentence } from '../model/known.ts';
import { batch, effect, signal, untracked } from '@preact/signals';
import type { EncoderTrace, EncoderTraceName, Encoding, Tensor, TextForwardOptions } from 'attn';
import { repeatHeads } from '../arithmetic/arrays.ts';
import { truncate, longestToken } from '../formats/truncate.ts';
import { noParameters, parameterReader, type LayerParameters } from './layer_parameters.ts';
import type { Variant } from './layer_variant.ts';
import { answerFunction, isDecoder, type LoadedModel } from '../model/loaded.ts';
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
  readonly view: View;
  readonly encoding: Encoding;
  readonly tokens: readonly string[];
  /** By layer (1,H,L,L). */
  readonly attentions: readonly Tensor[];
  /** Layers + 1 of (1,L,E). */
  readonly hiddenStates: readonly Tensor[];
  readonly logits: Tensor | undefined;
  /** What was given to the forward, changes included. */
  readonly inputs: Encoding;
  readonly options: TextForwardOptions;
  /** The forward, with the messages to and from the worker. */
  readonly milliseconds: number;
}

export interface LayerTrace {
  readonly run: Run;
  readonly layer: number;
  readonly trace: Required<EncoderTrace>;
}

export type LayerInFocus = LayerTrace & LayerParameters;

/** Set by the story: the first picture needs no parameters, and does not wait for them. */
export const wantsParameters = signal(false);

export const run = signal<Run | undefined>(undefined);
export const baseline = signal<Run | undefined>(undefined);
export const layerTrace = signal<LayerInFocus | undefined>(undefined);
/** Without changes; undefined if there are none. */
export const baselineTrace = signal<LayerTrace | undefined>(undefined);
export const running = signal(false);
/** Long enough to offer a cancel button. */
export const runsLong = signal(false);
const longMilliseconds = 300;

/** One call at a time: the baseline is computed with other weights than the view's. */
export const withModel = oneAtATime();

/** Published tensors of the edited parameters. */
const originals = new WeakMap<LoadedModel, Map<string, Tensor>>();

export const originalOf = (of: LoadedModel, name: string, index: number): number | undefined => originals.get(of)?.get(name)?.data[index];

/** Parameters without an edit get their published numbers back. */
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
  }
  await of.text.loadStateDict(state, { strict: false });
  // Only now: if loading fails, the next call must still know the published numbers.
  for (const name of names) if (!edits.some((edit) => edit.name === name)) kept.delete(name);
}

export const restoreWeights = (of: LoadedModel): Promise<void> => applyWeights(of, []);

/** With keys and values for every query head. */
export const withAllHeads = ({ k, v, ...rest }: EncoderTrace, heads: number): EncoderTrace => ({
  ...rest,
  ...(k && { k: repeatHeads(k, heads) }),
  ...(v && { v: repeatHeads(v, heads) }),
});

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
  return withAllHeads(trace!.get(layer)!, of.heads);
}

interface Computed {
  readonly run: Run;
  readonly variant: Variant | undefined;
}

/** The page holds the attention weights of every layer and head, and decoders read thousands of tokens. */
export const mostTokens = 512;

async function encode(of: LoadedModel, { text, pair }: View): Promise<Encoding> {
  const { config } = of;
  if (!isDecoder(of)) return of.text.tokenize(pair === undefined ? text : [[text, pair]]);
  const maxLength = Math.min(mostTokens, Number(config['n_positions'] ?? config['max_position_embeddings'] ?? mostTokens));
  const encoding = await of.text.tokenize(text, { maxLength });
  if (encoding.dims[1] !== 0) return encoding;
  // Some decoders have no special tokens: without a text, they continue their end-of-text token.
  const id = Number([config['bos_token_id'] ?? config['eos_token_id'] ?? 0].flat()[0]);
  return {
    inputIds: Int32Array.of(id),
    attentionMask: Uint8Array.of(1),
    tokenTypeIds: new Int32Array(1),
    dims: [1, 1],
    truncated: [false],
    tokens: [[(await of.text.idToToken(id)) ?? '']],
    offsets: [[null]],
  };
}

async function compute(of: LoadedModel, now: View): Promise<Computed> {
  const encoding = await encode(of, now);
  const tokens = encoding.tokens[0]!.map((token) => truncate(token, longestToken));
  await applyWeights(of, now.weights);
  const plain = { outputAttentions: true, outputHiddenStates: true, outputLogits: of.labels !== undefined };
  const { inputs, options: asked } = forwardWith(now, { inputs: encoding, options: plain }, of);
  let options = asked;
  let variant: Variant | undefined;
  const { change } = now;
  if (change && change.layer < of.layers) {
    const { layer } = change;
    const patch: { layer: number; hiddenState?: Tensor; merged?: Tensor } = { layer };
    const edits = change.edits.filter(({ name }) => name === 'X');
    if (edits.length > 0) {
      const { hiddenStates } = await of.text.forward(inputs, { ...options, outputAttentions: false });
      const { data, dims } = hiddenStates![layer]!;
      for (const { index, value } of edits) if (index < data.length) data[index] = value;
      patch.hiddenState = { data, dims };
      options = { ...options, patch };
    }
    if (change.factor !== 1 || change.score !== 'scaled_dot' || change.dropout > 0) {
      const trace = await traceLayer(of, inputs, options, layer, ['q', 'k', 'v', 'scores', 'masked_scores']);
      const { variantOf } = await import('./layer_variant.ts');
      variant = await variantOf(engine.value!, trace, change, of.config);
      options = { ...options, patch: { ...patch, merged: variant.merged } };
    }
  }
  const start = performance.now();
  const result = await of.text.forward(inputs, options);
  const milliseconds = performance.now() - start;
  const attentions = [...result.attentions!];
  if (variant) attentions[change!.layer] = variant.trace.weights;
  const { logits } = result;
  const run = { model: of, view: now, encoding, tokens, attentions, hiddenStates: result.hiddenStates!, logits, inputs, options, milliseconds };
  return { run, variant };
}

/** Long texts take megabytes: equal tensors are shared. */
function withoutCopies(trace: Required<EncoderTrace>, attention: Tensor): Required<EncoderTrace> {
  const sameAs = (own: Tensor, other: Tensor) =>
    own.data.length === other.data.length && own.data.every((value, i) => value === other.data[i]) ? other : own;
  const weights = sameAs(trace.weights, attention);
  return { ...trace, weights, probabilities: sameAs(trace.probabilities, weights), masked_scores: sameAs(trace.masked_scores, trace.scores) };
}

async function traceOf({ run: of, variant }: Computed, layer: number): Promise<LayerTrace> {
  const own = await traceLayer(of.model, of.inputs, of.options, layer);
  const trace = { ...own, ...(of.view.change?.layer === layer ? variant?.trace : undefined) } as Required<EncoderTrace>;
  return { run: of, layer, trace: withoutCopies(trace, of.attentions[layer]!) };
}

const keyOf = (of: View) => JSON.stringify([of.text, of.pair, changesOf(of)]);
const unchanged = (of: View): View => ({ ...of, ...noChanges });

/** Incremented to force a re-run. */
const rerunRequests = signal(0);
let cancellations = 0;

export const runAgain = (): void => void ++rerunRequests.value;

/** The worker finishes the forward in progress; its result is dropped. */
export function cancelRun(): void {
  ++cancellations;
  batch(() => {
    running.value = false;
    runsLong.value = false;
    status.value = { text: 'Cancelled. You see the results from before.' };
  });
}

/** After a trap, or without its worker, the module answers no more calls. */
export function reportIfStopped(error: unknown): void {
  const code = codeOf(error);
  if (code !== 'ABORTED' && code !== 'INTERNAL') return;
  const words = { cause: explain(error), fix: 'Start it again. The text and the view stay.' };
  failure.value = { what: 'The module has stopped.', words, code };
}

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
    const wish = rerunRequests.value;
    const parametersOf = wantsParameters.value ? parameters : async () => noParameters;
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
            status.value = {
              text: `Ready: ${nameInSentence(of)}, ${of.layers} × ${of.heads} heads over ${tokens.length} tokens in ${milliseconds.toFixed(1)} ms.`,
            };
          }
          // Typing has priority over the traces of long texts.
          if (computed.run.tokens.length > 128) await new Promise((resolve) => setTimeout(resolve, 200));
          if (cancelled() || model.peek() !== of || key !== keyOf(view.peek()) || now.layer !== view.peek().layer) return;
          const layer = Math.min(now.layer, of.layers - 1);
          const old = layerTrace.value;
          const isOld = old?.run === computed.run && old.layer === layer;
          if (!isOld) layerTrace.value = { ...(await traceOf(computed, layer)), ...(await parametersOf(of, layer, now.weights)) };
          else if (old.parameters === noParameters.parameters) layerTrace.value = { ...old, ...(await parametersOf(of, layer, now.weights)) };
          if (!hasChanges(now)) baselineTrace.value = undefined;
          else if (plain && (baselineTrace.value?.run !== plain.run || baselineTrace.value.layer !== layer)) {
            await restoreWeights(of);
            try {
              baselineTrace.value = await traceOf(plain, layer);
            } finally {
              await applyWeights(of, now.weights);
            }
          }
        } catch (error) {
          // A disposed model may fail, and one whose module is being restarted; its successor runs next.
          if (model.value === of && engine.peek() && !cancelled()) {
            status.value = { text: `Attention could not be computed. ${explain(error)}`, failed: true };
            reportIfStopped(error);
          }
        } finally {
          clearTimeout(timer);
          batch(() => {
            running.value = false;
            runsLong.value = false;
          });
        }
      });
    // Signals read by the job must not become dependencies.
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

export const hasWords = ({ encoding }: Pick<Run, 'encoding'>): boolean => encoding.offsets[0]!.some((each) => each !== null);

export function answers(of: Run): readonly LabelScore[] {
  const { labels } = of.model;
  if (!of.logits || !labels) return [];
  const scores = labelScores(of.model, Array.from(of.logits.data));
  return labels.map((label, i) => ({ label, score: scores[i]! })).sort((a, b) => b.score - a.score);
}
