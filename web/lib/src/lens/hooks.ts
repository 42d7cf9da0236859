import { describe, fail, hint } from '../args/error.js';
import type { EncoderTraceName, Tensor } from '../attn.js';
import type { LensModel, LensText } from '../lens.js';
import { Decoder, readList, readModel, readTokens } from './model.js';

/** Names of TransformerLens and attn, and how attn's dimensions become (B,L,H,D). */
const hooks: Readonly<Record<string, { readonly name: EncoderTraceName | undefined; readonly heads?: 'split' | 'transpose' }>> = {
  hook_resid_pre: { name: undefined }, // a hidden state
  'attn.hook_q': { name: 'q_proj', heads: 'split' },
  'attn.hook_k': { name: 'k_proj', heads: 'split' },
  'attn.hook_v': { name: 'v_proj', heads: 'split' },
  'attn.hook_rot_q': { name: 'q', heads: 'transpose' },
  'attn.hook_rot_k': { name: 'k', heads: 'transpose' },
  'attn.hook_attn_scores': { name: 'masked_scores' },
  'attn.hook_pattern': { name: 'weights' },
  'attn.hook_z': { name: 'merged', heads: 'split' },
  hook_attn_out: { name: 'output' },
  hook_resid_mid: { name: 'attn_residual' },
  'mlp.hook_post': { name: 'ff_hidden' },
  hook_mlp_out: { name: 'ff_output' },
  hook_resid_post: { name: 'ff_residual' },
};

/** (B,H,L,D) -> (B,L,H,D) */
function positionsFirst({ data, dims }: Tensor): Tensor {
  const [B, H, L, D] = dims as [number, number, number, number];
  const moved = new Float32Array(data.length);
  for (let row = 0; row < B * H * L; ++row) {
    const [batch, head, position] = [Math.floor(row / (H * L)), Math.floor(row / L) % H, row % L];
    moved.set(data.subarray(row * D, (row + 1) * D), ((batch * L + position) * H + head) * D);
  }
  return { data: moved, dims: [B, L, H, D] };
}

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
  const needsQuery = asked.some(({ hook }) => hooks[hook]!.heads === 'split');
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
      let tensor: Tensor = values;
      if (heads === 'split') {
        // Keys and values may have fewer heads, of the same width.
        const width = output.trace!.get(at)!.q_proj!.dims[2]! / H;
        const [B, L, all] = values.dims as [number, number, number];
        tensor = { data: values.data, dims: [B, L, all / width, width] };
      } else if (heads === 'transpose') tensor = positionsFirst(values);
      result.set(`blocks.${at}.${hook}`, tensor);
    }
  });
  return result;
}
