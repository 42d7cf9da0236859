/** The cases of cases.json: which of them run, their sizes in words and flops. Runs in Node and in pages. */

/** The sizes of a case's model. */
export const shapeOf = ({ models, families }, { model }) => ({ ...models, ...families })[model];

/**
 * Cases whose name holds one of the texts (all without texts), in groups that one set-up serves, without those of more GFLOP a call than
 * `most` has for their kind and without the kinds of `except`.
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

/** Products of scores and of columns of positions: DeBERTa's are of content and position, position and content, content and content. */
const scoreProducts = (family) => (family === 'deberta-v2' ? 3 : 1);
/** Linear maps between the width and the feed-forward network's: one more where one half is the other's gate. */
const feedForwardMaps = (family) => (['nomic_bert', 'jina_bert', 'gte', 'modernbert'].includes(family) ? 3 : 2);

/** Of S keys the share that a row sees up to so many places from it. */
const insideWindow = (S, places) => 1 - (Math.max(0, S - places) * Math.max(0, S - places - 1)) / S ** 2;

/** Multiplications and additions of one call: two for each multiply-add of its matrix products; softmax, norms and activations are not counted. */
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
      return 0; // the worked example is about the cost of a call
  }
}

/** Bytes of the packed weights that one call reads, all of them once: of encoders only, whose every call asks for more than a cache holds. */
export const weightBytes = ({ kind, int8, shape }) =>
  kind === 'encoder' ? shape.layers * (4 * shape.E ** 2 + 2 * shape.E * shape.F) * (int8 ? 1 : 4) : 0;

/** Of a text model: its published files, or those that `attn convert` makes of them. */
export const folderOf = ({ checkpoint, files }) => (files ? `${checkpoint}-${files}` : checkpoint);

/** The name without " weights" or the part of a training step: those belong side by side. */
export const pairName = ({ name, part }) => (part ? name.slice(0, -part.length - 1) : name.replace(/ weights$/, ''));

/** Numbers in [-1, 1), the same for the same seed. */
export function numbers(count, seed = 1) {
  const values = new Float32Array(count);
  let state = seed >>> 0;
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    values[i] = (state >>> 8) * 2 ** -23 - 1;
  }
  return values;
}
