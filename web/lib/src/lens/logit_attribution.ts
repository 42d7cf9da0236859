import { fail } from '../args/error.js';
import type { LensModel, LensText, LogitAttribution, LogitAttributionOptions } from '../lens.js';
import { breaks, Decoder, eachRowOfLogits, readIndex, readModel, readOptions, readToken, readTokens } from './model.js';

const dot = (a: ArrayLike<number>, b: ArrayLike<number>, first = 0, count = b.length): number => {
  let sum = 0;
  for (let i = 0; i < count; ++i) sum += a[first + i]! * b[i]!;
  return sum;
};

/** (in) = W (in,out) · v (out), from a weight stored as (in,out) or (out,in). */
function pulledBack(weight: Float32Array, isTransposed: boolean, direction: Float64Array): Float64Array {
  const out = direction.length;
  const result = new Float64Array(weight.length / out);
  for (let i = 0; i < result.length; ++i)
    for (let o = 0; o < out; ++o) result[i]! += direction[o]! * weight[isTransposed ? i * out + o : o * result.length + i]!;
  return result;
}

export async function logitAttribution(model: LensModel, text: LensText, options: LogitAttributionOptions): Promise<LogitAttribution> {
  const op = 'logitAttribution';
  const any = readModel(op, model);
  const { values, signal } = readOptions(op, options, ['target', 'contrast', 'position']);
  const decoder = await Decoder.of(op, any);
  if ((await any.weights) === 'int8')
    fail('UNSUPPORTED', op, 'model', 'has int8 weights', 'float32 weights', 'Rounded activations are not the sum of their parts');
  const { inputs, ids, tokens } = await readTokens(op, any, text);
  const target = await readToken(op, any, 'target', values['target']);
  const contrast = values['contrast'] === undefined ? undefined : await readToken(op, any, 'contrast', values['contrast']);
  const position = readIndex(op, 'position', values['position'], ids.length, ids.length - 1);

  const pause = breaks(op, signal);
  await pause();
  const { hiddenStates, lastHiddenState, trace } = await any.forward(inputs, {
    outputHiddenStates: true,
    outputLogits: false,
    trace: { names: ['merged', 'ff_output', 'ff_residual'] },
  });
  const { width, family } = decoder;
  const layers = trace!.size;
  const H = await decoder.heads();
  const at = ({ data, dims }: { data: Float32Array; dims: readonly number[] }) => data.subarray(position * dims[2]!, (position + 1) * dims[2]!);

  // logit = γ ∘ (r − mean r) / s · w + β · w, so that each part p of r adds p · v with v = (γ ∘ w − mean) / s.
  const directions = await decoder.logitDirections(contrast === undefined ? [target] : [target, contrast]);
  const row = Float64Array.from(directions[0]!, (value, e) => value - (directions[1]?.[e] ?? 0));
  const { divisor } = decoder.finalNorm(at(trace!.get(layers - 1)!.ff_residual!));
  const gained = row.map((value, e) => value * decoder.gain[e]!);
  const mean = family.isRms ? 0 : gained.reduce((sum, value) => sum + value / width, 0);
  const v = gained.map((value) => (value - mean) / divisor);

  let biases = decoder.shift ? dot(decoder.shift, row) : 0;
  const heads = new Float32Array(layers * H);
  const mlps = new Float32Array(layers);
  for (let layer = 0; layer < layers; ++layer) {
    await pause();
    const { merged, ff_output } = trace!.get(layer)!;
    const weight = await decoder.weights.get(decoder.nameOf('attentionOutput', layer, 'weight'));
    const back = pulledBack(weight.data, family.isTransposed, v);
    const D = back.length / H;
    for (let head = 0; head < H; ++head) heads[layer * H + head] = dot(at(merged!), back.subarray(head * D, (head + 1) * D), head * D);
    const bias = await decoder.weights.optional(decoder.nameOf('mlpOutput', layer, 'bias'));
    const ofBias = bias ? dot(bias, v) : 0;
    mlps[layer] = dot(at(ff_output!), v) - ofBias;
    biases += ofBias;
    const attentionBias = await decoder.weights.optional(decoder.nameOf('attentionOutput', layer, 'bias'));
    if (attentionBias) biases += dot(attentionBias, v);
  }
  let value = 0;
  await eachRowOfLogits(op, any, at(lastHiddenState).slice(), width, (logits) => {
    value = logits[target]! - (contrast === undefined ? 0 : logits[contrast]!);
  });
  return {
    tokens,
    position,
    value,
    embedding: dot(at(hiddenStates![0]!), v),
    heads: { data: heads, dims: [layers, H] },
    mlps: { data: mlps, dims: [layers] },
    biases,
  };
}
