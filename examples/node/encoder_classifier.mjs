// An encoder layer with a classifier, with attention to all positions, to some (B,1,1,S), or to different ones per
// query (B,S,S).
import { load } from 'attn';

const attn = await load();
const options = { dModel: 10, nhead: 1, dimFeedforward: 10, numLayers: 1, numClasses: 2 };
const model = new attn.TransformerClassifier(options);
const embedding = new attn.Embedding({ numEmbeddings: 50, embeddingDim: 10 });
const x = embedding.forward([12, 7, 41, 7, 3, 30, 22, 8, 17, 46], [1, 10]); // (1,10,10)
const two = ({ data }) => `${data[0].toFixed(4)} ${data[1].toFixed(4)}`;

function print(name, mask) {
  const { logits, attentions } = model.forward(x, { mask, outputAttentions: true });
  const seen = Array.from({ length: 10 }, (_, i) => attentions[0].data.subarray(10 * i, 10 * i + 10).filter((weight) => weight !== 0).length);
  console.log(`${name}: keys seen ${seen.join(' ')}, logits of the first ${two(logits)}`);
}
print('no mask');

const firstSeven = Uint8Array.of(1, 1, 1, 1, 1, 1, 1, 0, 0, 0);
print('(B,1,1,S)', { kind: 'attend', data: firstSeven, dims: [1, 1, 1, 10] });

const neighbors = Uint8Array.from({ length: 100 }, (_, i) => Math.abs(Math.floor(i / 10) - (i % 10)) <= 2);
print('(B,S,S)', { kind: 'attend', data: neighbors, dims: [1, 10, 10] });

// With pooling, logits have one row per sequence; the mean excludes padding.
const pooled = new attn.TransformerClassifier({ ...options, pooling: 'mean' });
const { logits } = pooled.forward(x, { keyPaddingMask: { kind: 'attend', data: firstSeven, dims: [1, 10] } }); // (1,2)
console.log('mean of the first seven: logits', two(logits));
attn.dispose();
