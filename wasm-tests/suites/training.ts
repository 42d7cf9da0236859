/** Tests training: values saved for backward, optimisers, and refusals. */
import type { Attn, Module, Optimizer, Tensor } from 'attn';
import { load as loadWorker, type Attn as RemoteAttn } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertClose, assertDims, assertSameBits, random, tensor } from '../support/tensors.ts';

/** Creates a next-token model: an embedding and an attention. */
function makeModules(attn: Attn) {
  const words = new attn.Embedding({ numEmbeddings: 5, embeddingDim: 8, paddingIdx: 4 });
  const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, dropout: 0.1 });
  return { words, mha };
}

const ids = [0, 1, 2, 3, 2, 4];
const labels = [1, 2, 3, 0, 1, -100];

/** Trains for some steps and returns the last loss. */
function trainOn(attn: Attn, { words, mha }: ReturnType<typeof makeModules>, optimizer: Optimizer, steps: number): number {
  let last = NaN;
  words.train();
  mha.train({ seed: 7 });
  for (let step = 0; step < steps; step++) {
    const { output } = mha.forward(words.forward(ids, [2, 3]), undefined, undefined, { isCausal: true });
    const { loss, gradient } = attn.crossEntropy(output, labels, { labelSmoothing: 0.01 });
    words.backward(mha.backward(gradient).gradQuery);
    attn.clipGradNorm([words, mha], 5);
    optimizer.learningRate = attn.cosineSchedule(step, { learningRate: 0.05, warmup: 2, steps });
    optimizer.step();
    optimizer.zeroGrad();
    last = loss;
  }
  return last;
}

const sameStates = (a: Map<string, Tensor>, b: Map<string, Tensor>, what: string) => {
  assert.sameMembers([...a.keys()], [...b.keys()], what);
  for (const [name, t] of a) assertSameBits(t, b.get(name), `${what}: ${name}`);
};

