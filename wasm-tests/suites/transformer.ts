/**
 * Tests encoder layers, encoders and classifiers: state, initialisation, forward, traces. For their numbers see
 * goldens.ts.
 */
import type { Activation, Attn, Encoder, EncoderLayerOptions, EncoderTrace, EncoderTraceName, Module, Tensor } from 'attn';
import { assert } from 'chai';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { host, loadHere } from '../support/host.ts';
import { assertDistribution, normal, uniform } from '../support/moments.ts';
import { assertClose, assertDims, assertSameBits, mask, product, random, reshape, slice, tensor } from '../support/tensors.ts';

const [E, H, F] = [12, 3, 20];
const base = { dModel: E, nhead: H, dimFeedforward: F };
/** No unit is dead, so every parameter affects the result. */
const smooth = { ...base, activation: 'gelu' } as const;
type Shapes = Readonly<Record<string, readonly number[]>>;
const prefixed = (prefix: string, shapes: Shapes): Shapes => Object.fromEntries(Object.entries(shapes).map(([name, dims]) => [prefix + name, dims]));

/** Returns torch's names and shapes of one layer. */
function layerShapes({ bias = true, norm = 'layer_norm', gated = false }: Partial<EncoderLayerOptions> = {}): Shapes {
  const linear = (name: string, out: number, input: number) => ({ [`${name}.weight`]: [out, input], ...(bias && { [`${name}.bias`]: [out] }) });
  const normed = (name: string) => ({ [`${name}.weight`]: [E], ...(bias && norm === 'layer_norm' && { [`${name}.bias`]: [E] }) });
  return {
    'self_attn.in_proj_weight': [3 * E, E],
    ...(bias && { 'self_attn.in_proj_bias': [3 * E] }),
    ...linear('self_attn.out_proj', E, E),
    ...linear('linear1', F, E),
    ...linear('linear2', E, F),
    ...(gated && linear('linear_gate', F, E)),
    ...normed('norm1'),
    ...normed('norm2'),
  };
}

interface Form {
  readonly name: string;
  readonly make: (attn: Attn) => Module;
  readonly shapes: Shapes;
}
const stack = (layers: number, options: Partial<EncoderLayerOptions> = {}): Shapes =>
  Object.assign({}, ...Array.from({ length: layers }, (_, i) => prefixed(`layers.${i}.`, layerShapes(options))));
const forms: readonly Form[] = [
  ...([{}, { bias: false }, { norm: 'rms_norm' }, { gated: true }, { gated: true, bias: false, norm: 'rms_norm', normFirst: true }] as const).map(
    (options: Partial<EncoderLayerOptions>) => ({
      name: `TransformerEncoderLayer ${JSON.stringify(options)}`,
      make: (attn: Attn) => new attn.TransformerEncoderLayer({ ...smooth, ...options }),
      shapes: layerShapes(options),
    }),
  ),
  { name: 'TransformerEncoder', make: (attn) => new attn.TransformerEncoder({ ...smooth, numLayers: 3 }), shapes: stack(3) },
  {
    name: 'TransformerEncoder with a final norm',
    make: (attn) => new attn.TransformerEncoder({ ...smooth, numLayers: 2, finalNorm: true }),
    shapes: { ...stack(2), 'norm.weight': [E], 'norm.bias': [E] },
  },
  {
    name: 'TransformerEncoder with a final RMS norm',
    make: (attn) => new attn.TransformerEncoder({ ...smooth, numLayers: 11, finalNorm: true, norm: 'rms_norm' }),
    shapes: { ...stack(11, { norm: 'rms_norm' }), 'norm.weight': [E] },
  },
  {
    name: 'TransformerClassifier, which always has its own bias',
    make: (attn) => new attn.TransformerClassifier({ ...smooth, numLayers: 2, numClasses: 5, finalNorm: true, bias: false, gated: true }),
    shapes: {
      ...prefixed('encoder.', { ...stack(2, { bias: false, gated: true }), 'norm.weight': [E] }),
      'classifier.weight': [5, E],
      'classifier.bias': [5],
    },
  },
];

// The checked builds are about twenty times slower.
const step = host.build === 'release' ? 1 : 10;

