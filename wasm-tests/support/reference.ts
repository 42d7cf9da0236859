/** Attention in float64, with one loop per letter of the formula. */
import type { AttentionOptions, Dims, Mask, Tensor } from 'attn';
import { product } from './tensors.ts';

export interface Reference {
  output: { data: Float64Array; dims: Dims };
  weights: { data: Float64Array; dims: Dims };
  scores: { data: Float64Array; dims: Dims };
  masked_scores: { data: Float64Array; dims: Dims };
}

/**
 * Expands [S], [L,S], [B,L,S] and [B,H,L,S] to four sizes; for [B,L,S] the head dimension is inserted in the middle.
 */
function fourDims(dims: Dims): readonly number[] {
  if (dims.length === 1) return [1, 1, 1, dims[0]];
  if (dims.length === 2) return [1, 1, dims[0], dims[1]];
  if (dims.length === 3) return [dims[0], 1, dims[1], dims[2]];
  return dims;
}

function maskValue(mask: Mask, b: number, h: number, l: number, s: number): number {
  const [B, H, L, S] = fourDims(mask.dims);
  return mask.data[(((B === 1 ? 0 : b) * H + (H === 1 ? 0 : h)) * L + (L === 1 ? 0 : l)) * S + s];
}

/** Returns the number that a mask adds to a score: 0, a finite number, or -Infinity. */
function added(kind: Mask['kind'], value: number): number {
  if (kind === 'additive') return value;
  return (value !== 0) === (kind === 'attend') ? 0 : -Infinity;
}

/** `score` replaces the dot product of a query and a key, before the scale. The returned `scores` are after softcap. */
export function attention(
  q: Tensor,
  k: Tensor,
  v: Tensor,
  options: Pick<AttentionOptions, 'mask' | 'keyPaddingMask' | 'isCausal' | 'scale' | 'fullyMasked' | 'softcap' | 'window' | 'queryOffset'> = {},
  score: (query: Float32Array, key: Float32Array) => number = (query, key) => query.reduce((sum, x, d) => sum + x * key[d], 0),
): Reference {
  const [B, H, L, D] = q.dims;
  const [, Hk, S, Dk] = k.dims;
  const Dv = v.dims[3];
  const { scale = 1 / Math.sqrt(D), softcap = 0, window: [left, right] = [-1, -1], queryOffset = 0 } = options;
  const group = H / Hk;
  const weights = new Float64Array(B * H * L * S);
  const scores = new Float64Array(B * H * L * S);
  const masked = new Float64Array(B * H * L * S);
  const output = new Float64Array(B * H * L * Dv);
  for (let b = 0; b < B; b++)
    for (let h = 0; h < H; h++)
      for (let l = 0; l < L; l++) {
        const row = ((b * H + h) * L + l) * S;
        const kv = b * Hk + Math.floor(h / group);
        let max = -Infinity;
        for (let s = 0; s < S; s++) {
          const query = q.data.subarray(((b * H + h) * L + l) * D, ((b * H + h) * L + l + 1) * D);
          const scaled = scale * score(query, k.data.subarray((kv * S + s) * Dk, (kv * S + s + 1) * Dk));
          scores[row + s] = softcap > 0 ? softcap * Math.tanh(scaled / softcap) : scaled;
          let bias = options.mask ? added(options.mask.kind, maskValue(options.mask, b, h, l, s)) : 0;
          if (options.keyPaddingMask) {
            const p = options.keyPaddingMask;
            bias += added(p.kind, p.data[(p.dims[0] === 1 ? 0 : b) * S + s]);
          }
          const position = l + queryOffset;
          if (options.isCausal && s > position) bias = -Infinity;
          if ((left >= 0 && s < position - left) || (right >= 0 && s > position + right)) bias = -Infinity;
          masked[row + s] = bias === -Infinity ? -Infinity : scores[row + s] + bias;
          max = Math.max(max, masked[row + s]);
        }
        let sum = 0;
        for (let s = 0; s < S; s++) sum += weights[row + s] = masked[row + s] === -Infinity ? 0 : Math.exp(masked[row + s] - max);
        for (let s = 0; s < S; s++) {
          if (sum > 0) weights[row + s] /= sum;
          else weights[row + s] = options.fullyMasked === 'nan' ? NaN : options.fullyMasked === 'uniform' ? 1 / S : 0;
        }
        for (let d = 0; d < Dv; d++) {
          let dot = 0;
          // Skips weights of 0 instead of multiplying, because values may be NaN.
          for (let s = 0; s < S; s++) if (weights[row + s] !== 0) dot += weights[row + s] * v.data[(kv * S + s) * Dv + d];
          output[((b * H + h) * L + l) * Dv + d] = S === 0 && options.fullyMasked === 'nan' ? NaN : dot;
        }
      }
  return {
    output: { data: output, dims: [B, H, L, Dv] },
    weights: { data: weights, dims: [B, H, L, S] },
    scores: { data: scores, dims: [B, H, L, S] },
    masked_scores: { data: masked, dims: [B, H, L, S] },
  };
}

/** Computes x Wᵀ + b in float64, and the largest sum of |terms|, which bounds the error. */
export function linear(x: Tensor, weight: Tensor, bias?: Tensor): { data: Float64Array; dims: Dims; magnitude: number } {
  const [N, K] = weight.dims;
  const M = product(x.dims.slice(0, -1));
  const data = new Float64Array(M * N);
  let magnitude = 0;
  for (let m = 0; m < M; m++)
    for (let n = 0; n < N; n++) {
      let sum = bias ? bias.data[n] : 0;
      let terms = Math.abs(sum);
      for (let i = 0; i < K; i++) {
        const term = x.data[m * K + i] * weight.data[n * K + i];
        sum += term;
        terms += Math.abs(term);
      }
      data[m * N + n] = sum;
      magnitude = Math.max(magnitude, terms);
    }
  return { data, dims: [...x.dims.slice(0, -1), N], magnitude };
}

export function softmax(x: Tensor, dim: number): { data: Float64Array; dims: Dims } {
  const axis = dim < 0 ? dim + x.dims.length : dim;
  const outer = product(x.dims.slice(0, axis));
  const inner = product(x.dims.slice(axis + 1));
  const n = x.dims[axis];
  const data = new Float64Array(x.data.length);
  for (let o = 0; o < outer; o++)
    for (let i = 0; i < inner; i++) {
      let max = -Infinity;
      for (let j = 0; j < n; j++) max = Math.max(max, x.data[(o * n + j) * inner + i]);
      let sum = 0;
      for (let j = 0; j < n; j++) sum += data[(o * n + j) * inner + i] = Math.exp(x.data[(o * n + j) * inner + i] - max);
      for (let j = 0; j < n; j++) data[(o * n + j) * inner + i] /= sum;
    }
  return { data, dims: x.dims };
}
