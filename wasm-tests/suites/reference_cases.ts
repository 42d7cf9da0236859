/** The reference cases that need no stored numbers. */
import type { Attn, Tensor } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import * as reference from '../support/reference.ts';
import { assertClose, assertDims, assertSameBits, mask, random, reshape, rows, slice, take, tensor, transpose } from '../support/tensors.ts';

describe('reference cases', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  describe('the worked example', () => {
    const x = rows([
      [1, 0, 1, 0],
      [0, 2, 0, 2],
      [1, 1, 1, 1],
    ]);
    const wk = rows([
      [0, 0, 1],
      [1, 1, 0],
      [0, 1, 0],
      [1, 1, 0],
    ]);
    const wq = rows([
      [1, 0, 1],
      [1, 0, 0],
      [0, 0, 1],
      [0, 1, 1],
    ]);
    const wv = rows([
      [0, 2, 0],
      [0, 3, 0],
      [1, 0, 3],
      [1, 1, 0],
    ]);
    const weights = rows([
      [0.063379, 0.468311, 0.468311],
      [6.0337e-6, 0.982008, 0.017986],
      [2.9539e-4, 0.880537, 0.119168],
    ]);
    const outputs = rows([
      [1.936621, 6.683105, 1.595068],
      [1.999994, 7.963992, 0.053976],
      [1.999705, 7.759892, 0.358389],
    ]);

    it('queries, keys, values and scores are the whole numbers on paper', () => {
      const [q, k, v] = [wq, wk, wv].map((w) => attn.linear(x, transpose(w)));
      assertSameBits(
        k,
        rows([
          [0, 1, 1],
          [4, 4, 0],
          [2, 3, 1],
        ]),
        'K',
      );
      assertSameBits(
        q,
        rows([
          [1, 0, 2],
          [2, 2, 2],
          [2, 1, 3],
        ]),
        'Q',
      );
      assertSameBits(
        v,
        rows([
          [1, 2, 3],
          [2, 8, 0],
          [2, 6, 3],
        ]),
        'V',
      );
      const r = attn.scaledDotProductAttention(q, k, v, { scale: 1, needWeights: true, trace: ['scores', 'weighted_values'] });
      assertSameBits(
        r.trace!.scores,
        rows([
          [2, 4, 4],
          [4, 16, 12],
          [4, 12, 10],
        ]),
        'scores',
      );
      assertClose(r.weights, weights, 1e-6, 'weights');
      assertClose(r.output, outputs, 1e-6, 'output');
      // Step 6 of the article: each value times its weight; the rows of the output are their sums.
      const wvs = r.trace!.weighted_values!;
      assert.deepEqual([...wvs.dims], [3, 3, 3]);
      for (let l = 0; l < 3; l++)
        for (let s = 0; s < 3; s++)
          for (let d = 0; d < 3; d++) assert.closeTo(wvs.data[(l * 3 + s) * 3 + d], r.weights!.data[l * 3 + s] * v.data[s * 3 + d], 1e-6);
    });

    it('MultiHeadAttention without W_O gives the same numbers', () => {
      const columns = 3;
      const mha = new attn.MultiHeadAttention({ embedDim: 3, numHeads: 1, kdim: 4, vdim: 4, bias: false, scale: 1, outProj: false });
      // The module's query width is embedDim = 3 and x is 4 wide, so the queries are made by hand and the query projection is the identity.
      mha.loadStateDict({
        q_proj_weight: rows([
          [1, 0, 0],
          [0, 1, 0],
          [0, 0, 1],
        ]),
        k_proj_weight: transpose(wk),
        v_proj_weight: transpose(wv),
      });
      const q = attn.linear(x, transpose(wq));
      const r = mha.forward(reshape(q, [1, 3, columns]), reshape(x, [1, 3, 4]), reshape(x, [1, 3, 4]), { needWeights: true });
      assertClose(r.output, reshape(outputs, [1, 3, 3]), 1e-6, 'output');
      assertClose(r.weights, reshape(weights, [1, 1, 3, 3]), 1e-6, 'weights');
      mha.dispose();
    });

    it("the article's shortened weights give the article's outputs", () => {
      // Weights put in by hand: identity keys turn log-weights into scores.
      const short = rows([
        [0, 0.5, 0.5],
        [0, 1, 0],
        [0, 0.9, 0.1],
      ]);
      const v = rows([
        [1, 2, 3],
        [2, 8, 0],
        [2, 6, 3],
      ]);
      const identity = rows([
        [1, 0, 0],
        [0, 1, 0],
        [0, 0, 1],
      ]);
      const logs = tensor(
        [3, 3],
        Array.from(short.data, (p) => (p ? Math.log(p) : 0)),
      );
      const allowed = mask(
        'attend',
        [3, 3],
        Array.from(short.data, (p) => (p ? 1 : 0)),
      );
      const r = attn.scaledDotProductAttention(logs, identity, v, { scale: 1, mask: allowed, needWeights: true });
      assertClose(r.weights, short, 1e-6, 'weights');
      assertClose(
        r.output,
        rows([
          [2, 7, 1.5],
          [2, 8, 0],
          [2, 7.8, 0.3],
        ]),
        1e-6,
        'output',
      );
    });
  });

  it('shapes: Q (3,30,128), K (3,50,128), V (3,50,256)', () => {
    const g = new Generator(2);
    const r = attn.scaledDotProductAttention(random(g, [3, 30, 128]), random(g, [3, 50, 128]), random(g, [3, 50, 256]), { needWeights: true });
    assertDims(r.output, [3, 30, 256], 'output');
    assertDims(r.weights, [3, 30, 50], 'weights');
  });

  it('every intermediate: batch 128, length 32, width 200, 5 heads', () => {
    const g = new Generator(3);
    const mha = new attn.MultiHeadAttention({ embedDim: 200, numHeads: 5 });
    const r = mha.forward(random(g, [128, 32, 200]), undefined, undefined, { trace: true });
    const t = r.trace!;
    for (const name of ['q_proj', 'k_proj', 'v_proj', 'merged', 'output'] as const) assertDims(t[name], [128, 32, 200], name);
    for (const name of ['q', 'k', 'v', 'context'] as const) assertDims(t[name], [128, 5, 32, 40], name);
    for (const name of ['scores', 'masked_scores', 'probabilities', 'weights'] as const) assertDims(t[name], [128, 5, 32, 32], name);
    assert.isUndefined(t.weighted_values, 'weighted_values comes only by name');
    assertSameBits(t.output, r.output, 'the traced output is the output');
    // context in (B,L,H,D) order is merged's memory.
    const merged = new Float32Array(t.merged!.data.length);
    for (let b = 0; b < 128; b++)
      for (let h = 0; h < 5; h++)
        for (let l = 0; l < 32; l++)
          merged.set(t.context!.data.subarray(((b * 5 + h) * 32 + l) * 40, ((b * 5 + h) * 32 + l + 1) * 40), ((b * 32 + l) * 5 + h) * 40);
    assertSameBits(t.merged, { data: merged, dims: [128, 32, 200] }, 'merged');
    mha.dispose();
  });

  it('scale 1/√200 divides by the full width', () => {
    const g = new Generator(33);
    const x = random(g, [1, 6, 200]);
    const mha = new attn.MultiHeadAttention({ embedDim: 200, numHeads: 5, scale: 1 / Math.sqrt(200) });
    const r = mha.forward(x, undefined, undefined, { needWeights: true, trace: ['q', 'k', 'v'] });
    const { q, k, v } = r.trace!;
    assertClose(r.weights, reference.attention(q!, k!, v!, { scale: 1 / Math.sqrt(200) }).weights, 2e-6, 'weights');
    mha.dispose();
  });

  it('a causal single head without W_O: no output row depends on a later token', () => {
    const g = new Generator(4);
    const x = random(g, [5, 10]);
    const w = [0, 1, 2].map(() => random(g, [4, 10]));
    const run = (input: Tensor) => {
      const [q, k, v] = w.map((weight) => attn.linear(input, weight));
      return attn.scaledDotProductAttention(q, k, v, {
        mask: mask('attend', [5, 5], [1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1]),
        needWeights: true,
        trace: ['q', 'k', 'v', 'scores'],
      });
    };
    const whole = run(x);
    for (const name of ['q', 'k', 'v'] as const) assertDims(whole.trace![name], [5, 4], name);
    assertDims(whole.trace!.scores, [5, 5], 'scores');
    assertDims(whole.weights, [5, 5], 'weights');
    assertDims(whole.output, [5, 4], 'output');
    for (let t = 0; t < 4; t++) {
      const changed = { data: x.data.slice(), dims: x.dims };
      changed.data.fill(9, (t + 1) * 10);
      const r = run(changed);
      assertSameBits(slice(r.output, 0, 0, t + 1), slice(whole.output, 0, 0, t + 1), `rows up to ${t}`);
    }
  });

  it('dot and scaled dot product attention against float64', () => {
    const g = new Generator(6);
    const [q, k, v] = [random(g, [2, 3, 7, 16], 2), random(g, [2, 3, 9, 16], 2), random(g, [2, 3, 9, 5])];
    for (const scale of [1, undefined]) {
      const r = attn.scaledDotProductAttention(q, k, v, scale === undefined ? { needWeights: true } : { scale, needWeights: true });
      const expected = reference.attention(q, k, v, scale === undefined ? {} : { scale });
      assertClose(r.weights, expected.weights, 4e-6, `weights, scale ${scale}`);
      assertClose(r.output, expected.output, 4e-6, `output, scale ${scale}`);
    }
  });

  it('self-attention without positions is permutation-equivariant', () => {
    const g = new Generator(8);
    const x = random(g, [1, 6, 24]);
    const order = [3, 0, 5, 1, 4, 2];
    const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
    assertClose(mha.forward(take(x, 1, order)).output, take(mha.forward(x).output, 1, order), 2e-6);
    mha.dispose();
  });

  it('encoder-decoder attention: causal self-attention, then a padded memory', () => {
    const g = new Generator(10);
    const E = 32;
    const [y, memory] = [random(g, [3, 30, E]), random(g, [3, 50, E])];
    const own = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4 });
    const cross = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4 });
    const lengths = [50, 31, 7];
    const padding = mask(
      'block',
      [3, 50],
      lengths.flatMap((n) => Array.from({ length: 50 }, (_, s) => (s < n ? 0 : 1))),
    );
    const self = own.forward(y, undefined, undefined, { isCausal: true });
    const r = cross.forward(self.output, memory, memory, { keyPaddingMask: padding, needWeights: true });
    assertDims(r.weights, [3, 4, 30, 50], 'weights');
    assertDims(r.output, [3, 30, E], 'output');
    lengths.forEach((n, b) => {
      for (let row = 0; row < 4 * 30; row++) {
        const w = r.weights!.data.subarray((b * 120 + row) * 50, (b * 120 + row + 1) * 50);
        assert.closeTo(
          w.slice(0, n).reduce((a, p) => a + p, 0),
          1,
          1e-5,
        );
        assert.isTrue(
          w.slice(n).every((p) => p === 0),
          'padded keys have weight 0',
        );
      }
    });
    own.dispose();
    cross.dispose();
  });

  it('why the scale: q·k of width D has variance near D, scaled near 1', () => {
    const g = new Generator(11);
    // Sums of twelve uniforms are normal enough for a variance.
    const normal = (dims: number[]) => tensor(dims, () => Math.sqrt(3 / 12) * Array.from({ length: 12 }, () => g.unit()).reduce((a, b) => a + b, 0));
    const D = 64;
    const [q, k, v] = [normal([100, D]), normal([100, D]), normal([100, 1])];
    const variance = (t: Tensor) => {
      const mean = t.data.reduce((a, b) => a + b, 0) / t.data.length;
      return t.data.reduce((a, b) => a + (b - mean) ** 2, 0) / t.data.length;
    };
    const plain = attn.scaledDotProductAttention(q, k, v, { scale: 1, trace: ['scores'] });
    const scaled = attn.scaledDotProductAttention(q, k, v, { trace: ['scores'] });
    assert.closeTo(variance(plain.trace!.scores!) / D, 1, 0.15);
    assert.closeTo(variance(scaled.trace!.scores!), 1, 0.15);
  });

  it('one query alone gives bit for bit its row of the whole', () => {
    const g = new Generator(12);
    const [q, k, v] = [random(g, [2, 2, 37, 24]), random(g, [2, 2, 41, 24]), random(g, [2, 2, 41, 20])];
    const whole = attn.scaledDotProductAttention(q, k, v, { needWeights: true });
    for (const l of [0, 1, 5, 17, 36]) {
      const one = attn.scaledDotProductAttention(slice(q, 2, l, l + 1), k, v, { needWeights: true });
      assertSameBits(one.output, slice(whole.output, 2, l, l + 1), `output of query ${l}`);
      assertSameBits(one.weights, slice(whole.weights!, 2, l, l + 1), `weights of query ${l}`);
    }
  });
});
