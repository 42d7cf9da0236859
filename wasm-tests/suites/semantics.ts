/** Tests masks, policies, edge sizes and traces against float64 and bit for bit. */
import type { Attn, AttentionOptions, AttentionResult, Mask, Tensor, TraceName } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import * as reference from '../support/reference.ts';
import { assertClose, assertDims, assertSameBits, mask, product, random, reshape, slice, take, tensor } from '../support/tensors.ts';

const [B, H, L, S, D, Dv] = [2, 3, 5, 7, 8, 6];

/** Every form of mask dims; B, H and L may each be 1. */
const maskDims: readonly (readonly number[])[] = [
  [S],
  [L, S],
  [1, S],
  [B, L, S],
  [1, L, S],
  [B, 1, S],
  [1, 1, S],
  [B, H, L, S],
  [1, H, L, S],
  [B, 1, L, S],
  [B, H, 1, S],
  [1, 1, L, S],
  [1, H, 1, S],
  [B, 1, 1, S],
  [1, 1, 1, S],
];

/** Draws a mask of the kind; keepOne always allows key 0, so that no row is fully masked by chance. */
function randomMask(g: Generator, kind: Mask['kind'], dims: readonly number[], keepOne: boolean, floats = kind === 'additive'): Mask {
  const keys = dims[dims.length - 1];
  const values = Array.from({ length: product(dims) }, (_, i) => {
    const allowed = (keepOne && i % keys === 0) || g.below(3) !== 0;
    if (kind === 'additive') return allowed ? g.unit() * 2 : -Infinity;
    return allowed === (kind === 'attend') ? 1 + g.below(3) : 0;
  });
  return { kind, dims: [...dims], data: floats ? Float32Array.from(values) : Uint8Array.from(values) };
}

