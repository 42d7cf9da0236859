/** attn as a contender: one instance per variant and thread count, set up for a group of cases. */
import { numbers } from '../cases.mjs';

/** Weights of the worked example, (out, in): head width 3, four inputs. */
const example = {
  x: [1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1],
  'q_proj.weight': [1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 1],
  'k_proj.weight': [0, 1, 0, 1, 0, 1, 1, 1, 1, 0, 0, 0],
  'v_proj.weight': [0, 0, 1, 1, 2, 3, 0, 1, 0, 0, 3, 0],
};

/** The input of a case, shared by all contenders. */
export function inputs({ kind, M, K, N, B, H, S, D, E, shape }) {
  const tensor = (dims, seed) => ({
    data: numbers(
      dims.reduce((a, b) => a * b, 1),
      seed,
    ),
    dims,
  });
  switch (kind) {
    case 'gemm':
      return { x: tensor([M, K], 1), weight: tensor([N, K], 2), bias: tensor([N], 3) };
    case 'sdpa':
      return { q: tensor([B, H, S, D], 1), k: tensor([B, H, S, D], 2), v: tensor([B, H, S, D], 3) };
    case 'mha':
      return { x: tensor([B, S, E], 1) };
    case 'encoder':
      return { x: tensor([B, S, shape.E], 1) };
    case 'family':
      return { ids: { data: Int32Array.from(numbers(B * S, 1), (value) => 500 + Math.floor(490 * value)), dims: [B, S] } };
    default:
      return { x: { data: new Float32Array(example.x), dims: [3, 4] } };
  }
}

/** Weights of the multi-head attention case by torch's names. */
export function mhaState({ E }) {
  const scaled = (count, seed) => numbers(count, seed).map((value) => value / Math.sqrt(E));
  return {
    in_proj_weight: { data: scaled(3 * E * E, 4), dims: [3 * E, E] },
    in_proj_bias: { data: scaled(3 * E, 5), dims: [3 * E] },
    'out_proj.weight': { data: scaled(E * E, 6), dims: [E, E] },
    'out_proj.bias': { data: scaled(E, 7), dims: [E] },
  };
}

/** Creates the group's layer; none for functions. */
function makeLayer(attn, { kind, E, H, shape, int8 }, state) {
  let layer;
  if (kind === 'encoder') {
    layer = new attn.TransformerEncoder({
      dModel: shape.E,
      nhead: shape.H,
      dimFeedforward: shape.F,
      numLayers: shape.layers,
      activation: 'gelu',
    });
    layer.loadStateDict(state);
    if (int8) layer.quantize();
  } else if (kind === 'mha') {
    layer = new attn.MultiHeadAttention({ embedDim: E, numHeads: H });
    layer.loadStateDict(mhaState({ E }));
  } else if (kind === 'example') {
    layer = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 1, headDim: 3, valueHeadDim: 3, bias: false, scale: 1, outProj: false });
    const names = Object.keys(example).filter((name) => name !== 'x');
    layer.loadStateDict(Object.fromEntries(names.map((name) => [name, { data: new Float32Array(example[name]), dims: [3, 4] }])));
  }
  return layer;
}

async function familyCall(attn, checkpoint) {
  const model = await attn.loadModel(checkpoint, { cache: 'none' });
  return ({ data, dims }) => {
    const inputs = { inputIds: data, attentionMask: new Uint8Array(data.length).fill(1), tokenTypeIds: new Int32Array(data.length), dims };
    return () => ({ output: model.forward(inputs).lastHiddenState });
  };
}

/** Loads an instance, with the layer's weights or a family's model; returns contenders { call, output }. */
export async function attnContender(load, { variant, threads }, group, weights) {
  const attn = await load({ variant, threads });
  if (attn.info.threads !== threads) {
    const why = attn.info.notes.join('; ');
    attn.dispose();
    throw new Error(`no ${threads} threads here: ${why}`);
  }
  const layer = makeLayer(attn, group[0], weights);
  const familyOf = group[0].kind === 'family' ? await familyCall(attn, weights) : undefined;
  return {
    contender: 'attn',
    variant,
    threads,
    attn,
    prepare(one) {
      const { x, q, k, v, ids } = inputs(one);
      const run = {
        sdpa: () => attn.scaledDotProductAttention(q, k, v, { needWeights: one.weights }),
        mha: () => layer.forward(x, undefined, undefined, { needWeights: one.weights }),
        encoder: () => layer.forward(x, { outputAttentions: one.weights }),
        example: () => layer.forward(x),
        family: familyOf?.(ids),
      }[one.kind];
      return { call: run, output: () => run().output.data };
    },
    dispose: () => attn.dispose(),
  };
}

/** Bytes that one call needs: inputs, result and scratch memory. In a new instance, because `peak` never falls. */
export async function bytesOf(load, one, variant) {
  const attn = await load({ variant, threads: 1 });
  try {
    const { q, k, v } = inputs(one);
    const before = attn.info.heap.used;
    attn.scaledDotProductAttention(q, k, v, { needWeights: one.weights });
    return attn.info.heap.peak - before;
  } finally {
    attn.dispose();
  }
}