describe('training', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('an embedding and an attention learn, and a repeated run gives the same bits', () => {
    const runs = [0, 1].map(() => {
      const modules = makeModules(attn);
      const optimizer = new attn.AdamW([modules.words, modules.mha], { groups: [{ names: /bias/, weightDecay: 0 }] });
      const loss = trainOn(attn, modules, optimizer, 60);
      assert.isBelow(loss, 0.5);
      const states = [modules.words.stateDict(), modules.mha.stateDict(), optimizer.stateDict()];
      for (const each of [optimizer, modules.words, modules.mha]) each.dispose();
      return states;
    });
    for (const i of [0, 1, 2]) sameStates(runs[0][i], runs[1][i], `state ${i}`);
  });

  it('gradients add up until zeroGrad(), are named like the state, and are cleared by new weights', () => {
    const g = new Generator(31);
    const mha = new attn.MultiHeadAttention({ embedDim: 6, numHeads: 2 });
    const [x, grad] = [random(g, [2, 3, 6]), random(g, [2, 3, 6])];
    assert.isEmpty([...mha.gradients()]);
    const run = () => {
      mha.forward(x, undefined, undefined, { forBackward: true });
      return mha.backward(grad);
    };
    const result = run();
    assert.deepEqual(Object.keys(result), ['gradQuery']);
    assertDims(result.gradQuery, [2, 3, 6]);
    const once = mha.gradients();
    assert.deepEqual(
      [...once].map(([name, { dims }]) => [name, [...dims]]),
      [...mha.parameterShapes()].map(([name, dims]) => [name, [...dims]]),
    );
    run();
    for (const [name, { data, dims }] of mha.gradients())
      assertSameBits({ data, dims }, { data: once.get(name)!.data.map((value) => 2 * value), dims }, name);
    mha.zeroGrad();
    assert.isEmpty([...mha.gradients()]);
    for (const replace of [() => mha.loadStateDict(mha.stateDict()), () => mha.initialize()]) {
      run();
      assert.isNotEmpty([...mha.gradients()]);
      replace();
      assert.isEmpty([...mha.gradients()]);
    }
    mha.dispose();
  });

  it('key and value have their own gradients if they are given; otherwise the query has the sum', () => {
    const g = new Generator(32);
    const mha = new attn.MultiHeadAttention({ embedDim: 6, numHeads: 2 });
    const [x, grad] = [random(g, [1, 4, 6]), random(g, [1, 4, 6])];
    mha.forward(x, undefined, undefined, { forBackward: true });
    const { gradQuery: sum, ...none } = mha.backward(grad, { trace: [] });
    assert.deepEqual(none, { trace: {} });
    mha.forward(x, { ...x, data: x.data.slice() }, { ...x, data: x.data.slice() }, { forBackward: true });
    const { gradQuery, gradKey, gradValue, trace } = mha.backward(grad, { trace: ['scores', 'output'] });
    assertClose({ data: gradQuery.data.map((value, i) => value + gradKey!.data[i] + gradValue!.data[i]), dims: sum.dims }, sum, 1e-6);
    assert.deepEqual(Object.keys(trace!), ['scores', 'output']);
    assertDims(trace!.scores, [1, 2, 4, 4]);
    assertSameBits(trace!.output, grad);
    mha.dispose();
  });

  it('a group has the parameters that match; its learning rate scales in proportion', () => {
    const make = (groups: ConstructorParameters<Attn['SGD']>[1]) => {
      const { words, mha } = makeModules(attn);
      const optimizer = new attn.SGD([words, mha], groups);
      mha.forward(words.forward(ids, [2, 3], { forBackward: true }), undefined, undefined, { forBackward: true });
      words.backward(mha.backward(tensor([2, 3, 8], (i) => Math.sin(i))).gradQuery);
      return { words, mha, optimizer };
    };
    const plain = make({ learningRate: 0.5 });
    // Sticky and global flags of the regular expression must not matter.
    const grouped = make({
      learningRate: 0.1,
      groups: [
        { names: /^out_proj\./gy, learningRate: 0.5 },
        { names: /out_proj/, learningRate: 9 },
      ],
    });
    const before = grouped.mha.stateDict();
    plain.optimizer.step();
    grouped.optimizer.step();
    const [a, b] = [plain.mha.stateDict(), grouped.mha.stateDict()];
    for (const name of ['out_proj.weight', 'out_proj.bias']) assertSameBits(b.get(name), a.get(name), name);
    assert.notDeepEqual(b.get('in_proj_weight'), a.get('in_proj_weight'));
    assert.notDeepEqual(b.get('in_proj_weight'), before.get('in_proj_weight'));
    grouped.optimizer.learningRate = 0;
    grouped.optimizer.step();
    sameStates(grouped.mha.stateDict(), b, 'a step of 0');
    for (const { words, mha, optimizer } of [plain, grouped]) for (const each of [words, mha, optimizer]) each.dispose();
  });

  it('the state of an optimiser continues elsewhere with the same bits', () => {
    const run = (stopAt: number | undefined) => {
      const modules = makeModules(attn);
      let optimizer = new attn.Adam([modules.words, modules.mha], { betas: [0.8, 0.9] });
      for (let step = 0; step < 6; step++) {
        if (step === stopAt) {
          const state = attn.parseSafetensors(attn.writeSafetensors(optimizer.stateDict()));
          assert.sameMembers([...state.keys()], ['0.weight.exp_avg', '0.weight.exp_avg_sq', '0.weight.step']);
          optimizer.dispose();
          optimizer = new attn.Adam([modules.words, modules.mha], { betas: [0.8, 0.9] });
          optimizer.loadStateDict(state);
        }
        modules.words.backward((modules.words.forward(ids, undefined, { forBackward: true }), tensor([6, 8], (i) => Math.cos(i + step))));
        optimizer.step();
      }
      const state = modules.words.stateDict();
      for (const each of [optimizer, modules.words, modules.mha]) each.dispose();
      return state;
    };
    sameStates(run(3), run(undefined), 'weights');
  });

  it('backward refuses invalid calls', () => {
    const { words, mha } = makeModules(attn);
    const x = tensor([1, 2, 8], (i) => i / 8);
    const forward = () => mha.forward(x, undefined, undefined, { forBackward: true });
    assertThrows(() => mha.backward(x), 'ARGUMENT', ['forBackward']);
    mha.forward(x);
    assertThrows(() => mha.backward(x), 'ARGUMENT', ['forBackward']);
    forward();
    assertThrows(() => mha.backward(tensor([1, 2, 7], () => 0)), 'SHAPE', ['grad']);
    assertThrows(() => mha.backward(x, { trace: ['norm1' as never] }), 'ARGUMENT', ['trace']);
    mha.backward(x); // the saved values are intact
    assertThrows(() => mha.backward(x), 'ARGUMENT', ['without such a forward']);
    for (const change of [() => mha.initialize(), () => mha.loadStateDict(mha.stateDict())]) {
      forward();
      change();
      assertThrows(() => mha.backward(x), 'ARGUMENT');
    }
    const optimizer = new attn.SGD([mha]);
    forward();
    optimizer.step();
    assertThrows(() => mha.backward(x), 'ARGUMENT', ['weights']);
    assertThrows(() => words.backward(x), 'ARGUMENT', ['forBackward']);
    words.forward([0, 1], undefined, { forBackward: true });
    assertThrows(() => words.backward(x), 'SHAPE', ['grad']);
    const past = { key: tensor([1, 2, 1, 4], () => 0), value: tensor([1, 2, 1, 4], () => 0) };
    assertThrows(() => mha.forward(x, undefined, undefined, { past, forBackward: true }), 'UNSUPPORTED', ['past']);
    words.quantize();
    assertThrows(() => words.backward(tensor([2, 8], () => 0)), 'UNSUPPORTED', ['int8']);
    assertThrows(() => new attn.SGD([words]), 'UNSUPPORTED', ['int8']);
    assertThrows(() => attn.scaledDotProductAttentionBackward(x, x, x, x, { past: { key: x, value: x } }), 'UNSUPPORTED', ['past']);
    assertThrows(() => attn.linearBackward(x, x, x), 'SHAPE');
    for (const each of [optimizer, words, mha]) each.dispose();
    assertThrows(() => mha.gradients(), 'DISPOSED');
  });

  it('losses and schedules refuse invalid arguments', () => {
    const logits = tensor([2, 3], (i) => i);
    const error = assertThrows(() => attn.crossEntropy(logits, [0, 3]), 'OUT_OF_RANGE', ['labels[1]', '3']);
    assert.equal(error.detail.index, 1);
    assertThrows(() => attn.crossEntropy(logits, [0]), 'SHAPE', ['labels']);
    assertThrows(() => attn.crossEntropy(logits, [0, 0.5]), 'ARGUMENT', ['labels[1]']);
    assertThrows(() => attn.crossEntropy(logits, new Float32Array(2) as never), 'DTYPE', ['labels']);
    assertThrows(() => attn.crossEntropy(logits, [0, 1], { labelSmoothing: 2 }), 'CONFIG', ['labelSmoothing']);
    assertThrows(() => attn.crossEntropy(logits, [0, 1], { weight: tensor([2], () => 1) }), 'SHAPE', ['weight']);
    assertThrows(() => attn.crossEntropy(logits, [0, 1], { reduction: 'none' as never }), 'CONFIG', ['reduction']);
    assertThrows(
      () =>
        attn.mseLoss(
          logits,
          tensor([3, 2], () => 0),
        ),
      'SHAPE',
      ['target'],
    );
    assertThrows(
      () =>
        attn.binaryCrossEntropyWithLogits(
          logits,
          tensor([6], () => 0),
        ),
      'SHAPE',
      ['target'],
    );
    const { loss, gradient } = attn.crossEntropy(logits, [-100, -100]);
    assert.isNaN(loss);
    assert.isTrue(gradient.data.every((value) => value === 0));
    assertThrows(() => attn.linearSchedule(0, { learningRate: 0, steps: 3 }), 'CONFIG', ['learningRate']);
    assertThrows(() => attn.linearSchedule(-1, { learningRate: 1, steps: 3 }), 'ARGUMENT', ['step']);
    assertThrows(() => attn.cosineSchedule(0, { learningRate: 1, steps: 3, minimum: 2 }), 'CONFIG', ['minimum']);
    assertThrows(() => attn.cosineSchedule(0, { learningRate: 1 } as never), 'ARGUMENT', ['steps']);
  });

  it('optimisers refuse invalid arguments', async () => {
    const { words, mha } = makeModules(attn);
    const all: Module[] = [words, mha];
    for (const Class of [attn.SGD, attn.Adam, attn.AdamW]) {
      for (const learningRate of [0, -1, Infinity]) assertThrows(() => new Class(all, { learningRate }), 'CONFIG', ['learningRate']);
      assertThrows(() => new Class(all, { weightDecay: -1 }), 'CONFIG', ['weightDecay']);
      assertThrows(() => new Class([]), 'ARGUMENT', ['modules']);
      assertThrows(() => new Class([words, mha, words]), 'ARGUMENT', ['modules[2]']);
      assertThrows(() => new Class(words as never), 'ARGUMENT', ['modules']);
      assertThrows(() => new Class([{} as never]), 'WRONG_INSTANCE', ['modules[0]']);
      assertThrows(() => new Class(all, { groups: [{ names: 'bias' as never }] }), 'ARGUMENT', ['groups[0].names']);
      assertThrows(() => new Class(all, { groups: [{ names: /a/, learningRate: 0 }] }), 'CONFIG', ['groups[0].learningRate']);
      assertThrows(() => new Class(all, { groups: [{ names: /a/, rate: 1 } as never] }), 'ARGUMENT', ['groups[0].rate']);
      assertThrows(() => new Class(all, { lr: 1 } as never), 'ARGUMENT', ['lr']);
    }
    assertThrows(() => new attn.Adam(all, { betas: [0.9, 1] }), 'CONFIG', ['betas[1]']);
    assertThrows(() => new attn.Adam(all, { betas: [0.9] as never }), 'ARGUMENT', ['betas']);
    assertThrows(() => new attn.SGD(all, { nesterov: true }), 'CONFIG', ['nesterov']);
    const other = await loadHere();
    assertThrows(() => new other.SGD(all), 'WRONG_INSTANCE', ['modules[0]']);
    assertThrows(() => other.clipGradNorm(all, 1), 'WRONG_INSTANCE', ['modules[0]']);
    other.dispose();

    const optimizer = new attn.SGD(all);
    assertThrows(() => new attn.SGD([optimizer as never]), 'WRONG_INSTANCE', ['modules[0]']);
    assertThrows(() => (optimizer.learningRate = -0.5), 'CONFIG', ['learningRate']);
    assertThrows(() => (optimizer.learningRate = '1' as never), 'ARGUMENT', ['learningRate']);
    assert.equal(optimizer.learningRate, 1e-3);
    assertThrows(() => optimizer.loadStateDict({ surplus: tensor([1], () => 1) }), 'MISMATCH', ['surplus']);
    assertThrows(() => attn.clipGradNorm(all, -1), 'CONFIG', ['maxNorm']);
    assert.equal(attn.clipGradNorm(all, Infinity), 0);
    words.dispose();
    for (const use of [() => optimizer.step(), () => optimizer.zeroGrad(), () => new attn.SGD(all), () => attn.clipGradNorm(all, 1)])
      assertThrows(use, 'DISPOSED');
    optimizer.dispose();
    optimizer.dispose();
    assertThrows(() => optimizer.step(), 'DISPOSED');
    assertThrows(() => optimizer.step.call(mha), 'WRONG_INSTANCE');
    mha.dispose();
    // The instance stays usable.
    assert.equal(
      attn.mseLoss(
        tensor([1], () => 2),
        tensor([1], () => 0),
      ).loss,
      4,
    );
  });

  it('a getter that disposes of a module during a call is detected', () => {
    const { words, mha } = makeModules(attn);
    const options = {
      get learningRate() {
        words.dispose();
        return 0.1;
      },
    };
    assertThrows(() => new attn.SGD([words, mha], options), 'DISPOSED');
    mha.dispose();
  });

  it('the word embeddings of a model can be trained, and disposing of the model disposes of them', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert');
    const optimizer = new attn.SGD([model.wordEmbeddings], { learningRate: 1 });
    const { dims } = model.wordEmbeddings.stateDict().get('weight')!;
    model.wordEmbeddings.forward([1], undefined, { forBackward: true });
    model.wordEmbeddings.backward(tensor([1, dims[1]], () => 1));
    const before = model.wordEmbeddings.stateDict().get('weight')!.data;
    optimizer.step();
    const after = model.wordEmbeddings.stateDict().get('weight')!.data;
    assert.closeTo(after[dims[1]], before[dims[1]] - 1, 1e-6);
    assert.equal(after[0], before[0]);
    model.dispose();
    assertThrows(() => optimizer.step(), ['DISPOSED', 'ARGUMENT']);
    optimizer.dispose();
  });

  it('leaves no memory behind', () => {
    const run = () => {
      const modules = makeModules(attn);
      const optimizer = new attn.AdamW([modules.words, modules.mha], { groups: [{ names: /bias/, learningRate: 0.1 }] });
      trainOn(attn, modules, optimizer, 2);
      optimizer.loadStateDict(optimizer.stateDict());
      modules.mha.forward(tensor([1, 2, 8], () => 1)); // frees its saved values
      for (const bad of [
        () => optimizer.loadStateDict({ a: tensor([1], () => 1) }),
        () => modules.words.backward(tensor([1], () => 1)),
        () =>
          attn.crossEntropy(
            tensor([1, 2], () => 1),
            [2],
          ),
        () => new attn.SGD([modules.words, modules.words], { groups: [{ names: /a/ }] }),
        () => new attn.SGD([modules.words], { groups: [{ names: /a/, weightDecay: -1 }] }),
        () =>
          attn.softmaxBackward(
            tensor([1], () => 1),
            tensor([2], () => 1),
          ),
      ])
        assertThrows(bad, ['MISMATCH', 'SHAPE', 'OUT_OF_RANGE', 'ARGUMENT', 'CONFIG']);
      const x = tensor([2, 3], (i) => i);
      attn.mseLoss(attn.activationBackward(x, x, 'gelu'), attn.softmaxBackward(x, x));
      attn.layerNormBackward(
        x,
        x,
        tensor([3], () => 1),
      );
      attn.scaledDotProductAttentionBackward(x, x, x, x, { trace: true });
      for (const each of [optimizer, modules.mha, modules.words]) each.dispose();
    };
    run();
    const used = settledHeap(attn);
    for (let i = 0; i < (host.build === 'release' ? 100 : 5); i++) run();
    assert.equal(settledHeap(attn), used);
  });

  if (host.engine === 'node')
    it('an optimiser keeps its modules alive, and is freed when it is unreachable', async () => {
      const collect = async () => {
        for (let i = 0; i < 20; i++) {
          (globalThis as unknown as { gc(): void }).gc();
          await new Promise((resolve) => setTimeout(resolve, 5));
        }
      };
      await collect();
      const start = settledHeap(attn);
      let optimizer: Optimizer | undefined = (() => new attn.SGD(Object.values(makeModules(attn))))();
      await collect();
      optimizer.step();
      optimizer = undefined;
      for (let i = 0; i < 10 && settledHeap(attn) !== start; i++) await collect();
      assert.equal(settledHeap(attn), start);
    });
});

