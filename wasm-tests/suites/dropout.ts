/** Tests dropped positions, determinism by seed and statistics of dropout. */
import type { Attn, Encoder, EncoderTrace, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import { assertClose, assertSameBits, mask, random, slice, tensor } from '../support/tensors.ts';

describe('dropout', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const g = new Generator(61);

  /** Checks that each value is 0 or the value times 1 / (1 - p) in float32; returns which values remain. */
  function assertDropped(after: Tensor, before: Tensor, p: number, what: string): boolean[] {
    assert.deepEqual([...after.dims], [...before.dims], what);
    const factor = Math.fround(1 / (1 - Math.fround(p)));
    return Array.from(after.data, (value, i) => {
      const kept = Math.fround(before.data[i] * factor);
      if (value === 0) return false;
      // 1 / (1 - p) computed in float32 may differ in the last place.
      if (!(Math.abs(value / kept - 1) <= 3e-7)) assert.fail(`${what}: value ${i} is ${value}, expected 0 or ${kept}`);
      return true;
    });
  }
  /** Allows six standard errors around 1 - p. */
  function assertRate(kept: readonly boolean[], p: number, what: string): void {
    const rate = kept.filter(Boolean).length / kept.length;
    assert.closeTo(rate, 1 - p, 6 * Math.sqrt((p * (1 - p)) / kept.length), what);
  }

  describe('dropout of a call', () => {
    const [B, H, L, S] = [3, 4, 16, 40];
    const [q, k, v] = [random(g, [B, H, L, 8]), random(g, [B, H, S, 8]), random(g, [B, H, S, 6])];
    const run = (dropout?: number, seed?: number, more = {}) =>
      attn.scaledDotProductAttention(q, k, v, { dropout, seed, needWeights: true, trace: ['probabilities', 'weights'], ...more });

    for (const p of [0.1, 0.5, 0.9])
      it(`p = ${p}: weights are after dropout, probabilities before; the output uses the weights`, () => {
        const [r, plain] = [run(p, 1), run()];
        assertSameBits(r.trace!.probabilities, plain.weights, 'probabilities equal those without dropout');
        assertSameBits(r.weights, r.trace!.weights, 'both weights are after dropout');
        assertRate(assertDropped(r.weights!, plain.weights!, p, 'weights'), p, 'kept');
        const output = tensor(r.output.dims, (i) => {
          const [row, d] = [Math.floor(i / 6), i % 6];
          let sum = 0;
          for (let s = 0; s < S; s++) sum += r.weights!.data[row * S + s] * v.data[(Math.floor(row / L) * S + s) * 6 + d];
          return sum;
        });
        assertClose(r.output, output, 1e-5, 'output');
      });

    it('a seed gives the same result in repeated calls, in another instance, and with more or fewer results requested', async () => {
      const first = run(0.3, 77);
      assertSameBits(run(0.3, 77).output, first.output);
      assertSameBits(attn.scaledDotProductAttention(q, k, v, { dropout: 0.3, seed: 77 }).output, first.output, 'without weights');
      const other = await loadHere({ threads: 1 });
      assertSameBits(other.scaledDotProductAttention(q, k, v, { dropout: 0.3, seed: 77 }).output, first.output, 'another instance');
      other.dispose();
      for (const seed of [78, 77 + 2 ** 32, 0, Number.MAX_SAFE_INTEGER])
        assert.notDeepEqual(run(0.3, seed).weights!.data, first.weights!.data, `seed ${seed}`);
      assertSameBits(run(0.3).weights, run(0.3, 0).weights, 'seed 0 is the default');
    });

    it('p = 0 drops nothing, nor does a seed alone', () => {
      assertSameBits(run(0, 5).output, run().output);
      assertSameBits(run(undefined, 5).output, run().output);
    });

    it("every batch entry, head and query has its own random numbers; a key's number does not depend on later keys", () => {
      const pattern = (r: { weights?: Tensor }) => r.weights!.data.map((value) => Number(value !== 0));
      const whole = pattern(run(0.5, 3));
      const lines = new Set(Array.from({ length: B * H * L }, (_, row) => whole.slice(row * S, (row + 1) * S).join('')));
      assert.equal(lines.size, B * H * L, 'no two rows drop the same keys');
      const shorter = attn.scaledDotProductAttention(slice(q, 2, 0, 9), slice(k, 2, 0, 13), slice(v, 2, 0, 13), {
        dropout: 0.5,
        seed: 3,
        needWeights: true,
      });
      const small = pattern(shorter);
      for (let bh = 0; bh < B * H; bh++)
        for (let l = 0; l < 9; l++)
          for (let s = 0; s < 13; s++)
            if (small[(bh * 9 + l) * 13 + s] !== whole[(bh * L + l) * S + s]) assert.fail(`head ${bh}, query ${l}, key ${s}`);
    });

    it('masked keys stay 0, and additive, general and multi-head attention use the same random numbers', () => {
      const keep = mask(
        'attend',
        [S],
        Array.from({ length: S }, (_, s) => Number(s % 3 > 0)),
      );
      const r = run(0.2, 9, { mask: keep });
      r.weights!.data.forEach((value, i) => (i % S) % 3 || assert.equal(value, 0));
      const dropped = (weights: Tensor, probabilities: Tensor) => assertDropped(weights, probabilities, 0.2, 'weights').join();
      const expected = dropped(run(0.2, 9).weights!, run(0.2, 9).trace!.probabilities!);
      const options = { dropout: 0.2, seed: 9, trace: ['weights', 'probabilities'] } as const;
      const identity = tensor([8, 8], (i) => Number(Math.floor(i / 8) === i % 8));
      const general = attn.generalAttention(q, k, v, { weight: identity }, options).trace!;
      assert.equal(dropped(general.weights!, general.probabilities!), expected, 'general');
      const additive = attn.additiveAttention(q, k, v, { queryWeight: identity, keyWeight: identity, scoreWeight: random(g, [8]) }, options).trace!;
      assert.equal(dropped(additive.weights!, additive.probabilities!), expected, 'additive');
      const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: H });
      const layered = mha.forward(random(g, [B, L, 8]), random(g, [B, S, 8]), random(g, [B, S, 8]), options).trace!;
      assert.equal(dropped(layered.weights!, layered.probabilities!), expected, 'MultiHeadAttention, by a call');
      mha.dispose();
    });

    it('averaged weights are the mean of the weights after dropout', () => {
      const [each, mean] = [run(0.4, 2).weights!, run(0.4, 2, { averageWeights: true }).weights];
      const expected = tensor([B, L, S], (i) => {
        const [b, rest] = [Math.floor(i / (L * S)), i % (L * S)];
        return Array.from({ length: H }, (_, h) => each.data[(b * H + h) * L * S + rest]).reduce((a, x) => a + x, 0) / H;
      });
      assertClose(mean, expected, 1e-6);
    });
  });

  describe('dropout of a MultiHeadAttention', () => {
    const x = random(g, [2, 12, 16]);

    it('is on in train, off in eval and by default; train starts at step 0, and each forward advances it', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2, dropout: 0.3 });
      const forward = () => mha.forward(x).output;
      const plain = forward();
      assertSameBits(forward(), plain, 'eval is the default');
      mha.train({ seed: 4 });
      const steps = [forward(), forward(), forward()];
      assert.notDeepEqual(steps[0].data, plain.data);
      assert.notDeepEqual(steps[1].data, steps[0].data);
      assert.notDeepEqual(steps[2].data, steps[1].data);
      mha.train({ seed: 4 });
      steps.forEach((expected, i) => assertSameBits(forward(), expected, `step ${i} again`));
      mha.train({ seed: 5 });
      assert.notDeepEqual(forward().data, steps[0].data);
      mha.train();
      const zero = forward();
      mha.train({ seed: 0 });
      assertSameBits(forward(), zero, 'seed 0 is the default');
      mha.eval();
      assertSameBits(forward(), plain, 'eval');
      mha.dispose();
    });

    it('a call with its own dropout and seed uses step 0, both in eval and in train', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2, dropout: 0.3 });
      const own = () => mha.forward(x, undefined, undefined, { dropout: 0.5, seed: 8 }).output;
      const expected = own();
      assert.notDeepEqual(expected.data, mha.forward(x).output.data);
      mha.train({ seed: 1 });
      mha.forward(x);
      assertSameBits(own(), expected, 'in train, after a step');
      assertSameBits(own(), expected, 'again');
      mha.dispose();
    });

    it('in train, weights are after dropout and probabilities before; loading and initializing weights preserve the mode', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2, dropout: 0.3 });
      const plain = mha.forward(x, undefined, undefined, { needWeights: true }).weights!;
      mha.train({ seed: 2 });
      const r = mha.forward(x, undefined, undefined, { needWeights: true, trace: ['probabilities'] });
      assertSameBits(r.trace!.probabilities, plain);
      assertRate(assertDropped(r.weights!, plain, 0.3, 'weights'), 0.3, 'kept');
      mha.train({ seed: 2 });
      const first = mha.forward(x).output;
      mha.train({ seed: 2 });
      mha.loadStateDict(mha.stateDict());
      mha.initialize();
      assertSameBits(mha.forward(x).output, first);
      mha.dispose();
    });

    it('without dropout, train changes nothing', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
      const plain = mha.forward(x).output;
      mha.train({ seed: 3 });
      assertSameBits(mha.forward(x).output, plain);
      mha.dispose();
    });
  });

  describe('dropout of an encoder', () => {
    const [B, L, E, F] = [2, 20, 24, 64];
    const x = random(g, [B, L, E]);
    const options = { dModel: E, nhead: 4, dimFeedforward: F, dropout: 0.25, activation: 'gelu' } as const;

    it("is applied at torch's four positions, independently per layer: weights, attention output, hidden layer, feed-forward output", () => {
      for (const normFirst of [false, true]) {
        const encoder = new attn.TransformerEncoder({ ...options, normFirst, numLayers: 2 });
        encoder.train({ seed: 12 });
        const r = encoder.forward(x, { trace: {}, outputAttentions: true, outputHiddenStates: true });
        const state = encoder.stateDict();
        const patterns = new Set<string>();
        for (const [i, trace] of r.trace!) {
          const t = trace as Required<EncoderTrace>;
          const minus = (a: Tensor, b: Tensor) => tensor(a.dims, (n) => a.data[n] - b.data[n]);
          /**
           * Finds the values of `before` that remain in a + drop(before). The difference is exact up to the rounding of
           * the sum.
           */
          const keptOf = (sum: Tensor, a: Tensor, before: Tensor, what: string) => {
            const left = minus(sum, a);
            return Array.from(before.data, (value, n) => {
              const error = 2e-7 * (Math.abs(sum.data[n]) + Math.abs(a.data[n]) + Math.abs(value));
              const [zero, kept] = [Math.abs(left.data[n]) <= error, Math.abs(left.data[n] - value / 0.75) <= 2 * error];
              if (!zero && !kept) assert.fail(`${what}: ${left.data[n]} of ${value}`);
              return kept;
            });
          };
          const weights = assertDropped(t.weights, t.probabilities, 0.25, `layer ${i}: weights`);
          assertSameBits(r.attentions![i], t.weights, 'attentions are after dropout');
          const attention = keptOf(t.attn_residual, r.hiddenStates![i], t.output, `layer ${i}: attention output`);
          const feedForward = keptOf(t.ff_residual, normFirst ? t.attn_residual : t.norm1, t.ff_output, `layer ${i}: feed-forward output`);
          for (const [what, kept] of Object.entries({ weights, attention, feedForward })) {
            assertRate(kept, 0.25, `layer ${i}: ${what}`);
            patterns.add(kept.slice(0, 400).join());
          }
          // linear2's input after dropout is not traced: checks that it differs from ff_hidden, and the average
          // difference.
          const [whole, seen] = [
            attn.linear(t.ff_hidden, state.get(`layers.${i}.linear2.weight`)!, state.get(`layers.${i}.linear2.bias`)),
            t.ff_output,
          ];
          assert.notDeepEqual(seen.data, whole.data, `layer ${i}: hidden layer`);
        }
        assert.equal(patterns.size, 6, 'no two positions drop the same values');
        encoder.dispose();
      }
    });

    it('if linear2 is the identity, the dropped hidden values are visible', () => {
      const layer = new attn.TransformerEncoderLayer({ ...options, dimFeedforward: E });
      layer.loadStateDict(
        { 'linear2.weight': tensor([E, E], (i) => Number(Math.floor(i / E) === i % E)), 'linear2.bias': tensor([E], () => 0) },
        { strict: false },
      );
      layer.train({ seed: 1 });
      const t = layer.forward(x, { trace: { names: ['ff_hidden', 'ff_output'] } }).trace!.get(0)!;
      assertRate(assertDropped(t.ff_output!, t.ff_hidden!, 0.25, 'hidden layer'), 0.25, 'kept');
      layer.dispose();
    });

    it('steps, seeds and eval; the mean over many steps approaches eval', () => {
      const make = (): Encoder => new attn.TransformerEncoder({ ...options, numLayers: 1, normFirst: true });
      const [encoder, twin] = [make(), make()];
      const plain = encoder.forward(x).output;
      encoder.train({ seed: 6 });
      twin.train({ seed: 6 });
      const steps = Array.from({ length: 3 }, () => encoder.forward(x).output);
      steps.forEach((expected, i) => assertSameBits(twin.forward(x, { outputAttentions: true }).output, expected, `step ${i} of another module`));
      assert.notDeepEqual(steps[0].data, steps[1].data);
      const n = 60;
      const mean = new Float64Array(plain.data.length);
      const square = new Float64Array(plain.data.length);
      for (let i = 0; i < n; i++)
        encoder.forward(x).output.data.forEach((value, j) => {
          mean[j] += value / n;
          square[j] += (value * value) / n;
        });
      // Seven standard errors of the mean of n steps, plus a margin because the feed-forward part is not linear.
      plain.data.forEach((value, j) => {
        const deviation = Math.sqrt(Math.max(0, square[j] - mean[j] ** 2));
        assert.isAtMost(Math.abs(mean[j] - value), (7 * deviation) / Math.sqrt(n) + 0.1, `value ${j}`);
      });
      encoder.eval();
      assertSameBits(encoder.forward(x).output, plain, 'eval');
      encoder.dispose();
      twin.dispose();
    });

    it('dropout 0 in train equals eval, bit for bit; a classifier drops only in its encoder', () => {
      const none = new attn.TransformerClassifier({ ...options, dropout: 0, numLayers: 2, numClasses: 3 });
      const plain = none.forward(x).logits;
      none.train({ seed: 2 });
      assertSameBits(none.forward(x).logits, plain);
      const some = new attn.TransformerClassifier({ ...options, numLayers: 1, numClasses: 3 });
      some.train({ seed: 2 });
      const r = some.forward(x);
      const state = some.stateDict();
      assertSameBits(attn.linear(r.output, state.get('classifier.weight')!, state.get('classifier.bias')), r.logits);
      none.dispose();
      some.dispose();
    });

    it("torch's default of 0.1 is active in train", () => {
      const layer = new attn.TransformerEncoderLayer({ dModel: E, nhead: 4, dimFeedforward: F });
      const plain = layer.forward(x).output;
      layer.train({ seed: 1 });
      const t = layer.forward(x, { trace: { names: ['weights', 'probabilities'] } }).trace!.get(0)!;
      assertRate(assertDropped(t.weights!, t.probabilities!, 0.1, 'weights'), 0.1, 'kept');
      layer.eval();
      assertSameBits(layer.forward(x).output, plain);
      layer.dispose();
    });
  });
});
