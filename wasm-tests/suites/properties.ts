/** What holds for every shape: generated with fast-check, which finds the smallest shapes that break a property. */
import type { Attn, AttentionOptions, EncoderLayerOptions, Tensor } from 'attn';
import { assert } from 'chai';
import fc from 'fast-check';
import { Generator } from '../support/generator.ts';
import { host, loadHere } from '../support/host.ts';
import * as reference from '../support/reference.ts';
import { assertClose, assertDims, assertSameBits, mask, product, random, reshape, slice, take, tensor } from '../support/tensors.ts';

/** fast-check prints it, and the shapes, when a property fails. */
const seed = 20170612;
// The checked builds are some twenty times slower.
const numRuns = host.build === 'release' ? 60 : 6;

describe(`properties (fast-check, seed ${seed})`, () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  const upTo = (most: number, least = 1) => fc.integer({ min: least, max: most });
  /** Sizes of an attention, and where its numbers come from. */
  const shape = fc.record({ B: upTo(3), H: upTo(4), L: upTo(19), S: upTo(23), D: upTo(17), Dv: upTo(9), numbers: fc.nat(1e6), causal: fc.boolean() });
  type Shape = typeof shape extends fc.Arbitrary<infer T> ? T : never;
  const inputs = ({ B, H, L, S, D, Dv, numbers }: Shape) => {
    const g = new Generator(numbers);
    return { g, q: random(g, [B, H, L, D], 2), k: random(g, [B, H, S, D], 2), v: random(g, [B, H, S, Dv]) };
  };
  const holds = (name: string, check: (s: Shape) => void) => it(name, () => fc.assert(fc.property(shape, check), { seed, numRuns }));

  /** Sizes and options of an encoder. */
  const encoder = fc.record({
    ...{ B: upTo(3), L: upTo(11), H: upTo(3), D: upTo(6), F: upTo(20), layers: upTo(3), numbers: fc.nat(1e6) },
    options: fc.record({
      activation: fc.constantFrom('relu', 'gelu', 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish', 'quick_gelu'),
      norm: fc.constantFrom('layer_norm', 'rms_norm'),
      ...{ normFirst: fc.boolean(), bias: fc.boolean(), gated: fc.boolean() },
    }) as fc.Arbitrary<Partial<EncoderLayerOptions>>,
  });
  type EncoderShape = typeof encoder extends fc.Arbitrary<infer T> ? T : never;
  const encoderHolds = (name: string, check: (s: EncoderShape, run: (x: Tensor, o?: object) => Tensor, x: Tensor, g: Generator) => void) =>
    it(name, () =>
      fc.assert(
        fc.property(encoder, (s) => {
          const { B, L, H, D, F, layers, numbers, options } = s;
          const g = new Generator(numbers);
          const module = new attn.TransformerEncoder({ dModel: H * D, nhead: H, dimFeedforward: F, numLayers: layers, ...options });
          try {
            check(s, (x, o) => module.forward(x, o).output, random(g, [B, L, H * D], 2), g);
          } finally {
            module.dispose();
          }
        }),
        { seed, numRuns },
      ),
    );
  /** A permutation of n. */
  const shuffled = (g: Generator, n: number) => {
    const order = Array.from({ length: n }, (_, i) => i);
    for (let i = n - 1; i > 0; i--) {
      const j = g.below(i + 1);
      [order[i], order[j]] = [order[j], order[i]];
    }
    return order;
  };

  holds('attention is what float64 says, and its weights are a distribution', (s) => {
    const { q, k, v } = inputs(s);
    const r = attn.scaledDotProductAttention(q, k, v, { isCausal: s.causal, needWeights: true });
    const expected = reference.attention(q, k, v, { isCausal: s.causal });
    assertClose(r.output, expected.output, 4e-6, 'output');
    for (let row = 0; row < s.B * s.H * s.L; row++) {
      const weights = r.weights!.data.subarray(row * s.S, (row + 1) * s.S);
      assert.isTrue(weights.every((w) => w >= 0 && w <= 1));
      assert.closeTo(
        weights.reduce((a, w) => a + w, 0),
        1,
        1e-6,
      );
    }
  });

  holds('padding of any content and any length changes no bit', (s) => {
    const { g, q, k, v } = inputs(s);
    const extra = 1 + g.below(9);
    const pad = (t: Tensor) => {
      const [B, H, S, D] = t.dims;
      const dirt = g.pick([NaN, Infinity, -Infinity, 3e38, 0]);
      return tensor([B, H, S + extra, D], (i) => {
        const [bh, s0, d] = [Math.floor(i / ((S + extra) * D)), Math.floor(i / D) % (S + extra), i % D];
        return s0 < S ? t.data[(bh * S + s0) * D + d] : dirt;
      });
    };
    const padding = mask(
      'attend',
      [1, s.S + extra],
      Array.from({ length: s.S + extra }, (_, i) => Number(i < s.S)),
    );
    const [plain, padded] = [attn.scaledDotProductAttention(q, k, v), attn.scaledDotProductAttention(q, pad(k), pad(v), { keyPaddingMask: padding })];
    assertSameBits(padded.output, plain.output);
  });

  holds('keys and values in another order give the same sums; queries in another order give their rows', (s) => {
    const { g, q, k, v } = inputs(s);
    const [keys, queries] = [shuffled(g, s.S), shuffled(g, s.L)];
    const plain = attn.scaledDotProductAttention(q, k, v, { needWeights: true });
    const moved = attn.scaledDotProductAttention(q, take(k, 2, keys), take(v, 2, keys), { needWeights: true });
    assertClose(moved.output, plain.output, 2e-6, 'output');
    assertClose(moved.weights, take(plain.weights!, 3, keys), 2e-6, 'weights');
    assertSameBits(attn.scaledDotProductAttention(take(q, 2, queries), k, v).output, take(plain.output, 2, queries), 'rows');
  });

  holds('a constant added to all scores of a query changes nothing', (s) => {
    const { g, q, k, v } = inputs(s);
    const shifts = Array.from({ length: s.L }, () => g.unit() * 8);
    const shift = mask(
      'additive',
      [s.L, s.S],
      Array.from({ length: s.L * s.S }, (_, i) => shifts[Math.floor(i / s.S)]),
    );
    const [plain, shifted] = [attn.scaledDotProductAttention(q, k, v), attn.scaledDotProductAttention(q, k, v, { mask: shift })];
    assertClose(shifted.output, plain.output, 1e-5);
  });

  holds('heads are single heads side by side, and batch entries calls of their own, bit for bit', (s) => {
    const { q, k, v } = inputs(s);
    const options: AttentionOptions = { isCausal: s.causal, needWeights: true };
    const whole = attn.scaledDotProductAttention(q, k, v, options);
    const cut = (t: Tensor, b: number, h: number) => slice(slice(t, 0, b, b + 1), 1, h, h + 1);
    for (let b = 0; b < s.B; b++)
      for (let h = 0; h < s.H; h++) {
        const one = attn.scaledDotProductAttention(cut(q, b, h), cut(k, b, h), cut(v, b, h), options);
        assertSameBits(one.output, cut(whole.output, b, h), 'output');
        assertSameBits(one.weights, cut(whole.weights!, b, h), 'weights');
      }
  });

  holds('identical values come out as that value, and one key as its value', (s) => {
    const { q, k, v } = inputs(s);
    const same = take(
      v,
      2,
      Array.from({ length: s.S }, () => 0),
    );
    const repeated = take(
      slice(v, 2, 0, 1),
      2,
      Array.from({ length: s.L }, () => 0),
    );
    assertClose(attn.scaledDotProductAttention(q, k, same, { isCausal: s.causal }).output, repeated, 1e-6, 'identical');
    assertSameBits(attn.scaledDotProductAttention(q, slice(k, 2, 0, 1), slice(v, 2, 0, 1)).output, repeated, 'one key');
  });

  holds('no bit of a causal output depends on a later key, and one query is its row', (s) => {
    const { g, q, k, v } = inputs(s);
    const l = g.below(s.L);
    const whole = attn.scaledDotProductAttention(q, k, v, { isCausal: true }).output;
    const upToL = Math.min(l + 1, s.S);
    const [k2, v2] = [slice(k, 2, 0, upToL), slice(v, 2, 0, upToL)];
    assertSameBits(attn.scaledDotProductAttention(slice(q, 2, l, l + 1), k2, v2).output, slice(whole, 2, l, l + 1));
  });

  holds('general attention is dot-product attention of the queries times its weight; additive knows only the sum of its parts', (s) => {
    const { g, q, k, v } = inputs(s);
    const weight = random(g, [s.D, s.D]);
    const transposed = tensor([s.D, s.D], (i) => weight.data[(i % s.D) * s.D + Math.floor(i / s.D)]);
    const options: AttentionOptions = { isCausal: s.causal, needWeights: true };
    const [a, b] = [
      attn.generalAttention(q, k, v, { weight }, options),
      attn.scaledDotProductAttention(attn.linear(q, transposed), k, v, { ...options, scale: 1 }),
    ];
    assertClose(a.weights, b.weights!, 2e-5, 'general');
    const params = { queryWeight: random(g, [5, s.D]), keyWeight: random(g, [5, s.D]), scoreWeight: random(g, [5]) };
    const bias = random(g, [5]);
    const zeroQuery = { ...params, queryWeight: tensor([5, s.D], () => 0) };
    const rows = attn.additiveAttention(q, k, v, { ...zeroQuery, bias }, { needWeights: true }).weights!;
    // Queries that count for nothing all look alike.
    for (let l = 1; l < s.L; l++) assertSameBits(slice(rows, 2, l, l + 1), slice(rows, 2, 0, 1), 'additive');
  });

  it('softmax rows sum to 1 along every dimension; linear is linear; norms have their moments', () =>
    fc.assert(
      fc.property(fc.array(upTo(7), { minLength: 1, maxLength: 5 }), fc.nat(1e6), fc.nat(4), upTo(9), (dims, numbers, axis, out) => {
        const g = new Generator(numbers);
        const x = random(g, dims, 20);
        const dim = axis % dims.length;
        const y = attn.softmax(x, dim);
        assertSameBits(attn.softmax(x, dim - dims.length), y, 'a negative dim');
        const inner = product(dims.slice(dim + 1));
        for (let i = 0; i < x.data.length; i++)
          if (Math.floor(i / inner) % dims[dim] === 0) {
            let sum = 0;
            for (let j = 0; j < dims[dim]; j++) sum += y.data[i + j * inner];
            assert.closeTo(sum, 1, 1e-6);
          }
        const width = dims[dims.length - 1];
        const [w, b] = [random(g, [out, width]), random(g, [out])];
        const line = attn.linear(x, w, b);
        assertDims(line, [...dims.slice(0, -1), out], 'linear');
        const doubled = attn.linear(
          tensor(dims, (i) => 2 * x.data[i]),
          tensor([out, width], (i) => w.data[i]),
          tensor([out], (i) => 2 * b.data[i]),
        );
        assertSameBits(
          doubled,
          tensor(line.dims, (i) => 2 * line.data[i]),
          'powers of two go through exactly',
        );
        const [normed, rms] = [attn.layerNorm(x).data, attn.rmsNorm(x).data];
        for (let row = 0; row < x.data.length / width; row++) {
          const of = (t: Float32Array) => t.subarray(row * width, (row + 1) * width);
          assert.closeTo(of(normed).reduce((a, n) => a + n, 0) / width, 0, 1e-5, 'mean');
          assert.isAtMost(of(normed).reduce((a, n) => a + n * n, 0) / width, 1 + 1e-5, 'variance');
          assert.closeTo(of(rms).reduce((a, n) => a + n * n, 0) / width, 1, 1e-3, 'mean square');
        }
      }),
      { seed, numRuns },
    ));

  it('rotary positions keep lengths, and a product of two rows knows only their distance', () =>
    fc.assert(
      fc.property(upTo(9), upTo(8), fc.nat(1e6), fc.integer({ min: -500, max: 500 }), fc.boolean(), (L, half, numbers, offset, interleaved) => {
        const g = new Generator(numbers);
        const [q, k] = [random(g, [1, 1, L, 2 * half]), random(g, [1, 1, L, 2 * half])];
        const [a, b] = [q, k].map((t) => attn.applyRotary(t, { interleaved }));
        const [c, d] = [q, k].map((t) => attn.applyRotary(t, { interleaved, offset }));
        const scores = (x: Tensor, y: Tensor) => attn.scaledDotProductAttention(x, y, y, { trace: ['scores'] }).trace!.scores!;
        assertClose(scores(c, d), scores(a, b), 4e-6, 'distance');
        const square = (t: Tensor) => t.data.reduce((sum, value) => sum + value * value, 0);
        assert.closeTo(square(c) / square(q), 1, 1e-5, 'length');
        assertSameBits(slice(a, 2, 0, 1), slice(q, 2, 0, 1), 'position 0 is not turned');
      }),
      { seed, numRuns },
    ));

  encoderHolds('an encoder without positions is permutation-equivariant', ({ L }, run, x, g) => {
    const order = shuffled(g, L);
    assertClose(run(take(x, 1, order)), take(run(x), 1, order), 1e-4);
  });

  encoderHolds('a text of an encoder depends neither on its neighbours nor on padding behind it, bit for bit', ({ B, L }, run, x, g) => {
    const whole = run(x);
    const extra = 1 + g.below(5);
    const E = x.dims[2];
    const dirt = g.pick([NaN, Infinity, 3e38, 0]);
    const padded = tensor([B, L + extra, E], (i) => {
      const [b, l, e] = [Math.floor(i / ((L + extra) * E)), Math.floor(i / E) % (L + extra), i % E];
      return l < L ? x.data[(b * L + l) * E + e] : dirt;
    });
    const keyPaddingMask = mask(
      'attend',
      [1, L + extra],
      Array.from({ length: L + extra }, (_, l) => Number(l < L)),
    );
    assertSameBits(slice(run(padded, { keyPaddingMask }), 1, 0, L), whole, 'padding');
    for (let b = 0; b < B; b++) assertSameBits(run(slice(x, 0, b, b + 1)), slice(whole, 0, b, b + 1), 'neighbours');
    assertSameBits(reshape(run(reshape(slice(x, 0, 0, 1), [L, E])), [1, L, E]), slice(whole, 0, 0, 1), 'rank 2');
  });

  encoderHolds('no bit of a causal encoder depends on a later token', ({ L }, run, x, g) => {
    const l = g.below(L);
    assertSameBits(run(slice(x, 1, 0, l + 1), { isCausal: true }), slice(run(x, { isCausal: true }), 1, 0, l + 1));
  });

  it('what writeSafetensors writes, parseSafetensors reads: any names, any shapes, any metadata', () =>
    fc.assert(
      fc.property(
        fc.dictionary(
          fc.string({ unit: 'grapheme' }).filter((name) => name !== '__metadata__'),
          fc.array(upTo(4, 0), { maxLength: 8 }),
          { maxKeys: 6 },
        ),
        fc.dictionary(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' })),
        fc.nat(1e6),
        (shapes, metadata, numbers) => {
          const g = new Generator(numbers);
          const state = new Map(Object.entries(shapes).map(([name, dims]) => [name, random(g, dims)]));
          const back = attn.parseSafetensors(attn.writeSafetensors(state, metadata));
          assert.sameMembers([...back.keys()], [...state.keys()]);
          for (const [name, t] of state) assertSameBits(back.get(name), t, name);
        },
      ),
      { seed, numRuns },
    ));

  it('parseSafetensors on changed bytes: tensors, or an error of its own, and the heap as it was', () => {
    const g = new Generator(seed);
    const good = attn.writeSafetensors({ a: random(g, [2, 3]), 'b.c': random(g, [4]) }, { format: 'pt' });
    let refused = 0;
    const change = (file: Uint8Array) => {
      try {
        attn.parseSafetensors(file);
      } catch (error) {
        refused++;
        assert.include(['FORMAT', 'UNSUPPORTED', 'MEMORY'], (error as { code?: string }).code, String(error));
      }
    };
    change(good.slice(0, 5));
    const { used } = attn.info.heap;
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(good.length - 1), fc.nat(255)), { minLength: 1, maxLength: 4 }),
        fc.nat(good.length),
        (changes, length) => {
          const file = good.slice();
          for (const [at, byte] of changes) file[at] = byte;
          change(file);
          change(file.subarray(0, length));
        },
      ),
      { seed, numRuns: 5 * numRuns },
    );
    assert.equal(attn.info.heap.used, used);
    assert.isAbove(refused, numRuns);
  });
});
