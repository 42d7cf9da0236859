/** embed() and classify() do not support heads that are off. */
import type { Encoding, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { answerFunction, headMaskOf, type LoadedModel } from '../model/loaded.ts';
import { withModel } from './run.ts';

const poolings = ['mean', 'cls', 'max'] as const;
type Pooling = (typeof poolings)[number];

const known = new WeakMap<LoadedModel, Pooling>();

/** The package does not report the pooling, so outputs are compared. */
export async function poolingOf(of: LoadedModel): Promise<Pooling> {
  const probe = 'one two three';
  let found = known.get(of);
  if (!found) {
    const { data } = await withModel(() => of.text.embed(probe, { normalize: false }));
    for (const pooling of poolings) {
      const other = await withModel(() => of.text.embed(probe, { normalize: false, pooling }));
      if (other.data.every((value, i) => value === data[i])) found ??= pooling;
    }
    known.set(of, (found ??= 'mean'));
  }
  return found;
}

/** hidden (B,L,E) -> (B,E), without padding. */
async function pool(attn: Attn, pooling: Pooling, hidden: Tensor, { attentionMask }: Encoding): Promise<Tensor> {
  const [batch, length, width] = hidden.dims as [number, number, number];
  const dims = [batch, width];
  if (pooling === 'mean') {
    // Attention with equal scores is the mean.
    const zeros = (count: number) => ({ data: new Float32Array(batch * count), dims: [batch, count, 1] });
    const keyPaddingMask = { kind: 'attend', data: attentionMask, dims: [batch, length] } as const;
    return { data: (await attn.scaledDotProductAttention(zeros(1), zeros(length), hidden, { keyPaddingMask })).output.data, dims };
  }
  const data = new Float32Array(batch * width).fill(pooling === 'max' ? -Infinity : 0);
  for (let b = 0; b < batch; ++b) {
    for (let l = 0; l < length; ++l) {
      const row = hidden.data.subarray((b * length + l) * width, (b * length + l + 1) * width);
      if (pooling === 'cls' && l === 0) data.set(row, b * width);
      if (pooling === 'max' && attentionMask[b * length + l])
        row.forEach((value, e) => (data[b * width + e] = Math.max(data[b * width + e]!, value)));
    }
  }
  return { data, dims };
}

export function toLengthOne(attn: Attn, x: Tensor): Promise<Tensor> {
  const width = x.dims[1]!;
  // The root mean square is length / √E.
  return attn.rmsNorm(x, { data: new Float32Array(width).fill(1 / Math.sqrt(width)), dims: [width] }, 1e-24);
}

/** (B,C) in the order of the labels. */
export async function answersOf(attn: Attn, of: LoadedModel, logits: Tensor): Promise<Tensor> {
  const kind = answerFunction(of);
  if (kind === 'identity') return logits;
  return kind === 'sigmoid' ? attn.activation(logits, 'sigmoid') : attn.softmax(logits);
}

export interface Answers {
  readonly vectors: Tensor;
  readonly probabilities: Tensor | undefined;
}

export async function answersWithout(attn: Attn, of: LoadedModel, encoding: Encoding, off: readonly number[]): Promise<Answers> {
  const pooling = await poolingOf(of);
  const { lastHiddenState, logits } = await withModel(() =>
    of.text.forward(encoding, { headMask: headMaskOf(of, off), outputLogits: of.labels !== undefined }),
  );
  return {
    vectors: await toLengthOne(attn, await pool(attn, pooling, lastHiddenState, encoding)),
    probabilities: logits && of.labels ? await answersOf(attn, of, logits) : undefined,
  };
}
