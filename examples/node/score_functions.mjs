// Four functions that score a key for a query; each time the softmax of the scores weights the values.
import { load } from 'attn';

const attn = await load();
const matrix = (...rows) => ({ data: new Float32Array(rows.flat()), dims: [rows.length, rows[0].length] });
const q = matrix([1, 0, 1, 0], [0, 1, 0, 1]); // (L,D) = (2,4)
const k = matrix([2, 0, 2, 0], [0, 2, 0, 2], [1, 1, 1, 1]); // (S,D) = (3,4)
const v = matrix([1, 0], [0, 1], [0.5, 0.5]); // (S,Dv) = (3,2)
const swap = matrix([0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]); // (Dq,Dk)
const params = {
  queryWeight: matrix([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 1]), // (A,Dq) = (3,4)
  keyWeight: matrix([1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, -1]), // (A,Dk) = (3,4)
  scoreWeight: { data: new Float32Array([1, -1, 0.5]), dims: [3] }, // (A)
};

function print(name, { output, weights }) {
  const first = Array.from(weights.data.subarray(0, 3), (w) => w.toFixed(4)).join(' ');
  console.log(`${name}: output (${output.dims}), weights (${weights.dims}) of query 0 ${first}`);
}
print('dot', attn.scaledDotProductAttention(q, k, v, { scale: 1, needWeights: true })); // q kᵀ
print('scaled dot', attn.scaledDotProductAttention(q, k, v, { needWeights: true })); // q kᵀ / √D
print('general', attn.generalAttention(q, k, v, { weight: swap }, { needWeights: true })); // q W kᵀ
print('additive', attn.additiveAttention(q, k, v, params, { needWeights: true })); // w · tanh(W_q q + W_k k)
attn.dispose();
