// The two attentions of a decoder: causal self-attention over its own tokens, then cross-attention to an encoder's
// output with padding.
import { load } from 'attn';

const attn = await load();
const embedding = new attn.Embedding({ numEmbeddings: 90, embeddingDim: 16 });
const selfAttention = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 });
const crossAttention = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 });
crossAttention.initialize({ seed: 1 });

// Three sequences of 30 tokens, and three memories of 50 of which the first 50, 41 and 17 are real.
const lengths = [50, 41, 17];
const tokens = Int32Array.from({ length: 3 * 30 }, (_, i) => i);
const memoryTokens = Int32Array.from({ length: 3 * 50 }, (_, i) => 20 * Math.floor(i / 50) + (i % 50));
const real = Uint8Array.from({ length: 3 * 50 }, (_, i) => i % 50 < lengths[Math.floor(i / 50)]);
const y = embedding.forward(tokens, [3, 30]); // (3,30,E)
const memory = embedding.forward(memoryTokens, [3, 50]); // (3,50,E)

const own = selfAttention.forward(y, undefined, undefined, { isCausal: true }).output;
const options = { keyPaddingMask: { kind: 'attend', data: real, dims: [3, 50] }, needWeights: true };
const { output, weights } = crossAttention.forward(own, memory, memory, options);
console.log(`output (${output.dims})`);
console.log(`weights (${weights.dims})`);
for (const [b, length] of lengths.entries()) {
  const start = (b * 4 * 30 + 29) * 50; // head 0, query 29
  const largest = Math.max(...weights.data.subarray(start, start + 50));
  const onPadding = weights.data.subarray(start + length, start + 50).reduce((sum, weight) => sum + weight, 0);
  console.log(`sequence ${b}: largest weight ${largest.toFixed(4)}, on padding ${onPadding.toFixed(4)}`);
}

// The content of the padding does not affect the result.
const broken = { data: memory.data.map((value, i) => (real[Math.floor(i / 16)] ? value : NaN)), dims: memory.dims };
const again = crossAttention.forward(own, broken, broken, options).output;
console.log('with NaN in the padding:', again.data.every((value, i) => value === output.data[i]) ? 'the same' : 'different');
attn.dispose();
