// Two heads of causal self-attention over three tokens. attn/worker runs the module in a worker; 'attn' has the same
// functions without one.
import { load } from 'attn/worker';

const attn = await load();
const mha = await new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2 });
const x = { dims: [3, 4], data: new Float32Array([1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1]) };
const { weights } = await mha.forward(x, undefined, undefined, { isCausal: true, needWeights: true });
const row = (i) => Array.from(weights.data.subarray(3 * i, 3 * i + 3), (w) => w.toFixed(4)).join('  ');
document.querySelector('#weights').textContent = [0, 1]
  .map((head) => `head ${head}\n${[0, 1, 2].map((token) => row(3 * head + token)).join('\n')}`)
  .join('\n\n');
await attn.dispose();
