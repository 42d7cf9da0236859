/** Tests that attn/worker gives the same numbers and errors as attn. */
import { load as loadDirect, type Tensor } from 'attn';
import { AttnError, load, transfer, type Attn } from 'attn/worker';
import { assert } from 'chai';
import { detached } from '../support/catalogue.ts';
import { assertIsError, assertRejects } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, disposeSymbol, host, setup, url } from '../support/host.ts';
import { assertDims, assertSameBits, mask, random, tensor } from '../support/tensors.ts';

const loadHere = () => load(setup);
const copy = (t: Tensor): Tensor => ({ data: t.data.slice(), dims: t.dims });

describe('attn/worker', () => {
  const g = new Generator(41);
  const [q, k, v] = [random(g, [2, 2, 5, 8]), random(g, [2, 2, 7, 8]), random(g, [2, 2, 7, 6])];
  const x = random(g, [2, 5, 16]);
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('info and every function give the same bits as without a worker', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const info = await attn.info;
    assert.equal(info.version, direct.info.version);
    assert.equal(info.variant, host.variant);
    assert.isArray(info.notes);
    assert.isAtLeast(info.heap.peak, info.heap.used);

    const options = { mask: mask('attend', [7], [1, 1, 0, 1, 1, 1, 1]), isCausal: true, needWeights: true, trace: ['scores', 'context'] } as const;
    const [remote, local] = [await attn.scaledDotProductAttention(q, k, v, options), direct.scaledDotProductAttention(q, k, v, options)];
    assertSameBits(remote.output, local.output, 'output');
    assertSameBits(remote.weights, local.weights, 'weights');
    assert.sameMembers(Object.keys(remote.trace!), ['scores', 'context']);
    assertSameBits(remote.trace!.scores, local.trace!.scores, 'scores');
    const w = random(g, [3, 16]);
    assertSameBits(await attn.linear(x, w), direct.linear(x, w), 'linear');
    assertSameBits(await attn.softmax(x, 1), direct.softmax(x, 1), 'softmax');
    const file = await bytes('testdata/safetensors_python.safetensors');
    const [there, here] = [await attn.parseSafetensors(file), direct.parseSafetensors(file)];
    assert.sameMembers([...there.keys()], [...here.keys()]);
    for (const [name, t] of here) assertSameBits(there.get(name), t, name);
    direct.dispose();
  });

  it('a module: state, initialisation, counts and forward', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const [a, b] = [await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 }), new direct.MultiHeadAttention({ embedDim: 16, numHeads: 4 })];
    await a.initialize({ scheme: 'kaiming_normal', seed: 12 });
    b.initialize({ scheme: 'kaiming_normal', seed: 12 });
    assert.equal(await a.parameterCount, b.parameterCount);
    assert.deepEqual([...(await a.parameterShapes())].sort(), [...b.parameterShapes()].sort());
    for (const [name, t] of await a.stateDict()) assertSameBits(t, b.stateDict().get(name), name);
    assertSameBits(
      (await a.forward(x, undefined, undefined, { needWeights: true })).weights,
      b.forward(x, undefined, undefined, { needWeights: true }).weights,
    );
    b.initialize({ seed: 4 });
    await a.loadStateDict(b.stateDict());
    assertSameBits((await a.forward(x)).output, b.forward(x).output);
    await a.dispose();
    await a.dispose();
    await assertRejects(a.forward(x), 'DISPOSED', [], AttnError);
    direct.dispose();
  });

  it('has every member of the package', async () => {
    const direct = await loadDirect({ variant: host.variant });
    assert.sameMembers(
      Object.keys(attn).filter((name) => name !== 'terminate'),
      Object.keys(direct),
    );
    const [near, far] = [
      new direct.Embedding({ numEmbeddings: 1, embeddingDim: 1 }),
      await new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 }),
    ];
    const members = (object: object) => Object.getOwnPropertyNames(Object.getPrototypeOf(object));
    assert.sameMembers(members(far), members(near));
    direct.dispose();
  });

  it('activations, norms, encoders and embeddings give the same as without a worker', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const [params, weight] = [{ queryWeight: random(g, [3, 8]), keyWeight: random(g, [3, 8]), scoreWeight: random(g, [3]) }, random(g, [8, 8])];
    assert.deepEqual(await attn.additiveAttention(q, k, v, params), direct.additiveAttention(q, k, v, params));
    assert.deepEqual(
      await attn.generalAttention(q, k, v, { weight }, { trace: true }),
      direct.generalAttention(q, k, v, { weight }, { trace: true }),
    );
    assert.deepEqual(await attn.layerNorm(x), direct.layerNorm(x));
    assert.deepEqual(await attn.rmsNorm(x, undefined, 0.1), direct.rmsNorm(x, undefined, 0.1));
    assert.deepEqual(await attn.activation(x, 'gelu'), direct.activation(x, 'gelu'));
    assert.deepEqual(await attn.sinusoidalPositions(3, 5), direct.sinusoidalPositions(3, 5));
    assert.deepEqual(await attn.applyRotary(q, { offset: 3 }), direct.applyRotary(q, { offset: 3 }));
    assert.deepEqual(await attn.alibiBias(3, 4), direct.alibiBias(3, 4));

    const options = { dModel: 16, nhead: 4, dimFeedforward: 8, numLayers: 2, numClasses: 3, pooling: 'mean' } as const;
    const [a, b] = [await new attn.TransformerClassifier(options), new direct.TransformerClassifier(options)];
    const wanted = { outputAttentions: true, outputHiddenStates: true, trace: { layers: [1], names: ['norm2', 'q'] } } as const;
    assert.deepEqual(await a.forward(x, wanted), b.forward(x, wanted));
    await a.train({ seed: 5 });
    b.train({ seed: 5 });
    assert.deepEqual(await a.forward(x), b.forward(x), 'in training');
    await a.eval();
    b.eval();
    assert.deepEqual(await a.forward(x), b.forward(x), 'no longer in training');
    assert.deepEqual(await attn.writeSafetensors(await a.stateDict(), { of: 'a test' }), direct.writeSafetensors(b.stateDict(), { of: 'a test' }));

    const table = { numEmbeddings: 9, embeddingDim: 4 };
    const [words, near] = [await new attn.Embedding(table), new direct.Embedding(table)];
    const ids = Int32Array.of(3, 0, 8, 8);
    assert.deepEqual(await words.forward(ids, [2, 2]), near.forward(ids, [2, 2]));
    assert.equal(ids.length, 4, 'copied');
    assert.deepEqual(await words.forward(BigInt64Array.of(1n)), near.forward([1]));
    assert.deepEqual(await words.nearest(2, 3), near.nearest(2, 3));
    const vector = Float32Array.of(1, 0, 0, 2);
    assert.deepEqual(await words.nearest(vector, 3), near.nearest(vector, 3));
    assert.equal(await words.similarity(1, 2), near.similarity(1, 2));
    assert.deepEqual(await words.analogy(1, 2, 3, 2), near.analogy(1, 2, 3, 2));
    await assertRejects(words.forward([9]), 'OUT_OF_RANGE', ['Embedding', 'ids[0]', '9', '8'], AttnError);
    await assertRejects(words.forward([1.5]), 'ARGUMENT', ['ids[0]', '1.5'], AttnError);
    await assertRejects(words.forward.call(a as never, [1]), 'WRONG_INSTANCE', [], AttnError);
    await words.dispose();
    await assertRejects(words.nearest(0, 1), 'DISPOSED', [], AttnError);
    direct.dispose();
  });

  it('pasts, windows and softcaps give the same as without a worker, copied or moved, in repeated calls', async () => {
    const direct = await loadDirect({ variant: host.variant });
    const options = { embedDim: 16, numHeads: 4, numKeyValueHeads: 2, rotary: { theta: 100 } };
    const [there, here] = [await new attn.MultiHeadAttention(options), new direct.MultiHeadAttention(options)];
    const call = { isCausal: true, softcap: 3, window: [4, 0], needWeights: true } as const;
    let past: { key: Tensor; value: Tensor } | undefined;
    for (const move of [false, true, true]) {
      const expected = here.forward(x, undefined, undefined, { ...call, past, outputPresent: true });
      const given = past && { key: copy(past.key), value: copy(past.value) };
      const r = await there.forward(x, undefined, undefined, {
        ...call,
        past: given && move ? { key: transfer(given.key), value: transfer(given.value) } : given,
        outputPresent: true,
      });
      assert.deepEqual(r, expected);
      if (given) assert.equal(given.key.data.length, move ? 0 : past!.key.data.length, move ? 'moved' : 'copied');
      past = r.present;
    }
    assertDims(past?.key, [2, 2, 15, 4]);
    const one = copy(past!.value);
    assertDims((await there.forward(x, undefined, undefined, { past: { key: past!.key, value: transfer(one) } })).present?.value, [2, 2, 20, 4]);
    assert.equal(one.data.length, 0, 'one of the two has moved');
    assert.isAbove(past!.key.data.length, 0);

    const [a, b] = [q, k].map((t) => ({ data: t.data.slice(0, 80), dims: [1, 2, 5, 8] }));
    const kept = { past: { key: b, value: b }, queryOffset: 2, window: [3, -1] } as const;
    assert.deepEqual(await attn.scaledDotProductAttention(a, a, a, kept), direct.scaledDotProductAttention(a, a, a, kept));
    const layer = {
      dModel: 16,
      nhead: 4,
      dimFeedforward: 8,
      numLayers: 2,
      numKeyValueHeads: 2,
      rotary: { interleaved: true },
      window: [2, 2],
      softcap: 9,
    };
    const [far, near] = [await new attn.TransformerEncoder(layer as never), new direct.TransformerEncoder(layer as never)];
    assert.deepEqual(await far.forward(x, { queryOffset: 1 }), near.forward(x, { queryOffset: 1 }));

    const wrong = (options: unknown) => there.forward(x, undefined, undefined, options as never);
    await assertRejects(wrong({ window: [1] }), 'ARGUMENT', ['MultiHeadAttention', 'window'], AttnError);
    await assertRejects(wrong({ softcap: -1 }), 'CONFIG', ['MultiHeadAttention', 'softcap'], AttnError);
    await assertRejects(wrong({ past: { key: past!.key } }), 'ARGUMENT', ['past.value'], AttnError);
    await assertRejects(wrong({ past: { key: x, value: x } }), 'SHAPE', ['past.key'], AttnError);
    const taken = { key: copy(past!.key), value: copy(past!.value) };
    detached(taken.value.data as Float32Array<ArrayBuffer>);
    await assertRejects(wrong({ past: taken }), 'DETACHED', ['past.value'], AttnError);
    const extra = await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4, addBiasKv: true });
    await assertRejects(extra.forward(x, undefined, undefined, { outputPresent: true }), 'UNSUPPORTED', ['outputPresent', 'addBiasKv'], AttnError);
    assert.deepEqual(await there.forward(x), here.forward(x), 'the worker stays usable');
    for (const each of [there, far, extra]) await each.dispose();
    direct.dispose();
  });

  it('arguments are copied, or moved if the caller marks them', async () => {
    const kept = copy(q);
    await attn.scaledDotProductAttention(kept, k, v);
    assertSameBits(kept, q, 'copied');
    const moved = copy(q);
    const r = await attn.scaledDotProductAttention(transfer(moved), k, v);
    assert.equal(moved.data.length, 0, 'moved');
    assertSameBits(r.output, (await attn.scaledDotProductAttention(q, k, v)).output);
  });

  it('inputs of encoders, ids and vectors also move, states only if they are marked', async () => {
    const encoder = await new attn.TransformerEncoder({ dModel: 16, nhead: 4, dimFeedforward: 8, numLayers: 2 });
    const words = await new attn.Embedding({ numEmbeddings: 9, embeddingDim: 4 });
    const expected = (await encoder.forward(x)).output;
    const [input, ids, vector] = [copy(x), Int32Array.of(1, 8, 2), Float32Array.of(1, 0, 0, 1)];
    assertSameBits((await encoder.forward(transfer(input))).output, expected);
    assert.equal(input.data.length, 0, 'x has moved');
    const rows = await words.forward([1, 8, 2]);
    assertSameBits(await words.forward(transfer(ids)), rows);
    assert.equal(ids.length, 0, 'ids have moved');
    const found = await words.nearest(vector.slice(), 2);
    assert.deepEqual(await words.nearest(transfer(vector), 2), found);
    assert.equal(vector.length, 0, 'the vector has moved');
    const state = await encoder.stateDict();
    await encoder.loadStateDict(state);
    for (const t of state.values()) assert.isAbove(t.data.length, 0, 'a state is copied');
    const weight = copy(state.get('layers.0.linear1.weight')!);
    await encoder.loadStateDict({ 'layers.0.linear1.weight': transfer(weight) }, { strict: false });
    assert.equal(weight.data.length, 0, 'a marked tensor has moved');
    assertSameBits((await encoder.forward(x)).output, expected, 'with unchanged weights');
    await encoder.dispose();
    await words.dispose();
  });

  it('classes fail as without a worker: constructors, options, states, ids', async () => {
    const options = { dModel: 16, nhead: 4, dimFeedforward: 8, numLayers: 2 };
    /** Constructors return promises, so their errors are rejections too. */
    const refused = (make: () => unknown, code: 'CONFIG' | 'ARGUMENT' | 'MEMORY', words: string[]) =>
      assertRejects(async () => await make(), code, words, AttnError);
    await refused(() => new attn.TransformerEncoder({ ...options, nhead: 3 }), 'CONFIG', ['TransformerEncoder', 'dModel', 'nhead']);
    await refused(() => new attn.TransformerEncoder({ ...options, num_layers: 1 } as never), 'ARGUMENT', ['num_layers']);
    await refused(() => new attn.TransformerClassifier({ ...options, numClasses: 0 }), 'CONFIG', ['numClasses']);
    await refused(() => new attn.Embedding({ numEmbeddings: 4, embeddingDim: 2, paddingIdx: 4 }), 'CONFIG', ['paddingIdx']);
    await refused(() => new attn.Embedding({ numEmbeddings: 2 ** 31 - 1, embeddingDim: 2 ** 20 }), 'MEMORY', ['Embedding']);
    const encoder = await new attn.TransformerEncoder(options);
    await assertRejects(encoder.forward(random(g, [2, 3, 15])), 'SHAPE', ['TransformerEncoder', '15', '16'], AttnError);
    await assertRejects(encoder.forward(x, { trace: { layers: [2] } }), 'OUT_OF_RANGE', ['trace.layers'], AttnError);
    await assertRejects(encoder.forward(x, { needWeights: true } as never), 'ARGUMENT', ['needWeights'], AttnError);
    const listed = await assertRejects(encoder.loadStateDict({ surplus: x }), 'MISMATCH', ['surplus', 'layers.1.norm2.bias'], AttnError);
    assert.deepEqual(listed.detail.unexpected, ['surplus']);
    await assertRejects(encoder.train({ seed: -1 }), 'CONFIG', ['seed'], AttnError);
    const words = await new attn.Embedding({ numEmbeddings: 9, embeddingDim: 4 });
    const range = await assertRejects(words.forward(BigInt64Array.of(1n, 2n ** 40n)), 'OUT_OF_RANGE', ['ids[1]'], AttnError);
    assert.equal(range.detail.index, 1);
    await assertRejects(words.forward([1, 2], [3]), 'SHAPE', ['ids'], AttnError);
    await assertRejects(words.nearest(9, 1), 'OUT_OF_RANGE', ['target'], AttnError);
    await assertRejects(words.analogy(0, 1, 2, -1), 'ARGUMENT', ['k'], AttnError);
    await assertRejects(attn.activation(x, 'swish' as never), 'CONFIG', ['activation', 'name'], AttnError);
    await assertRejects(attn.layerNorm(x, undefined, undefined, 0), 'CONFIG', ['eps'], AttnError);
    await assertRejects(attn.writeSafetensors({ __metadata__: x }), 'ARGUMENT', ['__metadata__'], AttnError);
    await encoder.dispose();
    await encoder[Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]();
    for (const call of [() => encoder.forward(x), () => encoder.stateDict(), () => encoder.train(), () => encoder.parameterCount])
      await assertRejects(async () => await call(), 'DISPOSED', [], AttnError);
    assertDims(await words.forward([0]), [1, 4]);
    await words.dispose();
  });

  it('errors retain class, code, message and detail in both directions', async () => {
    const fromHere = await assertRejects(attn.softmax({ data: [1] as never, dims: [1] }), 'DTYPE', ['x'], AttnError);
    assert.match(String(fromHere.detail.argument), /^x\b/);
    const fromThere = await assertRejects(attn.linear(x, random(g, [3, 15])), 'SHAPE', ['linear', '15', '16'], AttnError);
    assert.equal(fromThere.detail.op, 'linear');
    assert.property(fromThere.detail, 'expected');
    const module = await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 4 });
    const listed = await assertRejects(module.loadStateDict({ surplus: x }), 'MISMATCH', ['surplus', 'in_proj_weight'], AttnError);
    assert.isAbove(Object.keys(listed.detail).length, 0);
    const helped = await assertRejects(attn.scaledDotProductAttention(x, x, x, { is_causal: true } as never), 'ARGUMENT', [], AttnError);
    assert.equal(helped.help, 'Did you mean isCausal?');
    await module.dispose();
    let constructed: unknown;
    try {
      await new attn.MultiHeadAttention({ embedDim: 10, numHeads: 4 });
    } catch (error) {
      constructed = error;
    }
    assertIsError(constructed, 'CONFIG', ['embedDim'], AttnError);
    assert.isTrue((await attn.softmax(x)).data.every(Number.isFinite), 'the worker stays usable');
  });

  it('transfer() refuses other values at once, and a view of a buffer moves the whole buffer', async () => {
    for (const value of [5, 'tensor', null, undefined, true]) {
      const error = await assertRejects(async () => transfer(value as never), 'ARGUMENT', ['transfer', 'value'], AttnError);
      assert.deepEqual([error.detail.op, error.detail.argument], ['transfer', 'value']);
    }
    const larger = Float32Array.of(9, 9, 1, 2, 3, 9);
    assertSameBits(await attn.softmax(transfer({ data: larger.subarray(2, 5), dims: [3] })), await attn.softmax(tensor([3], [1, 2, 3])));
    assert.equal(larger.length, 0, 'the whole buffer has moved');
    const kept = Float32Array.of(9, 9, 1, 2, 3, 9);
    assertSameBits(await attn.softmax({ data: kept.subarray(2, 5), dims: [3] }), await attn.softmax(tensor([3], [1, 2, 3])));
    assert.deepEqual([...kept], [9, 9, 1, 2, 3, 9], 'copied');
  });

  it('a mark applies to one call, also if that call fails before it is sent', async () => {
    const encoder = await new attn.TransformerEncoder({ dModel: 16, nhead: 4, dimFeedforward: 8, numLayers: 1 });
    const model = await attn.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
    const inputs = await model.tokenize('good');
    const file = await bytes('testdata/models/tiny-bert/config.json');
    const wrong = { maks: 1 } as never;
    const fails: Record<string, readonly [value: Tensor | Uint8Array | Int32Array, call: (value: never) => Promise<unknown>]> = {
      'of a function': [copy(q), (value) => attn.scaledDotProductAttention(value, k, v, wrong)],
      'of an option': [copy(q), (value) => attn.scaledDotProductAttention(q, k, v, { past: { key: value, value: 5 as never } } as never)],
      'of a module': [copy(x), (value) => encoder.forward(value, wrong)],
      'of a state': [copy(x), (value) => encoder.loadStateDict(new Map([['x', value]]), wrong)],
      'of a model': [inputs.inputIds.slice(), (value) => model.forward({ ...inputs, inputIds: value }, wrong)],
      'of a model that is loaded': [file.slice(), (value) => attn.loadModel({ 'config.json': value }, wrong)],
      'of load': [file.slice(), (value) => load({ ...setup, wasm: value, threads: -1 })],
      'of an unreadable value': [
        copy(q),
        (value) => {
          const { proxy, revoke } = Proxy.revocable({}, {});
          revoke();
          return attn.scaledDotProductAttention(value, k, v, proxy);
        },
      ],
    };
    for (const [what, [value, call]] of Object.entries(fails)) {
      const failed = await call(transfer(value as Tensor) as never).then(
        () => false,
        () => true,
      );
      assert.isTrue(failed, what);
      await attn.softmax('buffer' in value ? { data: new Float32Array(value.length), dims: [value.length] } : value, 0);
      const array = 'data' in value ? (value.data as Float32Array) : value;
      assert.isAbove(array.length, 0, what);
    }
    for (const value of [fails['of a function']![0], fails['of an option']![0]] as Tensor[]) {
      await attn.scaledDotProductAttention(value, k, v);
      assertSameBits(value, q, 'copied by the next call');
    }
    // The array of a marked tensor is replaced after the first one has moved.
    const again: { data: Float32Array; dims: Tensor['dims'] } = copy(q);
    await attn.scaledDotProductAttention(transfer(again), k, v);
    again.data = q.data.slice();
    await attn.scaledDotProductAttention(again, k, v);
    assertSameBits(again, q, 'copied');
    await model.dispose();
    await encoder.dispose();
  });

  it('the buffer of a WebAssembly memory cannot move: ARGUMENT, or it is copied, and the worker stays usable', async () => {
    const data = new Float32Array(new WebAssembly.Memory({ initial: 1 }).buffer, 8, 2);
    const outcome: unknown = await attn.softmax(transfer({ data, dims: [2] })).catch((error: unknown) => error);
    if (outcome instanceof Error) assertIsError(outcome, 'ARGUMENT', ['could not be sent'], AttnError);
    else {
      assert.equal(host.engine, 'node');
      assert.deepEqual([...(outcome as Tensor).data], [0.5, 0.5]);
    }
    assert.equal(data.length, 2);
    assertDims(await attn.softmax(x), x.dims);
  });

  it('an array detached while later arguments are read is DETACHED, and nothing is sent', async () => {
    const taken = copy(q);
    const options = {
      get isCausal() {
        structuredClone(taken.data.buffer, { transfer: [taken.data.buffer] });
        return false;
      },
    };
    const error = await assertRejects(attn.scaledDotProductAttention(taken, k, v, options), 'DETACHED', ['query'], AttnError);
    assert.equal(error.detail.op, 'scaledDotProductAttention');
    assertDims(await attn.softmax(x), x.dims);
  });

  it('methods of other or disposed objects: the error names the object', async () => {
    const other = await load({ variant: host.variant });
    const [own, strange] = [
      await new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 }),
      await new other.Embedding({ numEmbeddings: 3, embeddingDim: 2 }),
    ];
    for (const self of [undefined, null, 5, 'a', {}, attn, strange]) {
      const error = await assertRejects(own.similarity.call(self as never, 0, 1), 'WRONG_INSTANCE', ['expected an Embedding'], AttnError);
      assert.include(String(error.detail.op), 'similarity');
    }
    await own.dispose();
    const gone = await assertRejects(own.similarity(0, 1), 'DISPOSED', ['similarity', 'module'], AttnError);
    assert.include(String(gone.detail.op), 'similarity');
    await other.dispose();
    const calls: Record<string, () => Promise<unknown>> = {
      info: async () => other.info,
      softmax: () => other.softmax(x),
      writeSafetensors: () => other.writeSafetensors({}),
      loadModel: () => other.loadModel({ 'config.json': '{}' }),
      Embedding: async () => new other.Embedding({ numEmbeddings: 3, embeddingDim: 2 }),
      similarity: () => strange.similarity(0, 1),
    };
    for (const [name, call] of Object.entries(calls)) {
      const { detail } = await assertRejects(call, 'DISPOSED', [name, 'instance'], AttnError);
      assert.include(String(detail.op), name);
    }
  });

  it('disposing of a layer frees its memory once, by any of the methods', async () => {
    // A separate instance, because the engine may collect garbage of earlier tests in the shared one. One thread,
    // because additional threads allocate a few bytes at their first task.
    const attn = await load({ ...setup, threads: 1 });
    // The first call allocates memory that the instance retains.
    const first = await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    assert.isAbove(await first.parameterCount, 0);
    await first.dispose();
    const { used } = (await attn.info).heap;
    for (const end of ['dispose', disposeSymbol, Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')] as const) {
      const [layer, other] = [
        await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 }),
        await new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2 }),
      ];
      const both = (await attn.info).heap.used;
      assert.isAbove(both, used);
      const dispose = (layer as unknown as Record<PropertyKey, () => Promise<void>>)[end]!.bind(layer);
      await Promise.all([dispose(), dispose()]);
      await dispose();
      const { used: one } = (await attn.info).heap;
      assert.isBelow(one, both, String(end));
      assert.isAbove(await other.parameterCount, 0);
      await other.dispose();
      assert.equal((await attn.info).heap.used, used, String(end));
    }
    await attn.dispose();
  });

  it('calls run in order', async () => {
    const results = await Promise.all(Array.from({ length: 20 }, (_, i) => attn.softmax(tensor([2], [0, i]))));
    results.forEach((t, i) => assert.closeTo(t.data[1], 1 / (1 + Math.exp(-i)), 1e-6));
  });

  it('many calls leave the heap unchanged', async () => {
    // Each thread allocates a few bytes at its first task.
    const wide = random(g, [8, 128, 32]);
    for (let i = 0; i < 40; i++) await attn.scaledDotProductAttention(wide, wide, wide);
    await attn.scaledDotProductAttention(q, k, v, { needWeights: true });
    const { used } = (await attn.info).heap;
    for (let i = 0; i < 200; i++) await attn.scaledDotProductAttention(q, k, v, { needWeights: i % 2 === 0 });
    // Less if the engine has just collected garbage of earlier tests.
    assert.isAtMost((await attn.info).heap.used, used);
  });

  it('progress is reported', async () => {
    const seen: { phase: string; loaded: number }[] = [];
    const other = await load({ wasm: url('wasm/attn-simd.wasm'), onProgress: (p) => seen.push(p) });
    assert.include(
      seen.map((p) => p.loaded),
      (await bytes('wasm/attn-simd.wasm')).length,
    );
    await other.dispose();
  });

  it('wasm as bytes, Module and Response', async () => {
    const wasm = await bytes('wasm/attn-simd.wasm');
    for (const source of [wasm, wasm.slice().buffer, await WebAssembly.compile(wasm), await fetch(url('wasm/attn-simd.wasm'))]) {
      const other = await load({ wasm: source });
      assert.equal((await other.info).variant, 'simd');
      assertDims(await other.softmax(x), x.dims);
      await other.dispose();
    }
    assert.isAbove(wasm.length, 0, "the caller's bytes stay intact");
  });

  it("errors and progress for the caller's own wasm, in any form", async () => {
    const wasm = await bytes('wasm/attn-simd.wasm');
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    for (const other of [empty, empty.slice().buffer, new WebAssembly.Module(empty), new Response(empty)])
      await assertRejects(load({ wasm: other }), 'FORMAT', ['wasm', 'attn'], AttnError);
    await assertRejects(load({ wasm: new Response(null, { status: 404 }) }), 'NETWORK', ['the given Response answered 404'], AttnError);
    const mine = () => {
      throw new RangeError('mine');
    };
    const thrown = await assertRejects(load({ wasm: new Response(wasm), onProgress: mine }), 'ARGUMENT', ['onProgress', 'mine'], AttnError);
    assert.deepEqual({ ...thrown.detail }, { op: 'load', argument: 'onProgress' });
    assert.equal((thrown.cause as Error).message, 'mine');
    for (const total of [undefined, wasm.length]) {
      const seen: object[] = [];
      const headers: Record<string, string> = total === undefined ? {} : { 'content-length': String(total) };
      const other = await load({ wasm: new Response(wasm, { headers }), onProgress: (p) => seen.push(p) });
      await other.dispose();
      const [first, ...rest] = seen;
      assert.deepEqual(first, total === undefined ? { phase: 'download', loaded: 0 } : { phase: 'download', loaded: 0, total });
      assert.deepInclude(rest, total === undefined ? { phase: 'download', loaded: wasm.length } : { phase: 'download', loaded: wasm.length, total });
    }
    const gone = detached(wasm.slice());
    for (const given of [gone, gone.buffer]) {
      const { detail } = await assertRejects(load({ wasm: given }), 'DETACHED', ['transferred'], AttnError);
      assert.deepEqual([detail.op, detail.argument], ['load', 'wasm']);
    }
    const odd = Object.assign(new URL(url('wasm/attn-simd.wasm')), { toString: mine });
    const unread = await assertRejects(load({ wasm: odd }), 'ARGUMENT', ['mine'], AttnError);
    assert.deepEqual([unread.detail.op, unread.detail.argument], ['load', 'options']);
    const [kept, moved] = [wasm.slice(), wasm.slice()];
    for (const given of [kept, transfer(moved)]) await (await load({ wasm: given })).dispose();
    assert.deepEqual([kept.length, moved.length], [wasm.length, 0]);
  });

  it('maximumMemory applies in the worker', async () => {
    await assertRejects(load({ ...setup, maximumMemory: 1 }), 'CONFIG', ['maximumMemory'], AttnError);
    const small = await load({ ...setup, maximumMemory: 32 * 2 ** 20 });
    const long = tensor([1, 4096, 8], () => 0.5);
    await assertRejects(small.scaledDotProductAttention(long, long, long, { needWeights: true }), 'MEMORY', ['bytes'], AttnError);
    assertDims(await small.softmax(x), x.dims);
    await small.dispose();
  });

  it('loading fails with the same codes', async () => {
    await assertRejects(load({ wasm: url('bad/page.wasm') }), 'FORMAT', ['HTML'], AttnError);
    await assertRejects(load({ wasm: url('bad/none.wasm') }), 'NETWORK', ['404'], AttnError);
    await assertRejects(load({ variant: 'mmx' as never }), 'CONFIG', ['variant'], AttnError);
    const aborted = await assertRejects(load({ signal: AbortSignal.abort('why') }), 'ABORTED', [/^load: /], AttnError);
    assert.deepEqual([{ ...aborted.detail }, aborted.cause], [{ op: 'load' }, 'why']);
    if (!host.takesRelaxed) await assertRejects(load({ variant: 'relaxed' }), 'ENVIRONMENT', ['relaxed'], AttnError);
  });

  it('an abort during loading', async () => {
    const controller = new AbortController();
    const promise = load({ wasm: url('good/slow.wasm'), signal: controller.signal });
    setTimeout(() => controller.abort(), 80);
    await assertRejects(promise, 'ABORTED', [], AttnError);
  });

  it('terminate stops a running call: pending and later calls reject with ABORTED', async () => {
    const doomed = await loadHere();
    const module = await new doomed.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    const long = tensor([1, 8, 3000, 64], (i) => (i % 11) / 11);
    const pending = [doomed.scaledDotProductAttention(long, long, long), doomed.softmax(x), module.forward(x)];
    // Awaits all of them before checking the first, so that no rejection is unhandled.
    const settled = Promise.allSettled(pending);
    doomed.terminate();
    for (const result of await settled) {
      if (result.status === 'fulfilled') assert.fail('a call came through');
      assertIsError(result.reason, 'ABORTED', [], AttnError);
    }
    await assertRejects(doomed.softmax(x), ['ABORTED', 'DISPOSED'], [], AttnError);
    doomed.terminate();
    const next = await loadHere();
    assertDims(await next.softmax(x), x.dims);
    await next.dispose();
  });

  it('dispose lets earlier calls finish; every later call is DISPOSED', async () => {
    const other = await loadHere();
    const module = await new other.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
    const seen: string[] = [];
    const earlier = other.softmax(x);
    void earlier.then(() => seen.push('earlier'));
    await Promise.all([other.dispose(), other.dispose()].map((ended) => ended.then(() => seen.push('ended'))));
    assert.deepEqual(seen, ['earlier', 'ended', 'ended']);
    assertDims(await earlier, x.dims);
    await other.dispose();
    await assertRejects(other.softmax(x), 'DISPOSED', [], AttnError);
    await assertRejects(module.forward(x), 'DISPOSED', [], AttnError);
    await assertRejects(other.softmax(3 as never), 'DISPOSED', [], AttnError);
    await assertRejects(module.forward(3 as never), 'DISPOSED', [], AttnError);
    await assertRejects(async () => await new other.MultiHeadAttention(3 as never), 'DISPOSED', [], AttnError);
  });

  it('dispose stops loading models, which reject with DISPOSED', async () => {
    const other = await loadHere();
    let begun = () => {};
    const downloading = new Promise<void>((resolve) => (begun = resolve));
    // The server never sends the rest of the file.
    const loading = other.loadModel(url('model/hang/tiny-bert-cls'), {
      cache: 'none',
      onProgress: ({ file }) => file === 'model.safetensors' && begun(),
    });
    const rejected = assertRejects(loading, 'DISPOSED', ['loadModel'], AttnError);
    await downloading;
    const early = other.loadModel(url('model/hang/tiny-bert-cls'), { cache: 'none' });
    const rejectedToo = assertRejects(early, 'DISPOSED', ['loadModel'], AttnError);
    await other.dispose();
    await rejected;
    await rejectedToo;
  });

  it("many workers in turn; modules of another worker's instance are refused", async () => {
    for (let i = 0; i < 4; i++) {
      const other = await load({ variant: host.variant });
      const a = await new other.MultiHeadAttention({ embedDim: 16, numHeads: 2 });
      assertDims((await a.forward(x)).output, x.dims);
      await other.dispose();
    }
    assertDims(await attn.softmax(x), x.dims);
  });
});
