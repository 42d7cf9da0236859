import type { Attn, Encoding, ErrorCode, Tensor, TextForwardOptions, TextModel, TextModelOutput } from 'attn';
import { load as loadWorker, AttnError as WorkerError } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { checkpoints, encoders, loadCheckpoint, ofBuild } from '../support/model_cases.ts';
import { assertClose, assertSameBits, mask, random, slice, tensor } from '../support/tensors.ts';

const texts = ['A happy person smiles.', '', 'Was it bad?', 'The film was not bad, it was good!'];
const heads = 4;

const everything = { outputAttentions: true, outputHiddenStates: true } as const;
const forward = (model: TextModel, inputs: Encoding, options: TextForwardOptions = {}) => model.forward(inputs, { ...everything, ...options });
const resultsOf = ({ lastHiddenState, logits, attentions, hiddenStates }: TextModelOutput) => [
  lastHiddenState,
  ...(logits ? [logits] : []),
  ...attentions!,
  ...hiddenStates!,
];
function assertSame(got: TextModelOutput, expected: TextModelOutput, what: string): void {
  const [a, b] = [resultsOf(got), resultsOf(expected)];
  assert.equal(a.length, b.length, what);
  b.forEach((each, i) => assertSameBits(a[i], each, `${what}: result ${i}`));
}
const differs = (a: Tensor, b: Tensor) => a.data.some((value, i) => value !== b.data[i]);
const ones = (layers: number) => tensor([layers, heads], () => 1);
const scaled = ({ data, dims }: Tensor, factors: readonly number[]): Tensor => ({
  data: data.map((value, i) => value * Math.fround(factors[Math.floor((i % dims[2]) / (dims[2] / heads))])),
  dims,
});
const copy = ({ data, dims }: Tensor) => ({ data: Float32Array.from(data), dims });

