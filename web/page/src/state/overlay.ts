/** Several heads in one map: each cell has the colour of the head with the largest weight. */
import { computed } from '@preact/signals';
import { levelOf, scaleFor } from '../draw/scale.ts';
import { run } from './run.ts';
import { gather, headWeights, layerInFocus, shown } from './map_view.ts';
import { toggled } from './changes.ts';
import { update, view } from './view.ts';

export interface Overlay {
  readonly heads: readonly number[];
  /** (P,P) per head. */
  readonly weights: readonly Float32Array[];
  /** (P,P): index in `heads`, and level 0 ... 1. */
  readonly winners: Uint8Array;
  readonly levels: Float32Array;
}

const wanted = computed(() => view.value.overlay);
const threshold = computed(() => view.value.threshold);
const scaleBy = computed(() => view.value.scaleBy);
const special = computed(() => view.value.special);

export const overlay = computed<Overlay | undefined>(() => {
  const [of, now] = [run.value, shown.value];
  const heads = of ? wanted.value.filter((head) => head < of.model.heads) : [];
  if (!of || !now || heads.length === 0) return undefined;
  const weights = heads.map((head) =>
    gather(headWeights(of, layerInFocus.value, head), of.tokens.length, now.places, special.value === 'renormalise'),
  );
  const most = new Float32Array(now.weights.length);
  const winners = new Uint8Array(most.length);
  weights.forEach((own, h) =>
    own.forEach((weight, i) => {
      if (weight > most[i]!) [most[i], winners[i]] = [weight, h];
    }),
  );
  const largest = most.reduce((a, b) => Math.max(a, b), 0);
  const scale = scaleBy.value === 'auto' ? scaleFor(most, largest) : scaleBy.value === 'log' ? 'log' : 'head';
  const levels = most.map((weight, i) => (now.blocked?.[i] || weight < threshold.value ? 0 : levelOf(weight, largest, scale)));
  return { heads, weights, winners, levels };
});

export function toggleOverlay(): void {
  const count = run.peek()?.model.heads ?? 0;
  update({ overlay: view.peek().overlay.length > 0 ? [] : Array.from({ length: count }, (_, i) => i) });
}

export function toggleInOverlay(head: number): void {
  update({ overlay: toggled(view.peek().overlay, head) });
}
