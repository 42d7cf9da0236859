// Causal self-attention with one head and no output projection: no row of the output depends on a later token.
import { load } from 'attn';

const attn = await load();
const embedding = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 10 }); // drawn from N(0,1), seed 0
const head = new attn.MultiHeadAttention({ embedDim: 10, numHeads: 1, headDim: 4, outProj: false });
const x = embedding.forward([12, 7, 40, 7, 3]); // (L,E) = (5,10)
const changed = embedding.forward([12, 7, 40, 20, 3]); // another token 3

const self = (tokens, options) => head.forward(tokens, undefined, undefined, options);
const row = ({ data, dims }, i) => data.subarray(i * dims.at(-1), (i + 1) * dims.at(-1));
const { weights } = self(x, { isCausal: true, needWeights: true });
for (let i = 0; i < 5; i++) console.log(`weights of query ${i}:`, Array.from(row(weights, i), (w) => w.toFixed(4)).join(' '));

function compare(name, options) {
  const [before, after] = [self(x, options).output, self(changed, options).output];
  const rows = [0, 1, 2, 3, 4].filter((i) => row(before, i).some((value, j) => value !== row(after, i)[j]));
  console.log(`${name}: another token 3 changes rows: ${rows.join(' ')}`);
}
compare('causal', { isCausal: true });
const tril = Uint8Array.from({ length: 25 }, (_, i) => i % 5 <= Math.floor(i / 5));
compare('tril mask', { mask: { kind: 'attend', data: tril, dims: [5, 5] } });
compare('no mask', {});
attn.dispose();
