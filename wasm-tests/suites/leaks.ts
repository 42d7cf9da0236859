import type { Attn, Tensor } from 'attn';
import { load as loadWorker, type Attn as RemoteAttn } from 'attn/worker';
import { assert } from 'chai';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertSameBits, mask, random, tensor } from '../support/tensors.ts';

interface EventEmitter {
  once(event: 'exit', seen: () => void): void;
}

describe('leaks', () => {
  let attn: Attn;
  before(async () => {
    attn = await loadHere();
    settledHeap(attn);
  });
  after(() => attn.dispose());

  // The checked builds are about twenty times slower.
  const rounds = host.build === 'release' ? 1000 : 50;

  it(`${rounds} plain calls of changing shapes leave the heap unchanged, with the peak set by the largest`, () => {
    const g = new Generator(21);
    const call = () => {
      const [l, s, d] = [1 + g.below(12), 1 + g.below(12), 1 + g.below(12)];
      const [q, k, v] = [random(g, [2, l, d]), random(g, [2, s, d]), random(g, [2, s, 3])];
      attn.scaledDotProductAttention(q, k, v, {
        needWeights: g.below(2) === 0,
        trace: g.below(4) === 0,
        mask: mask('attend', [s], Array(s).fill(1)),
        isCausal: g.below(2) === 0,
      });
      attn.softmax(attn.linear(q, random(g, [4, d])), g.below(3));
    };
    for (let i = 0; i < 20; i++) call();
    const used = attn.info.heap.used;
    for (let i = 0; i < rounds; i++) call();
    assert.equal(attn.info.heap.used, used);
  });

  it(`${rounds} forwards of one module leave the heap unchanged`, () => {
    const g = new Generator(22);
    const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 });
    const inputs = Array.from({ length: 8 }, (_, i) => random(g, [1 + (i % 3), 1 + i * 2, 16]));
    const call = (x: Tensor, i: number) =>
      mha.forward(x, undefined, undefined, { needWeights: i % 2 === 0, averageWeights: i % 3 === 0, trace: i % 5 === 0 });
    inputs.forEach(call);
    inputs.forEach(call);
    const { used, peak } = attn.info.heap;
    for (let i = 0; i < rounds; i++) call(inputs[i % inputs.length], i);
    assert.equal(attn.info.heap.used, used, 'used');
    assert.isAtMost(attn.info.heap.peak - peak, 1 << 20, 'peak');
    mha.dispose();
  });

  it('modules created, loaded, read, initialised and disposed', () => {
    const g = new Generator(23);
    const round = () => {
      const mha = new attn.MultiHeadAttention({
        embedDim: 16,
        numHeads: 1 + g.below(2),
        bias: g.below(2) === 0,
        ...(g.below(2) ? { kdim: 5, vdim: 9 } : {}),
      });
      mha.initialize({ scheme: 'xavier_normal', seed: g.below(100) });
      mha.loadStateDict(mha.stateDict());
      mha.parameterShapes();
      void mha.parameterCount;
      mha.dispose();
      const classifier = new attn.TransformerClassifier({
        ...{ dModel: 12, nhead: 2, dimFeedforward: 9, numLayers: 1 + g.below(3), numClasses: 2, pooling: g.pick(['none', 'mean', 'cls', 'max']) },
        ...{ gated: g.below(2) === 0, finalNorm: g.below(2) === 0, norm: g.pick(['layer_norm', 'rms_norm']) },
      });
      classifier.loadStateDict(attn.parseSafetensors(attn.writeSafetensors(classifier.stateDict())));
      classifier.train({ seed: g.below(9) });
      classifier.forward(random(g, [2, 1 + g.below(5), 12]), { outputAttentions: true, outputHiddenStates: true, trace: {} });
      classifier.dispose();
      const embedding = new attn.Embedding({ numEmbeddings: 5 + g.below(20), embeddingDim: 1 + g.below(9) });
      embedding.forward([0, 4, 2]);
      embedding.nearest(1, 3);
      embedding.analogy(0, 1, 2, 3);
      embedding.dispose();
    };
    round();
    const used = attn.info.heap.used;
    for (let i = 0; i < rounds / 5; i++) round();
    assert.equal(attn.info.heap.used, used);
  });

  it('failed calls', () => {
    const g = new Generator(24);
    const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    const x = random(g, [2, 3, 16]);
    const calls: (() => unknown)[] = [
      () => attn.scaledDotProductAttention(x, random(g, [2, 3, 15]), x),
      () => attn.scaledDotProductAttention(x, x, x, { mask: mask('additive', [3], [0, NaN, 0]) }),
      () => attn.linear(x, random(g, [4, 4])),
      () => mha.forward(random(g, [2, 3, 17])),
      () => mha.loadStateDict({ surplus: x }),
      () => new attn.MultiHeadAttention({ embedDim: 10, numHeads: 4 }),
      () => attn.parseSafetensors(new Uint8Array(100)),
    ];
    const run = () => {
      for (const [i, call] of calls.entries()) assert.throws(call, Error, undefined, `call ${i}`);
    };
    run();
    const used = attn.info.heap.used;
    for (let i = 0; i < rounds / 10; i++) run();
    assert.equal(attn.info.heap.used, used);
    mha.dispose();
  });

  // An exception that leaves WebAssembly unwinds its stack; a leak there exhausts it after a few thousand errors.
  it(`${20 * rounds} failed calls on every path through the module, and correct numbers afterwards`, () => {
    const g = new Generator(25);
    const x = random(g, [2, 3, 16]);
    const encoder = new attn.TransformerEncoder({ dModel: 16, nhead: 2, dimFeedforward: 8, numLayers: 2 });
    const expected = encoder.forward(x).output;
    const { used } = attn.info.heap;
    const calls: (() => unknown)[] = [
      () => attn.linear(x, random(g, [4, 4])),
      () => encoder.forward(random(g, [2, 3, 17])),
      () => encoder.loadStateDict({ surplus: x }),
      () => new attn.TransformerEncoder({ dModel: 10, nhead: 4, numLayers: 1 }),
      () => attn.parseSafetensors(new Uint8Array(100)),
      () => attn.alibiBias(1000, 100000),
    ];
    for (let i = 0; i < 20 * rounds; i++)
      try {
        calls[i % calls.length]();
        assert.fail('the call succeeded');
      } catch (error) {
        const { code } = error as { code?: string };
        if (!['SHAPE', 'MISMATCH', 'CONFIG', 'FORMAT', 'MEMORY'].includes(code!)) throw error;
      }
    assert.equal(attn.info.heap.used, used);
    assertSameBits(encoder.forward(x).output, expected);
    encoder.dispose();
  });

  it('parseSafetensors of a real file', async () => {
    const file = await bytes('testdata/minilm_layer0.safetensors');
    attn.parseSafetensors(file);
    const used = attn.info.heap.used;
    for (let i = 0; i < 20; i++) attn.parseSafetensors(file);
    assert.equal(attn.info.heap.used, used);
  });

  it('disposing of a module frees all of its memory', () => {
    const used = attn.info.heap.used;
    const modules = Array.from({ length: 10 }, (_, i) => new attn.MultiHeadAttention({ embedDim: 8 * (i + 1), numHeads: 2 }));
    assert.isAbove(attn.info.heap.used, used + 4 * modules.reduce((a, m) => a + m.parameterCount, 0) - 1, 'weights are on the heap');
    for (const [i, m] of modules.entries()) m.forward(tensor([2, 5, 8 * (i + 1)], () => 0.5));
    for (const m of modules) m.dispose();
    assert.equal(attn.info.heap.used, used);
  });

  // Only Node can collect garbage on request.
  if (host.engine === 'node') {
    /** Collects garbage until used() returns the expected number; returns the last one. */
    const collected = async (used: () => number | Promise<number>, expected: number, rounds = 50) => {
      for (let i = 0; i < rounds && (await used()) !== expected; i++) {
        (globalThis as unknown as { gc(): void }).gc();
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return used();
    };

    it('unreachable layers and models are freed, but not a model with reachable word embeddings', async () => {
      const start = settledHeap(attn);
      (() => void new attn.MultiHeadAttention({ embedDim: 64, numHeads: 2 }))();
      assert.isAbove(attn.info.heap.used, start);
      assert.equal(await collected(() => settledHeap(attn), start), start, 'a layer');

      let words: { nearest(id: number, k: number): unknown } | undefined = await (async () =>
        (await loadCheckpoint(attn, 'tiny-bert')).wordEmbeddings)();
      const loaded = settledHeap(attn);
      assert.isAbove(loaded, start);
      assert.equal(await collected(() => settledHeap(attn), start), loaded, 'a model reachable by its word embeddings');
      words.nearest(1, 2);
      words = undefined;
      assert.equal(await collected(() => settledHeap(attn), start), start, 'a model');
    });

    if (host.build === 'release')
      it('unreachable objects are also freed in attn/worker', async () => {
        const remote = await loadWorker(setup);
        const used = async () => (await remote.info).heap.used;
        const load = () => remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
        // After the first instance every thread has its permanent allocations.
        await (await load()).dispose();
        const start = await used();
        let words: { nearest(id: number, k: number): Promise<unknown> } | undefined = await (async () => (await load()).wordEmbeddings)();
        const loaded = await used();
        assert.isAbove(loaded, start);
        assert.equal(await collected(used, start), loaded, 'a model reachable by its word embeddings');
        await words.nearest(1, 2);
        words = undefined;
        assert.equal(await collected(used, start), start, 'a model');
        await remote.dispose();
      });

    // AddressSanitizer ignores the caller's memory limit.
    if (host.build !== 'asan')
      it('a loop that does not dispose of its layers ends with MEMORY and advice, and continues after garbage collection', async () => {
        const own = await loadHere({ maximumMemory: 2 ** 26 });
        const make = () => void new own.MultiHeadAttention({ embedDim: 256, numHeads: 2 });
        let made = 0;
        const error = assertThrows(
          () => {
            for (; made < 1000; made++) make();
          },
          'MEMORY',
          ['dispose()', /\d+ layers/],
        );
        assert.equal(error.detail.layers, made);
        const full = own.info.heap.used;
        await collected(() => Number(own.info.heap.used < full / 8), 1);
        make();
        own.dispose();
        const one = await loadHere({ maximumMemory: 2 ** 24 });
        assert.notInclude(assertThrows(() => new one.Embedding({ numEmbeddings: 2 ** 16, embeddingDim: 2 ** 8 }), 'MEMORY').message, 'dispose()');
        one.dispose();
      });

    const watchWorkers = () => {
      const counts = { begun: 0, ended: 0 };
      const { process } = globalThis as unknown as { process: { on(event: 'worker', seen: (worker: EventEmitter) => void): void } };
      process.on('worker', (worker) => {
        ++counts.begun;
        worker.once('exit', () => ++counts.ended);
      });
      return counts;
    };

    if (host.build === 'release' && !host.inOneThread)
      it('attn/worker stops its worker once an instance and everything created from it are unreachable, not earlier', async () => {
        const counts = watchWorkers();
        const x = tensor([2, 2], [1, 2, 3, 4]);
        /** Checks that the worker stays usable while the caller holds the result of `keep`, and ends afterwards. */
        const endsAfter = async <T>(what: string, keep: (remote: RemoteAttn) => Promise<T>, use: (kept: T) => Promise<unknown>) => {
          const { ended } = counts;
          let kept: T | undefined = await (async () => keep(await loadWorker(setup)))();
          assert.equal(await collected(() => counts.ended, ended + 1, 5), ended, `${what} is still alive`);
          await use(kept);
          kept = undefined;
          assert.equal(await collected(() => counts.ended, ended + 1), ended + 1, what);
        };
        const layer = { numEmbeddings: 4, embeddingDim: 2 };
        await endsAfter(
          'a layer',
          (remote) => new remote.Embedding(layer),
          (words) => words.forward([1]),
        );
        await endsAfter(
          'a function',
          async ({ softmax }) => softmax,
          (softmax) => softmax(x),
        );
        await endsAfter(
          'a model',
          (remote) => remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' }),
          (model) => model.embed('a'),
        );
        const { ended } = counts;
        const pending = (async () => (await (await loadWorker(setup)).loadModel(url('model/slow/tiny-bert'), { cache: 'none' })).embed('a'))();
        await collected(() => counts.ended, ended + 1, 20);
        assert.deepEqual((await pending).dims, [1, 32]);
        assert.equal(await collected(() => counts.ended, ended + 1), ended + 1);
        assert.equal(counts.begun, ended + 1);
      });

    if (host.threads > 1)
      it('threads of an unreachable instance end', async () => {
        const counts = watchWorkers();
        await (async () => void (await loadHere()).softmax(tensor([2, 2], [1, 2, 3, 4])))();
        assert.equal(counts.begun, host.threads - 1);
        assert.equal(await collected(() => counts.ended, counts.begun), counts.begun);
      });
  }

  it('instances loaded and disposed of one after another', async () => {
    for (let i = 0; i < (host.build === 'release' ? 12 : 3); i++) {
      const one = await loadHere({ maximumMemory: 2 ** 27 });
      one.softmax(tensor([2, 2], [1, 2, 3, 4]));
      one.dispose();
    }
  });
});
