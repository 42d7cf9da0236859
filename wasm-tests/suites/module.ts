import { type Attn, type MultiHeadAttention, type MultiHeadAttentionOptions, tensor as tensorOf, type StateDict, type Tensor } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { loadHere, setup } from '../support/host.ts';
import { assertDistribution, normal, uniform } from '../support/moments.ts';
import { assertClose, assertDims, assertSameBits, mask, product, random, reshape, slice, take, tensor } from '../support/tensors.ts';

const E = 24;

const forms: readonly (readonly [string, MultiHeadAttentionOptions, Readonly<Record<string, readonly number[]>>])[] = [
  ['packed', { embedDim: E, numHeads: 4 }, { in_proj_weight: [72, 24], in_proj_bias: [72], 'out_proj.weight': [24, 24], 'out_proj.bias': [24] }],
  ['packed, no bias', { embedDim: E, numHeads: 4, bias: false }, { in_proj_weight: [72, 24], 'out_proj.weight': [24, 24] }],
  [
    'kdim and vdim',
    { embedDim: E, numHeads: 3, kdim: 10, vdim: 14 },
    {
      q_proj_weight: [24, 24],
      k_proj_weight: [24, 10],
      v_proj_weight: [24, 14],
      in_proj_bias: [72],
      'out_proj.weight': [24, 24],
      'out_proj.bias': [24],
    },
  ],
  [
    'kdim alone',
    { embedDim: E, numHeads: 3, kdim: 10, bias: false },
    { q_proj_weight: [24, 24], k_proj_weight: [24, 10], v_proj_weight: [24, 24], 'out_proj.weight': [24, 24] },
  ],
  ['without W_O', { embedDim: E, numHeads: 2, outProj: false }, { in_proj_weight: [72, 24], in_proj_bias: [72] }],
  [
    'a learned and a zero key and value',
    { embedDim: E, numHeads: 4, addBiasKv: true, addZeroAttn: true },
    {
      in_proj_weight: [72, 24],
      in_proj_bias: [72],
      bias_k: [1, 1, 24],
      bias_v: [1, 1, 24],
      'out_proj.weight': [24, 24],
      'out_proj.bias': [24],
    },
  ],
  [
    'grouped heads',
    { embedDim: E, numHeads: 6, numKeyValueHeads: 2 },
    {
      'q_proj.weight': [24, 24],
      'q_proj.bias': [24],
      'k_proj.weight': [8, 24],
      'k_proj.bias': [8],
      'v_proj.weight': [8, 24],
      'v_proj.bias': [8],
      'out_proj.weight': [24, 24],
      'out_proj.bias': [24],
    },
  ],
  [
    'different widths everywhere',
    { embedDim: E, numHeads: 4, numKeyValueHeads: 2, kdim: 10, vdim: 14, headDim: 5, valueHeadDim: 7, bias: false, addBiasKv: true },
    {
      'q_proj.weight': [20, 24],
      'k_proj.weight': [10, 10],
      'v_proj.weight': [14, 14],
      bias_k: [1, 1, 10],
      bias_v: [1, 1, 14],
      'out_proj.weight': [24, 28],
    },
  ],
];

function assertSameState(actual: Map<string, Tensor>, expected: StateDict): void {
  const entries = expected instanceof Map ? [...expected] : Object.entries(expected);
  assert.sameMembers(
    [...actual.keys()],
    entries.map(([name]) => name),
  );
  for (const [name, t] of entries) assertSameBits(actual.get(name), t, name);
}

function randomState(g: Generator, shapes: Readonly<Record<string, readonly number[]>>): Record<string, Tensor> {
  return Object.fromEntries(Object.entries(shapes).map(([name, dims]) => [name, random(g, dims)]));
}

