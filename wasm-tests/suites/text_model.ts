/** Compares models with transformers on the same files, and tests their use. For sources see load_model.ts. */
import type { Attn, Encoding, TextModel } from 'attn';
import { load as loadWorker, AttnError as WorkerError } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { bytes, disposeSymbol, host, loadHere, settledHeap, setup, takesLong, url } from '../support/host.ts';
import { assertEmbedding, checkpoints, loadCheckpoint, readModelGolden, runModelCase } from '../support/model_cases.ts';
import { assertClose, assertDims, assertSameBits, slice } from '../support/tensors.ts';

const texts = [
  'A happy person smiles.',
  '',
  'Was it bad?',
  'The film was not bad, it was good!',
  'good',
  'It was a good film and I liked all of it.',
];

const itLong = takesLong ? it : () => undefined;

describe('models, against transformers', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of checkpoints)
    it(name, async () => {
      const golden = await readModelGolden(attn, name);
      const model = await loadCheckpoint(attn, name);
      const long = model.tokenize('a b c d '.repeat(100));
      assert.equal(long.dims[1], Number(golden.metadata.max_length), 'the default of maxLength');
      assert.isTrue(long.truncated[0]);
      assert.isAtLeast(golden.cases.length, 2);
      for (const c of golden.cases) {
        const compared = await runModelCase(model, golden, c);
        const pooled = (what: string) => /^(pooled\.|embedding)/.test(what) && Array.isArray(c.texts[0]);
        assert.sameMembers(
          [...compared],
          Object.keys(c.expected).filter((what) => !pooled(what)),
          c.name,
        );
      }
      model.dispose();
    });

  itLong('all-MiniLM-L6-v2: sentences, traces, word neighbours, and memory', async () => {
    const address = url('models/all-MiniLM-L6-v2/config.json');
    if (!(await fetch(address)).ok) return void host.note('all-MiniLM-L6-v2 is not in models/: tools/setup fetches it');
    const own = await loadHere();
    const model = await own.loadModel(new URL('.', address), { cache: 'none' });
    const weights = 4 * (30522 * 384 + 512 * 384 + 2 * 384 + 2 * 384 + 6 * (4 * (384 * 384 + 384) + 2 * 384 * 1536 + 1536 + 384 + 4 * 384));
    const { peak } = own.info.heap;
    host.note(`all-MiniLM-L6-v2: the heap's peak is ${(peak / weights).toFixed(3)} x its weights as float32`);
    assert.isAtMost(peak, 1.25 * weights + 20e6);

    const golden = await readModelGolden(own, 'all-MiniLM-L6-v2');
    for (const c of golden.cases)
      if (c.name !== 'sentences') await runModelCase(model, golden, c);
      else {
        const { ids, offsets, truncated, errors } = c as unknown as {
          ids: number[][];
          offsets: ([number, number] | null)[][];
          truncated: boolean[];
          errors: number[];
        };
        const list = c.texts as readonly string[];
        assert.isAtLeast(list.length, 24);
        list.forEach((text, i) => {
          const encoding = model.tokenize(text);
          assert.deepEqual(Array.from(encoding.inputIds), ids[i], `ids of ${text}`);
          assert.deepEqual(encoding.offsets[0], offsets[i], `offsets of ${text}`);
          assert.equal(encoding.truncated[0], truncated[i]);
        });
        const vectors = await model.embed(list);
        const expected = golden.tensors.get('sentences/expected.embedding')!;
        list.forEach((text, i) => assertEmbedding(slice(vectors, 0, i, i + 1), slice(expected, 0, i, i + 1), errors[i], text));
      }

    const words = (await (await fetch(url('testdata/models/all-MiniLM-L6-v2.words.json'))).json()) as {
      similarity: { a: string; b: string; similarity: number }[];
      nearest: { target: string; k: number; expected: { id: number; word: string; similarity: number }[] }[];
      analogy: { a: string; b: string; c: string; k: number; expected: { id: number; word: string; similarity: number }[] }[];
    };
    const id = (word: string) => model.tokenToId(word)!;
    const same = (found: { id: number; similarity: number }[], expected: { id: number; word: string; similarity: number }[]) => {
      assert.deepEqual(
        found.map((each) => model.idToToken(each.id)),
        expected.map(({ word }) => word),
      );
      found.forEach(({ similarity }, i) => assert.closeTo(similarity, expected[i].similarity, 1e-5));
    };
    for (const { a, b, similarity } of words.similarity) assert.closeTo(model.wordEmbeddings.similarity(id(a), id(b)), similarity, 1e-5);
    for (const { target, k, expected } of words.nearest) same(model.wordEmbeddings.nearest(id(target), k), expected);
    for (const { a, b, c, k, expected } of words.analogy) same(model.wordEmbeddings.analogy(id(a), id(b), id(c), k), expected);
    own.dispose();
  });
});

