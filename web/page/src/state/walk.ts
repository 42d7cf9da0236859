/** What the walk through one head shows besides its layer: q·k before the scale, and how far the visitor's changes reach. */
import { computed, effect, signal, untracked } from '@preact/signals';
import type { Tensor } from 'attn';
import { type Attn, encoderTraceNames } from 'attn/worker';
import { product } from '../arithmetic/arrays.ts';
import { largestDifference } from '../arithmetic/differences.ts';
import { additiveUnit } from './layer_variant.ts';
import { engine } from './model.ts';
import { baseline, baselineTrace, layerTrace, run, type LayerInFocus, type LayerTrace } from './run.ts';
import { explain, newestOnly } from './status.ts';
import type { LayerChanges } from './changes.ts';
import { view } from './view.ts';

export interface Walk extends LayerInFocus {
  readonly head: number;
  /** (L,L): the score of each query and key before scale and masks. */
  readonly products: Tensor;
}

export const walk = signal<Walk | undefined>(undefined);
export const walkFailure = signal<string | undefined>(undefined);

/** One head of a tensor (1,H,L,W), as (L,W). */
export function ofHead({ data, dims }: Tensor, head: number): Tensor {
  const size = product(dims.slice(2));
  return { data: data.subarray(head * size, (head + 1) * size), dims: dims.slice(2) };
}

async function productsOf(attn: Attn, { trace }: LayerTrace, head: number, score: LayerChanges['score']): Promise<Tensor> {
  const [q, k, v] = [ofHead(trace.q, head), ofHead(trace.k, head), ofHead(trace.v, head)];
  // linear multiplies by the transpose of its second argument: q kᵀ. With the unit matrix between them "general" is the same.
  if (score !== 'additive') return attn.linear(q, k);
  return (await attn.additiveAttention(q, k, v, additiveUnit(q.dims[1]!), { scale: 1, trace: ['scores'] })).trace!.scores!;
}

/** Begins to follow the trace; returns what ends it. */
export function followWalk(): () => void {
  const inTurn = newestOnly();
  return effect(() => {
    const [attn, of, { head: wanted }] = [engine.value, layerTrace.value, view.value];
    if (!attn || !of) return;
    const head = Math.min(wanted, of.run.model.heads - 1);
    const job = async () => {
      if (walk.value?.run === of.run && walk.value.layer === of.layer && walk.value.head === head) return;
      try {
        const { change } = of.run.view;
        walk.value = { ...of, head, products: await productsOf(attn, of, head, change?.layer === of.layer ? change.score : 'scaled_dot') };
        walkFailure.value = undefined;
      } catch (error) {
        // A model that was put away meanwhile is followed by another.
        if (layerTrace.value === of) walkFailure.value = explain(error);
      }
    };
    untracked(() => void inTurn(job));
  });
}

/** The largest difference to the unchanged model at one place. */
export interface Reach {
  /** A trace of the layer in focus, or what comes out of a layer. */
  readonly place: string;
  /** From 0; undefined for the logits. */
  readonly layer: number | undefined;
  readonly difference: number;
}

/** How far the visitor's changes reach; undefined where there are none, or their numbers are on the way. */
export const reach = computed<readonly Reach[] | undefined>(() => {
  const [now, before, inside, insideBefore] = [run.value, baseline.value, layerTrace.value, baselineTrace.value];
  if (!now || !before || !inside || !insideBefore || inside.run !== now || insideBefore.run !== before || inside.layer !== insideBefore.layer)
    return undefined;
  if (now.tokens.length !== before.tokens.length) return undefined;
  const { layer } = inside;
  const found: Reach[] = [];
  const compare = (place: string, of: number | undefined, a: Tensor | undefined, b: Tensor | undefined) => {
    if (a && b) found.push({ place, layer: of, difference: largestDifference(a.data, b.data) });
  };
  for (let i = 0; i < now.model.layers; ++i) {
    compare('X', i, now.hiddenStates[i], before.hiddenStates[i]);
    if (i === layer) for (const name of encoderTraceNames) compare(name, i, inside.trace[name], insideBefore.trace[name]);
    else compare('weights', i, now.attentions[i], before.attentions[i]);
  }
  compare('last hidden state', undefined, now.hiddenStates.at(-1), before.hiddenStates.at(-1));
  compare('logits', undefined, now.logits, before.logits);
  return found;
});
