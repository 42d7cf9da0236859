// Dropout: off until train(), then determined by the seed, on every machine and with any number of threads.
import { load } from 'attn';

const attn = await load();
// For a single call: each weight is dropped with probability 0.5, and the others are doubled.
const queries = { data: new Float32Array(2 * 4), dims: [2, 4] };
const keys = { data: new Float32Array(8 * 4), dims: [8, 4] };
const { weights } = attn.scaledDotProductAttention(queries, keys, keys, { dropout: 0.5, seed: 7, needWeights: true });
for (const i of [0, 1]) console.log(`weights of query ${i}:`, Array.from(weights.data.subarray(8 * i, 8 * i + 8), (w) => w.toFixed(2)).join(' '));

// In a layer: on the attention weights, the attention's output, the hidden layer and the feed-forward output.
const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dimFeedforward: 16, dropout: 0.1 });
const input = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 8 }).forward([12, 7, 41, 3]); // (4,8)
const run = () => layer.forward(input).output.data;
const same = (a, b) => (a.every((value, i) => value === b[i]) ? 'yes' : 'no');

const plain = run();
layer.train({ seed: 1 });
const [first, second] = [run(), run()];
layer.train({ seed: 1 });
const again = run();
layer.eval();
console.log('eval:', plain[0].toFixed(4));
console.log('train, first step:', first[0].toFixed(4));
console.log('train, second step:', second[0].toFixed(4));
console.log('the same seed again gives the first step:', same(again, first));
console.log('eval gives what it gave:', same(run(), plain));
attn.dispose();