describe('models, in use', () => {
  let attn: Attn;
  let model: TextModel;
  before(async () => {
    attn = await loadHere();
    model = await loadCheckpoint(attn, 'tiny-bert');
  });
  after(() => attn.dispose());

  it('the batch size and the other texts of a batch change no bit of an embedding', async () => {
    const expected = await model.embed(texts);
    assertDims(expected, [texts.length, 32]);
    for (const batchSize of [1, 2, 3, 5, 1000]) assertSameBits(await model.embed(texts, { batchSize }), expected, `batches of ${batchSize}`);
    for (const [i, text] of texts.entries()) assertSameBits(await model.embed(text), slice(expected, 0, i, i + 1), text);
    const classes = await model.classify(texts);
    for (const batchSize of [1, 2, 4]) assert.deepEqual(await model.classify(texts, { batchSize }), classes, `batches of ${batchSize}`);
    for (const pooling of ['cls', 'max'] as const)
      assertSameBits(await model.embed(texts, { pooling, batchSize: 2 }), await model.embed(texts, { pooling }), pooling);
  });

  it('padding changes no bit of a forward', () => {
    const alone = model.forward(model.tokenize(texts[2]), { outputAttentions: true });
    const beside = model.forward(model.tokenize([texts[3], texts[2]]), { outputAttentions: true });
    const length = alone.lastHiddenState.dims[1];
    assertSameBits(slice(slice(beside.lastHiddenState, 0, 1, 2), 1, 0, length), alone.lastHiddenState);
    assertSameBits(slice(beside.logits!, 0, 1, 2), alone.logits);
    const part = slice(slice(slice(beside.attentions![1], 0, 1, 2), 2, 0, length), 3, 0, length);
    assertSameBits(part, alone.attentions![1]);
  });

  it('normalised embeddings have length 1, and poolings follow their definitions', async () => {
    const inputs = model.tokenize(texts[3]);
    const { lastHiddenState } = model.forward(inputs);
    const [, length, width] = lastHiddenState.dims;
    const at = (row: number, i: number) => lastHiddenState.data[row * width + i];
    const column = (i: number) => Array.from({ length }, (_, row) => at(row, i));
    const mean = Float32Array.from({ length: width }, (_, i) => column(i).reduce((a, b) => a + b) / length);
    assertClose(await model.embed(texts[3], { pooling: 'mean', normalize: false }), { data: mean, dims: [1, width] }, 1e-6);
    const most = Float32Array.from({ length: width }, (_, i) => Math.max(...column(i)));
    assertClose(await model.embed(texts[3], { pooling: 'max', normalize: false }), { data: most, dims: [1, width] }, 0);
    const first = lastHiddenState.data.slice(0, width);
    assertClose(await model.embed(texts[3], { pooling: 'cls', normalize: false }), { data: first, dims: [1, width] }, 0);
    const { data } = await model.embed(texts[3], { normalize: true });
    assert.closeTo(Math.hypot(...data), 1, 1e-6);
  });

  it('traceLayer gives the same layer values and results as forward', () => {
    const inputs = model.tokenize(texts.slice(2, 4));
    const { attentions, hiddenStates } = model.forward(inputs, { outputAttentions: true, outputHiddenStates: true });
    for (const layer of [0, 1]) {
      const trace = model.traceLayer(inputs, layer);
      assertSameBits(trace.weights, attentions![layer], 'weights');
      assertSameBits(trace.norm2, hiddenStates![layer + 1], 'norm2');
      assert.notProperty(trace, 'weighted_values');
      assert.isAtLeast(Object.keys(trace).length, 18);
    }
    const [B, L] = inputs.dims;
    const named = model.traceLayer(inputs, 1, ['weighted_values', 'ff_hidden']);
    assert.sameMembers(Object.keys(named), ['weighted_values', 'ff_hidden']);
    assertDims(named.weighted_values, [B, 4, L, L, 8]);
    for (const layer of [2, -1]) {
      const error = assertThrows(() => model.traceLayer(inputs, layer), 'OUT_OF_RANGE', [String(layer), '0 to 1']);
      assert.equal(error.detail.argument, 'layer');
    }
    assertThrows(() => model.traceLayer(inputs, 0.5), 'ARGUMENT', ['layer']);
    assertThrows(() => model.traceLayer(inputs, 0, ['wights' as never]), 'ARGUMENT', ['weights']);
  });

  it('forward accepts a hand-built encoding', () => {
    const made = model.tokenize(['good', 'bad it was']);
    const { inputIds, attentionMask, tokenTypeIds, dims } = made;
    const expected = model.forward(made);
    assert.deepEqual(model.forward({ inputIds, attentionMask, tokenTypeIds, dims } as Encoding), expected);
    const [, length] = dims;
    const single = { inputIds: inputIds.slice(0, length), attentionMask: attentionMask.slice(0, length), dims: [1, length] };
    assertSameBits(model.forward(single as unknown as Encoding).logits, slice(expected.logits!, 0, 0, 1), 'without types');
  });

  const encoding = (changes: object) =>
    ({ inputIds: Int32Array.of(1, 2), attentionMask: Uint8Array.of(1, 1), dims: [1, 2], ...changes }) as unknown as Encoding;
  const wrong: Record<string, readonly [unknown, 'ARGUMENT' | 'SHAPE' | 'DTYPE' | 'OUT_OF_RANGE', string]> = {
    'no object': [7, 'ARGUMENT', 'inputs'],
    'a text': ['good', 'ARGUMENT', 'inputs'],
    'no dims': [encoding({ dims: undefined }), 'ARGUMENT', 'dims'],
    'no ids': [encoding({ inputIds: undefined }), 'ARGUMENT', 'inputIds'],
    'ids of another type': [encoding({ inputIds: Float32Array.of(1, 2) }), 'DTYPE', 'inputIds'],
    'fewer ids than dims give': [encoding({ dims: [1, 3] }), 'SHAPE', 'inputIds'],
    'a shorter mask': [encoding({ attentionMask: Uint8Array.of(1) }), 'SHAPE', 'attentionMask'],
    'dims of one dimension': [encoding({ dims: [2] }), 'SHAPE', 'inputIds'],
    'an id beyond the vocabulary': [encoding({ inputIds: Int32Array.of(1, 100000) }), 'OUT_OF_RANGE', '100000'],
    'a negative id': [encoding({ inputIds: Int32Array.of(-1, 1) }), 'OUT_OF_RANGE', '-1'],
    'an unknown token type': [encoding({ tokenTypeIds: Int32Array.of(0, 2) }), 'OUT_OF_RANGE', 'tokenTypeIds'],
    'more tokens than positions': [{ inputIds: new Int32Array(65), attentionMask: new Uint8Array(65).fill(1), dims: [1, 65] }, 'OUT_OF_RANGE', '64'],
  };
  for (const [name, [inputs, code, word]] of Object.entries(wrong))
    it(`forward: ${name} is ${code}`, () => {
      assertThrows(() => model.forward(inputs as Encoding), code, [word]);
      assertDims(model.forward(model.tokenize('good')).logits, [1, 3]);
    });

  const noTexts: readonly (readonly [what: string, texts: unknown, argument: string])[] = [
    ['nothing', undefined, 'texts'],
    ['null', null, 'texts'],
    ['a number', 1, 'texts'],
    ['an array of numbers', [1], 'texts[0]'],
    ['an object', { 0: 'a', length: 1 }, 'texts'],
    ['half a pair', [['a']], 'texts[0]'],
    ['a pair of three', [['a', 'b', 'c']], 'texts[0]'],
    ['a pair with a number', [['a', 2]], 'texts[0][1]'],
    ['a String object', [new String('a')], 'texts[0]'],
    ['a hole', [, 'a'], 'texts[0]'],
    ['a pair after a text', ['a', ['b', 'c']], 'texts[1]'],
    ['a text after a pair', [['b', 'c'], 'a'], 'texts[1]'],
  ];
  for (const [what, texts, argument] of noTexts)
    it(`${what} is no text: ARGUMENT`, () => assert.equal(assertThrows(() => model.tokenize(texts as never), 'ARGUMENT').detail.argument, argument));

  it('texts are read once', () => {
    let reads = 0;
    const watched = new Proxy(['a', 'b c'], { get: (target, name, self) => (name === '1' && reads++, Reflect.get(target, name, self)) });
    assert.deepEqual(model.tokenize(watched).dims, [2, 4]);
    assert.equal(reads, 1);
  });

  it('all methods that take texts omit special tokens and truncate at the start on request', async () => {
    const text = 'The film was not bad at all.';
    for (const options of [{ addSpecialTokens: false }, { truncationSide: 'left', maxLength: 5 }] as const) {
      const inputs = model.tokenize(text, options);
      assert.notDeepEqual(inputs.tokens, model.tokenize(text, { maxLength: options.maxLength }).tokens);
      const { data, dims } = model.forward(inputs).lastHiddenState;
      const first = await model.embed(text, { ...options, pooling: 'cls', normalize: false });
      assert.deepEqual(first.data, data.slice(0, dims[2]));
    }
    await assertRejects(model.embed(text, { addSpecialTokens: 1 as never }), 'ARGUMENT', ['addSpecialTokens']);
    await assertRejects(model.classify(text, { truncationSide: 'middle' as never }), 'CONFIG', ['truncationSide']);
  });

  it('unknown options, values out of range and overlong texts are refused with their index', async () => {
    assertThrows(() => model.tokenize('a', { maxLenght: 3 } as never), 'ARGUMENT', ['maxLength']);
    assertThrows(() => model.tokenize('a', { maxLength: 65 }), 'OUT_OF_RANGE', ['64']);
    assertThrows(() => model.tokenize('a', { maxLength: 0 }), 'CONFIG', ['maxLength']);
    assertThrows(() => model.tokenize('a', { truncation: 1 } as never), 'ARGUMENT', ['truncation']);
    const long = 'good '.repeat(80);
    assert.deepEqual([...model.tokenize(long).truncated], [true]);
    assert.equal(assertThrows(() => model.tokenize(['a', long], { truncation: false }), 'OUT_OF_RANGE').detail.index, 1);
    const error = await assertRejects(model.embed(['a', 'b', long, long], { truncation: false, batchSize: 2 }), 'OUT_OF_RANGE', ['embed']);
    assert.equal(error.detail.index, 2);
    await assertRejects(model.embed([['a', 'b']] as never), 'ARGUMENT', ['texts[0]']);
    await assertRejects(model.embed('a', { pooling: 'none' as never }), 'CONFIG', ['pooling']);
    await assertRejects(model.embed('a', { pool: 'mean' } as never), 'ARGUMENT', ['pooling']);
    await assertRejects(model.embed('a', { batchSize: 0 }), 'CONFIG', ['batchSize']);
    await assertRejects(model.embed('a', { onProgress: 1 as never }), 'ARGUMENT', ['onProgress']);
    await assertRejects(model.classify('a', { onProgress: 1 as never }), 'ARGUMENT', ['onProgress']);
    await assertRejects(model.classify('a', { pooling: 'mean' } as never), 'ARGUMENT', ['pooling']);
    assertThrows(() => model.tokenToId(5 as never), 'ARGUMENT');
    assertThrows(() => model.idToToken('5' as never), 'ARGUMENT');
  });

  it('a checkpoint without a head has no labels, no logits and does not classify', async () => {
    const other = await loadCheckpoint(attn, 'tiny-bert-cls');
    assert.isUndefined(other.labels);
    assert.notProperty(other.forward(other.tokenize('good')), 'logits');
    await assertRejects(other.classify('good'), 'UNSUPPORTED', ['head']);
    other.dispose();
  });

  it('the scores of a regression are its logits', async () => {
    const names = ['config.json', 'tokenizer.json', 'model.safetensors'];
    const files = Object.fromEntries(await Promise.all(names.map(async (name) => [name, await bytes(`testdata/models/tiny-bert/${name}`)] as const)));
    const config = { ...(JSON.parse(new TextDecoder().decode(files['config.json'])) as object), problem_type: 'regression' };
    const other = await attn.loadModel({ ...files, 'config.json': JSON.stringify(config) });
    const logits = other.forward(other.tokenize(texts)).logits!;
    (await other.classify(texts)).forEach((scores, i) => {
      const expected = other.labels!.map((label, c) => ({ label, score: logits.data[3 * i + c] }));
      expected.sort((a, b) => b.score - a.score);
      assert.deepEqual(scores, expected);
    });
    other.dispose();
  });

  it('config and labels come from the files and are frozen', () => {
    assert.equal(model.config.model_type, 'bert');
    assert.equal(model.config.hidden_size, 32);
    assert.isFrozen(model.config);
    assert.isFrozen(model.config.id2label);
    assert.deepEqual([...model.labels!], Object.values(model.config.id2label as object));
    assert.isFrozen(model.labels);
  });

  it('an empty list of texts, and an empty text', async () => {
    assertDims(await model.embed([]), [0, 32]);
    assert.deepEqual(await model.classify([]), []);
    assert.deepEqual([...model.tokenize([]).dims], [0, 0]);
    assertDims(await model.embed(''), [1, 32]);
    assert.equal(model.tokenize('').tokens[0].length, 2);
  });

  it('word embeddings: the matrix, the vocabulary and their parameter', () => {
    const { wordEmbeddings } = model;
    assert.strictEqual(model.wordEmbeddings, wordEmbeddings, 'one object');
    const id = model.tokenToId('good')!;
    assert.equal(model.idToToken(id), 'good');
    assert.isUndefined(model.tokenToId('constructor'));
    assert.isUndefined(model.tokenToId('__proto__'));
    assert.isUndefined(model.idToToken(-1));
    assert.isUndefined(model.idToToken(1e9));
    const state = wordEmbeddings.stateDict().get('weight')!;
    assertDims(state, [model.config.vocab_size as number, 32]);
    assertSameBits(wordEmbeddings.forward([id]), slice(state, 0, id, id + 1));
    assert.closeTo(wordEmbeddings.similarity(id, id), 1, 1e-6);
    assert.equal(wordEmbeddings.nearest(id, 3).length, 3);
    assert.equal(wordEmbeddings.analogy(5, 6, 7, 2).length, 2);
  });

  it('more texts than are sorted at once: each gets its own vector', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert');
    const words = ['a', 'good day', 'no', 'a good good day', 'day'];
    const each = await model.embed(words);
    const count = 8192 + 7;
    const all = await model.embed(
      Array.from({ length: count }, (_, i) => words[i % words.length]),
      { batchSize: 512 },
    );
    const width = each.dims[1];
    for (let i = 0; i < count; i++)
      for (let c = 0; c < width; c++)
        if (all.data[i * width + c] !== each.data[(i % words.length) * width + c]) assert.fail(`text ${i}, column ${c}`);
    model.dispose();
  });

  it('progress counts texts, and an abort takes effect between batches', async () => {
    const many = Array.from({ length: 50 }, (_, i) => texts[i % texts.length]);
    for (const operation of ['embed', 'classify'] as const) {
      const seen: { done: number; total: number }[] = [];
      await model[operation](many, { batchSize: 16, onProgress: (p) => seen.push({ ...p }) });
      assert.deepEqual(
        seen,
        [0, 16, 32, 48, 50].map((done) => ({ done, total: 50 })),
        operation,
      );
    }
    await assertRejects(model.embed(many, { signal: AbortSignal.abort() }), 'ABORTED');
    const controller = new AbortController();
    let done = 0;
    const aborting = model.embed(many, {
      batchSize: 4,
      signal: controller.signal,
      onProgress: (p) => {
        done = p.done;
        if (p.done === 8) controller.abort(new Error('mine'));
      },
    });
    const error = await assertRejects(aborting, 'ABORTED');
    assert.equal((error.cause as Error).message, 'mine');
    assert.equal(done, 8);
    const later = new AbortController();
    // More texts than can be computed before even a late timer runs.
    const more = Array<string>(20_000).fill(many[0]!);
    const classifying = model.classify(more, { batchSize: 1, signal: later.signal });
    setTimeout(() => later.abort());
    await assertRejects(classifying, 'ABORTED');
    const throwing = model.embed(many, {
      onProgress: () => {
        throw new RangeError('mine');
      },
    });
    assert.equal(((await assertRejects(throwing, 'ARGUMENT', ['onProgress', 'mine'])).cause as Error).name, 'RangeError');
    assertDims(await model.embed(many), [50, 32]);
  });

  it('two concurrent embeddings give the same vectors as separate ones', async () => {
    const [a, b] = [texts.slice(0, 3), texts.slice(3)];
    const [x, y] = [await model.embed(a), await model.embed(b)];
    const [p, q] = await Promise.all([model.embed(a, { batchSize: 1 }), model.embed(b, { batchSize: 1 })]);
    assertSameBits(p, x);
    assertSameBits(q, y);
  });

  it('disposal is idempotent, makes every later call DISPOSED and frees the memory', async () => {
    const start = settledHeap(attn);
    const other = await loadCheckpoint(attn, 'tiny-roberta');
    const inputs = other.tokenize(texts);
    other.forward(inputs, { outputAttentions: true });
    await other.embed(texts);
    const { wordEmbeddings } = other;
    const embedding = other.embed(texts, { batchSize: 1 });
    other.dispose();
    other.dispose();
    other[disposeSymbol]();
    await assertRejects(embedding, 'DISPOSED');
    for (const use of [
      () => other.config,
      () => other.labels,
      () => other.wordEmbeddings,
      () => other.tokenize('a'),
      () => other.forward(inputs),
      () => other.traceLayer(inputs, 0),
      () => other.tokenToId('a'),
      () => other.idToToken(1),
      () => wordEmbeddings.nearest(1, 2),
      () => wordEmbeddings.stateDict(),
    ])
      assertThrows(use, 'DISPOSED');
    await assertRejects(other.embed('a'), 'DISPOSED');
    await assertRejects(other.classify('a'), 'DISPOSED');
    assert.equal(settledHeap(attn), start);
    assertThrows(() => model.tokenize.call({} as never, 'a'), 'WRONG_INSTANCE');
  });

  it('an error names the method and the argument', async () => {
    const own = await loadHere();
    const [gone, orphan] = [await loadCheckpoint(own, 'tiny-bert-cls'), await loadCheckpoint(own, 'tiny-bert-cls')];
    const members = Object.getPrototypeOf(model) as object;
    const call = (name: string, self: unknown, ...args: readonly unknown[]) => {
      const { value, get } = Object.getOwnPropertyDescriptor(members, name)! as {
        value?: (...args: readonly unknown[]) => unknown;
        get?: () => unknown;
      };
      return async () => (value ? Reflect.apply(value, self, args) : Reflect.apply(get!, self, []));
    };
    const head = await assertRejects(gone.classify('a'), 'UNSUPPORTED', [/^classify: /]);
    assert.equal(head.detail.op, 'classify');
    gone[disposeSymbol]();
    own.dispose();
    const plain = ['config', 'labels', 'wordEmbeddings', 'parameterShapes', 'stateDict'];
    const taking = {
      tokenize: 'a',
      embed: 'a',
      classify: 'a',
      tokenToId: 'a',
      idToToken: 1,
      getParameter: 'a',
      forward: {},
      traceLayer: {},
      loadStateDict: {},
    };
    for (const [name, arg] of [...plain.map((name) => [name, undefined] as const), ...Object.entries(taking)])
      for (const [self, code, word] of [
        [null, 'WRONG_INSTANCE', 'expected a model'],
        [undefined, 'WRONG_INSTANCE', 'expected a model'],
        ['text', 'WRONG_INSTANCE', 'expected a model'],
        [{}, 'WRONG_INSTANCE', 'expected a model'],
        [gone, 'DISPOSED', 'this model'],
        [orphan, 'DISPOSED', 'this instance'],
      ] as const) {
        const { detail } = await assertRejects(call(name, self, arg), code, [new RegExp(`^${name}: `), word]).catch((error: unknown) => {
          throw new Error(`${name} of ${String(self)}: ${(error as Error).message}`);
        });
        assert.equal(detail.op, name);
      }
    const wrong: readonly (readonly [name: string, argument: string, ...args: unknown[]])[] = [
      ['tokenize', 'texts', 5],
      ['tokenize', 'batchSize', 'a', { batchSize: 2 }],
      ['embed', 'texts', 5],
      ['embed', 'batchSise', 'a', { batchSise: 2 }],
      ['classify', 'texts', 5],
      ['classify', 'pooling', 'a', { pooling: 'cls' }],
      ['tokenToId', 'token', 5],
      ['idToToken', 'id', 'a'],
    ];
    for (const [name, argument, ...args] of wrong) {
      const { detail } = await assertRejects(call(name, model, ...args), 'ARGUMENT', [new RegExp(`^${name}: `)]);
      assert.deepEqual([detail.op, detail.argument], [name, argument]);
    }
    for (const name of ['tokenize', 'embed', 'classify']) {
      const { detail } = await assertRejects(call(name, model, 'a', { maxLength: 65 }), 'OUT_OF_RANGE', [new RegExp(`^${name}: maxLength is 65`)]);
      assert.deepEqual({ ...detail }, { op: name, argument: 'maxLength', expected: 'at most 64', got: '65' });
    }
    const long = 'good '.repeat(80);
    for (const name of ['embed', 'classify']) {
      const tooLong = await assertRejects(call(name, model, ['a', 'b', long], { truncation: false }), 'OUT_OF_RANGE', [
        new RegExp(`^${name}: `),
        'texts[2]',
      ]);
      assert.deepEqual([tooLong.detail.op, tooLong.detail.index], [name, 2]);
      const onProgress = () => {
        throw new RangeError('mine');
      };
      const thrown = await assertRejects(call(name, model, 'a', { onProgress }), 'ARGUMENT', [new RegExp(`^${name}: `)]);
      assert.deepEqual({ ...thrown.detail }, { op: name, argument: 'onProgress' });
    }
  });

  it('disposing of the word embeddings does not affect the model', async () => {
    const other = await loadCheckpoint(attn, 'tiny-mpnet');
    const expected = await other.embed(texts);
    const words = other.wordEmbeddings;
    words.dispose();
    assertThrows(() => words.nearest(1, 2), 'DISPOSED');
    assertSameBits(await other.embed(texts), expected);
    const again = other.wordEmbeddings;
    assert.notStrictEqual(again, words);
    assert.strictEqual(other.wordEmbeddings, again);
    assert.equal(again.nearest(1, 2).length, 2);
    other.dispose();
    assertThrows(() => again.nearest(1, 2), 'DISPOSED');
  });

  it('disposing of the instance disposes of its models', async () => {
    const own = await loadHere();
    const other = await loadCheckpoint(own, 'tiny-bert');
    const words = other.wordEmbeddings;
    own.dispose();
    assertThrows(() => other.tokenize('a'), 'DISPOSED');
    assertThrows(() => words.nearest(1, 2), 'DISPOSED');
    other.dispose();
    await assertRejects(own.loadModel(url('testdata/models/tiny-bert')), 'DISPOSED');
  });

  it('forwards, traces and embeddings of many shapes leave the heap unchanged', async () => {
    const long = Array.from({ length: 40 }, (_, i) => 'good film '.repeat(1 + (i % 20)));
    const round = async () => {
      const inputs = model.tokenize(long.slice(0, 7));
      model.forward(inputs, { outputAttentions: true, outputHiddenStates: true });
      model.traceLayer(inputs, 1);
      await model.embed(long, { batchSize: 7 });
      await model.classify(long);
      for (const bad of [encoding({ dims: [2] }), encoding({ inputIds: Int32Array.of(1, 100000) })]) assert.throws(() => model.forward(bad));
    };
    await round();
    const used = settledHeap(attn);
    for (let i = 0; i < (host.build === 'release' ? 10 : 2); i++) await round();
    assert.equal(settledHeap(attn), used);
  });
});