describe('transformer', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const g = new Generator(81);
  const randomState = (shapes: Shapes) => Object.fromEntries(Object.entries(shapes).map(([name, dims]) => [name, random(g, dims)]));

  for (const { name, make, shapes } of forms)
    describe(name, () => {
      let module: Module & Encoder;
      before(() => void (module = make(attn) as typeof module));
      after(() => module.dispose());
      const x = random(g, [2, 5, E]);

      it('parameterCount and parameterShapes match torch', () => {
        const actual = module.parameterShapes();
        assert.sameMembers([...actual.keys()], Object.keys(shapes));
        for (const [key, dims] of Object.entries(shapes)) assert.deepEqual([...actual.get(key)!], [...dims], key);
        assert.equal(
          module.parameterCount,
          Object.values(shapes).reduce((sum, dims) => sum + product(dims), 0),
        );
      });

      it('a state survives writeSafetensors and parseSafetensors, bit for bit', () => {
        const state = randomState(shapes);
        Object.values(state)[0].data.set([0, -0, 1e-45, 3e38, Infinity, -Infinity, NaN]);
        module.loadStateDict(state);
        const file = attn.writeSafetensors(module.stateDict());
        const copy = make(attn);
        copy.initialize({ scheme: 'normal', seed: 8 });
        copy.loadStateDict(attn.parseSafetensors(file));
        const back = copy.stateDict();
        assert.sameMembers([...back.keys()], Object.keys(shapes));
        for (const [key, t] of Object.entries(state)) assertSameBits(back.get(key), t, key);
        assert.deepEqual(attn.writeSafetensors(back), file, 'the same file again');
        copy.dispose();
      });

      it('gives the same results from its state alone', () => {
        const state = randomState(shapes);
        module.loadStateDict(state);
        const copy = make(attn) as typeof module;
        copy.loadStateDict(new Map(Object.entries(state).reverse()));
        assertSameBits(copy.forward(x).output, module.forward(x).output);
        copy.dispose();
      });

      it('a change of any parameter changes the result', () => {
        const state = randomState(shapes);
        module.loadStateDict(state);
        const run = () => {
          const r = module.forward(x) as { output: Tensor; logits?: Tensor };
          return [...r.output.data, ...(r.logits?.data ?? [])].join();
        };
        const before = run();
        const parameters = Object.entries(state).filter((_, i) => i % step === 0);
        for (const [key, t] of parameters) {
          // Changes the first number; of a packed bias that belongs to the queries. A bias of the keys adds the same to
          // all scores of a query, so it has no effect.
          const changed = { data: t.data.map((value, i) => (i === 0 ? value + 0.5 : value)), dims: t.dims };
          module.loadStateDict({ [key]: changed }, { strict: false });
          assert.notEqual(run(), before, key);
          module.loadStateDict({ [key]: t }, { strict: false });
        }
        assert.equal(run(), before);
      });

      it('strict loading lists every mismatch and changes nothing; strict: false loads the matching parameters', () => {
        const state = randomState(shapes);
        module.loadStateDict(state);
        const names = Object.keys(shapes);
        const [missing, misShaped] = [names[0], names[names.length - 1]];
        const given: Record<string, Tensor> = { ...randomState(shapes), [misShaped]: random(g, [1, 2, 3]), 'layers.99.norm1.weight': random(g, [E]) };
        delete given[missing];
        const { detail } = assertThrows(() => module.loadStateDict(given), 'MISMATCH', [missing, misShaped, 'layers.99.norm1.weight', '(1,2,3)']);
        assert.deepEqual(detail.missing, [missing]);
        assert.deepEqual(detail.unexpected, ['layers.99.norm1.weight']);
        assert.lengthOf(detail.misShaped as unknown[], 1);
        for (const [key, t] of module.stateDict()) assertSameBits(t, state[key], key);
        const half = randomState(Object.fromEntries(Object.entries(shapes).slice(0, 3)));
        module.loadStateDict({ ...half, surplus: random(g, [1]) }, { strict: false });
        for (const [key, t] of module.stateDict()) assertSameBits(t, half[key] ?? state[key], key);
      });

      it("is initialised by scheme 'torch' with seed 0; a seed gives the same weights in another instance", async () => {
        const fresh = make(attn);
        const expected = fresh.stateDict();
        module.initialize({ scheme: 'normal', seed: 5 });
        module.initialize();
        for (const [key, t] of module.stateDict()) assertSameBits(t, expected.get(key), key);
        const second = await loadHere({ threads: 1 });
        const other = make(second);
        for (const [key, t] of other.stateDict()) assertSameBits(t, expected.get(key), key);
        fresh.initialize({ scheme: 'kaiming_uniform', seed: 2 ** 40 });
        other.initialize({ scheme: 'kaiming_uniform', seed: 2 ** 40 });
        for (const [key, t] of other.stateDict()) assertSameBits(t, fresh.stateDict().get(key), key);
        fresh.dispose();
        second.dispose();
      });
    });

  it('an encoder also loads separate projections', () => {
    const [packed, separate] = [new attn.TransformerEncoder({ ...base, numLayers: 2 }), new attn.TransformerEncoder({ ...base, numLayers: 2 })];
    packed.initialize({ seed: 9 });
    const state = packed.stateDict();
    for (const i of [0, 1]) {
      const at = `layers.${i}.self_attn.`;
      for (const [part, p] of ['q', 'k', 'v'].entries()) {
        state.set(`${at}${p}_proj.weight`, slice(state.get(`${at}in_proj_weight`)!, 0, part * E, part * E + E));
        state.set(`${at}${p}_proj.bias`, slice(state.get(`${at}in_proj_bias`)!, 0, part * E, part * E + E));
      }
      state.delete(`${at}in_proj_weight`);
      state.delete(`${at}in_proj_bias`);
    }
    separate.loadStateDict(state);
    const x = random(g, [2, 4, E]);
    assertSameBits(separate.forward(x).output, packed.forward(x).output);
    assert.sameMembers([...separate.stateDict().keys()], [...packed.stateDict().keys()]);
    packed.dispose();
    separate.dispose();
  });

  describe('initialisation', () => {
    const wide = { dModel: 64, nhead: 4, dimFeedforward: 96, numLayers: 2, numClasses: 32, finalNorm: true, gated: true };
    for (const scheme of ['torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal', 'normal'] as const)
      it(`${scheme}: bounds and moments match the distribution`, () => {
        const classifier = new attn.TransformerClassifier(wide);
        classifier.initialize({ scheme, seed: 3, ...(scheme === 'normal' && { std: 0.5 }) });
        const all = (t: Tensor, value: number, name: string) =>
          assert.isTrue(
            t.data.every((each) => each === value),
            `${name} is ${value}`,
          );
        for (const [name, t] of classifier.stateDict()) {
          const fanIn = t.dims[1] ?? (name.includes('linear2') ? 96 : 64);
          // Fans are per projection, except for torch, which draws the packed weight as one.
          const packed = name.endsWith('in_proj_weight');
          const fanOut = packed && scheme !== 'torch' ? 64 : t.dims[0];
          if (/norm\d?\.weight$/.test(name)) all(t, 1, name);
          else if (/norm\d?\.bias$/.test(name) || name.endsWith('in_proj_bias') || name.endsWith('out_proj.bias')) all(t, 0, name);
          else if (name.endsWith('bias')) {
            if (scheme === 'torch')
              assert.isAtMost(
                t.data.reduce((a, b) => Math.max(a, Math.abs(b)), 0),
                1 / Math.sqrt(fanIn),
                name,
              );
            else all(t, 0, name);
          } else if (scheme === 'torch') assertDistribution(t, uniform(packed ? Math.sqrt(6 / (fanIn + fanOut)) : 1 / Math.sqrt(fanIn)), name);
          else if (scheme === 'xavier_uniform') assertDistribution(t, uniform(Math.sqrt(6 / (fanIn + fanOut))), name);
          else if (scheme === 'xavier_normal') assertDistribution(t, normal(Math.sqrt(2 / (fanIn + fanOut))), name);
          else if (scheme === 'kaiming_uniform') assertDistribution(t, uniform(Math.sqrt(6 / fanIn)), name);
          else if (scheme === 'kaiming_normal') assertDistribution(t, normal(Math.sqrt(2 / fanIn)), name);
          else assertDistribution(t, normal(0.5), name);
        }
        const state = classifier.stateDict();
        assert.notDeepEqual(state.get('encoder.layers.0.linear1.weight')!.data, state.get('encoder.layers.1.linear1.weight')!.data, 'layers differ');
        classifier.dispose();
      });
  });

  describe('forward', () => {
    const x = random(g, [2, 5, E], 2);

    it('an encoder equals its layers in sequence, then the final norm', () => {
      for (const normFirst of [false, true]) {
        const options = { ...base, normFirst, activation: 'gelu' } as const;
        const encoder = new attn.TransformerEncoder({ ...options, numLayers: 3, finalNorm: true });
        const layer = new attn.TransformerEncoderLayer(options);
        const state = encoder.stateDict();
        const r = encoder.forward(x, { isCausal: true, outputAttentions: true, outputHiddenStates: true });
        assert.lengthOf(r.hiddenStates!, 4);
        assert.lengthOf(r.attentions!, 3);
        assertSameBits(r.hiddenStates![0], x, 'the input');
        assertSameBits(r.hiddenStates![3], r.output, 'the last hidden state is the output');
        for (let i = 0; i < 3; i++) {
          layer.loadStateDict(new Map([...state].filter(([n]) => n.startsWith(`layers.${i}.`)).map(([n, t]) => [n.slice(9), t])));
          const one = layer.forward(r.hiddenStates![i], { isCausal: true, outputAttentions: true, outputHiddenStates: true });
          assertSameBits(one.attentions![0], r.attentions![i], `attentions ${i}`);
          assert.lengthOf(one.hiddenStates!, 2);
          if (i < 2) assertSameBits(one.output, r.hiddenStates![i + 1], `layer ${i}`);
          else assertSameBits(attn.layerNorm(one.output, state.get('norm.weight'), state.get('norm.bias')), r.output, 'the final norm');
        }
        encoder.dispose();
        layer.dispose();
      }
    });

    it("a layer's intermediates follow from each other: post-norm and pre-norm, gated or not, both norms, every activation", () => {
      const activations: readonly Activation[] = ['relu', 'gelu', 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish', 'quick_gelu'];
      for (const normFirst of [false, true])
        for (const gated of [false, true])
          for (const norm of ['layer_norm', 'rms_norm'] as const)
            for (const activation of activations) {
              const what = `normFirst ${normFirst} gated ${gated} ${norm} ${activation}`;
              const layer = new attn.TransformerEncoderLayer({ ...base, normFirst, gated, norm, activation, layerNormEps: 1e-3 });
              const state = layer.stateDict();
              const get = (name: string) => state.get(name)!;
              const r = layer.forward(x, { trace: {} });
              const t = r.trace!.get(0) as Required<EncoderTrace>;
              const add = (a: Tensor, b: Tensor) => tensor(a.dims, (i) => a.data[i] + b.data[i]);
              const normed = (name: string, input: Tensor) =>
                norm === 'layer_norm'
                  ? attn.layerNorm(input, get(`${name}.weight`), get(`${name}.bias`), 1e-3)
                  : attn.rmsNorm(input, get(`${name}.weight`), 1e-3);
              const linear = (name: string, input: Tensor) => attn.linear(input, get(`${name}.weight`), get(`${name}.bias`));
              const attention = new attn.MultiHeadAttention({ embedDim: E, numHeads: H });
              attention.loadStateDict(new Map([...state].filter(([n]) => n.startsWith('self_attn.')).map(([n, value]) => [n.slice(10), value])));
              if (normFirst) assertSameBits(t.norm1, normed('norm1', x), `${what}: norm1`);
              const whole = attention.forward(normFirst ? t.norm1 : x, undefined, undefined, { trace: true, needWeights: true });
              for (const [name, value] of Object.entries(whole.trace!)) assertSameBits(t[name as EncoderTraceName], value, `${what}: ${name}`);
              assertSameBits(t.attn_residual, add(x, t.output), `${what}: attn_residual`);
              if (!normFirst) assertSameBits(t.norm1, normed('norm1', t.attn_residual), `${what}: norm1`);
              else assertSameBits(t.norm2, normed('norm2', t.attn_residual), `${what}: norm2`);
              const input = normFirst ? t.norm2 : t.norm1;
              const up = linear('linear1', input);
              const active = attn.activation(gated ? linear('linear_gate', input) : up, activation);
              assertSameBits(t.ff_hidden, gated ? tensor(up.dims, (i) => active.data[i] * up.data[i]) : active, `${what}: ff_hidden`);
              assertSameBits(t.ff_output, linear('linear2', t.ff_hidden), `${what}: ff_output`);
              assertSameBits(t.ff_residual, add(normFirst ? t.attn_residual : t.norm1, t.ff_output), `${what}: ff_residual`);
              if (!normFirst) assertSameBits(t.norm2, normed('norm2', t.ff_residual), `${what}: norm2`);
              assertSameBits(r.output, normFirst ? t.ff_residual : t.norm2, `${what}: output`);
              attention.dispose();
              layer.dispose();
            }
    });

    it('rank 2 equals B = 1, bit for bit, and all results omit B', () => {
      const classifier = new attn.TransformerClassifier({ ...base, numLayers: 2, numClasses: 3, pooling: 'max' });
      const one = random(g, [5, E]);
      const asked = { outputAttentions: true, outputHiddenStates: true, trace: {} };
      const [two, three] = [classifier.forward(one, asked), classifier.forward(reshape(one, [1, 5, E]), asked)];
      const without = (t: Tensor) => reshape(t, t.dims.slice(1));
      assertDims(two.logits, [3], 'logits');
      assertSameBits(two.logits, without(three.logits), 'logits');
      assertSameBits(two.output, without(three.output), 'output');
      two.attentions!.forEach((t, i) => assertSameBits(t, without(three.attentions![i]), `attentions ${i}`));
      two.hiddenStates!.forEach((t, i) => assertSameBits(t, without(three.hiddenStates![i]), `hiddenStates ${i}`));
      for (const [layer, trace] of three.trace!)
        for (const [name, t] of Object.entries(trace))
          assertSameBits(two.trace!.get(layer)![name as EncoderTraceName], without(t), `${layer} ${name}`);
      classifier.dispose();
    });

    it('masks of [B,1,1,S], [B,S,S] and other dims have the same meaning as for attention', () => {
      const layer = new attn.TransformerEncoderLayer(base);
      const attention = new attn.MultiHeadAttention({ embedDim: E, numHeads: H });
      attention.loadStateDict(new Map([...layer.stateDict()].filter(([n]) => n.startsWith('self_attn.')).map(([n, t]) => [n.slice(10), t])));
      for (const dims of [[5], [5, 5], [2, 5, 5], [1, 5, 5], [2, 1, 1, 5], [2, 1, 5, 5], [2, H, 5, 5], [1, H, 1, 5]])
        for (const kind of ['attend', 'block', 'additive'] as const) {
          const values = Array.from({ length: product(dims) }, () => (kind === 'additive' ? g.pick([0, -Infinity, 0.5]) : g.below(2)));
          const options = {
            mask: mask(kind, dims, values),
            keyPaddingMask: mask('attend', [2, 5], [1, 1, 1, 1, 0, 1, 1, 0, 1, 1]),
            isCausal: g.below(2) === 0,
          };
          const r = layer.forward(x, { ...options, outputAttentions: true });
          assertSameBits(
            r.attentions![0],
            attention.forward(x, undefined, undefined, { ...options, needWeights: true }).weights,
            `${kind} [${dims}]`,
          );
        }
      layer.dispose();
      attention.dispose();
    });

    it('pooling: cls, mean and max of the output', () => {
      const make = (pooling: 'none' | 'mean' | 'cls' | 'max') => new attn.TransformerClassifier({ ...base, numLayers: 1, numClasses: 4, pooling });
      const keyPaddingMask = mask('block', [2, 5], [0, 0, 1, 0, 1, 1, 0, 0, 0, 0]);
      const kept = [
        [0, 1, 3],
        [1, 2, 3, 4],
      ];
      for (const pooling of ['none', 'mean', 'cls', 'max'] as const) {
        const classifier = make(pooling);
        const r = classifier.forward(x, { keyPaddingMask });
        const of = (b: number, e: number) => kept[b].map((l) => r.output.data[(b * 5 + l) * E + e]);
        const pooled =
          pooling === 'none'
            ? r.output
            : tensor([2, E], (i) => {
                const [b, e] = [Math.floor(i / E), i % E];
                if (pooling === 'cls') return r.output.data[b * 5 * E + e];
                return pooling === 'max' ? Math.max(...of(b, e)) : of(b, e).reduce((sum, value) => sum + value, 0) / kept[b].length;
              });
        const state = classifier.stateDict();
        assertClose(r.logits, attn.linear(pooled, state.get('classifier.weight')!, state.get('classifier.bias')), 1e-6, pooling);
        classifier.dispose();
      }
    });
  });

  describe('traces', () => {
    const [B, L, D] = [2, 5, E / H];
    type LayerTraceName = Exclude<EncoderTraceName, 'c2c' | 'c2p' | 'p2c'>;
    const shapes: Readonly<Record<LayerTraceName, readonly number[]>> = {
      ...{ q_proj: [B, L, E], k_proj: [B, L, E], v_proj: [B, L, E], q: [B, H, L, D], k: [B, H, L, D], v: [B, H, L, D] },
      ...{ scores: [B, H, L, L], masked_scores: [B, H, L, L], probabilities: [B, H, L, L], weights: [B, H, L, L] },
      ...{ weighted_values: [B, H, L, L, D], context: [B, H, L, D], merged: [B, L, E], output: [B, L, E] },
      ...{ attn_residual: [B, L, E], norm1: [B, L, E], ff_hidden: [B, L, F], ff_output: [B, L, E], ff_residual: [B, L, E], norm2: [B, L, E] },
    };
    const names = Object.keys(shapes) as LayerTraceName[];
    const x = random(g, [B, L, E], 2);
    let encoder: Encoder;
    before(() => void (encoder = new attn.TransformerEncoder({ ...base, numLayers: 4 })));
    after(() => encoder.dispose());

    it('a Map by layer: the named layers, by default all, ascending without duplicates', () => {
      const layersOf = (layers?: number[]) => [...encoder.forward(x, { trace: { layers, names: ['scores'] } }).trace!.keys()];
      assert.deepEqual(layersOf(), [0, 1, 2, 3]);
      assert.deepEqual(layersOf([2]), [2]);
      assert.deepEqual(layersOf([3, 0, 3]), [0, 3]);
      assert.deepEqual(layersOf([]), []);
      assert.instanceOf(encoder.forward(x, { trace: {} }).trace, Map);
      assert.isUndefined(encoder.forward(x).trace);
      assert.isUndefined(encoder.forward(x).attentions);
      assert.isUndefined(encoder.forward(x).hiddenStates);
    });

    it('every name alone and all together: the same bits, the documented dims, and no other names', () => {
      const all = encoder.forward(x, { isCausal: true, trace: { layers: [1], names } }).trace!.get(1)!;
      assert.sameMembers(Object.keys(all), names);
      for (const name of names) {
        assertDims(all[name], shapes[name], name);
        const alone = encoder.forward(x, { isCausal: true, trace: { layers: [1], names: [name] } }).trace!.get(1)!;
        assert.deepEqual(Object.keys(alone), [name]);
        assertSameBits(alone[name], all[name], name);
      }
      assert.sameMembers(
        Object.keys(encoder.forward(x, { trace: { layers: [0] } }).trace!.get(0)!),
        names.filter((n) => n !== 'weighted_values'),
      );
      assert.deepEqual(Object.keys(encoder.forward(x, { trace: { layers: [0], names: [] } }).trace!.get(0) ?? {}), []);
    });

    it('attentions are the weights of each layer, and requesting them changes no bit of the output', () => {
      const r = encoder.forward(x, { outputAttentions: true, outputHiddenStates: true, trace: { names: ['weights', 'norm2'] } });
      r.attentions!.forEach((t, i) => {
        assertDims(t, [B, H, L, L], `attentions ${i}`);
        assertSameBits(r.trace!.get(i)!.weights, t, `weights ${i}`);
        assertSameBits(r.trace!.get(i)!.norm2, r.hiddenStates![i + 1], `a post-norm layer ends with norm2, layer ${i}`);
      });
      assertSameBits(r.output, encoder.forward(x).output, 'output');
    });
  });
});
