/** Selects the cases of cases.json and computes their sizes and flops, in Node and in pages. */

export const shapeOf = ({ models, families }, { model }) => ({ ...models, ...families })[model];

/**
 * Returns cases whose name contains one of the texts (all if there are none), grouped by set-up, without cases of more
 * than `most` GFLOP per call for their kind, and without kinds in `except`.
 */
export function chosen(table, { texts = [], most = {}, except = [] } = {}) {
  const groups = new Map();
  for (const each of table.cases) {
    const one = { ...each, ...(each.model && { shape: shapeOf(table, each) }) };
    if (except.includes(one.kind)) continue;
    if (texts.length && !texts.some((text) => one.name.includes(text))) continue;
    if (flops(one) > (most[one.kind] ?? Infinity) * 1e9) continue;
    const group = (one.kind === 'training' ? `training ${one.model}` : (one.model ?? one.kind)) + (one.int8 ? ' int8' : '');
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(one);
  }
  return groups;
}

/** Number of score products: DeBERTa has content-position, position-content and content-content. */
const scoreProducts = (family) => (family === 'deberta-v2' ? 3 : 1);
/** Linear maps of the feed-forward network; gated ones have one more. */
const feedForwardMaps = (family) => (['nomic_bert', 'jina_bert', 'gte', 'modernbert'].includes(family) ? 3 : 2);

/** Fraction of S keys that a row sees within this distance. */
const insideWindow = (S, places) => 1 - (Math.max(0, S - places) * Math.max(0, S - places - 1)) / S ** 2;

/** Flops of one call: two per multiply-add of matrix products, without softmax, norms and activations. */
export function flops({ kind, M, K, N, B, H, S, D, E, shape }) {
  const attention = (batch, length, width) => 4 * batch * length * length * width;
  const projections = (batch, length, width) => 8 * batch * length * width * width;
  switch (kind) {
    case 'gemm':
      return 2 * M * K * N;
    case 'sdpa':
      return attention(B, S, H * D);
    case 'mha':
      return projections(B, S, E) + attention(B, S, E);
    case 'encoder':
      return shape.layers * (projections(B, S, shape.E) + 4 * B * S * shape.E * shape.F + attention(B, S, shape.E));
    case 'family': {
      const { layers, family, E, F } = shape;
      const attended = family === 'modernbert' ? layers / 3 + ((2 * layers) / 3) * insideWindow(S, 64) : layers;
      const linear = layers * (projections(B, S, E) + 2 * feedForwardMaps(family) * B * S * E * F);
      return linear + attended * (1 + scoreProducts(family)) * (attention(B, S, E) / 2);
    }
    default:
      return 0; // the worked example measures overhead
  }
}

/** Bytes of packed weights that one call reads; only for encoders, which exceed every cache. */
export const weightBytes = ({ kind, int8, shape }) =>
  kind === 'encoder' ? shape.layers * (4 * shape.E ** 2 + 2 * shape.E * shape.F) * (int8 ? 1 : 4) : 0;

/** Folder of a text model: its published files, or those that `attn convert` writes. */
export const folderOf = ({ checkpoint, files }) => (files ? `${checkpoint}-${files}` : checkpoint);

/** The name without " weights" or the part of a training step, which are compared with each other. */
export const pairName = ({ name, part }) => (part ? name.slice(0, -part.length - 1) : name.replace(/ weights$/, ''));

/** Numbers in [-1, 1), determined by the seed. */
export function numbers(count, seed = 1) {
  const values = new Float32Array(count);
  let state = seed >>> 0;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = (state >>> 8) * 2 ** -23 - 1;
  }
  return values;
}
