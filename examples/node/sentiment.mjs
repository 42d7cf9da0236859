// A sentiment classifier with hand-made weights: words get positions, attention looks one word back for a "not", the
// feed-forward network inverts the sentiment of that word, and the mean over the words is the result.
import { load } from 'attn';

const attn = await load();
/** A matrix of zeros except the entries [row, column, value]. */
function matrix(dims, ...entries) {
  const data = new Float32Array(dims[0] * dims[1]);
  for (const [row, column, value] of entries) data[row * dims[1] + column] = value;
  return { data, dims };
}
const words = ['', 'the', 'film', 'is', 'but', 'not', 'good', 'great', 'bad', 'boring'];
// Sinusoids of width 8 encode positions in columns 0 to 3; columns 4 and 6 are close to 0 (used for sentiment,
// negation), 5 and 7 close to 1.
const table = matrix([10, 8], [5, 6, 1], [6, 4, 1], [7, 4, 2], [8, 4, -1], [9, 4, -1.5]); // row 0 is padding

// Query: the position rotated back by one word; key: the position itself; value: the negation.
const turn = [1, 0.1].flatMap((angle, pair) => {
  const [i, sin, cos] = [2 * pair, 50 * Math.sin(angle), 50 * Math.cos(angle)];
  return [
    [i, i, cos],
    [i, i + 1, -sin],
    [i + 1, i, sin],
    [i + 1, i + 1, cos],
    [8 + i, i, 1],
    [9 + i, i + 1, 1],
  ];
});
const ones = { data: new Float32Array(8).fill(1), dims: [8] };
const embedding = new attn.Embedding({ numEmbeddings: 10, embeddingDim: 8, paddingIdx: 0 });
embedding.loadStateDict({ weight: table });
const shape = { dModel: 8, nhead: 1, dimFeedforward: 2, numLayers: 1, numClasses: 2 };
const model = new attn.TransformerClassifier({ ...shape, normFirst: true, bias: false, norm: 'rms_norm', pooling: 'mean' });
model.loadStateDict({
  'encoder.layers.0.self_attn.in_proj_weight': matrix([24, 8], ...turn, [22, 6, 1]),
  'encoder.layers.0.self_attn.out_proj.weight': matrix([8, 8], [6, 6, 1]), // added to the word that attends
  // relu(± sentiment + 4 negation - 2): both 0 unless negated; then their difference is twice the sentiment
  'encoder.layers.0.linear1.weight': matrix([2, 8], [0, 4, 1], [0, 6, 4], [0, 7, -2], [1, 4, -1], [1, 6, 4], [1, 7, -2]),
  'encoder.layers.0.linear2.weight': matrix([8, 2], [4, 0, -0.8], [4, 1, 0.8]),
  'encoder.layers.0.norm1.weight': ones,
  'encoder.layers.0.norm2.weight': ones,
  'classifier.weight': matrix([2, 8], [0, 4, -4], [1, 4, 4]),
  'classifier.bias': { data: new Float32Array(2), dims: [2] },
});

const texts = ['the film is great', 'the film is not great', 'not bad', 'boring but not bad'];
const ids = texts.flatMap((text) => Array.from({ length: 5 }, (_, i) => Math.max(0, words.indexOf(text.split(' ')[i]))));
const x = embedding.forward(ids, [4, 5]);
const positions = attn.sinusoidalPositions(5, 8);
x.data.forEach((value, i) => (x.data[i] = value + positions.data[i % 40]));
const keyPaddingMask = { kind: 'attend', data: Uint8Array.from(ids), dims: [4, 5] }; // id 0 is padding
const { data } = attn.softmax(model.forward(x, { keyPaddingMask }).logits);
for (const [b, text] of texts.entries()) console.log(`${data[2 * b + 1].toFixed(3)} positive: ${text}`);
attn.dispose();