// The checked builds lack the second binary that attn/worker needs.
if (host.build === 'release')
  describe('models in attn/worker', () => {
    it('every member gives the same as without a worker', async () => {
      const [direct, remote] = [await loadHere(), await loadWorker(setup)];
      const [near, far] = [await loadCheckpoint(direct, 'tiny-bert'), await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' })];
      const members = (object: object): string[] => {
        const prototype = Object.getPrototypeOf(object) as object;
        if (prototype === Object.prototype) return [];
        return [...new Set([...Object.getOwnPropertyNames(prototype), ...members(prototype)])];
      };
      assert.sameMembers(members(far), members(near));
      assert.deepEqual(await far.config, near.config);
      assert.isFrozen(await far.config);
      assert.deepEqual(await far.labels, near.labels);
      const inputs = near.tokenize(texts);
      assert.deepEqual(await far.tokenize(texts), inputs);
      const options = { outputAttentions: true, outputHiddenStates: true };
      assert.deepEqual(await far.forward(inputs, options), near.forward(inputs, options));
      assert.deepEqual(await far.traceLayer(inputs, 1, ['q', 'norm1']), near.traceLayer(inputs, 1, ['q', 'norm1']));
      const seen: number[] = [];
      assertSameBits(
        await far.embed(texts, { batchSize: 2, pooling: 'cls', onProgress: (p) => seen.push(p.done) }),
        await near.embed(texts, { pooling: 'cls' }),
      );
      assert.deepEqual(seen, [0, 2, 4, 6]);
      const classified: number[] = [];
      const scores = await far.classify(texts, { batchSize: 4, onProgress: (p) => classified.push(p.done) });
      assert.deepEqual(scores, await near.classify(texts));
      assert.deepEqual(classified, [0, 4, 6]);
      assert.deepEqual(await far.classify(texts.slice(0, 2)), await near.classify(texts.slice(0, 2)));
      assert.deepEqual(await far.classify([['good', 'bad']]), await near.classify([['good', 'bad']]));
      assert.equal(await far.tokenToId('good'), near.tokenToId('good'));
      assert.equal(await far.idToToken(7), near.idToToken(7));
      const first = await far.wordEmbeddings;
      assert.strictEqual(await far.wordEmbeddings, first);
      await first.dispose();
      await assertRejects(first.nearest(7, 3), 'DISPOSED', [], WorkerError);
      const words = await far.wordEmbeddings;
      assert.deepEqual(await words.nearest(7, 3), near.wordEmbeddings.nearest(7, 3));

      await assertRejects(far.tokenize('a', { maxLength: 65 }), 'OUT_OF_RANGE', ['64'], WorkerError);
      await assertRejects(far.forward({ ...inputs, dims: [1, 1] }), 'SHAPE', ['inputIds'], WorkerError);
      await assertRejects(far.traceLayer(inputs, 2), 'OUT_OF_RANGE', [], WorkerError);
      await assertRejects(far.embed('a', { pooling: 'sum' as never }), 'CONFIG', ['pooling'], WorkerError);
      await assertRejects(far.embed(5 as never), 'ARGUMENT', ['texts'], WorkerError);
      const throwing = far.embed(texts, {
        onProgress: () => {
          throw new Error('mine');
        },
      });
      await assertRejects(throwing, 'ARGUMENT', ['onProgress', 'mine'], WorkerError);
      const controller = new AbortController();
      const onProgress = ({ done }: { done: number }) => done >= 2 && controller.abort();
      const aborting = far.embed(Array(500).fill('good'), { batchSize: 1, signal: controller.signal, onProgress: (p) => void onProgress(p) });
      await assertRejects(aborting, 'ABORTED', [], WorkerError);
      await assertRejects(far.classify(texts, { signal: AbortSignal.abort() }), 'ABORTED', [/^classify: /], WorkerError);

      await far.dispose();
      await far.dispose();
      await assertRejects(far.tokenize('a'), 'DISPOSED', [], WorkerError);
      await assertRejects(far.forward(inputs), 'DISPOSED', [], WorkerError);
      const gone = await assertRejects(words.nearest(7, 3), 'DISPOSED', ['nearest'], WorkerError);
      assert.equal(gone.detail.op, 'nearest');
      await assertRejects(async () => await far.config, 'DISPOSED', [], WorkerError);
      direct.dispose();
      await remote.dispose();
    });

    it('errors before sending name the method, and only methods for pairs accept them', async () => {
      const [direct, remote] = [await loadHere(), await loadWorker(setup)];
      const near = await loadCheckpoint(direct, 'tiny-bert');
      const far = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      const calls: Record<string, readonly [() => Promise<unknown>, string]> = {
        'tokenize texts': [() => far.tokenize(5 as never), 'texts'],
        'tokenize options': [() => far.tokenize('a', { batchSize: 1 } as never), 'batchSize'],
        'embed texts': [() => far.embed(5 as never), 'texts'],
        'embed pairs': [() => far.embed([['a', 'b']] as never), 'texts[0]'],
        'embed options': [() => far.embed('a', { batchSise: 1 } as never), 'batchSise'],
        'classify texts': [() => far.classify(5 as never), 'texts'],
        'classify options': [() => far.classify('a', { pooling: 'cls' } as never), 'pooling'],
        'tokenToId token': [() => far.tokenToId(5 as never), 'token'],
        'idToToken id': [() => far.idToToken('a' as never), 'id'],
        'getParameter name': [() => far.getParameter(5 as never), 'name'],
      };
      for (const [what, [call, argument]] of Object.entries(calls)) {
        const { detail } = await assertRejects(call, 'ARGUMENT', [], WorkerError);
        assert.deepEqual([detail.op, detail.argument], [what.split(' ')[0], argument], what);
      }
      const pairs = [
        ['good', 'bad'],
        ['a', 'b c'],
      ] as [string, string][];
      assert.deepEqual(await far.tokenize(pairs), near.tokenize(pairs));
      assert.deepEqual([...(await far.stateDict()).keys()], [...near.stateDict().keys()]);
      assert.deepEqual(await far.parameterShapes(), near.parameterShapes());
      const headless = await remote.loadModel(url('testdata/models/tiny-bert-cls'), { cache: 'none' });
      assert.isUndefined(await headless.labels);
      for (const end of [disposeSymbol, Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose')]) {
        const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
        await (model as unknown as Record<PropertyKey, () => Promise<void>>)[end]!();
        const { detail } = await assertRejects(model.tokenize('a'), 'DISPOSED', ['tokenize', 'model'], WorkerError);
        assert.equal(detail.op, 'tokenize');
      }
      direct.dispose();
      await remote.dispose();
    });

    it("an error in the caller's onProgress stops the computation, not only the waiting", async () => {
      const remote = await loadWorker(setup);
      const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      let calls = 0;
      const throwing = model.embed(Array<string>(5000).fill('good'), {
        batchSize: 1,
        onProgress: () => {
          calls++;
          throw new Error('mine');
        },
      });
      const { detail } = await assertRejects(throwing, 'ARGUMENT', ['onProgress', 'mine'], WorkerError);
      assert.deepEqual({ ...detail }, { op: 'embed', argument: 'onProgress' });
      assert.isBelow(calls, 5000);
      await remote.dispose();
    });

    it('a change of weights waits for earlier calls, and later calls wait for the change', async () => {
      const remote = await loadWorker(setup);
      const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      const many = Array.from({ length: 40 }, (_, i) => texts[i % texts.length]);
      const before = await model.embed(many);
      const changed = new Map(Array.from(await model.stateDict(), ([name, { data, dims }]) => [name, { data: data.map((x) => 2 - x), dims }]));
      const seen: string[] = [];
      const note =
        (name: string) =>
        <T>(value: T): T => (seen.push(name), value);
      const calls = [
        model.embed(many, { batchSize: 1 }).then(note('long')),
        model.tokenize(texts).then(note('between its batches')),
        model.loadStateDict(changed).then(note('change')),
        model.embed(many, { batchSize: 1 }).then(note('after it')),
      ] as const;
      assertSameBits(await calls[0], before);
      const after = await calls[3];
      assert.notDeepEqual(after.data, before.data);
      assertSameBits(await model.embed(many), after);
      await calls[2];
      assert.equal(seen[0], 'between its batches');
      assert.equal(seen[3], 'after it');

      const words = await model.wordEmbeddings;
      const last = model.embed(many, { batchSize: 1 });
      await Promise.all([words.initialize({ seed: 1 }), last.then((e) => assertSameBits(e, after))]);
      assert.notDeepEqual((await model.embed(many)).data, after.data);
      await remote.dispose();
    });

    it('dispose() of the model and the instance lets earlier calls finish and stops loads', async () => {
      const remote = await loadWorker(setup);
      const load = () => remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      const [first, second] = [await load(), await load()];
      const expected = await first.embed(texts);
      const slowly = { batchSize: 1 };
      const controller = new AbortController();
      const calls = [first.embed(texts, slowly), second.embed(texts, { ...slowly, onProgress: () => {} })];
      const classes = first.classify(texts.slice(0, 2), slowly);
      const disposing = first.dispose();
      await assertRejects(first.embed(texts), 'DISPOSED', ['model'], WorkerError);
      const loading = load();
      const aborting = second.embed(Array(5000).fill('good'), { ...slowly, signal: controller.signal });
      const ended = remote.dispose();
      await assertRejects(second.embed(5 as never), 'DISPOSED', ['instance'], WorkerError);
      await assertRejects(load(), 'DISPOSED', ['instance'], WorkerError);
      for (const call of calls) assertSameBits(await call, expected);
      assert.lengthOf(await classes, 2);
      await disposing;
      await assertRejects(loading, 'DISPOSED', ['instance'], WorkerError);
      controller.abort();
      await assertRejects(aborting, 'ABORTED', [], WorkerError);
      await ended;
    });

    it('methods called on other objects are errors', async () => {
      const remote = await loadWorker(setup);
      const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      const members = Object.getPrototypeOf(model) as Record<string, (...args: unknown[]) => Promise<unknown>>;
      for (const [name, { value, get }] of Object.entries(Object.getOwnPropertyDescriptors(members)))
        if (name !== 'constructor')
          for (const self of [undefined, {}, remote])
            await assertRejects(async () => (value ?? get).call(self), 'WRONG_INSTANCE', [name], WorkerError);
      await remote.dispose();
    });

    it("terminating a worker rejects a model's pending calls", async () => {
      const remote = await loadWorker(setup);
      const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
      const pending = Promise.allSettled([model.embed(Array(2000).fill('good')), remote.loadModel(url('model/slow/tiny-bert'))]);
      remote.terminate();
      for (const result of await pending) {
        if (result.status === 'fulfilled') assert.fail('it came through');
        assert.equal(result.reason.code, 'ABORTED');
      }
      await assertRejects(model.embed('a'), ['ABORTED', 'DISPOSED'], [], WorkerError);
    });
  });
