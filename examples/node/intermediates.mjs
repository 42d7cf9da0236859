// Every intermediate result of multi-head attention by name: batch 2, length 32, width 200, 5 heads.
import { load } from 'attn';

const attn = await load();
const embedding = new attn.Embedding({ numEmbeddings: 64, embeddingDim: 200 });
const attention = new attn.MultiHeadAttention({ embedDim: 200, numHeads: 5 });
const x = embedding.forward(
  Array.from({ length: 64 }, (_, i) => i),
  [2, 32],
); // (B,L,E)

const { trace } = attention.forward(x, undefined, undefined, { isCausal: true, trace: true });
for (const [name, { dims }] of Object.entries(trace)) console.log(`${name} (${dims})`); // in the order of computation

/** The first `count` keys of batch 1, head 4, query 1. */
function keys({ data, dims: [, heads, queries, width] }, count) {
  const start = ((1 * heads + 4) * queries + 1) * width;
  return Array.from(data.subarray(start, start + count), (value) => (value === -Infinity ? '-infinity' : value.toFixed(3))).join(' ');
}
const { scores, masked_scores, weights } = trace;
console.log(`batch 1, head 4, query 1: scores ${keys(scores, 3)}, masked ${keys(masked_scores, 3)}, weights ${keys(weights, 3)}`);

// Some implementations divide by the square root of the full width instead of the head width.
const other = attention.forward(x, undefined, undefined, { isCausal: true, scale: 1 / Math.sqrt(200), needWeights: true });
console.log(`with scale 1/√200: weights ${keys(other.weights, 2)}`);
attn.dispose();
