/** Expected numbers from the package, computed by the page's model in Node. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { load } from 'attn';
import { repository } from '../support/paths.mjs';

export const sentence = 'A film with wonderful actors and a terrible script.';
const files = ['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json'];
const read = (name) => readFileSync(join(repository, 'testdata/models/sentiment', name));

/**
 * Computes the page's change of scale or score function in one layer: attention on its q, k, v, as the input of W_O.
 */
function merged({ data, dims: [, heads, length, width] }) {
  const result = new Float32Array(data.length);
  for (let h = 0; h < heads; ++h)
    for (let i = 0; i < length; ++i) for (let d = 0; d < width; ++d) result[(i * heads + h) * width + d] = data[(h * length + i) * width + d];
  return { data: result, dims: [1, length, heads * width] };
}

let numbers;
/** Loads the package and the model once per file. */
export const packageNumbers = () => (numbers ??= compute());

async function compute() {
  const attn = await load({ variant: 'simd' });
  const model = await attn.loadModel(Object.fromEntries(files.map((name) => [name, read(name)])));
  const [layers, heads] = [2, 4];
  const tokens = (text) => model.tokenize(text).tokens[0];
  const forward = (text, options = {}) => model.forward(model.tokenize(text), { outputAttentions: true, outputHiddenStates: true, ...options });
  const trace = (text, layer, options = {}) => forward(text, { ...options, trace: { layers: [layer] } }).trace.get(layer);
  /** 1 for each head, 0 for disabled heads: layer · heads + head. */
  const without = (...off) => ({ data: Float32Array.from({ length: layers * heads }, (_, i) => Number(!off.includes(i))), dims: [layers, heads] });
  const answer = (text, options) => {
    const { data } = attn.softmax(forward(text, options).logits);
    return Object.fromEntries(model.labels.map((label, i) => [label, data[i]]));
  };
  /** Runs with some numbers of a parameter replaced. */
  async function edited(name, edits, run) {
    const original = model.getParameter(name);
    const data = original.data.slice();
    for (const [index, value] of edits) data[index] = value;
    model.loadStateDict({ [name]: { data, dims: original.dims } }, { strict: false });
    try {
      return await run();
    } finally {
      model.loadStateDict({ [name]: original }, { strict: false });
    }
  }
  /**
   * Loads another model of the repository, with int8 weights as is the page's default, and computes its results for a
   * text.
   */
  async function another(folder, text, weights = 'int8') {
    const other = await attn.loadModel(join(repository, folder), { weights });
    try {
      const inputs = other.tokenize(text);
      const { attentions } = other.forward(inputs, { outputAttentions: true });
      return { attentions, tokens: inputs.tokens[0], layers: attentions.length, heads: attentions[0].dims[1] };
    } finally {
      other.dispose();
    }
  }
  /**
   * Compares the model with int8 weights to itself: differences of attention weights, cosine of the vectors, answers of
   * both.
   */
  async function quantized(text) {
    const int8 = await attn.loadModel(Object.fromEntries(files.map((name) => [name, read(name)])), { weights: 'int8' });
    try {
      const maps = int8.forward(int8.tokenize(text), { outputAttentions: true }).attentions;
      const layers = forward(text).attentions.map(({ data }, layer) => Array.from(data, (value, i) => Math.abs(value - maps[layer].data[i])));
      const [a, b] = [(await int8.embed(text, { normalize: true })).data, (await model.embed(text, { normalize: true })).data];
      return {
        layers,
        cosine: a.reduce((sum, value, i) => sum + value * b[i], 0),
        answers: { float32: (await model.classify(text))[0][0], int8: (await int8.classify(text))[0][0] },
      };
    } finally {
      int8.dispose();
    }
  }
  return { attn, model, layers, heads, tokens, forward, trace, without, answer, edited, merged, another, quantized };
}
