// Attention alone ignores the order of tokens. Three ways to encode positions: sinusoids, rotation, ALiBi.
import { load } from 'attn';

const attn = await load();
const embedding = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 8 });
const attention = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
const x = embedding.forward([12, 7, 41, 3]); // (L,E) = (4,8)
const positions = attn.sinusoidalPositions(4, 8);
const text = (values, digits) => Array.from(values, (value) => value.toFixed(digits)).join(' ');
console.log('sinusoids of position 1:', text(positions.data.subarray(8, 16), 3));

// Reverses the tokens: is each output still the same?
const reversed = ({ data, dims }) => ({ data: data.map((_, i) => data[8 * (3 - Math.floor(i / 8)) + (i % 8)]), dims });
const sum = (a, b) => ({ data: a.data.map((value, i) => value + b.data[i]), dims: a.dims });
function difference(forwards, backwards) {
  const [a, b] = [attention.forward(forwards).output, reversed(attention.forward(backwards).output)];
  return Math.max(...a.data.map((value, i) => Math.abs(value - b.data[i])));
}
console.log('reversed, without positions:', difference(x, reversed(x)).toFixed(4));
console.log('reversed, with sinusoids:', difference(sum(x, positions), sum(reversed(x), positions)).toFixed(4));

// Rotation: a score depends on the distance of query and key, not on their positions.
const rotated = (values, offset) => attn.applyRotary({ data: new Float32Array(values), dims: [1, 1, 1, 4] }, { offset }).data;
const score = (i, j) =>
  rotated([4, 3, 2, 1], j)
    .reduce((total, value, c) => total + value * rotated([1, 2, 3, 4], i)[c], 0)
    .toFixed(4);
console.log(`rotary: score at 7 and 5 ${score(7, 5)}, at 107 and 105 ${score(107, 105)}, at 7 and 6 ${score(7, 6)}`);

// ALiBi: with equal scores, near keys get more weight.
const equal = { data: new Float32Array(2 * 4 * 8), dims: [1, 2, 4, 8] }; // (B,H,L,D)
const { weights } = attn.scaledDotProductAttention(equal, equal, equal, { mask: { kind: 'additive', ...attn.alibiBias(2, 4) }, needWeights: true });
for (const h of [0, 1]) console.log(`alibi, head ${h}, query 3:`, text(weights.data.subarray(16 * h + 12, 16 * h + 16), 4));
attn.dispose();