describe('semantics', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  const g = new Generator(1);
  const [q, k, v] = [random(g, [B, H, L, D], 2), random(g, [B, H, S, D], 2), random(g, [B, H, S, Dv])];
  const run = (options: AttentionOptions = {}, a = q, b = k, c = v): AttentionResult => attn.scaledDotProductAttention(a, b, c, options);

  function assertReference(options: AttentionOptions, what: string): void {
    const r = run({ ...options, needWeights: true });
    const expected = reference.attention(q, k, v, options);
    assertClose(r.output, expected.output, 4e-6, `output, ${what}`);
    assertClose(r.weights, expected.weights, 4e-6, `weights, ${what}`);
    expected.masked_scores.data.forEach((score, i) => {
      if (score === -Infinity && options.fullyMasked !== 'uniform' && options.fullyMasked !== 'nan')
        assert.equal(r.weights!.data[i], 0, `${what}: a masked key has weight exactly 0`);
    });
  }

  describe('masks', () => {
    for (const kind of ['attend', 'block', 'additive'] as const)
      it(`${kind}: every form of dims, alone, causal and with key padding, against float64`, () => {
        for (const dims of maskDims)
          for (const isCausal of [false, true])
            for (const padding of [undefined, 'attend', 'block', 'additive'] as const)
              for (const floats of kind === 'additive' ? [true] : [false, true]) {
                const options: AttentionOptions = { mask: randomMask(g, kind, dims, true, floats), isCausal };
                if (padding)
                  options.keyPaddingMask = randomMask(
                    g,
                    padding,
                    g.pick([
                      [B, S],
                      [1, S],
                    ]),
                    true,
                  );
                assertReference(options, `${kind} [${dims}] ${floats ? 'floats' : 'bytes'} causal ${isCausal} padding ${padding}`);
              }
      });

    it('attend is the inverse of block, and additive 0 / -Infinity is the same, bit for bit', () => {
      const allowed = randomMask(g, 'attend', [L, S], true);
      const attend = run({ mask: allowed, needWeights: true });
      const block = run({
        mask: mask(
          'block',
          [L, S],
          Array.from(allowed.data, (x) => (x ? 0 : 1)),
        ),
        needWeights: true,
      });
      const additive = run({
        mask: mask(
          'additive',
          [L, S],
          Array.from(allowed.data, (x) => (x ? 0 : -Infinity)),
        ),
        needWeights: true,
      });
      for (const r of [block, additive]) {
        assertSameBits(r.output, attend.output, 'output');
        assertSameBits(r.weights, attend.weights, 'weights');
      }
    });

    it('a causal query i sees keys 0..i, whichever of L and S is longer', () => {
      for (const [l, s] of [
        [5, 5],
        [5, 9],
        [9, 5],
        [1, 4],
        [4, 1],
      ]) {
        const [a, b, c] = [random(g, [1, 1, l, 4]), random(g, [1, 1, s, 4]), random(g, [1, 1, s, 3])];
        const r = attn.scaledDotProductAttention(a, b, c, { isCausal: true, needWeights: true });
        assertClose(r.weights, reference.attention(a, b, c, { isCausal: true }).weights, 2e-6, `L ${l} S ${s}`);
        for (let i = 0; i < l; i++) for (let j = i + 1; j < s; j++) assert.equal(r.weights!.data[i * s + j], 0);
      }
    });

    it('inputs of rank 2 and 3 take masks of fitting rank', () => {
      const one = [q, k, v].map((t) => reshape(slice(slice(t, 0, 0, 1), 1, 0, 1), [t.dims[2], t.dims[3]]));
      const m = randomMask(g, 'attend', [L, S], true);
      const four = attn.scaledDotProductAttention(reshape(one[0], [1, 1, L, D]), reshape(one[1], [1, 1, S, D]), reshape(one[2], [1, 1, S, Dv]), {
        mask: m,
        needWeights: true,
      });
      const two = attn.scaledDotProductAttention(one[0], one[1], one[2], { mask: m, needWeights: true });
      assertSameBits(two.output, reshape(four.output, [L, Dv]), 'rank 2');
      assertSameBits(two.weights, reshape(four.weights!, [L, S]), 'rank 2 weights');
      const three = attn.scaledDotProductAttention(reshape(one[0], [1, L, D]), reshape(one[1], [1, S, D]), reshape(one[2], [1, S, Dv]), {
        mask: m,
        needWeights: true,
      });
      assertSameBits(three.output, reshape(four.output, [1, L, Dv]), 'rank 3');
      assertSameBits(three.weights, reshape(four.weights!, [1, L, S]), 'rank 3 weights');
      // For rank 3, (B,L,D), a mask of [B,L,S] has one slice per batch entry.
      const batch = [q, k, v].map((t) => reshape(slice(t, 1, 0, 1), [t.dims[0], t.dims[2], t.dims[3]]));
      const perBatch = randomMask(g, 'block', [B, L, S], true);
      const r = attn.scaledDotProductAttention(batch[0], batch[1], batch[2], { mask: perBatch, needWeights: true });
      const expected = reference.attention(slice(q, 1, 0, 1), slice(k, 1, 0, 1), slice(v, 1, 0, 1), { mask: perBatch });
      assertClose(r.weights, { data: expected.weights.data, dims: [B, L, S] }, 4e-6, 'one mask per batch entry');
    });

    it('MultiHeadAttention handles masks like the plain function', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 12, numHeads: H, outProj: false });
      const [x, y] = [random(g, [B, L, 12], 2), random(g, [B, S, 12], 2)];
      const p = mha.forward(x, y, y, { trace: ['q', 'k', 'v'] }).trace!;
      for (const dims of maskDims)
        for (const kind of ['attend', 'block', 'additive'] as const) {
          const options: AttentionOptions = {
            mask: randomMask(g, kind, dims, false),
            keyPaddingMask: randomMask(g, 'attend', [B, S], false),
            isCausal: g.below(2) === 0,
            needWeights: true,
          };
          const r = mha.forward(x, y, y, { ...options, trace: ['context'] });
          const plain = attn.scaledDotProductAttention(p.q!, p.k!, p.v!, options);
          assertSameBits(r.weights, plain.weights, `weights, ${kind} [${dims}]`);
          assertSameBits(r.trace!.context, plain.output, `context, ${kind} [${dims}]`);
        }
      mha.dispose();
    });
  });

  describe('fully masked queries', () => {
    const none = mask(
      'block',
      [L, S],
      Array.from({ length: L * S }, (_, i) => (Math.floor(i / S) === 2 ? 1 : 0)),
    );
    const routes: Record<string, AttentionOptions> = {
      'a boolean mask': { mask: none },
      'an additive mask': {
        mask: mask(
          'additive',
          [L, S],
          Array.from(none.data, (x) => (x ? -Infinity : 0)),
        ),
      },
      'mask and padding together': {
        mask: mask(
          'attend',
          [L, S],
          Array.from({ length: L * S }, (_, i) => (Math.floor(i / S) !== 2 || i % S < 3 ? 1 : 0)),
        ),
        keyPaddingMask: mask('attend', [1, S], [0, 0, 0, 1, 1, 1, 1]),
      },
      'causal and padding together': { isCausal: true, keyPaddingMask: mask('block', [B, S], [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0]) },
    };
    for (const [name, options] of Object.entries(routes))
      it(`with ${name}: the result is zero by default, NaN or uniform on request`, () => {
        assertReference(options, 'default');
        for (const fullyMasked of ['zero', 'nan', 'uniform'] as const) {
          assertReference({ ...options, fullyMasked }, fullyMasked);
          const r = run({ ...options, fullyMasked });
          assertSameBits(r.output, run({ ...options, fullyMasked, needWeights: true }).output, `${fullyMasked}: with and without weights`);
        }
      });

    it('uniform counts every key, including masked ones', () => {
      const r = run({ ...routes['a boolean mask'], fullyMasked: 'uniform', needWeights: true });
      for (let s = 0; s < S; s++) assert.closeTo(r.weights!.data[2 * S + s], 1 / S, 1e-7);
      const nan = { data: v.data.slice(), dims: v.dims };
      nan.data[0] = NaN;
      assert.isNaN(run({ ...routes['a boolean mask'], fullyMasked: 'uniform' }, q, k, nan).output.data[2 * Dv]);
    });

    it('averaged weights follow the same policy', () => {
      for (const [policy, expected] of [
        ['zero', 0],
        ['nan', NaN],
        ['uniform', Math.fround(1 / S)],
      ] as const) {
        const r = run({ ...routes['a boolean mask'], fullyMasked: policy, needWeights: true, averageWeights: true });
        assertDims(r.weights, [B, L, S], 'averaged');
        for (let s = 0; s < S; s++) assert.deepEqual(Number.isNaN(expected), Number.isNaN(r.weights.data[2 * S + s]), policy);
        if (!Number.isNaN(expected)) for (let s = 0; s < S; s++) assert.closeTo(r.weights.data[2 * S + s], expected, 1e-7, policy);
      }
    });
  });

  describe('masked keys are skipped', () => {
    const blocked = [1, 4, 6];
    const isBlocked = (s: number) => blocked.includes(s);
    const routes: Record<string, AttentionOptions> = {
      'mask [S]': {
        mask: mask(
          'block',
          [S],
          Array.from({ length: S }, (_, s) => Number(isBlocked(s))),
        ),
      },
      'mask [B,H,L,S]': {
        mask: mask(
          'attend',
          [B, H, L, S],
          Array.from({ length: B * H * L * S }, (_, i) => Number(!isBlocked(i % S))),
        ),
      },
      'additive -Infinity': {
        mask: mask(
          'additive',
          [L, S],
          Array.from({ length: L * S }, (_, i) => (isBlocked(i % S) ? -Infinity : 0.5)),
        ),
      },
      'key padding': {
        keyPaddingMask: mask(
          'block',
          [B, S],
          Array.from({ length: B * S }, (_, i) => Number(isBlocked(i % S))),
        ),
      },
    };
    for (const [name, options] of Object.entries(routes))
      it(`${name}: NaN, Inf or any other value in a masked position changes no bit`, () => {
        const clean = run({ ...options, needWeights: true });
        for (const dirt of [NaN, Infinity, -Infinity, 3e38, -0, 1e-45]) {
          const [dk, dv] = [k, v].map((t) => {
            const copy = { data: t.data.slice(), dims: t.dims };
            const width = t.dims[3];
            for (let row = 0; row < B * H * S; row++) if (isBlocked(row % S)) copy.data.fill(dirt, row * width, (row + 1) * width);
            return copy;
          });
          for (const needWeights of [true, false]) {
            const r = run({ ...options, needWeights }, q, dk, dv);
            assertSameBits(r.output, clean.output, `output with ${dirt}, weights ${needWeights}`);
            if (needWeights) assertSameBits(r.weights, clean.weights, `weights with ${dirt}`);
          }
        }
      });

    it('causal: output rows do not depend on later tokens, bit for bit', () => {
      const [n, d] = [19, 8];
      const [a, b, c] = [random(g, [1, 2, n, d]), random(g, [1, 2, n, d]), random(g, [1, 2, n, d])];
      const whole = attn.scaledDotProductAttention(a, b, c, { isCausal: true });
      for (const t of [0, 3, 11, 17])
        for (const dirt of [0, NaN, Infinity]) {
          const [b2, c2] = [b, c].map((x) => {
            const copy = { data: x.data.slice(), dims: x.dims };
            for (const h of [0, 1]) copy.data.fill(dirt, (h * n + t + 1) * d, (h + 1) * n * d);
            return copy;
          });
          const r = attn.scaledDotProductAttention(a, b2, c2, { isCausal: true });
          assertSameBits(slice(r.output, 2, 0, t + 1), slice(whole.output, 2, 0, t + 1), `rows up to ${t} with ${dirt} after them`);
        }
    });

    it('a NaN query affects only its own row', () => {
      const bad = { data: q.data.slice(), dims: q.dims };
      bad.data[0] = NaN;
      const [clean, r] = [run(), run({}, bad)];
      for (let d = 0; d < Dv; d++) assert.isNaN(r.output.data[d], 'NaN propagates as in IEEE arithmetic');
      assertSameBits(
        tensor([B * H * L - 1, Dv], r.output.data.slice(Dv)),
        tensor([B * H * L - 1, Dv], clean.output.data.slice(Dv)),
        'the other rows',
      );
    });
  });

  describe('independence, bit for bit', () => {
    it("the content of padded tokens does not affect a module's output", () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
      const lengths = [7, 4, 1];
      const padding = mask(
        'attend',
        [3, 7],
        lengths.flatMap((n) => Array.from({ length: 7 }, (_, s) => Number(s < n))),
      );
      const x = random(g, [3, 7, 24]);
      const clean = mha.forward(x, undefined, undefined, { keyPaddingMask: padding, needWeights: true });
      for (const dirt of [0, 1e30, NaN, Infinity]) {
        const dirty = { data: x.data.slice(), dims: x.dims };
        lengths.forEach((n, b) => dirty.data.fill(dirt, (b * 7 + n) * 24, (b + 1) * 7 * 24));
        const r = mha.forward(dirty, undefined, undefined, { keyPaddingMask: padding, needWeights: true });
        lengths.forEach((n, b) => {
          assertSameBits(slice(slice(r.output, 0, b, b + 1), 1, 0, n), slice(slice(clean.output, 0, b, b + 1), 1, 0, n), `output ${b} with ${dirt}`);
          assertSameBits(
            slice(slice(r.weights!, 0, b, b + 1), 2, 0, n),
            slice(slice(clean.weights!, 0, b, b + 1), 2, 0, n),
            `weights ${b} with ${dirt}`,
          );
        });
      }
      mha.dispose();
    });

    it('a batch entry does not depend on other entries or its position', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 40, numHeads: 5 });
      const x = random(g, [6, 11, 40]);
      const whole = mha.forward(x, undefined, undefined, { needWeights: true });
      for (let b = 0; b < 6; b++) {
        const one = mha.forward(slice(x, 0, b, b + 1), undefined, undefined, { needWeights: true });
        assertSameBits(one.output, slice(whole.output, 0, b, b + 1), `output ${b}`);
        assertSameBits(one.weights, slice(whole.weights!, 0, b, b + 1), `weights ${b}`);
      }
      const order = [4, 2, 0, 5, 3, 1];
      assertSameBits(mha.forward(take(x, 0, order)).output, take(whole.output, 0, order), 'in another order');
      mha.dispose();
    });

    it('a head does not depend on other heads: several heads equal separate single heads', () => {
      const whole = run({ needWeights: true });
      for (let h = 0; h < H; h++) {
        const one = run({ needWeights: true }, slice(q, 1, h, h + 1), slice(k, 1, h, h + 1), slice(v, 1, h, h + 1));
        assertSameBits(one.output, slice(whole.output, 1, h, h + 1), `head ${h}`);
        assertSameBits(one.weights, slice(whole.weights!, 1, h, h + 1), `weights of head ${h}`);
      }
    });

    it('requesting weights, averages or traces changes no bit of the output', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
      const [x, y] = [random(g, [2, 13, 24], 3), random(g, [2, 17, 24], 3)];
      for (const base of [{}, { isCausal: true }, { mask: randomMask(g, 'attend', [13, 17], false) }] as AttentionOptions[]) {
        const plain = mha.forward(x, y, y, base).output;
        for (const extra of [
          { needWeights: true },
          { needWeights: true, averageWeights: true },
          { trace: true },
          { trace: ['weighted_values'] },
          { trace: ['scores'], needWeights: true },
        ] as AttentionOptions[])
          assertSameBits(mha.forward(x, y, y, { ...base, ...extra }).output, plain, JSON.stringify(extra));
      }
      for (const extra of [{ needWeights: true }, { needWeights: true, averageWeights: true }, { trace: true }] as AttentionOptions[])
        assertSameBits(run(extra).output, run().output, `plain function, ${JSON.stringify(extra)}`);
      mha.dispose();
    });

    it('a repeated call gives the same bits', () => {
      const first = run({ needWeights: true });
      for (let i = 0; i < 3; i++) assertSameBits(run({ needWeights: true }).output, first.output);
    });
  });

  describe('edges', () => {
    it('S = 0: every query is fully masked', () => {
      const [a, b, c] = [random(g, [1, 2, 3, 4]), tensor([1, 2, 0, 4], []), tensor([1, 2, 0, 5], [])];
      for (const [fullyMasked, expected] of [
        ['zero', 0],
        ['nan', NaN],
      ] as const) {
        const r = attn.scaledDotProductAttention(a, b, c, { fullyMasked, needWeights: true });
        assertDims(r.output, [1, 2, 3, 5], 'output');
        assertDims(r.weights, [1, 2, 3, 0], 'weights');
        assert.isTrue(
          r.output.data.every((x) => Object.is(x, expected)),
          fullyMasked,
        );
      }
    });

    it('B = 0 and L = 0: empty results with the right dims', () => {
      const empty = attn.scaledDotProductAttention(tensor([0, 2, 3, 4], []), tensor([0, 2, 5, 4], []), tensor([0, 2, 5, 6], []), {
        needWeights: true,
      });
      assertDims(empty.output, [0, 2, 3, 6], 'B = 0');
      assertDims(empty.weights, [0, 2, 3, 5], 'B = 0 weights');
      const noQueries = attn.scaledDotProductAttention(tensor([2, 2, 0, 4], []), random(g, [2, 2, 5, 4]), random(g, [2, 2, 5, 6]), {
        needWeights: true,
      });
      assertDims(noQueries.output, [2, 2, 0, 6], 'L = 0');
      assertDims(noQueries.weights, [2, 2, 0, 5], 'L = 0 weights');
      const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      for (const dims of [
        [0, 3, 8],
        [2, 0, 8],
      ])
        assertDims(mha.forward(tensor(dims, []), undefined, undefined, { trace: true }).output, dims, String(dims));
      mha.dispose();
    });

    it('a single key: the output is exactly its value', () => {
      const [one, value] = [slice(k, 2, 0, 1), slice(v, 2, 0, 1)];
      const r = run({ needWeights: true }, q, one, value);
      assert.isTrue(r.weights!.data.every((w) => w === 1));
      for (let l = 0; l < L; l++) assertSameBits(slice(r.output, 2, l, l + 1), value, `query ${l}`);
    });

    it('logits of ±3e38 do not overflow', () => {
      const [a, b] = [tensor([1, 1, 1, 1], [1]), tensor([1, 1, 3, 1], [3e38, -3e38, 3e38])];
      const r = attn.scaledDotProductAttention(a, b, tensor([1, 1, 3, 1], [2, 100, 4]), { scale: 1, needWeights: true });
      assert.deepEqual([...r.weights!.data], [0.5, 0, 0.5]);
      assert.deepEqual([...r.output.data], [3]);
      const low = attn.scaledDotProductAttention(a, tensor([1, 1, 2, 1], [-3e38, -3e38]), tensor([1, 1, 2, 1], [2, 4]), {
        scale: 1,
        needWeights: true,
      });
      assert.deepEqual([...low.weights!.data], [0.5, 0.5], 'the lowest logits do not count as masked');
      const added = attn.scaledDotProductAttention(a, tensor([1, 1, 2, 1], [1, 1]), tensor([1, 1, 2, 1], [2, 4]), {
        scale: 1,
        needWeights: true,
        mask: mask('additive', [2], [-3e38, -3e38]),
      });
      assert.deepEqual([...added.weights!.data], [0.5, 0.5], 'keys with a large finite bias do not count as masked');
    });

    it('a +Inf score gives a NaN row', () => {
      const r = attn.scaledDotProductAttention(tensor([1, 1, 2, 1], [1, 0.5]), tensor([1, 1, 2, 1], [Infinity, 1]), tensor([1, 1, 2, 1], [1, 2]), {
        scale: 1,
      });
      assert.isTrue(r.output.data.every(Number.isNaN));
    });

    it('every width and length from 0 to 2N - 1 lanes agrees with float64', () => {
      for (let d = 1; d < 18; d++)
        for (const s of [1, 2, 3, 4, 5, 7, 8, 9, 13, 16, 17]) {
          const [a, b, c] = [random(g, [1, 1, 3, d]), random(g, [1, 1, s, d]), random(g, [1, 1, s, 18 - d])];
          const r = attn.scaledDotProductAttention(a, b, c, { needWeights: true });
          const expected = reference.attention(a, b, c);
          assertClose(r.output, expected.output, 2e-6, `D ${d} S ${s}`);
          assertClose(r.weights, expected.weights, 2e-6, `D ${d} S ${s}`);
        }
    });

    it('linear and softmax agree with float64 at every size', () => {
      for (const [m, kk, n] of [
        [1, 1, 1],
        [2, 3, 5],
        [5, 8, 8],
        [7, 17, 9],
        [6, 64, 33],
        [13, 100, 12],
        [1, 129, 31],
        [0, 4, 3],
      ]) {
        const [x, w, b] = [random(g, [m, kk]), random(g, [n, kk]), random(g, [n])];
        for (const bias of [undefined, b]) {
          const expected = reference.linear(x, w, bias);
          assertClose(
            bias ? attn.linear(x, w, bias) : attn.linear(x, w),
            expected,
            Math.sqrt(kk + 1) * 1.2e-7 * Math.max(1, expected.magnitude),
            `linear ${m}x${kk}x${n}`,
          );
        }
      }
      assertDims(attn.linear(random(g, [2, 3, 4, 5]), random(g, [6, 5])), [2, 3, 4, 6], 'leading dimensions are kept');
      assertDims(attn.linear(random(g, [5]), random(g, [6, 5])), [6], 'a single vector');
      for (let n = 1; n < 18; n++) {
        const x = random(g, [2, n, 3], 30);
        for (const dim of [0, 1, 2, -1, -2, -3]) assertClose(attn.softmax(x, dim), reference.softmax(x, dim), 2e-6, `softmax n ${n} dim ${dim}`);
        assertSameBits(attn.softmax(x), attn.softmax(x, -1), 'dim -1 is the default');
      }
    });
  });

  describe('properties', () => {
    it('weights of a row sum to 1', () => {
      const r = run({ needWeights: true });
      for (let row = 0; row < B * H * L; row++)
        assert.closeTo(
          r.weights!.data.subarray(row * S, row * S + S).reduce((a, x) => a + x, 0),
          1,
          1e-6,
        );
    });

    it('adding a constant to every score of a row does not change the weights', () => {
      const shifted = run({
        mask: mask(
          'additive',
          [L, S],
          Array.from({ length: L * S }, (_, i) => Math.floor(i / S) * 3 - 5),
        ),
        needWeights: true,
      });
      assertClose(shifted.weights, run({ needWeights: true }).weights!, 3e-6);
    });

    it('if all values are identical, the output is that value', () => {
      const same = tensor([B, H, S, Dv], (i) => (i % Dv) + 0.5);
      assertClose(
        run({}, q, k, same).output,
        tensor([B, H, L, Dv], (i) => (i % Dv) + 0.5),
        1e-6,
      );
    });

    it('scale 0 gives uniform weights, and the scale of a module works like that of a call', () => {
      assert.isTrue(run({ scale: 0, needWeights: true }).weights!.data.every((w) => Math.abs(w - 1 / S) < 1e-7));
      const [a, b] = [
        new attn.MultiHeadAttention({ embedDim: 12, numHeads: 2, scale: 0.3 }),
        new attn.MultiHeadAttention({ embedDim: 12, numHeads: 2 }),
      ];
      const x = random(g, [1, 6, 12], 3);
      assertSameBits(a.forward(x).output, b.forward(x, undefined, undefined, { scale: 0.3 }).output);
      assertSameBits(
        a.forward(x, undefined, undefined, { scale: 1 }).output,
        b.forward(x, undefined, undefined, { scale: 1 }).output,
        'the scale of the call takes precedence',
      );
      a.dispose();
      b.dispose();
    });

    it('averaged weights are the mean over the heads', () => {
      const r = run({ needWeights: true, averageWeights: true });
      const each = run({ needWeights: true }).weights!;
      assertDims(r.weights, [B, L, S], 'averaged');
      const mean = tensor([B, L, S], (i) => {
        const [b, rest] = [Math.floor(i / (L * S)), i % (L * S)];
        let sum = 0;
        for (let h = 0; h < H; h++) sum += each.data[(b * H + h) * L * S + rest];
        return sum / H;
      });
      assertClose(r.weights, mean, 1e-6);
    });

    it('grouped queries equal repeated keys and values, bit for bit', () => {
      for (const [heads, groups] of [
        [6, 2],
        [4, 1],
        [3, 3],
        [8, 4],
      ]) {
        const [a, b, c] = [random(g, [2, heads, 5, 8]), random(g, [2, groups, 7, 8]), random(g, [2, groups, 7, 6])];
        const order = Array.from({ length: heads }, (_, h) => Math.floor(h / (heads / groups)));
        const options: AttentionOptions = { isCausal: true, needWeights: true };
        const r = attn.scaledDotProductAttention(a, b, c, { ...options, enableGqa: true });
        const repeated = attn.scaledDotProductAttention(a, take(b, 1, order), take(c, 1, order), options);
        assertSameBits(r.output, repeated.output, `${heads} over ${groups}`);
        assertSameBits(r.weights, repeated.weights, `${heads} over ${groups}`);
      }
    });

    it('inputs stay unchanged, and results are independent copies', () => {
      const before = [q, k, v].map((t) => t.data.slice());
      const r = run({ needWeights: true, trace: true });
      [q, k, v].forEach((t, i) => assert.deepEqual(t.data, before[i]));
      const copy = r.output.data.slice();
      run({}, k, k, v);
      assert.deepEqual(r.output.data, copy, 'a later call does not write into an earlier result');
      assert.equal(r.output.data.byteOffset, 0);
      assert.equal(r.output.data.buffer.byteLength, r.output.data.byteLength, 'no view of a larger heap');
    });

    it('views into larger arrays are read at their offset', () => {
      const big = new Float32Array(q.data.length + 7);
      big.set(q.data, 5);
      assertSameBits(run({}, { data: big.subarray(5, 5 + q.data.length), dims: q.dims }).output, run().output);
    });
  });

  describe('traces', () => {
    const shapes: Record<TraceName, readonly number[]> = {
      q_proj: [B, L, 24],
      k_proj: [B, S, 24],
      v_proj: [B, S, 24],
      q: [B, 4, L, 6],
      k: [B, 4, S, 6],
      v: [B, 4, S, 6],
      scores: [B, 4, L, S],
      masked_scores: [B, 4, L, S],
      probabilities: [B, 4, L, S],
      weights: [B, 4, L, S],
      weighted_values: [B, 4, L, S, 6],
      context: [B, 4, L, 6],
      merged: [B, L, 24],
      output: [B, L, 24],
    };
    const names = Object.keys(shapes) as TraceName[];

    it('every name alone, all together, and true; no others', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
      const [x, y] = [random(g, [B, L, 24], 2), random(g, [B, S, 24], 2)];
      const options: AttentionOptions = { isCausal: true, mask: randomMask(g, 'additive', [L, S], false) };
      const all = mha.forward(x, y, y, { ...options, trace: names });
      assert.sameMembers(Object.keys(all.trace!), names);
      for (const name of names) {
        assertDims(all.trace![name], shapes[name], name);
        const alone = mha.forward(x, y, y, { ...options, trace: [name] });
        assert.deepEqual(Object.keys(alone.trace!), [name]);
        assertSameBits(alone.trace![name], all.trace![name], name);
      }
      assert.sameMembers(
        Object.keys(mha.forward(x, y, y, { ...options, trace: true }).trace!),
        names.filter((n) => n !== 'weighted_values'),
      );
      assert.isUndefined(mha.forward(x, y, y, options).trace);
      assert.isUndefined(mha.forward(x, y, y, options).weights);
      mha.dispose();
    });

    it('each intermediate follows from the previous one', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: 24, numHeads: 4 });
      mha.initialize({ scheme: 'normal', std: 0.3, seed: 5 });
      const [x, y] = [random(g, [B, L, 24], 2), random(g, [B, S, 24], 2)];
      const options: AttentionOptions = {
        isCausal: true,
        mask: randomMask(g, 'additive', [L, S], false),
        keyPaddingMask: randomMask(g, 'attend', [B, S], false),
      };
      const r = mha.forward(x, y, y, { ...options, needWeights: true, trace: names });
      const t = r.trace as Record<TraceName, Tensor>;
      const state = mha.stateDict();
      const part = (i: number): [Tensor, Tensor] => [
        slice(state.get('in_proj_weight')!, 0, i * 24, i * 24 + 24),
        slice(state.get('in_proj_bias')!, 0, i * 24, i * 24 + 24),
      ];
      (['q_proj', 'k_proj', 'v_proj'] as const).forEach((name, i) => assertClose(t[name], reference.linear(i ? y : x, ...part(i)), 1e-5, name));
      for (const [from, to] of [
        ['q_proj', 'q'],
        ['k_proj', 'k'],
        ['v_proj', 'v'],
        ['merged', 'context'],
      ] as const) {
        const length = t[from].dims[1];
        const split = tensor([B, 4, length, 6], (i) => {
          const [b, h, l, d] = [Math.floor(i / (4 * length * 6)), Math.floor(i / (length * 6)) % 4, Math.floor(i / 6) % length, i % 6];
          return t[from].data[(b * length + l) * 24 + h * 6 + d];
        });
        assertSameBits(t[to], split, `${to} is ${from} by head`);
      }
      const expected = reference.attention(t.q, t.k, t.v, options);
      assertClose(t.scores, expected.scores, 4e-6, 'scores are scaled and not yet masked');
      assertClose(t.masked_scores, expected.masked_scores, 4e-6, 'masked scores');
      t.masked_scores.data.forEach((s, i) => assert.equal(s === -Infinity, expected.masked_scores.data[i] === -Infinity, '-Infinity where blocked'));
      assertClose(t.probabilities, expected.weights, 4e-6, 'probabilities');
      assertSameBits(t.weights, t.probabilities, 'no dropout: weights are the probabilities');
      assertSameBits(r.weights, t.weights, 'the result has the same weights');
      t.weighted_values.data.forEach((x, i) => {
        const [bh, s, d] = [Math.floor(i / (L * S * 6)), Math.floor(i / 6) % S, i % 6];
        assert.closeTo(x, t.weights.data[Math.floor(i / 6)] * t.v.data[(bh * S + s) * 6 + d], 1e-6);
      });
      const sums = tensor([B, 4, L, 6], (i) => {
        let sum = 0;
        for (let s = 0; s < S; s++) sum += t.weighted_values.data[(Math.floor(i / 6) * S + s) * 6 + (i % 6)];
        return sum;
      });
      assertClose(t.context, sums, 4e-6, 'context is their sum');
      assertClose(t.output, reference.linear(t.merged, state.get('out_proj.weight')!, state.get('out_proj.bias')), 1e-5, 'output');
      assertSameBits(t.output, r.output, 'output');
      mha.dispose();
    });

    it('masked positions hold no NaN in weights or weighted values', () => {
      const dirty = { data: v.data.slice(), dims: v.dims };
      for (let row = 0; row < B * H; row++) dirty.data.fill(NaN, row * S * Dv, row * S * Dv + Dv);
      const r = run({ mask: mask('block', [S], [1, 0, 0, 0, 0, 0, 0]), trace: ['weights', 'weighted_values', 'context'] }, q, k, dirty);
      for (const name of ['weights', 'weighted_values', 'context'] as const) assert.isFalse(r.trace![name]!.data.some(Number.isNaN), name);
    });

    it('the plain function has only some of the traces', () => {
      const r = run({ trace: true });
      assert.isUndefined(r.trace!.q_proj);
      assert.isUndefined(r.trace!.weighted_values);
      assertDims(r.trace!.scores, [B, H, L, S], 'scores');
      assertDims(r.trace!.weights, [B, H, L, S], 'weights');
      assertSameBits(r.trace!.context, r.output, 'context');
    });
  });
});
