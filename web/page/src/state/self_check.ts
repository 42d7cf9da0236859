/** What can be checked of any model without references: rows that sum to 1, and every layer once more, step by step, by the package's own functions. */
import type { Activation, EncoderTrace, Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { roundedTo8Bits } from '../int8.ts';
import { layerNames, type LinearNames, type ParameterRows } from '../parameter_names.ts';
import { derived, editedWeights, shownModel } from './derived.ts';
import { variantOf } from './layer_variant.ts';
import { engine, type LoadedModel } from './model.ts';
import { run, withModel } from './run.ts';
import { addCompared, type Compared } from './reference.ts';

export interface SelfCheck {
  readonly model: LoadedModel;
  readonly text: string;
  /** max |sum of a row of weights - 1|, and of how many rows. */
  readonly rows: { readonly difference: number; readonly count: number };
  readonly steps: readonly Compared[];
}

/**
 * What is allowed, of the largest value: products may be summed in another order. With int8 weights the module's own sums are exact, those of whole
 * numbers, and what is computed here has all that float32 loses in sums of some thousand products.
 */
export const selfCheckTolerance = { float32: 1e-6, int8: 4e-6 } as const;

const activations: Readonly<Record<string, Activation>> = {
  gelu: 'gelu',
  gelu_new: 'gelu_tanh',
  gelu_fast: 'gelu_tanh',
  gelu_pytorch_tanh: 'gelu_tanh',
  relu: 'relu',
  silu: 'silu',
  swish: 'silu',
  tanh: 'tanh',
  mish: 'mish',
  quick_gelu: 'quick_gelu',
};

/** One layer's parts by the checkpoint's names. */
function parametersOf(of: LoadedModel) {
  const read = async ({ name, first, count }: ParameterRows): Promise<Tensor> => {
    const { data, dims } = await withModel(() => of.text.getParameter(name));
    const width = data.length / dims[0]!;
    return { data: data.slice(first * width, (first + count) * width), dims: [count, ...dims.slice(1)] };
  };
  return async ({ weight, bias }: LinearNames) => [await read(weight), bias && (await read(bias))] as const;
}

function rowsTo8Bits({ data, dims }: Tensor): Tensor {
  const width = dims.at(-1)!;
  const rounded = new Float32Array(data.length);
  for (let first = 0; first < data.length; first += width) rounded.set(roundedTo8Bits(data.subarray(first, first + width)), first);
  return { data: rounded, dims };
}

/** One layer from its input and its trace, step by step: `note` is given each result and what the layer itself had there. */
export async function recompute(
  attn: Attn,
  of: LoadedModel,
  layer: number,
  x: Tensor,
  trace: Required<EncoderTrace>,
  note: (what: string, made: Tensor, traced: Tensor) => void,
): Promise<void> {
  const { config } = of;
  const family = config['model_type'];
  const made = await variantOf(attn, trace, { layer, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] }, family === 'mpnet');
  note('Softmax of the scores', await attn.softmax(trace.masked_scores), trace.probabilities);
  note('Attention from Q, K, V', made.merged, trace.merged);
  const names = layerNames(of.shapes, layer);
  if (!names) return;
  const parameters = parametersOf(of);
  // What goes into a product of int8 weights is rounded row by row; the weights as they are read are the numbers that they stand for.
  const into = of.dtype === 'int8' ? rowsTo8Bits : (input: Tensor) => input;
  const linear = async (input: Tensor, part: LinearNames) => attn.linear(into(input), ...(await parameters(part)));
  const eps = config['layer_norm_eps'] ?? config['norm_eps'] ?? 1e-12;
  const norm = async (input: Tensor, part: LinearNames | undefined) =>
    part ? attn.layerNorm(input, ...(await parameters(part)), Number(eps)) : input;
  const preNorm = family === 'modernbert';
  const projected = preNorm ? trace.norm1 : x;
  for (const [name, part] of [
    ['q_proj', 'query'],
    ['k_proj', 'key'],
    ['v_proj', 'value'],
  ] as const)
    note('Q, K, V from X', await linear(projected, names[part]), trace[name]);
  note('W_O', await linear(trace.merged, names.output), trace.output);
  note('Layer norms', await norm(preNorm ? x : trace.attn_residual, names.norm1), trace.norm1);
  note('Layer norms', await norm(preNorm ? trace.attn_residual : trace.ff_residual, names.norm2), trace.norm2);
  const activation = activations[String(config['hidden_act'] ?? config['activation'] ?? config['hidden_activation'])];
  const input = preNorm ? trace.norm2 : trace.norm1;
  if (activation && !names.gate) note('Feed-forward', await attn.activation(await linear(input, names.linear1), activation), trace.ff_hidden);
  note('Feed-forward', await linear(trace.ff_hidden, names.linear2), trace.ff_output);
}

async function check(attn: Attn, of: LoadedModel, isWanted: () => boolean): Promise<SelfCheck | undefined> {
  const { encoding, view } = run.peek()!;
  const { hiddenStates, attentions } = await withModel(() => of.text.forward(encoding, { outputAttentions: true, outputHiddenStates: true }));
  const length = encoding.dims[1]!;
  let [largest, count] = [0, 0];
  for (const { data } of attentions!)
    for (let i = 0; i < data.length; i += length, ++count) {
      const sum = data.subarray(i, i + length).reduce((a, b) => a + b, 0);
      largest = Math.max(largest, Math.abs(sum - 1));
    }
  const steps = new Map<string, Compared>();
  const note = (what: string, made: Tensor, traced: Tensor) => {
    const allowed =
      selfCheckTolerance[of.dtype] * traced.data.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 1);
    addCompared(steps, what, made, traced.data, allowed);
  };
  for (let layer = 0; layer < of.layers; ++layer) {
    if (!isWanted()) return undefined;
    const { trace } = await withModel(() => of.text.forward(encoding, { trace: { layers: [layer] } }));
    await recompute(attn, of, layer, hiddenStates![layer]!, trace!.get(layer) as Required<EncoderTrace>, note);
  }
  return { model: of, text: view.text, rows: { difference: largest, count }, steps: [...steps.values()] };
}

/** Of the text that was above when the model came, and again when its weights are edited. */
export const selfCheck = derived<SelfCheck>(() => {
  const [of, attn] = [shownModel.value, engine.value];
  void editedWeights.value;
  if (!of || !attn) return undefined;
  return (isWanted) => check(attn, of, isWanted);
});
