import { describe, fail, hint } from '../args/error.js';
import type { EncoderTraceName, Tensor } from '../attn.js';
import type { LensModel, LensText } from '../lens.js';
import { Decoder, readList, readModel, readTokens } from './model.js';

/** Names of TransformerLens and attn. `heads`: the last dimension is split into heads. */
const hooks: Readonly<Record<string, { readonly name: EncoderTraceName | undefined; readonly heads?: true }>> = {
  hook_resid_pre: { name: undefined }, // a hidden state
  'attn.hook_q': { name: 'q_proj', heads: true },
  'attn.hook_k': { name: 'k_proj', heads: true },
  'attn.hook_v': { name: 'v_proj', heads: true },
  'attn.hook_attn_scores': { name: 'masked_scores' },
  'attn.hook_pattern': { name: 'weights' },
  'attn.hook_z': { name: 'merged', heads: true },
  hook_attn_out: { name: 'output' },
  hook_resid_mid: { name: 'attn_residual' },
  'mlp.hook_post': { name: 'ff_hidden' },
  hook_mlp_out: { name: 'ff_output' },
  hook_resid_post: { name: 'ff_residual' },
};

export async function trace(model: LensModel, text: LensText, names: readonly string[]): Promise<Map<string, Tensor>> {
  const op = 'trace';
  const any = readModel(op, model);
  const known = Object.keys(hooks);
  const asked = readList(op, 'names', names, 'an Array of names', (given, i) => {
    const [, layer, hook] =
      typeof given === 'string' ? /^(?:blocks\.(\d{1,5})\.)?(.*)$/s.exec(given)! : fail('ARGUMENT', op, `names[${i}]`, describe(given), 'a name');
    if (!Object.hasOwn(hooks, hook!))
      fail('ARGUMENT', op, `names[${i}]`, describe(given), `one of ${known.join(', ')}, after blocks.N. or for all layers`, hint(hook!, known));
    return { given: given as string, layer: layer === undefined ? undefined : Number(layer), hook: hook! };
  });
  const decoder = await Decoder.of(op, any);
  const layers = decoder.layers();
  asked.forEach(({ given, layer }, i) => {
    if (layer !== undefined && layer >= layers) fail('OUT_OF_RANGE', op, `names[${i}]`, `is ${given}`, `a layer from 0 to ${layers - 1}`);
  });
  const { inputs } = await readTokens(op, any, text);
  const chosen = asked.flatMap(({ layer }) => layer ?? []);
  const traced = [...new Set(asked.flatMap(({ hook }) => hooks[hook]!.name ?? []))];
  const needsQuery = asked.some(({ hook }) => hooks[hook]!.heads);
  const wanted = needsQuery && !traced.includes('q_proj') ? [...traced, 'q_proj' as const] : traced;
  const output = await any.forward(inputs, {
    outputHiddenStates: asked.some(({ hook }) => hooks[hook]!.name === undefined),
    outputLogits: false,
    ...(wanted.length > 0 && { trace: { names: wanted, ...(chosen.length === asked.length && { layers: [...new Set(chosen)] }) } }),
  });
  const H = await decoder.heads();

  const result = new Map<string, Tensor>();
  asked.forEach(({ layer, hook }) => {
    const { name, heads } = hooks[hook]!;
    for (let at = layer ?? 0; at < (layer === undefined ? layers : layer + 1); ++at) {
      const values = name === undefined ? output.hiddenStates![at]! : output.trace!.get(at)![name]!;
      // Keys and values may have fewer heads, of the same width.
      const width = heads ? output.trace!.get(at)!.q_proj!.dims[2]! / H : 0;
      const dims = heads ? [values.dims[0]!, values.dims[1]!, values.dims[2]! / width, width] : values.dims;
      result.set(`blocks.${at}.${hook}`, { data: values.data, dims });
    }
  });
  return result;
}
