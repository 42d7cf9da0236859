/** Recomputes the attention of one layer with another scale, score function or dropout. */
import type { AttentionOptions, EncoderTrace, Mask, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { mergeHeads } from '../arithmetic/arrays.ts';
import { hasPositionBias, scoreCap, scoreDivisor } from '../model/kind.ts';
import type { LayerChanges } from './changes.ts';

export interface Variant {
  readonly trace: {
    readonly scores: Tensor;
    readonly masked_scores: Tensor;
    readonly probabilities: Tensor;
    readonly weights: Tensor;
    readonly context: Tensor;
  };
  /** (1,L,H·D), before heads are switched off. */
  readonly merged: Tensor;
}

/** Everything that the layer masks, plus its position bias (score - q·k · scale) if it has one. */
function maskOf({ scores, masked_scores: masked }: Required<EncoderTrace>, products: Tensor | undefined, scale: number): Mask {
  const bias = (i: number) => (products ? scores.data[i]! - products.data[i]! * scale : 0);
  return { kind: 'additive', data: Float32Array.from(masked.data, (value, i) => (value === -Infinity ? -Infinity : bias(i))), dims: scores.dims };
}

/** Stands in for the learned weights of Luong's and Bahdanau's functions, which no checkpoint has. */
function unit(width: number): Tensor {
  const data = new Float32Array(width * width);
  for (let i = 0; i < width; ++i) data[i * (width + 1)] = 1;
  return { data, dims: [width, width] };
}

/** The score becomes Σ tanh(q_d + k_d). */
export const additiveUnit = (width: number) => ({
  queryWeight: unit(width),
  keyWeight: unit(width),
  scoreWeight: { data: new Float32Array(width).fill(1), dims: [width] },
});

export async function variantOf(
  attn: Attn,
  own: EncoderTrace,
  { factor, score, dropout, seed }: LayerChanges,
  config: Readonly<Record<string, unknown>>,
): Promise<Variant> {
  const { q, k, v } = own as Required<EncoderTrace>;
  const width = q.dims[3]!;
  const scale = 1 / Math.sqrt(scoreDivisor(config, width));
  const plain = hasPositionBias(config) ? await attn.scaledDotProductAttention(q, k, v, { scale: 1, trace: ['scores'] }) : undefined;
  const mask = maskOf(own as Required<EncoderTrace>, plain?.trace!.scores, scale);
  const options: AttentionOptions = {
    mask,
    // A padding query may have no key in its window; its output is unused.
    fullyMasked: 'uniform',
    softcap: scoreCap(config),
    trace: ['scores', 'masked_scores', 'probabilities', 'weights', 'context'],
    ...(dropout > 0 && { dropout, seed }),
  };
  const { trace } = await {
    scaled_dot: () => attn.scaledDotProductAttention(q, k, v, { ...options, scale: factor * scale }),
    dot: () => attn.scaledDotProductAttention(q, k, v, { ...options, scale: factor }),
    general: () => attn.generalAttention(q, k, v, { weight: unit(width) }, { ...options, scale: factor }),
    additive: () => attn.additiveAttention(q, k, v, additiveUnit(width), { ...options, scale: factor }),
  }[score]();
  const made = trace as Required<typeof trace> & Variant['trace'];
  const merged = mergeHeads(made.context);
  const { scores, masked_scores, probabilities, weights, context } = made;
  return { trace: { scores, masked_scores, probabilities, weights, context }, merged };
}
