/** Tests that any number of threads gives the same bits, and that threads end with their instance. */
import type { Attn, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { host, loadHere } from '../support/host.ts';
import { assertSameBits, mask, random, tensor } from '../support/tensors.ts';

/** Small calls stay on one thread; larger ones are distributed. */
const sizes = [
  { B: 1, L: 3, S: 5, E: 16, H: 2 },
  { B: 1, L: 1, S: 700, E: 64, H: 4 },
  { B: 2, L: 33, S: 47, E: 96, H: 3 },
  { B: 1, L: 129, S: 129, E: 128, H: 8 },
  { B: 5, L: 64, S: 31, E: 200, H: 5 },
  { B: 1, L: 300, S: 300, E: 64, H: 1 },
];

function everything(attn: Attn): Tensor[] {
  const g = new Generator(31);
  const out: Tensor[] = [];
  for (const { B, L, S, E, H } of sizes) {
    const [x, y] = [random(g, [B, L, E]), random(g, [B, S, E])];
    const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: H });
    mha.initialize({ scheme: 'xavier_normal', seed: E });
    const padding = mask(
      'attend',
      [B, S],
      Array.from({ length: B * S }, () => Number(g.below(5) > 0)),
    );
    const r = mha.forward(x, y, y, { keyPaddingMask: padding, isCausal: g.below(2) === 0, needWeights: true, trace: ['q', 'k', 'v', 'context'] });
    out.push(
      r.output,
      r.weights!,
      ...Object.values(r.trace!),
      mha.forward(x, y, y).output,
      mha.forward(x, y, y, { needWeights: true, averageWeights: true }).weights!,
    );
    const { q, k, v } = r.trace!;
    out.push(attn.scaledDotProductAttention(q!, k!, v!).output, attn.softmax(r.weights!, 1), attn.linear(x, random(g, [77, E]), random(g, [77])));
    mha.dispose();

    const classifier = new attn.TransformerClassifier({
      dModel: E,
      nhead: H,
      dimFeedforward: 2 * E,
      numLayers: 2,
      numClasses: 5,
      pooling: 'mean',
      gated: true,
    });
    const asked = { keyPaddingMask: S === L ? padding : undefined, isCausal: true, outputAttentions: true, outputHiddenStates: true };
    classifier.train({ seed: L });
    for (let step = 0; step < 2; step++) {
      const r = classifier.forward(x, asked);
      out.push(r.output, r.logits, ...r.attentions!, ...r.hiddenStates!);
    }
    classifier.eval();
    out.push(classifier.forward(x, asked).logits);
    classifier.dispose();
    const params = { queryWeight: random(g, [9, E / H]), keyWeight: random(g, [9, E / H]), scoreWeight: random(g, [9]) };
    out.push(
      attn.additiveAttention(q!, k!, v!, params, { dropout: 0.1, seed: S }).output,
      attn.generalAttention(q!, k!, v!, { weight: random(g, [E / H, E / H]) }, { isCausal: true }).output,
      attn.layerNorm(x),
      attn.rmsNorm(x),
      attn.activation(x, 'gelu'),
      attn.applyRotary(x, { offset: 7 }),
      attn.sinusoidalPositions(L, E),
      attn.alibiBias(H, L, S),
    );
  }
  return out;
}

describe('threads', () => {
  it('one, two, three and four give the same bits', async () => {
    const single = await loadHere({ threads: 1 });
    const expected = everything(single);
    single.dispose();
    // A single-threaded set-up also runs with two threads.
    for (const threads of host.threads > 1 ? [1, 2, 3, 4] : [2]) {
      const attn = await loadHere({ threads, maximumMemory: 2 ** 28 });
      assert.equal(attn.info.threads, host.canThread ? threads : 1);
      everything(attn).forEach((t, i) => assertSameBits(t, expected[i], `${threads} threads, result ${i}`));
      attn.dispose();
    }
  });

  it('700 000 rows, whose number of rows times blocks exceeds 32 bits, each have their own result', async () => {
    const attn = await loadHere({ maximumMemory: 2 ** 28 });
    const [rows, width, period] = [700_000, 4, 5];
    const x = tensor([rows, 1, width], (i) => (Math.floor(i / width) % period) - (i % width) / 2);
    const assertPeriodic = ({ data }: Tensor, what: string) => {
      const wrong = data.findIndex((value, i) => value !== data[i % (period * width)]);
      assert.equal(wrong, -1, `${what}: the first number that differs`);
      assert.isTrue(
        data.subarray(0, width).some((value) => value !== 0),
        what,
      );
    };
    assertPeriodic(attn.linear(x, random(new Generator(5), [width, width])), 'linear');
    const layer = new attn.MultiHeadAttention({ embedDim: width, numHeads: 1 });
    layer.initialize({ seed: 1 });
    assertPeriodic(layer.forward(x).output, 'forward');
    layer.quantize();
    assertPeriodic(layer.forward(x).output, 'forward in int8');
    attn.dispose();
  });

  it('two instances with threads work concurrently, and further instances are loaded and disposed of', async () => {
    const [a, b] = await Promise.all([loadHere({ threads: 2, maximumMemory: 2 ** 28 }), loadHere({ threads: 2, maximumMemory: 2 ** 28 })]);
    const expected = everything(a);
    everything(b).forEach((t, i) => assertSameBits(t, expected[i], `result ${i}`));
    a.dispose();
    everything(b).forEach((t, i) => assertSameBits(t, expected[i], `result ${i} after the other was disposed`));
    b.dispose();
    for (let i = 0; i < 5; i++) (await loadHere({ threads: 2, maximumMemory: 2 ** 28 })).dispose();
  });
});