describe('models with edits', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of ofBuild(encoders))
    it(`${name}: a layer's own values as patch, heads times 1 and an open mask change no bit; other edits take effect`, async () => {
      const model = await loadCheckpoint(attn, name);
      const inputs = model.tokenize(texts);
      const [B, L] = inputs.dims;
      const plain = forward(model, inputs, { trace: {} });
      const layers = plain.attentions!.length;
      assert.deepEqual([...plain.trace!.keys()], [...Array(layers).keys()]);
      assertSame(forward(model, inputs, { headMask: ones(layers), mask: mask('attend', [L], Array(L).fill(1)) }), plain, 'ones');
      const other = random(new Generator(3), plain.lastHiddenState.dims);
      const factors = [1, 0, -0.7, 2];
      for (let layer = 0; layer < layers; layer++) {
        const hiddenState = plain.hiddenStates![layer];
        const { merged, context } = plain.trace!.get(layer)! as Record<string, Tensor>;
        assertSame(forward(model, inputs, { patch: { layer, hiddenState, merged } }), plain, `patch of layer ${layer}`);
        const patched = forward(model, inputs, { patch: { layer, hiddenState: other } });
        assertSameBits(patched.hiddenStates![layer], other);
        if (layer > 0) assertSameBits(patched.hiddenStates![layer - 1], plain.hiddenStates![layer - 1]);
        assert.isTrue(differs(patched.lastHiddenState, plain.lastHiddenState));

        const headMask = ones(layers);
        headMask.data.set(factors, layer * heads);
        const ablated = forward(model, inputs, { headMask, trace: { layers: [layer], names: ['merged', 'context'] } });
        assertSame(ablated, forward(model, inputs, { patch: { layer, merged: scaled(merged, factors) } }), `heads of layer ${layer}`);
        assert.isTrue(differs(ablated.lastHiddenState, plain.lastHiddenState));
        assert.deepEqual([...ablated.trace!.keys()], [layer]);
        assertSameBits(ablated.trace!.get(layer)!.context, context, 'context is before the edit');
        assertSameBits(ablated.trace!.get(layer)!.merged, scaled(merged, factors), 'merged is after the edit');
        assertSame(
          forward(model, inputs, { headMask, patch: { layer, merged: other } }),
          forward(model, inputs, { patch: { layer, merged: scaled(other, factors) } }),
          'heads after the patch',
        );
      }
      assertSame(forward(model, inputs, { patch: [] }), plain, 'no patch');
      const first = { layer: 0, hiddenState: other };
      const second = { layer: 1, merged: random(new Generator(5), plain.trace!.get(1)!.merged!.dims) };
      const { hiddenStates } = forward(model, inputs, { patch: [first] });
      const oneByOne = forward(model, inputs, { patch: { ...second, hiddenState: hiddenStates![1] } });
      for (const patch of [
        [first, second],
        [second, first],
      ])
        assertSameBits(forward(model, inputs, { patch }).lastHiddenState, oneByOne.lastHiddenState, 'two patches');
      const causal = forward(model, inputs, { isCausal: true });
      const lower = Array.from({ length: L * L }, (_, i) => Number(i % L <= Math.floor(i / L)));
      assertSame(forward(model, inputs, { mask: mask('attend', [L, L], lower) }), causal, 'attend');
      const added = lower.map((open) => (open ? 0 : -Infinity));
      assertSame(forward(model, inputs, { mask: mask('additive', [1, 1, L, L], added) }), causal, 'additive');
      assert.isTrue(differs(causal.lastHiddenState, plain.lastHiddenState));

      const nan = copy(other);
      nan.data.fill(NaN, 0, nan.data.length / B);
      const poisoned = forward(model, inputs, { patch: { layer: 1, hiddenState: nan } });
      const clean = forward(model, inputs, { patch: { layer: 1, hiddenState: other } });
      assert.isTrue(slice(poisoned.lastHiddenState, 0, 0, 1).data.every(Number.isNaN));
      assertSameBits(slice(poisoned.lastHiddenState, 0, 1, B), slice(clean.lastHiddenState, 0, 1, B), 'the other texts');
      model.dispose();
    });

  for (const name of ofBuild(checkpoints))
    it(`${name}: the state equals the file; loading it again changes no bit, and a changed number changes only itself`, async () => {
      const model = await loadCheckpoint(attn, name);
      const inputs = model.tokenize(texts);
      const plain = forward(model, inputs);
      const file = attn.parseSafetensors(await bytes(`testdata/models/${name}/model.safetensors`));
      const [shapes, state] = [model.parameterShapes(), model.stateDict()];
      assert.deepEqual([...shapes.keys()], [...state.keys()]);
      assert.isAbove(shapes.size, 16);
      for (const [key, values] of state) {
        assertSameBits(values, file.get(key), key);
        assert.deepEqual([...shapes.get(key)!], [...values.dims], key);
        assertSameBits(model.getParameter(key), values, key);
      }
      model.loadStateDict(state);
      assertSame(forward(model, inputs), plain, 'loaded again');
      for (const key of [...state.keys()].filter((key) =>
        /\b(query|q|q_lin|Wqkv|Wi|fc2|lin2|out_lin|c_attn|c_fc|down_proj|dense_4h_to_h|query_key_value|word_embeddings|wte|embed_tokens|embed_in)\b.*weight/.test(
          key,
        ),
      )) {
        const values = copy(state.get(key)!);
        const index = /embeddings|wte|embed_tokens|embed_in/.test(key) ? inputs.inputIds[1] * values.dims[1] : values.data.length - 5;
        values.data[index] += 1;
        model.loadStateDict({ [key]: values }, { strict: false });
        assertSameBits(model.getParameter(key), values, key);
        assert.isTrue(differs(forward(model, inputs).lastHiddenState, plain.lastHiddenState), key);
        for (const [other, before] of state) if (other !== key) assertSameBits(model.getParameter(other), before, `${other} after ${key}`);
        model.loadStateDict(new Map([[key, state.get(key)!]]), { strict: false });
      }
      assertSame(forward(model, inputs), plain, 'as it was');
      model.dispose();
    });
});

