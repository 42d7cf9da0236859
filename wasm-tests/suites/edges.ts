/** Tests valid edge values and sizes of encoders, score functions, norms and activations. */
import type { Activation, Attn, AttentionOptions, AttentionResult, EncoderForwardOptions, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import { assertClose, assertDims, assertSameBits, mask, random, slice, tensor } from '../support/tensors.ts';

describe('edges', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const g = new Generator(71);
  const E = 8;
  const options = { dModel: E, nhead: 2, dimFeedforward: 12, numLayers: 2, numClasses: 3 };
  const isNaNs = (t: Tensor) => t.data.every(Number.isNaN);
  const isFinite = (t: Tensor) => t.data.every(Number.isFinite);

  const [Dq, Dk, A] = [4, 5, 6];
  const params = { queryWeight: random(g, [A, Dq]), keyWeight: random(g, [A, Dk]), scoreWeight: random(g, [A]), bias: random(g, [A]) };
  const weight = random(g, [Dq, Dk]);
  const functions: Readonly<Record<string, (q: Tensor, k: Tensor, v: Tensor, o?: AttentionOptions) => AttentionResult>> = {
    additiveAttention: (q, k, v, o) => attn.additiveAttention(q, k, v, params, o),
    generalAttention: (q, k, v, o) => attn.generalAttention(q, k, v, { weight }, o),
  };

  for (const [name, run] of Object.entries(functions))
    describe(name, () => {
      const [q, k, v] = [random(g, [2, 3, Dq]), random(g, [2, 7, Dk]), random(g, [2, 7, 3])];

      it('empty batches, no queries, no keys', () => {
        const asked = { needWeights: true, trace: true } as const;
        const noBatch = run(tensor([0, 3, Dq], []), tensor([0, 7, Dk], []), tensor([0, 7, 3], []), asked);
        assertDims(noBatch.output, [0, 3, 3], 'B = 0');
        assertDims(noBatch.weights, [0, 3, 7], 'B = 0 weights');
        const noQueries = run(tensor([2, 0, Dq], []), k, v, asked);
        assertDims(noQueries.output, [2, 0, 3], 'L = 0');
        for (const [fullyMasked, expected] of [
          ['zero', 0],
          ['nan', NaN],
        ] as const) {
          const noKeys = run(q, tensor([2, 0, Dk], []), tensor([2, 0, 3], []), { ...asked, fullyMasked });
          assertDims(noKeys.output, [2, 3, 3], 'S = 0');
          assertDims(noKeys.weights, [2, 3, 0], 'S = 0 weights');
          assert.isTrue(
            noKeys.output.data.every((x) => Object.is(x, expected)),
            fullyMasked,
          );
        }
      });

      it('one key gives its value; fully masked queries follow the policy', () => {
        const one = run(q, slice(k, 1, 0, 1), slice(v, 1, 0, 1), { needWeights: true });
        assert.isTrue(one.weights!.data.every((x) => x === 1));
        for (let l = 0; l < 3; l++) assertSameBits(slice(one.output, 1, l, l + 1), slice(v, 1, 0, 1), `query ${l}`);
        const none = mask('block', [7], Array(7).fill(1));
        assert.isTrue(run(q, k, v, { mask: none }).output.data.every((x) => x === 0));
        assert.isTrue(isNaNs(run(q, k, v, { mask: none, fullyMasked: 'nan' }).output));
        const even = run(q, k, v, { mask: none, fullyMasked: 'uniform', needWeights: true }).weights!;
        assert.isTrue(even.data.every((x) => Math.abs(x - 1 / 7) < 1e-7));
      });

      it('NaN and infinities affect only their query; in masked keys they change no bit', () => {
        const clean = run(q, k, v, { keyPaddingMask: mask('attend', [2, 7], [1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0]) });
        for (const dirt of [NaN, Infinity, -Infinity, 3e38, 1e-45]) {
          const dirty = [k, v].map((t) => {
            const data = t.data.slice();
            const width = t.dims[2];
            for (const row of [3, 4, 12, 13]) data.fill(dirt, row * width, (row + 1) * width);
            return { data, dims: t.dims };
          });
          const r = run(q, dirty[0], dirty[1], { keyPaddingMask: mask('attend', [2, 7], [1, 1, 1, 0, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0]) });
          assertSameBits(r.output, clean.output, `masked ${dirt}`);
        }
        const bad = { data: q.data.slice(), dims: q.dims };
        bad.data[0] = NaN;
        const [r, whole] = [run(bad, k, v).output, run(q, k, v).output];
        assert.isTrue(isNaNs(slice(slice(r, 0, 0, 1), 1, 0, 1)));
        assertSameBits(slice(r, 0, 1, 2), slice(whole, 0, 1, 2), 'the other batch entry');
        assertSameBits(slice(r, 1, 1, 3), slice(whole, 1, 1, 3), 'the other queries');
      });

      it('denormal inputs, and logits up to ±3e38', () => {
        const tiny = run(
          tensor(q.dims, () => 1e-45),
          k,
          v,
        );
        assert.isTrue(isFinite(tiny.output));
        const bias = tensor([7], [3e38, -3e38, 0, 3e38, -3e38, 1, 2]);
        const r = run(q, k, v, { mask: { kind: 'additive', data: bias.data, dims: [7] }, needWeights: true });
        assert.isTrue(isFinite(r.output));
        for (let row = 0; row < 6; row++) assert.closeTo(r.weights!.data[row * 7] + r.weights!.data[row * 7 + 3], 1, 1e-6);
      });
    });

  for (const name of ['TransformerEncoder', 'TransformerClassifier'] as const)
    describe(name, () => {
      const make = (more: object = {}) =>
        name === 'TransformerEncoder'
          ? new attn.TransformerEncoder({ dModel: E, nhead: 2, dimFeedforward: 12, numLayers: 2, ...more })
          : new attn.TransformerClassifier({ ...options, ...more });
      const all: EncoderForwardOptions = { outputAttentions: true, outputHiddenStates: true, trace: {} };

      it('empty batches and no tokens: everything asked for, with its dims', () => {
        const encoder = make();
        for (const [B, L] of [
          [0, 3],
          [2, 0],
          [0, 0],
        ]) {
          const r = encoder.forward(tensor([B, L, E], []), all);
          assertDims(r.output, [B, L, E], `B ${B} L ${L}`);
          for (const t of r.attentions!) assertDims(t, [B, 2, L, L], 'attentions');
          assert.lengthOf(r.hiddenStates!, 3);
          assertDims(r.trace!.get(1)!.ff_hidden, [B, L, 12], 'ff_hidden');
          if ('logits' in r) assertDims(r.logits as Tensor, [B, L, 3], 'logits');
        }
        encoder.dispose();
      });

      it('one token has attention 1', () => {
        const encoder = make();
        const r = encoder.forward(random(g, [3, 1, E]), all);
        for (const t of r.attentions!) assert.isTrue(t.data.every((x) => x === 1));
        assert.isTrue(isFinite(r.output));
        encoder.dispose();
      });

      it('fully masked: zero, NaN or uniform attention', () => {
        const encoder = make();
        const x = random(g, [2, 4, E]);
        const keyPaddingMask = mask('block', [2, 4], [0, 0, 1, 1, 1, 1, 1, 1]);
        const at = (fullyMasked?: 'zero' | 'nan' | 'uniform') => encoder.forward(x, { keyPaddingMask, fullyMasked, outputAttentions: true });
        const [zero, nan, uniform] = [at('zero'), at('nan'), at('uniform')];
        assertSameBits(at().output, zero.output, 'zero is the default');
        assert.isTrue(isFinite(zero.output) && isFinite(uniform.output));
        assert.isTrue(slice(zero.attentions![0], 0, 1, 2).data.every((w) => w === 0));
        assert.isTrue(slice(uniform.attentions![0], 0, 1, 2).data.every((w) => w === 0.25));
        assert.isTrue(isNaNs(slice(nan.output, 0, 1, 2)));
        for (const r of [nan, uniform]) assertSameBits(slice(r.output, 0, 0, 1), slice(zero.output, 0, 0, 1), 'the text with unmasked words');
        encoder.dispose();
      });

      it('NaN, infinities and 3e38 affect only their text; the content of padding changes no bit', () => {
        const encoder = make({ normFirst: true });
        const x = random(g, [3, 4, E]);
        const padding = { keyPaddingMask: mask('attend', [3, 4], [1, 1, 1, 1, 1, 1, 0, 0, 1, 0, 0, 0]) };
        const [clean, padded] = [encoder.forward(x), encoder.forward(x, padding)];
        for (const dirt of [NaN, Infinity, -Infinity, 3e38, -3e38]) {
          const bad = { data: x.data.slice(), dims: x.dims };
          bad.data[4 * E + 3] = dirt;
          const r = encoder.forward(bad).output;
          assertSameBits(slice(r, 0, 0, 1), slice(clean.output, 0, 0, 1), `${dirt}: the text before`);
          assertSameBits(slice(r, 0, 2, 3), slice(clean.output, 0, 2, 3), `${dirt}: the text after`);
          if (Number.isNaN(dirt)) assert.isTrue(isNaNs(slice(r, 0, 1, 2)));
          const dirty = { data: x.data.slice(), dims: x.dims };
          dirty.data.fill(dirt, 6 * E, 8 * E).fill(dirt, 9 * E);
          const p = encoder.forward(dirty, padding).output;
          assertSameBits(slice(slice(p, 0, 1, 2), 1, 0, 2), slice(slice(padded.output, 0, 1, 2), 1, 0, 2), `${dirt} in padding`);
          assertSameBits(slice(slice(p, 0, 2, 3), 1, 0, 1), slice(slice(padded.output, 0, 2, 3), 1, 0, 1), `${dirt} in padding`);
        }
        assert.isTrue(isFinite(encoder.forward(tensor([1, 4, E], () => 1e-45)).output), 'denormals');
        encoder.dispose();
      });

      it('a causal output does not depend on later tokens, bit for bit', () => {
        const encoder = make();
        const x = random(g, [1, 9, E]);
        const whole = encoder.forward(x, { isCausal: true }).output;
        for (const t of [0, 4, 7])
          for (const dirt of [0, NaN, Infinity]) {
            const changed = { data: x.data.slice().fill(dirt, (t + 1) * E), dims: x.dims };
            assertSameBits(slice(encoder.forward(changed, { isCausal: true }).output, 1, 0, t + 1), slice(whole, 1, 0, t + 1), `${dirt} after ${t}`);
          }
        encoder.dispose();
      });

      it('a text does not depend on other texts, and requesting more results changes no bit', () => {
        const encoder = make();
        const x = random(g, [4, 5, E]);
        const whole = encoder.forward(x);
        for (let b = 0; b < 4; b++) assertSameBits(encoder.forward(slice(x, 0, b, b + 1)).output, slice(whole.output, 0, b, b + 1), `text ${b}`);
        assertSameBits(encoder.forward(x, all).output, whole.output, 'with everything');
        encoder.dispose();
      });
    });

  it('pooling of an entirely padded text follows fullyMasked, and other texts are unaffected', () => {
    for (const pooling of ['mean', 'max', 'cls'] as const) {
      const classifier = new attn.TransformerClassifier({ ...options, pooling });
      const x = random(g, [2, 3, E]);
      const some = classifier.forward(x, { keyPaddingMask: mask('attend', [2, 3], [1, 1, 0, 0, 0, 0]) });
      const alone = classifier.forward(slice(slice(x, 0, 0, 1), 1, 0, 2));
      assertDims(some.logits, [2, 3], pooling);
      assertSameBits(slice(some.logits, 0, 0, 1), alone.logits, `${pooling}: padding is excluded`);
      if (pooling !== 'cls') assertSameBits({ data: some.logits.data.slice(3), dims: [3] }, classifier.stateDict().get('classifier.bias'), pooling);
      const nan = classifier.forward(x, { keyPaddingMask: mask('attend', [2, 3], [1, 1, 0, 0, 0, 0]), fullyMasked: 'nan' });
      assert.isTrue(nan.logits.data.slice(3).every(Number.isNaN), pooling);
      assertDims(classifier.forward(tensor([0, 3, E], [])).logits, [0, 3], 'B = 0');
      classifier.dispose();
    }
  });

  it('norms of zeros, one column, large and denormal rows, NaN rows, and no rows', () => {
    for (const norm of [attn.layerNorm, attn.rmsNorm]) {
      assert.isTrue(norm(tensor([2, 5], () => 0)).data.every((x) => x === 0));
      assertDims(norm(tensor([0, 5], [])), [0, 5], 'no rows');
      assertDims(norm(tensor([5, 0], [])), [5, 0], 'no columns');
      const r = norm(tensor([3, 4], [1, 2, 3, 4, NaN, 1, 2, 3, 1e-45, 2e-45, -1e-45, 0]));
      assert.isTrue(isFinite({ data: r.data.slice(0, 4), dims: [4] }) && isFinite({ data: r.data.slice(8), dims: [4] }));
      assert.isTrue(r.data.slice(4, 8).every(Number.isNaN));
    }
    assert.deepEqual([...attn.layerNorm(tensor([2, 1], [5, -3])).data], [0, 0], 'one column has no variance');
    assertClose(attn.rmsNorm(tensor([1, 1], [-3])), { data: [-1], dims: [1, 1] }, 1e-6);
    assertClose(attn.layerNorm(tensor([1, 2], [1e18, -1e18])), { data: [1, -1], dims: [1, 2] }, 1e-6, 'large');
  });

  it('limits of activations', () => {
    const x = tensor([7], [-Infinity, -3e38, -0, 0, 1e-45, 3e38, Infinity]);
    const expected: Readonly<Record<Activation, readonly number[]>> = {
      relu: [0, 0, 0, 0, 1e-45, 3e38, Infinity],
      identity: [-Infinity, -3e38, -0, 0, 1e-45, 3e38, Infinity],
      tanh: [-1, -1, 0, 0, 1e-45, 1, 1],
      sigmoid: [0, 0, 0.5, 0.5, 0.5, 1, 1],
      gelu: [NaN, 0, 0, 0, 0, 3e38, Infinity],
      gelu_tanh: [NaN, 0, 0, 0, 0, 3e38, Infinity],
      silu: [NaN, 0, 0, 0, 0, 3e38, Infinity],
      mish: [NaN, 0, 0, 0, 0, 3e38, Infinity],
      quick_gelu: [NaN, 0, 0, 0, 0, 3e38, Infinity],
    };
    for (const [name, values] of Object.entries(expected) as [Activation, readonly number[]][]) {
      const y = attn.activation(x, name).data;
      values.forEach((value, i) => {
        const close = Math.abs(y[i] - Math.fround(value)) <= 2e-45;
        assert.isTrue(
          Object.is(y[i], Math.fround(value)) || (Number.isNaN(value) ? Number.isNaN(y[i]) : close),
          `${name}(${x.data[i]}) = ${y[i]}, expected ${value}`,
        );
      });
      assert.isNaN(attn.activation(tensor([], [NaN]), name).data[0], `${name}(NaN)`);
      assertDims(attn.activation(tensor([3, 0, 2], []), name), [3, 0, 2], name);
    }
  });

  it('positions without rows or columns, and distant rows', () => {
    assertDims(attn.sinusoidalPositions(0, 4), [0, 4], 'no rows');
    assertDims(attn.sinusoidalPositions(4, 0), [4, 0], 'no columns');
    assertDims(attn.alibiBias(3, 0), [1, 3, 0, 0], 'no queries');
    assertDims(attn.alibiBias(3, 2, 0), [1, 3, 2, 0], 'no keys');
    const x = random(g, [1, 2, 3, 4]);
    assertDims(attn.applyRotary(tensor([1, 2, 0, 4], [])), [1, 2, 0, 4], 'no rows');
    assertDims(attn.applyRotary(tensor([1, 2, 3, 0], [])), [1, 2, 3, 0], 'no columns');
    assert.isTrue(isFinite(attn.applyRotary(x, { offset: 10_000_000 })));
    // Rotating back and forth restores the input.
    assertClose(attn.applyRotary(attn.applyRotary(slice(x, 2, 0, 1), { offset: 12345 }), { offset: -12345 }), slice(x, 2, 0, 1), 1e-6);
  });
});
