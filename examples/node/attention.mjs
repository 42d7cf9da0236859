// Scaled dot-product attention on typed arrays, with its weights: node examples/node/attention.mjs
import { load } from 'attn';

const attn = await load();
const q = { dims: [3, 3], data: new Float32Array([1, 0, 2, 2, 2, 2, 2, 1, 3]) };
const k = { dims: [3, 3], data: new Float32Array([0, 1, 1, 4, 4, 0, 2, 3, 1]) };
const v = { dims: [3, 3], data: new Float32Array([1, 2, 3, 2, 8, 0, 2, 6, 3]) };
const { output, weights } = attn.scaledDotProductAttention(q, k, v, { scale: 1, needWeights: true });
for (const [name, { data, dims }] of Object.entries({ weights, output })) {
  console.log(name);
  for (let row = 0; row < dims[0]; row++) console.log(Array.from(data.subarray(row * dims[1], (row + 1) * dims[1]), (x) => x.toFixed(4)).join('  '));
}
attn.dispose();
