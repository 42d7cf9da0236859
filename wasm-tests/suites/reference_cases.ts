/** Reference cases without stored numbers. */
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

    it('queries, keys, values and scores are the exact integers of the article', () => {
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
      // Step 6 of the article: each value times its weight; output rows are their sums.
      const wvs = r.trace!.weighted_values!;
      assert.deepEqual([...wvs.dims], [3, 3, 3]);
      for (let l = 0; l < 3; l++)
        for (let s = 0; s < 3; s++)
          for (let d = 0; d < 3; d++) assert.closeTo(wvs.data[(l * 3 + s) * 3 + d], r.weights!.data[l * 3 + s] * v.data[s * 3 + d], 1e-6);
    });

    it('MultiHeadAttention without W_O gives the same numbers', () => {
      const columns = 3;
      const mha = new attn.MultiHeadAttention({ embedDim: 3, numHeads: 1, kdim: 4, vdim: 4, bias: false, scale: 1, outProj: false });
      // The module's query width is embedDim = 3 but x has width 4, so the queries are precomputed and their projection
      // is the identity.
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
      // Identity keys turn log-weights into scores.
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
    assert.isUndefined(t.weighted_values, 'weighted_values needs its name');
    assertSameBits(t.output, r.output, 'the traced output equals the output');
    // context in (B,L,H,D) order has the memory layout of merged.
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

  describe('an encoder and a classifier of width 10, with one head, one layer and two classes', () => {
    const options = { dModel: 10, nhead: 1, dimFeedforward: 10, numLayers: 1 };
    const [B, S] = [1, 10];
    const g = new Generator(5);
    const x = random(g, [B, S, 10]);

    it('encoder (1,10,10), logits (1,10,2)', () => {
      const encoder = new attn.TransformerEncoder(options);
      const classifier = new attn.TransformerClassifier({ ...options, numClasses: 2 });
      const state = classifier.stateDict();
      encoder.loadStateDict(new Map([...state].filter(([n]) => n.startsWith('encoder.')).map(([n, t]) => [n.slice('encoder.'.length), t])));
      const [e, c] = [encoder.forward(x), classifier.forward(x)];
      assertDims(e.output, [B, S, 10], 'output');
      assertDims(c.logits, [B, S, 2], 'logits');
      assertSameBits(c.output, e.output, "the classifier's encoder gives the same");
      assertSameBits(attn.linear(e.output, state.get('classifier.weight')!, state.get('classifier.bias')), c.logits, 'logits');
      encoder.dispose();
      classifier.dispose();
    });

    it('masks of dims [B,1,1,S] and [B,S,S] equal [S] and [S,S]', () => {
      const classifier = new attn.TransformerClassifier({ ...options, numClasses: 2 });
      const keys = Array.from({ length: S }, (_, s) => Number(s < 7));
      const lower = Array.from({ length: S * S }, (_, i) => Number(i % S <= Math.floor(i / S)));
      const run = (dims: readonly number[], values: readonly number[]) =>
        classifier.forward(x, { mask: mask('attend', dims, values), outputAttentions: true });
      for (const [dims, plain, values] of [
        [[B, 1, 1, S], [S], keys],
        [[B, S, S], [S, S], lower],
      ] as const) {
        const [r, expected] = [run(dims, values), run(plain, values)];
        assertSameBits(r.logits, expected.logits, `logits, mask [${dims}]`);
        assertDims(r.attentions![0], [B, 1, S, S], 'attentions');
        assertSameBits(r.attentions![0], expected.attentions![0], `attentions, mask [${dims}]`);
        r.attentions![0].data.forEach((w, i) => assert.equal(w > 0, values[values.length === S ? i % S : i] === 1, `weight ${i}`));
      }
      assertSameBits(run([B, S, S], lower).logits, classifier.forward(x, { isCausal: true }).logits, 'the lower triangle equals isCausal');
      classifier.dispose();
    });
  });

  describe('score functions', () => {
    const g = new Generator(66);
    const [B, H, L, S, D, Dv, A] = [2, 3, 7, 9, 16, 5, 11];
    const [q, k, v] = [random(g, [B, H, L, D], 2), random(g, [B, H, S, D], 2), random(g, [B, H, S, Dv])];
    const [weight, queryWeight, keyWeight] = [random(g, [D, D], 0.25), random(g, [A, D], 0.25), random(g, [A, D], 0.25)];
    const [scoreWeight, bias] = [random(g, [A]), random(g, [A])];
    const row = (w: Tensor, i: number) => w.data.subarray(i * D, (i + 1) * D);
    const dot = (a: ArrayLike<number>, b: ArrayLike<number>) => Array.from(a).reduce((sum, x, i) => sum + x * b[i], 0);
    const general = (query: Float32Array, key: Float32Array) => Array.from(query).reduce((sum, x, i) => sum + x * dot(row(weight, i), key), 0);
    const additive = (query: Float32Array, key: Float32Array) =>
      Array.from(scoreWeight.data).reduce(
        (sum, w, a) => sum + w * Math.tanh(dot(row(queryWeight, a), query) + dot(row(keyWeight, a), key) + bias.data[a]),
        0,
      );

    it('dot, scaled dot, general and additive scores have the same shapes and agree with float64', () => {
      const asked = { needWeights: true, trace: ['scores'] } as const;
      const params = { queryWeight, keyWeight, scoreWeight, bias };
      for (const [name, r, expected] of [
        ['dot', attn.scaledDotProductAttention(q, k, v, { ...asked, scale: 1 }), reference.attention(q, k, v, { scale: 1 })],
        ['scaled dot', attn.scaledDotProductAttention(q, k, v, asked), reference.attention(q, k, v)],
        ['general', attn.generalAttention(q, k, v, { weight }, asked), reference.attention(q, k, v, { scale: 1 }, general)],
        ['additive', attn.additiveAttention(q, k, v, params, asked), reference.attention(q, k, v, { scale: 1 }, additive)],
      ] as const) {
        assertDims(r.output, [B, H, L, Dv], name);
        assertDims(r.weights, [B, H, L, S], name);
        assertClose(r.trace!.scores, expected.scores, 1e-5, `${name}: scores`);
        assertClose(r.weights, expected.weights, 1e-5, `${name}: weights`);
        assertClose(r.output, expected.output, 1e-5, `${name}: output`);
      }
    });

    it('general attention with the identity equals dot-product attention', () => {
      const identity = tensor([D, D], (i) => Number(Math.floor(i / D) === i % D));
      const r = attn.generalAttention(q, k, v, { weight: identity }, { needWeights: true });
      assertSameBits(r.weights, attn.scaledDotProductAttention(q, k, v, { scale: 1, needWeights: true }).weights, 'weights');
    });

    it('additive attention with [Wq Wk] equals the concatenated form tanh(W [q;k])', () => {
      const [q2, k2, v2] = [q, k, v].map((t) => reshape(slice(slice(t, 0, 0, 1), 1, 0, 1), t.dims.slice(2)));
      const scores = attn.additiveAttention(q2, k2, v2, { queryWeight, keyWeight, scoreWeight, bias }, { trace: ['scores'] }).trace!.scores;
      const pairs = tensor([L * S, 2 * D], (i) => {
        const [pair, d] = [Math.floor(i / (2 * D)), i % (2 * D)];
        return d < D ? q2.data[Math.floor(pair / S) * D + d] : k2.data[(pair % S) * D + d - D];
      });
      const both = tensor([A, 2 * D], (i) => {
        const [a, d] = [Math.floor(i / (2 * D)), i % (2 * D)];
        return d < D ? queryWeight.data[a * D + d] : keyWeight.data[a * D + d - D];
      });
      const concat = attn.linear(attn.activation(attn.linear(pairs, both, bias), 'tanh'), reshape(scoreWeight, [1, A]));
      assertClose(scores, reshape(concat, [L, S]), 4e-6, 'scores');
    });
  });

  it('embedding: nearest neighbours and analogies on a hand-made table', () => {
    // Columns: royal, female, grown.
    const words = ['king', 'queen', 'prince', 'princess', 'man', 'woman', 'boy', 'girl'];
    const table = tensor([8, 3], (i) => {
      const [word, column] = [Math.floor(i / 3), i % 3];
      return [word < 4 ? 1 : -0.25, word % 2 ? 0.75 : -0.75, word % 4 < 2 ? 1.5 : -1.5][column];
    });
    const embedding = new attn.Embedding({ numEmbeddings: 8, embeddingDim: 3 });
    embedding.loadStateDict({ weight: table });
    const id = (word: string) => words.indexOf(word);
    assert.equal(words[embedding.nearest(id('king'), 1)[0].id], 'man');
    assert.equal(words[embedding.analogy(id('man'), id('king'), id('woman'), 1)[0].id], 'queen');
    assert.equal(words[embedding.analogy(id('boy'), id('man'), id('princess'), 1)[0].id], 'queen');
    assert.equal(embedding.analogy(id('man'), id('king'), id('woman'), 1)[0].similarity, 1, 'the table is exact');
    embedding.dispose();
  });

  describe('positions', () => {
    it('the sinusoidal table agrees with its formula', () => {
      for (const [length, width] of [
        [1, 1],
        [5, 2],
        [33, 7],
        [129, 64],
      ]) {
        const expected = Array.from({ length: length * width }, (_, i) => {
          const [position, column] = [Math.floor(i / width), i % width];
          const angle = position / 10000 ** ((column - (column % 2)) / width);
          return column % 2 ? Math.cos(angle) : Math.sin(angle);
        });
        assertClose(attn.sinusoidalPositions(length, width), { data: expected, dims: [length, width] }, 1e-7, `${length} by ${width}`);
      }
    });

    it('an encoder is permutation-equivariant only without positions', () => {
      const g = new Generator(88);
      const [L, E] = [6, 24];
      const x = random(g, [1, L, E]);
      const positions = attn.sinusoidalPositions(L, E).data;
      const placed = (t: Tensor): Tensor => ({ data: t.data.map((value, i) => value + positions[i % positions.length]), dims: t.dims });
      const order = [3, 0, 5, 1, 4, 2];
      const encoder = new attn.TransformerEncoder({ dModel: E, nhead: 4, dimFeedforward: 32, numLayers: 2 });
      const run = (t: Tensor) => encoder.forward(t).output;
      assertClose(run(take(x, 1, order)), take(run(x), 1, order), 1e-5, 'without');
      const [after, before] = [run(placed(take(x, 1, order))), take(run(placed(x)), 1, order)];
      const largest = after.data.reduce((a, value, i) => Math.max(a, Math.abs(value - before.data[i])), 0);
      assert.isAbove(largest, 0.1, 'with');
      encoder.dispose();
    });
  });

  it('a sentiment classifier composed of Embedding, sinusoidalPositions and TransformerClassifier', () => {
    const texts = ['a truly good and warm film', 'a bad and dull film', 'good'];
    const vocabulary = ['<pad>', ...new Set(texts.join(' ').split(' '))];
    const [B, L, E] = [texts.length, Math.max(...texts.map((text) => text.split(' ').length)), 8];
    const ids = Int32Array.from(texts.flatMap((text) => Array.from({ length: L }, (_, i) => Math.max(0, vocabulary.indexOf(text.split(' ')[i])))));
    const embedding = new attn.Embedding({ numEmbeddings: vocabulary.length, embeddingDim: E, paddingIdx: 0 });
    const classifier = new attn.TransformerClassifier({
      ...{ dModel: E, nhead: 2, dimFeedforward: 16, numLayers: 2, numClasses: 2, pooling: 'mean', normFirst: true },
    });
    // Column 0 is the sentiment. A pre-norm encoder whose attention and feed-forward outputs are 0 passes its input
    // through.
    const table = embedding
      .stateDict()
      .get('weight')!
      .data.map((value, i) => (i % E ? value : 0));
    for (const [word, sentiment] of Object.entries({ good: 9, warm: 9, bad: -9, dull: -9 })) table[vocabulary.indexOf(word) * E] = sentiment;
    embedding.loadStateDict({ weight: { data: table, dims: [vocabulary.length, E] } });
    const state = classifier.stateDict();
    for (const [name, t] of state)
      if (/(out_proj|linear2)\.(weight|bias)$/.test(name))
        state.set(
          name,
          tensor(t.dims, () => 0),
        );
    state
      .set(
        'classifier.weight',
        tensor([2, E], (i) => ({ 0: -1, [E]: 1 })[i] ?? 0),
      )
      .set('classifier.bias', tensor([2], [0, 0]));
    classifier.loadStateDict(state);

    const positions = attn.sinusoidalPositions(L, E).data;
    const words = embedding.forward(ids, [B, L]);
    const x = { data: words.data.map((value, i) => value + positions[i % positions.length]), dims: words.dims };
    const keyPaddingMask = mask('attend', [B, L], ids);
    const { logits } = classifier.forward(x, { keyPaddingMask });
    assertDims(logits, [B, 2], 'logits');
    assert.deepEqual(
      [0, 1, 2].map((b) => logits.data[2 * b + 1] > logits.data[2 * b]),
      [true, false, true],
    );
    // The mean of column 0 over the words without padding: position i adds sin i.
    assert.closeTo(logits.data[1], (9 + 9 + [0, 1, 2, 3, 4, 5].reduce((a, i) => a + Math.sin(i), 0)) / 6, 1e-5);
    assert.closeTo(logits.data[5], 9, 1e-6);
    embedding.dispose();
    classifier.dispose();
  });

  it('self-attention without positions is permutation-equivariant', () => {
    const g = new Generator(8);
    const x = random(g, [1, 6, 24]);
    const order = [3, 0, 5, 1, 4, 2];
    const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
    assertClose(mha.forward(take(x, 1, order)).output, take(mha.forward(x).output, 1, order), 2e-6);
    mha.dispose();
  });

  it('encoder-decoder attention: causal self-attention, then cross-attention to a padded memory', () => {
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

  it('the reason for the scale: q·k of width D has variance near D, scaled near 1', () => {
    const g = new Generator(11);
    // The sum of twelve uniforms approximates a normal distribution well enough for a variance.
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

  it('a single query gives its row of the whole, bit for bit', () => {
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