describe('models with edits: refusals', () => {
  let attn: Attn;
  let model: TextModel;
  let inputs: Encoding;
  before(async () => {
    attn = await loadHere();
    model = await loadCheckpoint(attn, 'tiny-bert');
    inputs = model.tokenize(texts.slice(2, 4));
  });
  after(() => attn.dispose());
  const x = tensor([1, 2, 3], () => 0);

  const options: readonly (readonly [what: string, options: unknown, code: ErrorCode, argument: string])[] = [
    ['no object', 7, 'ARGUMENT', 'options'],
    ['null', null, 'ARGUMENT', 'options'],
    ['headmask', { headmask: ones(2) }, 'ARGUMENT', 'headmask'],
    ['an Array of heads', { headMask: [1, 1, 1, 1] }, 'ARGUMENT', 'headMask'],
    ['heads as Float64Array', { headMask: { data: new Float64Array(8), dims: [2, 4] } }, 'DTYPE', 'headMask.data'],
    ['heads of one layer', { headMask: ones(1) }, 'SHAPE', 'headMask'],
    ['heads of three layers', { headMask: ones(3) }, 'SHAPE', 'headMask'],
    ['heads with four dimensions', { headMask: tensor([2, 4, 1, 1], () => 1) }, 'SHAPE', 'headMask'],
    ['a patch that is a number', { patch: 0 }, 'ARGUMENT', 'patch'],
    ['a patch without a layer', { patch: { merged: x } }, 'ARGUMENT', 'patch.layer'],
    ['a patch of half a layer', { patch: { layer: 0.5 } }, 'ARGUMENT', 'patch.layer'],
    ['a patch of "0"', { patch: { layer: '0' } }, 'ARGUMENT', 'patch.layer'],
    ['a patch after the layers', { patch: { layer: 2 } }, 'OUT_OF_RANGE', 'patch.layer'],
    ['a patch before the layers', { patch: { layer: -1, merged: x } }, 'OUT_OF_RANGE', 'patch.layer'],
    ['hidden_state', { patch: { layer: 0, hidden_state: x } }, 'ARGUMENT', 'patch.hidden_state'],
    ['a hidden state of another shape', { patch: { layer: 0, hiddenState: x } }, 'SHAPE', 'patch.hiddenState'],
    ['heads merged to another shape', { patch: { layer: 1, merged: x } }, 'SHAPE', 'patch.merged'],
    ['a list of patches with a number', { patch: [{ layer: 0 }, 3] }, 'ARGUMENT', 'patch[1]'],
    ['a second patch without a layer', { patch: [{ layer: 0 }, { merged: x }] }, 'ARGUMENT', 'patch[1].layer'],
    ['a second patch after the layers', { patch: [{ layer: 0 }, { layer: 2 }] }, 'OUT_OF_RANGE', 'patch[1].layer'],
    ['a second patch of another shape', { patch: [{ layer: 0 }, { layer: 1, merged: x }] }, 'SHAPE', 'patch[1].merged'],
    ['a list of a patch with hidden_state', { patch: [{ layer: 0, hidden_state: x }] }, 'ARGUMENT', 'patch[0].hidden_state'],
    ['merged null', { patch: { layer: 1, merged: null } }, 'ARGUMENT', 'patch.merged'],
    ['isCausal 1', { isCausal: 1 }, 'ARGUMENT', 'isCausal'],
    ['a mask of another length', { mask: mask('attend', [3], [1, 1, 1]) }, 'MASK', 'mask'],
    ['a mask with NaN', { mask: mask('additive', [12], Array(12).fill(NaN)) }, 'MASK', 'mask'],
    ['trace: true', { trace: true }, 'ARGUMENT', 'trace'],
    ['a trace of layer 2', { trace: { layers: [2] } }, 'OUT_OF_RANGE', 'trace.layers'],
    ['a trace of wights', { trace: { names: ['wights'] } }, 'ARGUMENT', 'trace.names[0]'],
  ];
  for (const [what, given, code, argument] of options)
    it(`forward: ${what} is ${code}`, () => {
      const before = model.forward(inputs);
      assert.equal(assertThrows(() => model.forward(inputs, given as TextForwardOptions), code).detail.argument, argument);
      assert.deepEqual(model.forward(inputs), before);
    });

  it('forward: two patches of one value are ARGUMENT', () => {
    const patch = { layer: 0, hiddenState: model.forward(inputs).lastHiddenState };
    const error = assertThrows(() => model.forward(inputs, { patch: [patch, { layer: 1 }, patch] }), 'ARGUMENT');
    assert.equal(error.detail.argument, 'patch[2].hiddenState');
  });

  it('a state that does not match: one MISMATCH with all names, and no change', () => {
    const state = model.stateDict();
    const wrong = new Map<string, Tensor>([...state].map(([name, { data, dims }]) => [name, { data: data.map((value) => 2 * value), dims }]));
    const [gone] = wrong.keys();
    wrong.delete(gone);
    wrong.set('bert.Pooler_2.weight', x);
    wrong.set('classifier.weight', x);
    const before = model.forward(inputs);
    const strict = assertThrows(() => model.loadStateDict(wrong), 'MISMATCH', ['loadStateDict', gone, 'bert.Pooler_2.weight', 'classifier.weight']);
    assert.deepEqual(strict.detail.missing, [gone]);
    assert.deepEqual(strict.detail.unexpected, ['bert.Pooler_2.weight']);
    assert.lengthOf(strict.detail.misShaped as string[], 1);
    const loose = assertThrows(() => model.loadStateDict(wrong, { strict: false }), 'MISMATCH');
    assert.deepEqual([loose.detail.missing, loose.detail.unexpected], [[], []]);
    assert.deepEqual(assertThrows(() => model.loadStateDict({}), 'MISMATCH').detail.missing, [...state.keys()]);
    assert.deepEqual(model.forward(inputs), before);
    assert.deepEqual(model.stateDict(), state);
    model.loadStateDict({ 'bert.Pooler_2.weight': x }, { strict: false });
    assert.deepEqual(model.stateDict(), state);
  });

  it('invalid states and names', () => {
    for (const wrong of [undefined, null, 7, 'state', [x]]) assertThrows(() => model.loadStateDict(wrong as never), 'ARGUMENT', ['state']);
    assertThrows(() => model.loadStateDict({ 'classifier.bias': [1, 2, 3] } as never), 'ARGUMENT', ['classifier.bias']);
    assertThrows(() => model.loadStateDict({ 'classifier.bias': { data: new Float64Array(3), dims: [3] } } as never), 'DTYPE', ['classifier.bias']);
    assertThrows(() => model.loadStateDict({}, { strict: 1 } as never), 'ARGUMENT', ['strict']);
    assertThrows(() => model.loadStateDict({}, { stric: false } as never), 'ARGUMENT', ['Did you mean']);
    for (const wrong of [undefined, 3, {}]) assert.equal(assertThrows(() => model.getParameter(wrong as never), 'ARGUMENT').detail.argument, 'name');
    for (const wrong of ['', 'classifier', 'encoder.layers.0.linear1.weight', '__proto__'])
      assert.equal(assertThrows(() => model.getParameter(wrong), 'OUT_OF_RANGE', ['getParameter']).detail.argument, 'name');
  });

  it('wordEmbeddings follow a loaded state, and the model uses weights loaded into wordEmbeddings', async () => {
    const own = await loadCheckpoint(attn, 'tiny-bert');
    const key = 'bert.embeddings.word_embeddings.weight';
    const table = own.getParameter(key);
    const words = own.wordEmbeddings;
    assert.isBelow(words.nearest(20, 1)[0].similarity, 0.9);
    for (let e = 0; e < 32; e++) table.data[30 * 32 + e] = 100 * table.data[20 * 32 + e];
    own.loadStateDict({ [key]: table }, { strict: false });
    assert.strictEqual(own.wordEmbeddings, words);
    assert.equal(words.nearest(20, 1)[0].id, 30);
    assert.closeTo(words.similarity(20, 30), 1, 1e-6);
    assertSameBits(words.stateDict().get('weight'), table);

    const original = model.getParameter(key);
    const before = own.forward(inputs);
    words.loadStateDict({ weight: original });
    assertSameBits(own.getParameter(key), original);
    assert.deepEqual(own.forward(inputs), model.forward(inputs));
    assert.isTrue(!inputs.inputIds.includes(30) || differs(own.forward(inputs).lastHiddenState, before.lastHiddenState));
    own.dispose();
  });

  it('returned and given arrays are independent of the model', async () => {
    const state = model.stateDict();
    const before = model.forward(inputs);
    const given = new Map([...state].map(([name, t]) => [name, copy(t)]));
    model.loadStateDict(given);
    for (const { data } of [...given.values(), ...model.stateDict().values(), model.getParameter('classifier.bias')]) data.fill(NaN);
    (model.parameterShapes().get('classifier.bias') as number[])[0] = 7;
    assert.deepEqual(model.forward(inputs), before);
    assert.deepEqual(model.parameterShapes().get('classifier.bias'), [3]);
  });

  it('calls on disposed models, on models disposed during the call, and on other objects', async () => {
    const open = async (use: (own: TextModel) => unknown, words: readonly string[]) => {
      const own = await loadCheckpoint(attn, 'tiny-bert');
      assertThrows(() => use(own), 'DISPOSED', words);
      own.dispose();
    };
    const disposing = (own: TextModel, value: unknown) => (own.dispose(), value);
    await open((own) => own.forward(inputs, { headMask: disposing(own, ones(2)) as Tensor }), []);
    await open(
      (own) =>
        own.forward(inputs, {
          get patch() {
            return disposing(own, undefined) as undefined;
          },
        }),
      [],
    );
    await open(
      (own) =>
        own.loadStateDict({
          get 'classifier.bias'() {
            return disposing(
              own,
              tensor([3], () => 0),
            ) as Tensor;
          },
        }),
      ['loadStateDict'],
    );
    await open(
      (own) =>
        own.loadStateDict({}, {
          get strict() {
            return disposing(own, false);
          },
        } as never),
      ['loadStateDict'],
    );
    const methods: Record<string, (self: TextModel) => unknown> = {
      parameterShapes: (self) => model.parameterShapes.call(self),
      stateDict: (self) => model.stateDict.call(self),
      getParameter: (self) => model.getParameter.call(self, 'classifier.bias'),
      loadStateDict: (self) => model.loadStateDict.call(self, {}),
    };
    for (const [name, call] of Object.entries(methods)) {
      await open((own) => (own.dispose(), call(own)), [name]);
      for (const self of [undefined, {}, attn, model.wordEmbeddings]) assertThrows(() => call(self as never), 'WRONG_INSTANCE', [name]);
    }
  });

  it('edits and refusals leave the heap unchanged', () => {
    const state = model.stateDict();
    const round = () => {
      const { hiddenStates, trace } = model.forward(inputs, { outputHiddenStates: true, trace: { layers: [1] } });
      const patch = { layer: 1, hiddenState: hiddenStates![0], merged: trace!.get(1)!.merged };
      model.forward(inputs, { patch, headMask: ones(2), isCausal: true, mask: mask('attend', [inputs.dims[1]], Array(inputs.dims[1]).fill(1)) });
      model.loadStateDict(state);
      model.stateDict();
      for (const [, given] of options) assert.throws(() => model.forward(inputs, given as never));
      assert.throws(() => model.loadStateDict({ ...Object.fromEntries(state), x }));
    };
    round();
    const used = settledHeap(attn);
    for (let i = 0; i < (host.build === 'release' ? 10 : 2); i++) round();
    assert.equal(settledHeap(attn), used);
  });
});

