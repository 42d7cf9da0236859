/** A GPT-2 of two layers by hand: a head that looks at the token before, and an induction head. */
import type { Tensor } from 'attn';

const V = 16; // tokens
const P = 36; // positions
const E = 72;
const D = 36; // two heads
/** Places in the residual stream: the token, its position, the token before, and the prediction's. */
const places = { token: 0, position: V, before: V + P };
/** Scores of heads are this times the product of one-hot vectors. */
const sharpness = 40;

export function inductionWeights(): { config: Record<string, unknown>; weights: Record<string, Tensor> } {
  const weights: Record<string, Tensor> = {};
  const zeros = (name: string, ...dims: number[]) => {
    weights[name] = { data: new Float32Array(dims.reduce((a, b) => a * b, 1)), dims };
    return weights[name].data;
  };
  const words = zeros('transformer.wte.weight', V, E);
  for (let id = 0; id < V; id++) words[id * E + places.token + id] = 1;
  const positions = zeros('transformer.wpe.weight', P, E);
  for (let i = 0; i < P; i++) positions[i * E + places.position + i] = 1;
  for (const layer of [0, 1]) {
    const name = `transformer.h.${layer}.`;
    for (const norm of ['ln_1', 'ln_2']) {
      zeros(`${name}${norm}.weight`, E).fill(1);
      zeros(`${name}${norm}.bias`, E);
    }
    const qkv = zeros(`${name}attn.c_attn.weight`, E, 3 * E); // (in,out)
    zeros(`${name}attn.c_attn.bias`, 3 * E);
    const output = zeros(`${name}attn.c_proj.weight`, E, E);
    zeros(`${name}attn.c_proj.bias`, E);
    zeros(`${name}mlp.c_fc.weight`, E, 4);
    zeros(`${name}mlp.c_fc.bias`, 4);
    zeros(`${name}mlp.c_proj.weight`, 4, E);
    zeros(`${name}mlp.c_proj.bias`, E);
    // Head 0. Its query and key are one-hot; its value is the token.
    if (layer === 0)
      for (let i = 0; i < P; i++) {
        if (i > 0) qkv[(places.position + i) * 3 * E + i - 1] = sharpness;
        qkv[(places.position + i) * 3 * E + E + i] = 1;
      }
    else
      for (let id = 0; id < V; id++) {
        qkv[(places.token + id) * 3 * E + id] = sharpness;
        qkv[(places.before + id) * 3 * E + E + id] = 1;
      }
    for (let id = 0; id < V; id++) {
      qkv[(places.token + id) * 3 * E + 2 * E + id] = 1;
      output[id * E + (layer === 0 ? places.before : places.token) + id] = 1;
    }
  }
  zeros('transformer.ln_f.weight', E).fill(1);
  zeros('transformer.ln_f.bias', E);
  const config = {
    architectures: ['GPT2LMHeadModel'],
    model_type: 'gpt2',
    n_embd: E,
    n_head: E / D,
    n_layer: 2,
    n_inner: 4,
    n_positions: P,
    vocab_size: V,
    layer_norm_epsilon: 1e-5,
  };
  return { config, weights };
}
