/**
 * Any value as any argument gives an AttnError or the right result, and the instance stays usable. Each value of
 * support/hostile.ts is tried in every position of every function's arguments, and pairs of them in random positions.
 */
import { load, type Attn, type Tensor, type TextModel } from 'attn';
import { assert } from 'chai';
import fc from 'fast-check';
import { assertIsError, assertRejects } from '../support/errors.ts';
import { fakeCaches, withGlobal } from '../support/fake_caches.ts';
import { Generator } from '../support/generator.ts';
import { bytes, host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { assertGoodError, at, hostiles, type Path, pathsOf, replaced, skip } from '../support/hostile.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertSameBits, mask, random } from '../support/tensors.ts';

interface Call {
  readonly run: (...args: readonly unknown[]) => unknown;
  readonly good: readonly unknown[];
}

function plain(value: unknown): unknown {
  if (ArrayBuffer.isView(value)) return Array.from(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
  if (value instanceof Map) return Array.from(value, ([key, each]) => [key as unknown, plain(each)]);
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object' && value !== null) return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
  return value;
}

describe('hostile arguments', () => {
  const g = new Generator(14);
  const [q, k, v, x] = [random(g, [2, 3, 4]), random(g, [2, 5, 4]), random(g, [2, 5, 6]), random(g, [2, 3, 8])];
  let attn: Attn;
  let model: TextModel;
  let expected: Tensor;
  let calls: Record<string, Call>;
  const forward = () => attn.scaledDotProductAttention(q, k, v).output;
  const encoderOptions = { dModel: 8, nhead: 2, dimFeedforward: 12, activation: 'gelu', normFirst: true };
  const attentionOptions = { mask: mask('attend', [5], [1, 1, 1, 0, 1]), isCausal: true, scale: 0.5, needWeights: true, trace: ['scores'], seed: 3 };

  before(async () => {
    attn = await loadHere({ maximumMemory: 2 ** 28 });
    model = await loadCheckpoint(attn, 'tiny-bert');
    expected = forward();
    const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
    const encoder = new attn.TransformerEncoder({ dModel: 8, nhead: 2, dimFeedforward: 12, numLayers: 2 });
    const classifier = new attn.TransformerClassifier({ dModel: 8, nhead: 2, dimFeedforward: 12, numLayers: 1, numClasses: 3, pooling: 'mean' });
    const embedding = new attn.Embedding({ numEmbeddings: 6, embeddingDim: 4 });
    const inputs = model.tokenize(['a good day']);
    const made = (make: (options: never) => { dispose(): void }) => (options: unknown) => make(options as never).dispose();
    const of = (self: object, name: string) => (...args: readonly unknown[]) =>
      (self as Record<string, (...args: readonly unknown[]) => unknown>)[name](...args); // prettier-ignore
    const ofAttn = (name: string, ...good: readonly unknown[]): [string, Call] => [name, { run: of(attn, name), good }];
    const file = attn.writeSafetensors({ a: x });
    calls = {
      ...Object.fromEntries([
        ofAttn('scaledDotProductAttention', q, k, v, attentionOptions),
        ofAttn('additiveAttention', q, k, v, { queryWeight: random(g, [7, 4]), keyWeight: random(g, [7, 4]), scoreWeight: random(g, [7]) }),
        ofAttn('generalAttention', q, k, v, { weight: random(g, [4, 4]) }, { dropout: 0.5 }),
        ofAttn('linear', x, random(g, [5, 8]), random(g, [5])),
        ofAttn('layerNorm', x, random(g, [8]), random(g, [8]), 1e-5),
        ofAttn('rmsNorm', x, random(g, [8]), 1e-5),
        ofAttn('softmax', x, 1),
        ofAttn('activation', x, 'gelu'),
        ofAttn('applyRotary', x, { theta: 100, offset: 2, interleaved: true }),
        ofAttn('sinusoidalPositions', 3, 4),
        ofAttn('alibiBias', 2, 3, 4),
        ofAttn('parseSafetensors', file),
        ofAttn('writeSafetensors', { a: x, b: q }, { made: 'by hand' }),
        ofAttn('peak', 1000),
        ofAttn('scaledDotProductAttentionBackward', random(g, [2, 3, 6]), q, k, v, attentionOptions),
        ofAttn('additiveAttentionBackward', random(g, [2, 3, 6]), q, k, v, {
          queryWeight: random(g, [7, 4]),
          keyWeight: random(g, [7, 4]),
          scoreWeight: random(g, [7]),
        }),
        ofAttn('generalAttentionBackward', random(g, [2, 3, 6]), q, k, v, { weight: random(g, [4, 4]) }, { dropout: 0.5 }),
        ofAttn('linearBackward', random(g, [2, 3, 5]), x, random(g, [5, 8])),
        ofAttn('layerNormBackward', x, x, random(g, [8]), 1e-5),
        ofAttn('rmsNormBackward', x, x, random(g, [8]), 1e-5),
        ofAttn('softmaxBackward', x, x, 1),
        ofAttn('activationBackward', x, x, 'gelu'),
        ofAttn('applyRotaryBackward', x, { theta: 100, offset: 2, interleaved: true }),
        ofAttn('crossEntropy', q, [0, 1, 2, 3, -100, 0], { labelSmoothing: 0.1, weight: random(g, [4]), reduction: 'sum' }),
        ofAttn('mseLoss', q, q, { reduction: 'mean' }),
        ofAttn('binaryCrossEntropyWithLogits', q, q, { posWeight: random(g, [4]), weight: random(g, [3, 1]) }),
        ofAttn('clipGradNorm', [mha, embedding], 1),
        ofAttn('linearSchedule', 3, { learningRate: 0.1, warmup: 2, steps: 10 }),
        ofAttn('cosineSchedule', 3, { learningRate: 0.1, warmup: 2, steps: 10, minimum: 0.01 }),
      ]),
      ...Object.fromEntries(
        (['SGD', 'Adam', 'AdamW'] as const).map((name): [string, Call] => [
          name,
          {
            run: (modules, options) => new attn[name](modules as never, options as never).dispose(),
            good: [
              [mha, embedding],
              { learningRate: 0.1, groups: [{ names: /bias/, weightDecay: 0 }], ...(name === 'SGD' ? { momentum: 0.5 } : { betas: [0.5, 0.9] }) },
            ],
          },
        ]),
      ),
      'mha.backward': {
        run: (...args) => {
          const layer = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
          try {
            layer.forward(x, undefined, undefined, { forBackward: true });
            return layer.backward(...(args as [Tensor]));
          } finally {
            layer.dispose();
          }
        },
        good: [x, { trace: ['scores'] }],
      },
      MultiHeadAttention: { run: made((options) => new attn.MultiHeadAttention(options)), good: [{ embedDim: 8, numHeads: 2, bias: true, kdim: 4 }] },
      TransformerEncoderLayer: { run: made((options) => new attn.TransformerEncoderLayer(options)), good: [encoderOptions] },
      TransformerClassifier: {
        run: made((options) => new attn.TransformerClassifier(options)),
        good: [{ ...encoderOptions, numLayers: 1, numClasses: 2, pooling: 'max' }],
      },
      Embedding: { run: made((options) => new attn.Embedding(options)), good: [{ numEmbeddings: 3, embeddingDim: 2 }] },
      'mha.forward': { run: of(mha, 'forward'), good: [x, x, x, { isCausal: true, trace: true }] },
      'mha.train': {
        run: (options) => {
          mha.train(options as never);
          mha.eval();
        },
        good: [{ seed: 1 }],
      },
      'encoder.forward': {
        run: of(encoder, 'forward'),
        good: [x, { outputAttentions: true, trace: { layers: [1], names: ['norm2'] }, keyPaddingMask: mask('block', [2, 3], [0, 0, 1, 0, 1, 1]) }],
      },
      'encoder.initialize': { run: of(encoder, 'initialize'), good: [{ scheme: 'xavier_uniform', seed: 1 }] },
      'classifier.forward': { run: of(classifier, 'forward'), good: [x] },
      'embedding.forward': {
        run: of(embedding, 'forward'),
        good: [
          [1, 2, 3, 4],
          [2, 2],
        ],
      },
      'embedding.nearest': { run: of(embedding, 'nearest'), good: [random(g, [4]).data, 2, { metric: 'cosine' }] },
      'embedding.loadStateDict': { run: of(embedding, 'loadStateDict'), good: [{ weight: random(g, [6, 4]) }, { strict: true }] },
      'model.tokenize': { run: of(model, 'tokenize'), good: [['a', 'good day'], { maxLength: 8, truncation: true }] },
      'model.forward': { run: of(model, 'forward'), good: [{ ...inputs }, { outputAttentions: true }] },
      'model.traceLayer': { run: of(model, 'traceLayer'), good: [{ ...inputs }, 1, ['norm2']] },
      'model.getParameter': { run: of(model, 'getParameter'), good: [[...model.parameterShapes().keys()][0]] },
      'model.tokenToId': { run: of(model, 'tokenToId'), good: ['good'] },
      'model.idToToken': { run: of(model, 'idToToken'), good: [5] },
      'model.embed': { run: of(model, 'embed'), good: [['a', 'good day'], { pooling: 'mean', normalize: true, batchSize: 1, signal: new AbortController().signal, onProgress: () => {} }] }, // prettier-ignore
      'model.classify': { run: of(model, 'classify'), good: [['a']] },
    };
    await model.embed(Array(4).fill('x y '.repeat(1000)));
    // Makes every call once, so that memory of first calls does not count.
    for (const { run, good } of Object.values(calls)) await Promise.resolve().then(() => run(...good)).catch(() => {}); // prettier-ignore
  });
  after(() => attn.dispose());

  const names = [
    ...['scaledDotProductAttention', 'additiveAttention', 'generalAttention', 'linear', 'layerNorm', 'rmsNorm', 'softmax', 'activation', 'applyRotary'],
    ...['sinusoidalPositions', 'alibiBias', 'parseSafetensors', 'writeSafetensors', 'peak', 'MultiHeadAttention', 'TransformerEncoderLayer'],
    ...['TransformerClassifier', 'Embedding', 'mha.forward', 'mha.train', 'encoder.forward', 'encoder.initialize', 'classifier.forward'],
    ...['embedding.forward', 'embedding.nearest', 'embedding.loadStateDict', 'model.tokenize', 'model.forward', 'model.traceLayer'],
    ...['scaledDotProductAttention', 'additiveAttention', 'generalAttention', 'linear', 'layerNorm', 'rmsNorm', 'softmax', 'activation', 'applyRotary'].map(
      (name) => `${name}Backward`,
    ),
    ...['crossEntropy', 'mseLoss', 'binaryCrossEntropyWithLogits', 'clipGradNorm', 'linearSchedule', 'cosineSchedule', 'SGD', 'Adam', 'AdamW', 'mha.backward'],
    ...['model.getParameter', 'model.tokenToId', 'model.idToToken', 'model.embed', 'model.classify'],
  ]; // prettier-ignore

  async function ends({ run }: Call, args: readonly unknown[], what: string): Promise<unknown> {
    try {
      return await run(...args);
    } catch (error) {
      assertGoodError(error, what);
      return undefined;
    }
  }

  function assertGoesOn(what: string, used: number): void {
    assertSameBits(forward(), expected, `after ${what}`);
    assert.equal(attn.info.heap.used, used, `heap in use after ${what}`);
  }

  for (const name of names)
    it(`${name}: every value in every position`, async () => {
      const call = calls[name];
      let right: unknown;
      try {
        right = plain(await call.run(...call.good));
      } catch (error) {
        assertIsError(error, 'UNSUPPORTED');
      }
      const used = settledHeap(attn);
      for (const path of pathsOf(call.good))
        for (const { name: value, of, isGood } of hostiles) {
          const other = of(at(call.good, path));
          if (other === skip) continue;
          const what = `${value} as argument ${path.join('.')}`;
          const result = await ends(call, replaced(call.good, path, other), what);
          // Class instances are not plain objects; whether they are accepted depends on the argument.
          if (isGood && result !== undefined && right !== undefined) assert.deepEqual(plain(result), right, what);
        }
      assertGoesOn(name, used);
    });

  it('covers every function and every method that takes arguments', () => {
    const all = new Set(names.map((name) => name.replace(/^.*\./, '')));
    for (const name of Object.keys(attn)) {
      const takes = !['info', 'dispose', 'loadModel', 'TransformerEncoder'].includes(name);
      if (takes) assert.isTrue(all.has(name), name);
    }
  });

  it('pairs of values in random positions (fast-check, seed 14)', async () => {
    const used = settledHeap(attn);
    const places = names.flatMap((name) => pathsOf(calls[name].good).map((path): [string, Path] => [name, path]));
    const place = fc.nat(places.length - 1);
    const value = fc.nat(hostiles.length - 1);
    await fc.assert(
      fc.asyncProperty(place, fc.nat(1000), value, value, async (which, where, first, second) => {
        const [name, path] = places[which];
        const call = calls[name];
        const paths = pathsOf(call.good);
        const elsewhere = paths[where % paths.length];
        const isInside = path.every((key, i) => elsewhere[i] === key) || elsewhere.every((key, i) => path[i] === key);
        let args = call.good;
        for (const [to, hostile] of [[path, hostiles[first]] as const, ...(isInside ? [] : [[elsewhere, hostiles[second]] as const])]) {
          const other = hostile.of(at(call.good, to));
          if (other !== skip) args = replaced(args, to, other);
        }
        await ends(call, args, `${name} with ${hostiles[first].name} at ${path.join('.')} and ${hostiles[second].name}`);
      }),
      { seed: 14, numRuns: 2000 },
    );
    assertGoesOn('all', used);
  });

  it('getters that detach, shrink and grow earlier arguments', () => {
    const used = settledHeap(attn);
    const buffer = () => Reflect.construct(ArrayBuffer, [96, { maxByteLength: 192 }]) as ArrayBuffer & { resize?(bytes: number): void };
    const meddle: Record<string, (of: ReturnType<typeof buffer>) => void> = {
      detaches: (of) => structuredClone(of, { transfer: [of] }),
      shrinks: (of) => of.resize?.(40),
      empties: (of) => of.resize?.(0),
      grows: (of) => of.resize?.(160),
    };
    for (const [name, change] of Object.entries(meddle))
      for (const tracks of [true, false]) {
        const of = buffer();
        const data = tracks ? new Float32Array(of) : new Float32Array(of, 0, 24);
        data.set(q.data);
        const options = {
          get isCausal() {
            change(of);
            return false;
          },
        };
        try {
          assertSameBits(attn.scaledDotProductAttention({ data, dims: q.dims }, k, v, options).output, expected, name);
        } catch (error) {
          assertIsError(error, 'DETACHED', ['query']);
        }
        assertGoesOn(name, used);
      }
  });

  it('load: every value in every position', async () => {
    const good = [{ variant: host.variant, threads: 1, maximumMemory: 2 ** 24, signal: new AbortController().signal, onProgress: () => {} }];
    const run = async (options: unknown) => (await load(options as never)).dispose();
    for (const path of [[0, 'wasm'], ...pathsOf(good)])
      for (const { name, of } of hostiles) {
        const other = of(at(good, path));
        if (other === skip || other === undefined) continue;
        await ends({ run, good }, replaced(good, path, other), `${name} as ${path.join('.')}`);
      }
  });

  it('loadModel: every value in every position', async () => {
    const used = settledHeap(attn);
    const folder = url('testdata/models/tiny-bert');
    const small = await Promise.all(['config.json', 'tokenizer.json'].map((name) => bytes(`testdata/models/tiny-bert/${name}`)));
    const source = { 'config.json': small[0], 'tokenizer.json': small[1], 'model.safetensors': await bytes('testdata/models/tiny-bert/model.safetensors') }; // prettier-ignore
    const options = { cache: 'none', sha256: {}, signal: new AbortController().signal, onProgress: () => {}, fetch };
    const run = async (...args: readonly unknown[]) => (await attn.loadModel(args[0] as never, args[1] as never)).dispose();
    const good = [source, options];
    for (const path of pathsOf(good))
      for (const { name, of } of hostiles) {
        const other = of(at(good, path));
        if (other !== skip) await ends({ run, good }, replaced(good, path, other), `${name} as ${path.join('.')}`);
      }
    const right = async (input: string) => await fetch(input);
    for (const { name, of } of hostiles)
      for (const give of [
        () => of({}) as Response,
        async () => ({ ok: true, status: 200, headers: of({}), body: null, bodyUsed: false }) as unknown as Response,
        async () => ({ ok: true, status: 200, headers: new Headers(), body: of({}), bodyUsed: false }) as unknown as Response,
        async () => ({ ok: true, status: 200, headers: { get: () => of({}) }, body: null, bodyUsed: false }) as unknown as Response,
      ])
        await ends(
          { run, good },
          [folder, { cache: 'none', fetch: async (input: string) => (input.includes('weights') ? right(input) : give()) }],
          name,
        );
    assertGoesOn('loadModel', used);
  });

  it('a custom signal that throws when it is used', async () => {
    for (const member of ['aborted', 'reason', 'addEventListener', 'removeEventListener'])
      for (const late of [1, 2, 3]) {
        const left = { count: late };
        const signal = { aborted: false, reason: undefined, addEventListener() {}, removeEventListener() {} };
        const usual = signal[member as 'aborted'] as unknown;
        Object.defineProperty(signal, member, {
          get() {
            if (--left.count <= 0) throw new Error('mine');
            return usual;
          },
        });
        const folder = url('testdata/models/tiny-bert');
        for (const run of [
          () => load({ ...setup, signal: signal as never }).then((each) => each.dispose()),
          () => attn.loadModel(folder, { signal: signal as never }).then((each) => each.dispose()),
          () => model.embed('a', { signal: signal as never }),
        ]) {
          left.count = late;
          await ends({ run, good: [] }, [], `${member}, the ${late}. time`);
        }
      }
  });
});

describe('response bodies', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  const streaming = (pull: (controller: ReadableStreamDefaultController<unknown>) => void, type = 'application/wasm') =>
    new Response(new ReadableStream<unknown>({ pull }) as ReadableStream<Uint8Array>, { headers: { 'content-type': type } });

  it('a body of strings, numbers or nothing is NETWORK', async () => {
    for (const chunk of ['text', 7, null, {}, [1], new ArrayBuffer(3), new Float32Array(2)]) {
      const fetch = async () =>
        streaming((controller) => {
          controller.enqueue(chunk);
          controller.close();
        });
      await assertRejects(attn.loadModel(url('testdata/models/tiny-bert'), { fetch, cache: 'none' }), 'NETWORK', ['Uint8Array']);
      // Engines that compile while streaming report it in their own words.
      await assertRejects(load({ wasm: streaming((controller) => controller.enqueue(chunk), 'text/plain') }), 'NETWORK', ['Uint8Array']);
    }
  });

  it('endless empty chunks: the page stays responsive, and aborting works', async () => {
    for (const run of [
      (signal: AbortSignal) =>
        attn.loadModel(url('testdata/models/tiny-bert'), {
          signal,
          cache: 'none',
          fetch: async () => streaming((controller) => controller.enqueue(new Uint8Array(0))),
        }),
      (signal: AbortSignal) => load({ signal, wasm: streaming((controller) => controller.enqueue(new Uint8Array(0)), 'text/plain') }),
    ]) {
      const controller = new AbortController();
      let turns = 0;
      const timer = setInterval(() => ++turns === 5 && controller.abort(), 10);
      await assertRejects(run(controller.signal), 'ABORTED');
      clearInterval(timer);
      assert.isAtLeast(turns, 5);
    }
  });
});

describe('globals that are missing or throw', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const folder = () => url('testdata/models/tiny-bert');

  async function withThrowing(name: string, body: () => Promise<void>): Promise<void> {
    const own = Object.getOwnPropertyDescriptor(globalThis, name);
    Object.defineProperty(globalThis, name, {
      configurable: true,
      get() {
        throw new DOMException(`${name} is blocked`, 'SecurityError');
      },
    });
    try {
      await body();
    } finally {
      if (own) Object.defineProperty(globalThis, name, own);
      else delete (globalThis as Record<string, unknown>)[name];
    }
  }

  it('if the Cache API throws on access or on opening, nothing is cached', async () => {
    await withThrowing('caches', async () => (await attn.loadModel(folder())).dispose());
    const broken = { open: () => Promise.reject(new Error('no')), match: () => Promise.reject(new Error('no')) };
    await withGlobal('caches', broken, async () => (await attn.loadModel(folder())).dispose());
    await withGlobal('caches', { open: () => { throw new Error('no'); } }, async () => (await attn.loadModel(folder())).dispose()); // prettier-ignore
  });

  it('locks that throw have the same effect as no locks', async () => {
    const locks = [
      { request: () => { throw new Error('no'); } }, // prettier-ignore
      { request: () => Promise.reject(new Error('no')) },
      {},
      undefined,
    ];
    for (const each of locks)
      await withGlobal('caches', fakeCaches(), () =>
        withGlobal('navigator', { locks: each }, async () => (await attn.loadModel(folder())).dispose()),
      );
    const navigator = Object.defineProperty({}, 'locks', { get() { throw new Error('no'); } }); // prettier-ignore
    await withGlobal('caches', fakeCaches(), () => withGlobal('navigator', navigator, async () => (await attn.loadModel(folder())).dispose()));
  });

  it('a missing fetch is ENVIRONMENT, a throwing fetch is NETWORK', async () => {
    const refused = async (code: 'ENVIRONMENT' | 'NETWORK') => {
      await assertRejects(attn.loadModel(folder(), { cache: 'none' }), code, ['fetch']);
      await assertRejects(load({ wasm: url('wasm/attn-simd.wasm') }), code, ['fetch']);
    };
    await withGlobal('fetch', undefined, () => refused('ENVIRONMENT'));
    await withThrowing('fetch', () => refused('NETWORK'));
  });

  it('without MessageChannel other work runs between timers; without timers, as in worklets, models still compute', async () => {
    const model = await attn.loadModel(folder(), { cache: 'none' });
    const texts = ['good', 'It was bad', ''];
    const expected = await model.embed(texts);
    const same = async () => assert.deepEqual(await model.embed(texts, { batchSize: 1 }), expected);
    await withGlobal('MessageChannel', undefined, async () => {
      await same();
      const controller = new AbortController();
      const aborting = model.embed(Array<string>(20_000).fill('good'), { batchSize: 1, signal: controller.signal });
      setTimeout(() => controller.abort());
      await assertRejects(aborting, 'ABORTED');
      await withGlobal('setTimeout', undefined, same);
    });
    model.dispose();
  });
});