if (host.build === 'release') {
  describe('training in attn/worker', () => {
    let attn: RemoteAttn;
    before(async () => void (attn = await loadWorker(setup)));
    after(() => attn.dispose());

    it('gives the same bits as the run without a worker', async () => {
      const here = await loadHere();
      const modules = makeModules(here);
      const optimizer = new here.AdamW([modules.words, modules.mha], { groups: [{ names: /bias/, learningRate: 0.1 }] });
      const words = await new attn.Embedding({ numEmbeddings: 5, embeddingDim: 8, paddingIdx: 4 });
      const mha = await new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, dropout: 0.1 });
      const remote = await new attn.AdamW([words, mha], { groups: [{ names: /bias/, learningRate: 0.1 }] });
      for (const each of [words, mha]) await each.train({ seed: 3 });
      for (const each of [modules.words, modules.mha]) each.train({ seed: 3 });
      for (let step = 0; step < 5; step++) {
        const a = here.crossEntropy(modules.mha.forward(modules.words.forward(ids, [2, 3])).output, labels);
        modules.words.backward(modules.mha.backward(a.gradient).gradQuery);
        here.clipGradNorm([modules.words, modules.mha], 0.1);
        optimizer.setLearningRate(0.02);
        optimizer.step();
        optimizer.zeroGrad();
        const { output } = await mha.forward(await words.forward(ids, [2, 3]));
        const b = await attn.crossEntropy(output, labels);
        assert.equal(b.loss, a.loss);
        await words.backward((await mha.backward(b.gradient)).gradQuery);
        await attn.clipGradNorm([words, mha], 0.1);
        await remote.setLearningRate(0.02);
        await remote.step();
        await remote.zeroGrad();
      }
      assert.equal(await remote.learningRate, 0.02);
      sameStates(await mha.stateDict(), modules.mha.stateDict(), 'weights');
      sameStates(await remote.stateDict(), optimizer.stateDict(), 'the optimiser');
      assert.isEmpty([...(await mha.gradients())]);
      await assertRejects(remote.setLearningRate(-1), 'CONFIG', ['learningRate']);
      await assertRejects(new attn.SGD([mha, modules.mha as never]), 'WRONG_INSTANCE', ['modules[1]']);
      await assertRejects(new attn.SGD([mha], { learningRate: 0 }), 'CONFIG', ['learningRate']);
      await words.dispose();
      await assertRejects(remote.step(), 'DISPOSED');
      await assertRejects(new attn.SGD([words]), 'DISPOSED');
      await remote.dispose();
      await assertRejects(remote.step(), 'DISPOSED');
      await mha.dispose();
      here.dispose();
    });

    it('a second backward, or one after a change of weights, is refused and changes no gradient', async () => {
      const g = new Generator(34);
      const [x, grad] = [random(g, [2, 3, 8]), random(g, [2, 3, 8])];
      const mha = await new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
      const optimizer = await new attn.SGD([mha], { learningRate: 0.1 });
      const keep = () => mha.forward(x, undefined, undefined, { forBackward: true });
      await assertRejects(mha.backward(grad), 'ARGUMENT', ['forBackward']);
      assert.isEmpty([...(await mha.gradients())]);
      // Requested concurrently; the worker runs them one after the other.
      const [, first, second] = await Promise.allSettled([keep(), mha.backward(grad), mha.backward(grad)]);
      assert.equal(first.status, 'fulfilled');
      assert.equal(second.status, 'rejected');
      await assertRejects(Promise.reject((second as PromiseRejectedResult).reason as Error), 'ARGUMENT', ['without such a forward']);
      const once = await mha.gradients();
      assert.isNotEmpty([...once]);
      // New weights discard the old gradients.
      const changes: Record<string, () => Promise<unknown>> = {
        step: () => optimizer.step(),
        loadStateDict: async () => mha.loadStateDict(await mha.stateDict()),
        initialize: () => mha.initialize({ seed: 3 }),
      };
      for (const [name, change] of Object.entries(changes)) {
        await keep();
        await change();
        await assertRejects(mha.backward(grad), 'ARGUMENT', ['weights']);
        sameStates(await mha.gradients(), name === 'step' ? once : new Map(), `gradients after ${name}`);
      }
      await keep();
      await mha.backward(grad);
      await optimizer.dispose();
      await mha.dispose();
    });

    it('aborting fineTune retains the weights of the last complete step, and training can continue', async () => {
      const there = await attn.loadModel(url('testdata/models/tiny-bert-cls'), { cache: 'none' });
      const examples = ['a warm film', 'dull and far too long', 'honest', 'tedious', 'a delight'].map((text, i) => ({ text, label: i % 2 }));
      const options = { epochs: 200, batchSize: 2, learningRate: 1e-3, seed: 3 };
      const steps = 600;
      let seen = 0;
      const stop = new AbortController();
      const onProgress = ({ step }: { step: number }) => {
        seen = step;
        if (step === 3) stop.abort('enough');
      };
      const { cause } = await assertRejects(there.fineTune(examples, { ...options, signal: stop.signal, onProgress }), 'ABORTED', []);
      assert.equal(cause, 'enough');
      const state = await there.stateDict();
      assert.isAtLeast(seen, 3);

      // The same run without a worker has exactly these weights after one of its steps.
      const here = await loadHere();
      const model = await loadCheckpoint(here, 'tiny-bert-cls');
      const isSame = (other: Map<string, Tensor>) =>
        [...state].every(([name, { data }]) => data.every((value, i) => Object.is(value, other.get(name)!.data[i])));
      let found = 0;
      const end = new AbortController();
      const compare = ({ step }: { step: number }) => {
        if (step < 3 || !isSame(model.stateDict())) return;
        found = step;
        end.abort();
      };
      await assertRejects(model.fineTune(examples, { ...options, signal: end.signal, onProgress: compare }), 'ABORTED', []);
      assert.isAtLeast(found, 3);
      assert.isBelow(found, steps);
      sameStates(await there.stateDict(), state, 'a while later');
      const [again, other] = [await there.fineTune(examples, { epochs: 1 }), await model.fineTune(examples, { epochs: 1 })];
      assert.deepEqual(again, other);
      sameStates(await there.stateDict(), model.stateDict(), 'after another run');
      await there.dispose();
      model.dispose();
      here.dispose();
    });
  });

  describe('load({ training })', () => {
    it('is ignored', async () => {
      for (const training of [undefined, false, true]) {
        const attn = await loadHere({ training });
        assert.isTrue(attn.info.training);
        const mha = new attn.MultiHeadAttention({ embedDim: 2, numHeads: 1 });
        const x = tensor([1, 2, 2], (i) => i);
        mha.forward(x, undefined, undefined, { forBackward: true });
        assertDims(mha.backward(x).gradQuery, [1, 2, 2]);
        attn.dispose();
      }
    });

    it('is false or true', async () => {
      await assertRejects(loadHere({ training: 1 as never }), 'ARGUMENT', ['training']);
    });
  });
}
