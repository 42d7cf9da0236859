/** Recomputes each result of a layer from its inputs, row by row. */
import { gainFromOne, hasPositionBias, hasRmsNorm, isPreNorm, normEpsilon, scoreCap, scoreDivisor } from '../model/kind.ts';
import type { EncoderTrace, Tensor } from 'attn';
import { product } from '../arithmetic/arrays.ts';
import { roundedTo8Bits } from '../model/int8.ts';
import { isTransposed, layerNames, onPaper, type LinearNames, type ParameterRows } from '../model/parameter_names.ts';
import { activated, activations, capped, layerNorm, linear, mixture, rmsNorm, scores, softmax, type Bounded } from './float64.ts';

export interface Checkable {
  readonly config: Readonly<Record<string, unknown>>;
  readonly shapes: ReadonlyMap<string, readonly number[]>;
  readonly dtype: string;
  readonly heads: number;
  readonly parameter: (name: string) => Promise<Tensor>;
}

export type Note = (what: string, made: Bounded, traced: ArrayLike<number>) => void;

const rowOf = ({ data, dims }: Tensor, i: number): Float32Array => {
  const width = dims.at(-1)!;
  return data.subarray(i * width, (i + 1) * width);
};
/** (1,H,L,W) -> (L,W) of a head. */
const headOf = ({ data, dims }: Tensor, head: number): Float32Array => {
  const size = product(dims.slice(-2));
  return data.subarray(head * size, (head + 1) * size);
};

/** `yieldToEventLoop` is awaited after each row, so that the page can draw. */
export async function checkLayer(
  of: Checkable,
  layer: number,
  x: Tensor,
  trace: Required<EncoderTrace>,
  rows: readonly number[],
  note: Note,
  yieldToEventLoop: () => Promise<void>,
): Promise<void> {
  const { config, heads } = of;
  const length = trace.q.dims[2]!;
  const scale = 1 / Math.sqrt(scoreDivisor(config, trace.q.dims[3]!));
  const cap = scoreCap(config);
  for (const i of rows)
    for (let head = 0; head < heads; ++head) {
      const at = head * length + i;
      const plain = scores(rowOf(trace.q, at), headOf(trace.k, head), scale);
      if (!hasPositionBias(config)) note('Scores from Q and K', cap > 0 ? capped(plain, cap) : plain, rowOf(trace.scores, at));
      note('Softmax of the scores', softmax(rowOf(trace.masked_scores, at)), rowOf(trace.probabilities, at));
      note('Weighted sum of the values', mixture(rowOf(trace.weights, at), headOf(trace.v, head)), rowOf(trace.context, at));
      await yieldToEventLoop();
    }
  const names = layerNames(of.shapes, layer);
  if (!names) return;

  const read = async (rows: ParameterRows): Promise<Float32Array> => {
    const { name, first, count } = rows;
    const tensor = await of.parameter(name);
    const { data, dims } = tensor;
    if (isTransposed(name)) {
      const { ins, value } = onPaper(tensor, rows);
      return Float32Array.from({ length: count * ins }, (_, i) => value(i % ins, Math.floor(i / ins)));
    }
    const width = data.length / dims[0]!;
    return data.subarray(first * width, (first + count) * width);
  };
  const partsOf = async ({ weight, bias }: LinearNames) => [await read(weight), bias && (await read(bias))] as const;
  // int8 products round their inputs row by row; weights are read as the numbers that they represent.
  const into = of.dtype === 'int8' ? roundedTo8Bits : (row: ArrayLike<number>) => row;
  const checkLinear = async (what: string, input: Tensor, part: LinearNames, traced: Tensor, after = (made: Bounded) => made) => {
    const [weight, bias] = await partsOf(part);
    for (const i of rows) {
      note(what, after(linear(into(rowOf(input, i)), weight, bias, traced.dims.at(-1)!)), rowOf(traced, i));
      await yieldToEventLoop();
    }
  };
  const epsilon = normEpsilon(config);
  const checkNorm = async (input: Tensor, part: LinearNames | undefined, traced: Tensor) => {
    const [weight, bias] = part ? await partsOf(part) : [];
    const normed = (row: Float32Array) =>
      hasRmsNorm(config) ? rmsNorm(row, weight, epsilon, gainFromOne(config)) : layerNorm(row, weight, bias, epsilon);
    for (const i of rows) note('Layer norms', part ? normed(rowOf(input, i)) : exactly(rowOf(input, i)), rowOf(traced, i));
    await yieldToEventLoop();
  };
  const preNorm = isPreNorm(config);
  const projected = preNorm ? trace.norm1 : x;
  for (const [name, part] of [
    ['q_proj', 'query'],
    ['k_proj', 'key'],
    ['v_proj', 'value'],
  ] as const)
    await checkLinear('Q, K, V from X', projected, names[part], trace[name]);
  await checkLinear('W_O', trace.merged, names.output, trace.output);
  await checkNorm(preNorm ? x : trace.attn_residual, names.norm1, trace.norm1);
  await checkNorm(preNorm ? trace.attn_residual : trace.ff_residual, names.norm2, trace.norm2);
  const activation =
    activations[String(config['hidden_act'] ?? config['activation'] ?? config['hidden_activation'] ?? config['activation_function'])];
  const hiddenFrom = preNorm ? trace.norm2 : trace.norm1;
  if (activation && !names.gate) await checkLinear('Feed-forward', hiddenFrom, names.linear1, trace.ff_hidden, (made) => activated(made, activation));
  await checkLinear('Feed-forward', trace.ff_hidden, names.linear2, trace.ff_output);
}

/** An omitted norm. */
const exactly = (row: Float32Array): Bounded => ({ values: Float64Array.from(row), bounds: new Float64Array(row.length) });
