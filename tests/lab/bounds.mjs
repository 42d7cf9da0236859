/**
 * Attention in float64 with error bounds for float32: every rounding adds at most u times its value, every sum of K
 * terms (K + 2) u Σ|terms| (Higham 2002, 3.1), and each step propagates the errors of its inputs.
 */

const u = 2 ** -24;
/** Below the smallest normal number float32 is coarser, or flushes to 0. */
const tiny = 2 ** -126;

/** Numbers with error bounds. */
const make = (size) => ({ value: new Float64Array(size), error: new Float64Array(size) });
const exact = ({ data }) => ({ value: Float64Array.from(data), error: new Float64Array(data.length) });

/** Multiplies exact x (rows, K) and w (K, N). */
function product(x, w, rows, K, N) {
  const y = make(rows * N);
  for (let i = 0; i < rows; i++)
    for (let n = 0; n < N; n++) {
      let [sum, terms, error] = [0, 0, 0];
      for (let k = 0; k < K; k++) {
        const factor = w.value[k * N + n];
        sum += x.value[i * K + k] * factor;
        terms += Math.abs(x.value[i * K + k] * factor);
        error += x.error[i * K + k] * Math.abs(factor);
      }
      y.value[i * N + n] = sum;
      y.error[i * N + n] = error + (K + 2) * u * (terms + error) + tiny;
    }
  return y;
}

function swapHeads(x, B, H, L, D, back) {
  const y = make(x.value.length);
  for (let b = 0; b < B; b++)
    for (let h = 0; h < H; h++)
      for (let l = 0; l < L; l++)
        for (let d = 0; d < D; d++) {
          const [merged, split] = [((b * L + l) * H + h) * D + d, ((b * H + h) * L + l) * D + d];
          const [to, from] = back ? [merged, split] : [split, merged];
          y.value[to] = x.value[from];
          y.error[to] = x.error[from];
        }
  return y;
}

/** Returns the number that a mask adds to the score of (b, h, l, s). */
function added(mask, sizes, at) {
  if (!mask) return 0;
  const dims = mask.dims.length === 3 ? [mask.dims[0], 1, mask.dims[1], mask.dims[2]] : [...Array(4 - mask.dims.length).fill(1), ...mask.dims];
  const value = mask.data[dims.reduce((index, size, i) => index * size + (size === 1 ? 0 : at[i]), 0)];
  if (mask.kind === 'additive') return value;
  return (value !== 0) === (mask.kind === 'attend') ? 0 : -Infinity;
}

function attention(q, k, v, [B, H, L, S, D, Dv], { mask, keyPadding, causal, scale = 1 / Math.sqrt(D) }) {
  const [scores, masked, weights] = [make(B * H * L * S), make(B * H * L * S), make(B * H * L * S)];
  const context = make(B * H * L * Dv);
  const padding = keyPadding && {
    ...keyPadding,
    dims: keyPadding.dims.length === 1 ? keyPadding.dims : [keyPadding.dims[0], 1, 1, keyPadding.dims[1]],
  };
  for (let row = 0; row < B * H * L; row++) {
    const [head, l] = [Math.floor(row / L), row % L];
    const [b, h] = [Math.floor(head / H), head % H];
    const at = (s) => row * S + s;
    for (let s = 0; s < S; s++) {
      let [sum, terms, error] = [0, 0, 0];
      for (let d = 0; d < D; d++) {
        const [i, j] = [row * D + d, (head * S + s) * D + d];
        const term = q.value[i] * k.value[j];
        sum += term;
        terms += Math.abs(term);
        error += q.error[i] * Math.abs(k.value[j]) + Math.abs(q.value[i]) * k.error[j] + q.error[i] * k.error[j];
      }
      const factor = Math.abs(scale);
      scores.value[at(s)] = sum * scale;
      scores.error[at(s)] = factor * (error + (D + 5) * u * (terms + error)) + tiny;
      let plus = added(mask, [B, H, L, S], [b, h, l, s]) + added(padding, [B, H, L, S], [b, h, l, s]);
      if (causal && s > l) plus = -Infinity;
      masked.value[at(s)] = plus === -Infinity ? -Infinity : scores.value[at(s)] + plus;
      masked.error[at(s)] = plus === -Infinity ? 0 : scores.error[at(s)] + 2 * u * (Math.abs(scores.value[at(s)]) + Math.abs(plus));
    }
    const seen = Array.from({ length: S }, (_, s) => s).filter((s) => masked.value[at(s)] !== -Infinity);
    if (!seen.length) continue;
    const max = Math.max(...seen.map((s) => masked.value[at(s)]));
    const sum = seen.reduce((all, s) => all + Math.exp(masked.value[at(s)] - max), 0);
    // exp turns a score's absolute error into a relative error of its weight: the score's own error, the rounding of
    // its distance from the maximum, and exp's error; the sum adds those of all others (1.1 covers the division).
    const off = (s) => masked.error[at(s)] + u * (max - masked.value[at(s)]) + 4 * u;
    const share = (s) => Math.exp(masked.value[at(s)] - max) / sum;
    const ofSum = seen.reduce((all, s) => all + (share(s) && share(s) * off(s)), 0);
    for (const s of seen) {
      weights.value[at(s)] = share(s);
      weights.error[at(s)] = (share(s) && share(s) * (Math.expm1(1.1 * (off(s) + ofSum)) + (S + 4) * u)) + tiny;
    }
    for (let d = 0; d < Dv; d++) {
      let [value, terms, error] = [0, 0, 0];
      for (const s of seen) {
        const [w, j] = [at(s), (head * S + s) * Dv + d];
        value += weights.value[w] * v.value[j];
        terms += Math.abs(weights.value[w] * v.value[j]);
        error += weights.error[w] * (Math.abs(v.value[j]) + v.error[j]) + weights.value[w] * v.error[j];
      }
      context.value[row * Dv + d] = value;
      context.error[row * Dv + d] = error + (S + 2) * u * (terms + error) + tiny;
    }
  }
  return { scores, masked_scores: masked, probabilities: weights, weights, context };
}

/** Computes every result of the lab in float64, with the error bound of float32. */
export function reference(inputs) {
  if (inputs.mode === 'attention') {
    const { Q, K, V } = inputs;
    const [B, H] = Q.dims.length === 4 ? Q.dims : [Q.dims.length === 3 ? Q.dims[0] : 1, 1];
    const [q, k, v] = [Q, K, V].map(exact);
    const steps = attention(q, k, v, [B, H, Q.dims.at(-2), K.dims.at(-2), Q.dims.at(-1), V.dims.at(-1)], inputs);
    return { q, k, v, ...steps, output: steps.context };
  }
  const { X, Wq, Wk, Wv, Wo, heads: H } = inputs;
  const [L, E] = X.dims.slice(-2);
  const B = X.dims.length === 3 ? X.dims[0] : 1;
  const [D, Dv] = [Wq.dims[1] / H, Wv.dims[1] / H];
  const [q_proj, k_proj, v_proj] = [Wq, Wk, Wv].map((W) => product(exact(X), exact(W), B * L, E, W.dims[1]));
  const [q, k] = [q_proj, k_proj].map((each) => swapHeads(each, B, H, L, D));
  const v = swapHeads(v_proj, B, H, L, Dv);
  const steps = attention(q, k, v, [B, H, L, L, D, Dv], inputs);
  const merged = swapHeads(steps.context, B, H, L, Dv, true);
  return { q_proj, k_proj, v_proj, q, k, v, ...steps, merged, output: Wo ? product(merged, exact(Wo), B * L, H * Dv, Wo.dims[1]) : merged };
}
