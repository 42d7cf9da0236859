// The first self-attention layer of all-MiniLM-L6-v2 on a real sentence: node examples/node/multi_head_attention.mjs
import { readFile } from 'node:fs/promises';
import { load } from 'attn';

const attn = await load();
const { x, ...state } = Object.fromEntries(
  attn.parseSafetensors(await readFile(new URL('../../testdata/minilm_layer0.safetensors', import.meta.url))),
);
const mha = new attn.MultiHeadAttention({ embedDim: 384, numHeads: 12 });
mha.loadStateDict(state, { strict: false }); // the file also contains PyTorch's results
const { output, weights } = mha.forward(x, undefined, undefined, { needWeights: true });
console.log('output', output.dims, 'weights', weights.dims);
const difference = weights.data.reduce((most, w, i) => Math.max(most, Math.abs(w - state['expected.weights'].data[i])), 0);
console.log('largest difference to PyTorch:', difference.toExponential(2));
attn.dispose();
