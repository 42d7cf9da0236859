// Shows why scores are divided by √D: products of two random vectors grow with the width, and large scores give one key
// all the weight.
import { load } from 'attn';

const attn = await load();
const range = (from, to) => Array.from({ length: to - from }, (_, i) => from + i);
for (const width of [4, 64, 1024]) {
  const normal = new attn.Embedding({ numEmbeddings: 96, embeddingDim: width }); // drawn from N(0,1)
  const [q, k] = [normal.forward(range(0, 32)), normal.forward(range(32, 96))]; // (32,D), (64,D)

  const [plain, scaled] = [1, undefined].map((scale) => {
    const { weights, trace } = attn.scaledDotProductAttention(q, k, k, { scale, needWeights: true, trace: ['scores'] });
    const variance = trace.scores.data.reduce((sum, score) => sum + score ** 2, 0) / (32 * 64);
    const largest = range(0, 32).reduce((sum, i) => sum + Math.max(...weights.data.subarray(64 * i, 64 * i + 64)), 0) / 32;
    return `variance ${variance.toFixed(2)}, largest weight ${largest.toFixed(2)}`;
  });
  console.log(`width ${width}: plain ${plain}; scaled ${scaled}`);
}
attn.dispose();