describe('models with edits: use', () => {
  it('with every head disabled, the attention output is only its bias', async () => {
    const attn = await loadHere();
    const model = await loadCheckpoint(attn, 'tiny-bert');
    const { trace } = model.forward(model.tokenize(texts), { headMask: tensor([2, heads], () => 0), trace: { names: ['output'] } });
    for (const [layer, { output }] of trace!) {
      const bias = model.getParameter(`bert.encoder.layer.${layer}.attention.output.dense.bias`);
      assertClose(output, { data: output!.data.map((_, i) => bias.data[i % 32]), dims: output!.dims }, 0);
    }
    attn.dispose();
  });
});

// As in text_model.ts, the checked builds skip the worker.
if (host.build === 'release')
  describe('models with edits in attn/worker', () => {
    it('every option and every weight gives the same as without a worker, in the order of the calls', async () => {
      const [direct, remote] = [await loadHere(), await loadWorker(setup)];
      const [near, far] = [await loadCheckpoint(direct, 'tiny-bert'), await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' })];
      const inputs = near.tokenize(texts);
      const other = random(new Generator(5), near.forward(inputs).lastHiddenState.dims);
      const headMask = tensor([2, heads], (i) => i / 4);
      for (const options of [
        { headMask, isCausal: true, trace: { layers: [1], names: ['merged', 'ff_hidden'] } },
        {
          patch: { layer: 1, hiddenState: other },
          mask: mask(
            'block',
            [inputs.dims[1]],
            Array.from({ length: inputs.dims[1] }, (_, i) => i % 2),
          ),
        },
        { patch: { layer: 0, merged: other }, outputAttentions: true },
      ] as const satisfies readonly TextForwardOptions[])
        assert.deepEqual(await far.forward(inputs, options), near.forward(inputs, options));
      const state = near.stateDict();
      assert.deepEqual(await far.parameterShapes(), near.parameterShapes());
      assert.deepEqual(await far.stateDict(), state);
      assert.deepEqual(await far.getParameter('classifier.weight'), near.getParameter('classifier.weight'));

      const bias = tensor([3], [1, 2, 3]);
      const asked = [
        far.stateDict(),
        far.loadStateDict({ 'classifier.bias': bias }, { strict: false }),
        far.getParameter('classifier.bias'),
      ] as const;
      assert.deepEqual(await asked[0], state);
      assert.isUndefined((await Promise.all(asked))[1]);
      assertSameBits(await asked[2], bias);
      near.loadStateDict({ 'classifier.bias': bias }, { strict: false });
      assert.deepEqual(await far.forward(inputs), near.forward(inputs));

      await assertRejects(far.forward(inputs, { headMask: ones(3) }), 'SHAPE', ['headMask'], WorkerError);
      await assertRejects(far.forward(inputs, { patch: { layer: 2 } }), 'OUT_OF_RANGE', ['patch.layer'], WorkerError);
      await assertRejects(far.getParameter(3 as never), 'ARGUMENT', ['name'], WorkerError);
      await assertRejects(far.getParameter('classifier'), 'OUT_OF_RANGE', ['getParameter', 'name'], WorkerError);
      const error = await assertRejects(far.loadStateDict({ 'classifier.bias': other, more: bias }), 'MISMATCH', ['loadStateDict'], WorkerError);
      assert.deepEqual(error.detail.unexpected, ['more']);
      assert.lengthOf(error.detail.missing as string[], state.size - 1);
      assert.deepEqual(await far.forward(inputs), near.forward(inputs));

      await far.dispose();
      for (const call of [far.parameterShapes(), far.stateDict(), far.getParameter('classifier.bias'), far.loadStateDict({})])
        await assertRejects(call, 'DISPOSED', [], WorkerError);
      direct.dispose();
      await remote.dispose();
    });
  });