describe('MultiHeadAttention', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const g = new Generator(100);

  for (const [name, options, shapes] of forms)
    describe(name, () => {
      let mha: MultiHeadAttention;
      before(() => void (mha = new attn.MultiHeadAttention(options)));
      after(() => mha.dispose());

      it('parameterCount and parameterShapes match torch', () => {
        const actual = mha.parameterShapes();
        assert.sameMembers([...actual.keys()], Object.keys(shapes));
        for (const [key, dims] of Object.entries(shapes)) assert.deepEqual([...actual.get(key)!], [...dims], key);
        assert.equal(
          mha.parameterCount,
          Object.values(shapes).reduce((a, dims) => a + product(dims), 0),
        );
      });

      it('a state is loaded and returned bit for bit, from a record and from a Map', () => {
        const state = randomState(g, shapes);
        const first = Object.values(state)[0].data;
        first.set([0, -0, 1e-45, 3e38, Infinity, -Infinity]);
        mha.loadStateDict(state);
        assertSameState(mha.stateDict(), state);
        assert.isTrue(Object.is(mha.stateDict().get(Object.keys(state)[0])!.data[1], -0));
        const other = new Map(Object.entries(randomState(g, shapes)));
        mha.loadStateDict(other);
        assertSameState(mha.stateDict(), other);
      });

      it('is ready to run, and gives the same results from its state alone', () => {
        const fresh = new attn.MultiHeadAttention(options);
        const copy = new attn.MultiHeadAttention(options);
        const [x, k, v] = [random(g, [2, 5, E]), random(g, [2, 6, options.kdim ?? E]), random(g, [2, 6, options.vdim ?? E])];
        const y = fresh.forward(x, k, v);
        assertDims(y.output, [2, 5, E], 'output');
        assert.isTrue(y.output.data.every(Number.isFinite));
        assert.isTrue(y.output.data.some((n) => n !== 0));
        copy.initialize({ scheme: 'normal', seed: 3 });
        copy.loadStateDict(fresh.stateDict());
        assertSameBits(copy.forward(x, k, v).output, y.output);
        fresh.dispose();
        copy.dispose();
      });

      if (!('q_proj.weight' in shapes))
        it('separate projections give the same module', () => {
          const state = randomState(g, shapes);
          mha.loadStateDict(state);
          const [x, k, v] = [random(g, [2, 5, E]), random(g, [2, 6, options.kdim ?? E]), random(g, [2, 6, options.vdim ?? E])];
          const expected = mha.forward(x, k, v).output;
          const separate: Record<string, Tensor> = {};
          for (const [i, p] of ['q', 'k', 'v'].entries()) {
            separate[`${p}_proj.weight`] = state.in_proj_weight ? slice(state.in_proj_weight, 0, i * E, i * E + E) : state[`${p}_proj_weight`];
            if (state.in_proj_bias) separate[`${p}_proj.bias`] = slice(state.in_proj_bias, 0, i * E, i * E + E);
          }
          for (const key of Object.keys(state)) if (/^(out_proj|bias_)/.test(key)) separate[key] = state[key];
          mha.initialize({ seed: 9 });
          mha.loadStateDict(separate);
          assertSameBits(mha.forward(x, k, v).output, expected);
          assertSameState(mha.stateDict(), state);
        });
    });

  describe('strict loading', () => {
    const shapes = forms[0][2];

    it('lists every mismatch in one MISMATCH, and changes nothing', () => {
      const mha = new attn.MultiHeadAttention(forms[0][1]);
      const before = mha.stateDict();
      const state = randomState(g, shapes);
      delete state.in_proj_bias;
      state['out_proj.weight'] = random(g, [24, 23]);
      state.surplus = random(g, [1]);
      state['another.one'] = random(g, [2]);
      assertThrows(() => mha.loadStateDict(state), 'MISMATCH', ['in_proj_bias', 'out_proj.weight', 'surplus', 'another.one', '24', '23']);
      assertSameState(mha.stateDict(), before);
      mha.dispose();
    });

    it('strict: false loads the matching parameters and leaves the others unchanged', () => {
      const mha = new attn.MultiHeadAttention(forms[0][1]);
      const before = mha.stateDict();
      const state = randomState(g, { 'out_proj.weight': [24, 24], surplus: [3] });
      mha.loadStateDict(state, { strict: false });
      const now = mha.stateDict();
      assertSameBits(now.get('out_proj.weight'), state['out_proj.weight']);
      assertSameBits(now.get('in_proj_weight'), before.get('in_proj_weight'));
      assert.isFalse(now.has('surplus'));
      mha.dispose();
    });

    it('an empty state is a MISMATCH that names every parameter', () => {
      const mha = new attn.MultiHeadAttention(forms[2][1]);
      assertThrows(() => mha.loadStateDict({}), 'MISMATCH', Object.keys(forms[2][2]));
      assertThrows(() => mha.loadStateDict(new Map()), 'MISMATCH', Object.keys(forms[2][2]));
      mha.dispose();
    });

    it('names like __proto__ and constructor are ordinary names', () => {
      const mha = new attn.MultiHeadAttention(forms[0][1]);
      const state = new Map(Object.entries(randomState(g, shapes)));
      state.set('__proto__', random(g, [1])).set('constructor', random(g, [1]));
      assertThrows(() => mha.loadStateDict(state), 'MISMATCH', ['__proto__', 'constructor']);
      mha.dispose();
    });
  });

  describe('initialisation', () => {
    const wide = { embedDim: 96, numHeads: 4 };
    const separate = { embedDim: 96, numHeads: 4, kdim: 64, vdim: 128 };
    const schemes = ['torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal', 'normal'] as const;

    it("a new module is initialised by scheme 'torch' with seed 0", () => {
      for (const [, options] of forms) {
        const [a, b] = [new attn.MultiHeadAttention(options), new attn.MultiHeadAttention(options)];
        b.initialize({ scheme: 'normal', seed: 5 });
        b.initialize({ scheme: 'torch', seed: 0 });
        assertSameState(a.stateDict(), b.stateDict());
        b.initialize();
        assertSameState(a.stateDict(), b.stateDict());
        a.dispose();
        b.dispose();
      }
    });

    for (const scheme of schemes)
      it(`${scheme}: equal for equal seeds, different for different seeds`, async () => {
        const second = await loadHere();
        const [a, b] = [new attn.MultiHeadAttention(wide), new second.MultiHeadAttention(wide)];
        for (const seed of [0, 1, 2 ** 32 + 1, Number.MAX_SAFE_INTEGER]) {
          a.initialize({ scheme, seed });
          b.initialize({ scheme, seed });
          assertSameState(a.stateDict(), b.stateDict());
          b.initialize({ scheme, seed: seed === 0 ? 2 ** 32 : seed - 1 });
          assert.notDeepEqual(a.stateDict().get('in_proj_weight')!.data, b.stateDict().get('in_proj_weight')!.data, `seed ${seed}`);
        }
        a.dispose();
        second.dispose();
      });

    /**
     * Returns the scheme's distribution for a weight with these fans; 'torch' packs the three projections if they have
     * one width.
     */
    const promised = (scheme: (typeof schemes)[number], name: string, fanOut: number, fanIn: number, std: number) => {
      if (scheme === 'torch')
        return uniform(name === 'out_proj.weight' ? 1 / Math.sqrt(fanIn) : Math.sqrt(6 / (fanIn + (name === 'in_proj_weight' ? 3 : 1) * fanOut)));
      if (scheme === 'xavier_uniform') return uniform(Math.sqrt(6 / (fanIn + fanOut)));
      if (scheme === 'xavier_normal') return normal(Math.sqrt(2 / (fanIn + fanOut)));
      if (scheme === 'kaiming_uniform') return uniform(Math.sqrt(6 / fanIn));
      if (scheme === 'kaiming_normal') return normal(Math.sqrt(2 / fanIn));
      return normal(std);
    };

    for (const scheme of schemes)
      it(`${scheme}: bounds and moments match the distribution`, () => {
        for (const options of [wide, separate] as MultiHeadAttentionOptions[])
          for (const std of scheme === 'normal' ? [undefined, 0.5] : [undefined]) {
            const mha = new attn.MultiHeadAttention(options);
            mha.initialize({ scheme, seed: 7, ...(std === undefined ? {} : { std }) });
            for (const [name, t] of mha.stateDict()) {
              if (name.endsWith('bias')) {
                assert.isTrue(
                  t.data.every((x) => x === 0),
                  `${name} is zero`,
                );
                continue;
              }
              assertDistribution(t, promised(scheme, name, 96, t.dims[1], std ?? 0.02), name);
            }
            mha.dispose();
          }
      });
  });

  describe('forward', () => {
    it('rank 2 equals B = 1, bit for bit, and all results omit B', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4, kdim: 10, vdim: 14 });
      const [x, k, v] = [random(g, [5, E]), random(g, [7, 10]), random(g, [7, 14])];
      const two = mha.forward(x, k, v, { needWeights: true, trace: true });
      const three = mha.forward(reshape(x, [1, 5, E]), reshape(k, [1, 7, 10]), reshape(v, [1, 7, 14]), { needWeights: true, trace: true });
      assertDims(two.output, [5, E], 'output');
      assertDims(two.weights, [4, 5, 7], 'weights');
      assertSameBits(two.output, reshape(three.output, [5, E]), 'output');
      assertSameBits(two.weights, reshape(three.weights!, [4, 5, 7]), 'weights');
      assertDims(mha.forward(x, k, v, { needWeights: true, averageWeights: true }).weights, [5, 7], 'averaged');
      for (const [name, t] of Object.entries(three.trace!))
        assertSameBits(two.trace![name as keyof typeof three.trace], reshape(t, t.dims.slice(1)), name);
      mha.dispose();
    });

    it('key and value default to query', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4 });
      const x = random(g, [2, 5, E]);
      assertSameBits(mha.forward(x).output, mha.forward(x, x, x).output);
      assertSameBits(mha.forward(x, undefined, undefined, { isCausal: true }).output, mha.forward(x, x, x, { isCausal: true }).output);
      mha.dispose();
    });

    it('no bias equals a bias of zeros, and without W_O the output is merged', () => {
      const [plain, none] = [
        new attn.MultiHeadAttention({ embedDim: E, numHeads: 4 }),
        new attn.MultiHeadAttention({ embedDim: E, numHeads: 4, bias: false }),
      ];
      const bare = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4, outProj: false });
      const state = randomState(g, forms[1][2]);
      const x = random(g, [2, 5, E]);
      none.loadStateDict(state);
      const zeros = { in_proj_bias: tensor([72], () => 0), 'out_proj.bias': tensor([24], () => 0) };
      plain.loadStateDict({ ...state, ...zeros });
      bare.loadStateDict({ in_proj_weight: state.in_proj_weight, in_proj_bias: zeros.in_proj_bias });
      const r = plain.forward(x, undefined, undefined, { trace: ['merged'] });
      assertClose(none.forward(x).output, r.output, 0);
      assertSameBits(bare.forward(x).output, r.trace!.merged, 'merged');
      for (const m of [plain, none, bare]) m.dispose();
    });

    it('addBiasKv and addZeroAttn append keys and values that no mask blocks', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4, addBiasKv: true, addZeroAttn: true, outProj: false });
      const state = mha.stateDict();
      assert.isTrue(
        ['bias_k', 'bias_v'].every((name) => state.get(name)!.data.some((value) => value !== 0)),
        'drawn',
      );
      const [x, y] = [random(g, [2, 5, E]), random(g, [2, 7, E])];
      const options = { isCausal: true, keyPaddingMask: mask('attend', [2, 7], [1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0]), needWeights: true };
      const r = mha.forward(x, y, y, { ...options, trace: ['q', 'k', 'v', 'k_proj', 'scores'] });
      assertDims(r.weights, [2, 4, 5, 9], 'weights');
      assertDims(r.trace!.k_proj, [2, 7, E], 'k_proj has S rows');
      assertDims(r.trace!.k, [2, 4, 9, 6], 'k');
      assertDims(r.trace!.scores, [2, 4, 5, 9], 'scores');
      for (const [name, learned] of [
        ['k', 'bias_k'],
        ['v', 'bias_v'],
      ] as const)
        for (let bh = 0; bh < 8; bh++) {
          const { data } = r.trace![name]!;
          const row = (s: number) => [...data.subarray((bh * 9 + s) * 6, (bh * 9 + s + 1) * 6)];
          assert.deepEqual(row(7), [...state.get(learned)!.data.subarray((bh % 4) * 6, (bh % 4) * 6 + 6)], `${name}: learned`);
          assert.deepEqual(row(8), [0, 0, 0, 0, 0, 0], `${name}: zero`);
        }
      const allowed = Array.from({ length: 2 * 5 * 9 }, (_, i) => {
        const [b, l, s] = [Math.floor(i / 45), Math.floor(i / 9) % 5, i % 9];
        return Number(s > 6 || (s <= l && options.keyPaddingMask.data[b * 7 + s] !== 0));
      });
      const { q, k, v } = r.trace!;
      const plain = attn.scaledDotProductAttention(q!, k!, v!, { mask: mask('attend', [2, 1, 5, 9], allowed), needWeights: true });
      assertSameBits(r.weights, plain.weights, 'weights');
      mha.dispose();
    });

    it('grouped heads equal heads with repeated keys and values', () => {
      const [grouped, whole] = [
        new attn.MultiHeadAttention({ embedDim: E, numHeads: 6, numKeyValueHeads: 2 }),
        new attn.MultiHeadAttention({ embedDim: E, numHeads: 6 }),
      ];
      const state = grouped.stateDict();
      const repeated = new Map(state);
      const order = Array.from({ length: E }, (_, i) => Math.floor(i / 12) * 4 + (i % 4));
      for (const name of ['k_proj', 'v_proj'].flatMap((p) => [`${p}.weight`, `${p}.bias`])) repeated.set(name, take(state.get(name)!, 0, order));
      whole.loadStateDict(repeated);
      const x = random(g, [2, 5, E]);
      const options = { needWeights: true, isCausal: true };
      const [a, b] = [grouped.forward(x, undefined, undefined, options), whole.forward(x, undefined, undefined, options)];
      assertSameBits(a.output, b.output, 'output');
      assertSameBits(a.weights, b.weights, 'weights');
      assertDims(grouped.forward(x, undefined, undefined, { trace: ['k'] }).trace!.k, [2, 2, 5, 4], 'k has the groups');
      grouped.dispose();
      whole.dispose();
    });

    it('one module handles calls of growing and shrinking sizes', () => {
      const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: 4 });
      const x = random(g, [1, 64, E]);
      const expected = [3, 64, 1, 17, 40, 3].map((n) => mha.forward(slice(x, 1, 0, n), undefined, undefined, { isCausal: true }).output);
      for (const output of expected) assertSameBits(output, slice(expected[1], 1, 0, output.dims[1]), `length ${output.dims[1]}`);
      mha.dispose();
    });
  });

  describe('weights under a prefix', () => {
    it('loads them by their names without it, also in a worker', async () => {
      const attn = await loadHere();
      const [a, b] = [1, 2].map(() => new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 }));
      a.initialize({ seed: 3 });
      const own = a.stateDict();
      const wide = new Map<string, Tensor>(Array.from(own, ([name, weight]) => [`layers.1.${name}`, weight]));
      for (const [name, weight] of own) wide.set(`layers.0.${name}`, { ...weight, data: weight.data.map((each) => 2 * each) });
      // Other entries are not read.
      wide.set('position_ids', { data: new BigInt64Array(1), dims: [1] } as never);
      for (const state of [wide, Object.fromEntries(wide)]) {
        b.initialize({ seed: 7 });
        b.loadStateDict(state, { prefix: 'layers.1.' });
        for (const [name, weight] of b.stateDict()) assertSameBits(weight, own.get(name)!);
      }
      const before = b.stateDict();
      assertThrows(() => b.loadStateDict(wide, { prefix: 'layers.2.' }), 'MISMATCH', ['in_proj_weight']);
      assertThrows(() => b.loadStateDict(wide), ['DTYPE', 'ARGUMENT']);
      assertThrows(() => b.loadStateDict(wide, { prefix: 1 as never }), 'ARGUMENT', ['prefix is 1, expected a string']);
      assertThrows(() => b.loadStateDict(wide, { prefx: '' } as never), 'ARGUMENT', ['Did you mean prefix?']);
      for (const [name, weight] of b.stateDict()) assertSameBits(weight, before.get(name)!);
      b.loadStateDict(new Map([...own].slice(0, 1).map(([name, weight]) => [`x.${name}`, weight])), { prefix: 'x.', strict: false });
      const remote = await loadWorker(setup);
      const there = await new remote.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      await there.loadStateDict(wide, { prefix: 'layers.1.' });
      for (const [name, weight] of await there.stateDict()) assertSameBits(weight, own.get(name)!);
      await remote.dispose();
      attn.dispose();
    });
  });

  describe('tensors of nested arrays', () => {
    it('have the shape of the arrays, and refuse uneven ones', () => {
      const cases: readonly (readonly [Parameters<typeof tensorOf>[0], readonly number[], readonly number[]])[] = [
        [
          [
            [1, 0],
            [0, 1],
            [2, 3],
          ],
          [3, 2],
          [1, 0, 0, 1, 2, 3],
        ],
        [7, [], [7]],
        [[], [0], []],
        [[[], []], [2, 0], []],
        [
          [Float32Array.of(1, 2), [3, 4]],
          [2, 2],
          [1, 2, 3, 4],
        ],
        [[[[[[[[[1]]]]]]]], [1, 1, 1, 1, 1, 1, 1, 1], [1]],
        [[NaN, Infinity, 0.1], [3], [NaN, Infinity, Math.fround(0.1)]],
      ];
      for (const [values, dims, data] of cases) {
        const made = tensorOf(values);
        assert.deepEqual([made.dims, Array.from(made.data)], [dims, data]);
        assert.instanceOf(made.data, Float32Array);
      }
      const wrong = (values: unknown, code: 'SHAPE' | 'ARGUMENT', word: string) => assertThrows(() => tensorOf(values as number), code, [word]);
      wrong([[1, 2], [3]], 'SHAPE', 'values[1] has 1 elements, expected 2');
      wrong([[1], 2], 'SHAPE', 'values[1] is 2');
      wrong([1, [2]], 'ARGUMENT', 'values[1] is an Array, expected a number');
      wrong([[[[[[[[[1]]]]]]]]], 'SHAPE', 'at most 8');
      const endless: unknown[] = [];
      endless.push(endless);
      wrong(endless, 'SHAPE', 'at most 8');
      for (const value of [undefined, null, '1', [true], [1, , 2], {}, [1n], new BigInt64Array(2), new DataView(new ArrayBuffer(4))])
        wrong(value, 'ARGUMENT', 'tensor: values');
    });
  });
});
