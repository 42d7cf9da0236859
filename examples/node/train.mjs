// An encoder with one layer learns to reverse eight digits: at position i its head must attend to position 7 - i.
import { load } from 'attn';

const [length, batch, width, steps] = [8, 64, 32, 160];

/** Draws digits of `count` sequences. */
function draw(count, source) {
  return Int32Array.from({ length: count * length }, () => {
    source.state = (Math.imul(source.state, 1664525) + 1013904223) >>> 0;
    return Math.floor((source.state * 10) / 2 ** 32);
  });
}

/** Reverses each sequence. */
const reversed = (x) => x.map((_, i) => x[i - (i % length) + length - 1 - (i % length)]);

/** Returns the digit with the largest logit at each position. */
function answers({ data }) {
  return Int32Array.from({ length: data.length / 10 }, (_, i) => {
    const row = data.subarray(10 * i, 10 * i + 10);
    return row.indexOf(Math.max(...row));
  });
}

const attn = await load();
const digits = new attn.Embedding({ numEmbeddings: 10, embeddingDim: width });
const places = new attn.Embedding({ numEmbeddings: length, embeddingDim: width });
const size = { dModel: width, nhead: 1, dimFeedforward: 64, dropout: 0, numLayers: 1, numClasses: 10 };
const model = new attn.TransformerClassifier({ ...size, activation: 'gelu' });
places.initialize({ seed: 4 }); // with the default seed 0 both matrices would begin with the same rows
const optimizer = new attn.AdamW([digits, places, model]);

function forward(x, options = {}) {
  const { forBackward = false } = options;
  const dims = [x.length / length, length];
  const sum = digits.forward(x, dims, { forBackward });
  const at = x.map((_, i) => i % length);
  const terms = places.forward(at, dims, { forBackward });
  terms.data.forEach((value, i) => (sum.data[i] += value));
  return model.forward(sum, options); // logits (B,8,10)
}

const source = { state: 1 };
const unseen = draw(500, { state: 2 });
const wanted = reversed(unseen);
for (let step = 1; step <= steps; ++step) {
  const x = draw(batch, source);
  const { logits } = forward(x, { forBackward: true });
  const { loss, gradient } = attn.crossEntropy(logits, reversed(x));
  optimizer.zeroGrad();
  const { gradX } = model.backward(gradient); // gradient of the sum, hence of both terms
  digits.backward(gradX);
  places.backward(gradX);
  attn.clipGradNorm([digits, places, model], 1);
  optimizer.learningRate = attn.cosineSchedule(step - 1, { learningRate: 0.003, warmup: 20, steps });
  optimizer.step();
  if (step % 20 !== 0) continue;
  const y = answers(forward(unseen).logits);
  const count = unseen.length / length;
  let right = 0;
  for (let b = 0; b < count; ++b) right += Number(y.subarray(b * length, (b + 1) * length).every((digit, i) => digit === wanted[b * length + i]));
  console.log(`step ${String(step).padStart(3)}: loss ${loss.toFixed(2)}, of ${count} new sequences right: ${((100 * right) / count).toFixed(1)} %`);
}

const x = Int32Array.of(3, 1, 4, 1, 5, 9, 2, 6);
const { logits, attentions } = forward(x, { outputAttentions: true });
console.log(`\n    ${x.join(' ')}   # where more than half of the attention goes`);
for (const [i, digit] of answers(logits).entries()) {
  const weights = [...attentions[0].data.subarray(length * i, length * (i + 1))];
  console.log(`${digit}:  ${weights.map((weight) => (weight > 0.5 ? '#' : '.')).join(' ')}`);
}
attn.dispose();
