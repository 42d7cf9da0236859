/**
 * @tensorflow/tfjs-backend-wasm as a contender for GEMM, attention and multi-head attention, on one thread. Its matMul
 * uses XNNPACK for two plain matrices, but slow loops for transposed operands and batches. So operands are transposed
 * first, and products of few heads are separate calls; for many small heads the call overhead outweighs the gain.
 */
import { inputs, mhaState } from './attn.mjs';

/** Bytes of scores, scaled scores and weights; more take seconds per call and exceed its heap. */
const mostBytes = 2 ** 29;
const fewHeads = 64;

export function tfjsContender(tf, group) {
  const { kind } = group[0];
  if (!['gemm', 'sdpa', 'mha'].includes(kind)) return undefined;

  const product = (a, b) => {
    if (a.shape[0] > fewHeads) return tf.matMul(a, b);
    const others = tf.unstack(b);
    return tf.stack(tf.unstack(a).map((each, i) => tf.matMul(each, others[i])));
  };
  /** q, k, v (heads, S, D). */
  const attention = (q, k, v) => {
    const scores = product(q, tf.transpose(k, [0, 2, 1]));
    const weights = tf.softmax(tf.mul(scores, 1 / Math.sqrt(q.shape[2])));
    return { output: product(weights, v), weights };
  };
  const linear = (x, weight, bias) => tf.add(tf.matMul(x, weight), bias);
  /** Weights transposed for matMul; the input of attention without the batch. */
  const held = (one) => {
    const given = { ...inputs(one), ...(kind === 'mha' && mhaState(one)) };
    return Object.fromEntries(
      Object.entries(given).map(([name, { data, dims }]) => {
        const tensor = tf.tensor(data, dims.length === 3 ? [dims[0] * dims[1], dims[2]] : dims.length === 4 ? dims.slice(1) : dims);
        return [name, name.endsWith('weight') ? tf.tidy(() => tf.transpose(tensor)) : tensor];
      }),
    );
  };

  return {
    contender: 'tfjs-backend-wasm',
    variant: 'simd',
    threads: 1,
    prepare(one) {
      const { B, H, S, E } = one;
      if (kind === 'sdpa' && 3 * 4 * B * H * S * S > mostBytes) return undefined;
      const t = held(one);
      const heads = (x) => tf.reshape(tf.transpose(tf.reshape(x, [B, S, H, E / H]), [0, 2, 1, 3]), [B * H, S, E / H]);
      const run = {
        gemm: () => ({ output: linear(t.x, t.weight, t.bias) }),
        sdpa: () => attention(t.q, t.k, t.v),
        mha: () => {
          const parts = tf.split(linear(t.x, t.in_proj_weight, t.in_proj_bias), 3, 1);
          const { output, weights } = attention(...parts.map(heads));
          const merged = tf.reshape(tf.transpose(tf.reshape(output, [B, H, S, E / H]), [0, 2, 1, 3]), [B * S, E]);
          return { output: linear(merged, t['out_proj.weight'], t['out_proj.bias']), weights };
        },
      }[kind];
      const output = () => {
        let data;
        tf.tidy(() => {
          const result = run();
          data = result.output.dataSync(); // results are read, like attn's
          if (one.weights) result.weights.dataSync();
        });
        return data;
      };
      return { call: () => void output(), output, dispose: () => Object.values(t).forEach((tensor) => tensor.dispose()) };
    },
    dispose() {},
  };
}
