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
  /** (L,L): scores before scale and masks. */
  readonly products: Tensor;
}

export const walk = signal<Walk | undefined>(undefined);
export const walkFailure = signal<string | undefined>(undefined);

/** (1,H,L,W) -> (L,W). */
export function ofHead({ data, dims }: Tensor, head: number): Tensor {
  const size = product(dims.slice(2));
  return { data: data.subarray(head * size, (head + 1) * size), dims: dims.slice(2) };
}

async function productsOf(attn: Attn, { trace }: LayerTrace, head: number, score: LayerChanges['score']): Promise<Tensor> {
  const [q, k, v] = [ofHead(trace.q, head), ofHead(trace.k, head), ofHead(trace.v, head)];
  // q kᵀ: linear transposes its second argument. "general" has the unit matrix and gives the same.
  if (score !== 'additive') return attn.linear(q, k);
  return (await attn.additiveAttention(q, k, v, additiveUnit(q.dims[1]!), { scale: 1, trace: ['scores'] })).trace!.scores!;
}

export function followWalk(): () => void {
  const inTurn = newestOnly();
  return effect(() => {
    const [attn, of, { head: wanted }] = [engine.value, layerTrace.value, view.value];
    if (!attn || !of) return;
    const head = Math.min(wanted, of.run.model.heads - 1);
    const job = async () => {
      const old = walk.value;
      if (old?.run === of.run && old.layer === of.layer && old.head === head && old.parameters === of.parameters) return;
      try {
        const { change } = of.run.view;
        walk.value = { ...of, head, products: await productsOf(attn, of, head, change?.layer === of.layer ? change.score : 'scaled_dot') };
        walkFailure.value = undefined;
      } catch (error) {
        // A disposed model may fail; its successor runs next.
        if (layerTrace.value === of) walkFailure.value = explain(error);
      }
    };
    untracked(() => void inTurn(job));
  });
}

/** Largest difference from the unchanged model. */
export interface Reach {
  readonly place: string;
  /** 0-based; undefined after the last layer. */
  readonly layer: number | undefined;
  readonly difference: number;
}

/** Undefined without changes, or until their numbers arrive. */
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
