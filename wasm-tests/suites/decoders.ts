/** Language models: generation and scores against transformers, caches, padding, attn/worker. For forwards see text_model.ts. */
import type { Attn, Encoding, GenerateOptions, TextModelOutput, Tensor } from 'attn';
import { load as loadWorker, AttnError as WorkerError } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';
import { decoders, loadCheckpoint, loadedOnce } from '../support/model_cases.ts';
import { assertDims, assertSameBits, slice } from '../support/tensors.ts';

interface Case {
  readonly model: string;
  readonly text: string;
  readonly options: GenerateOptions;
  readonly ids: readonly number[];
  readonly next?: readonly (readonly [id: number, logit: number, probability: number])[];
  readonly scores?: readonly (readonly [logProbability: number, rank: number, entropy: number])[];
}

const readJson = async (path: string) => JSON.parse(new TextDecoder().decode(await bytes(path))) as never;

/** Rows of ids with masks of 0 and 1. */
function padded(flags: readonly (readonly number[])[]): Encoding {
  const dims = [flags.length, flags[0].length];
  const inputIds = Int32Array.from(flags.flatMap((row, b) => row.map((flag, i) => (flag ? 5 + ((i * 31 + b * 7) % 300) : 3))));
  const attentionMask = Uint8Array.from(flags.flat());
  return { inputIds, attentionMask, tokenTypeIds: new Int32Array(inputIds.length), dims } as unknown as Encoding;
}

/** Columns [start, end) of the ids, without a mask. */
function part({ inputIds, dims: [B, L] }: Encoding, start: number, end: number): Encoding {
  const ids = Array.from({ length: B }, (_, b) => Array.from(inputIds.subarray(b * L + start, b * L + end)));
  return { inputIds: Int32Array.from(ids.flat()), dims: [B, end - start] } as unknown as Encoding;
}

const everything = { outputAttentions: true, outputHiddenStates: true } as const;

describe('decoders', () => {
  let attn: Attn;
  const modelOf = loadedOnce(() => attn);
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('continues and scores texts as transformers does', async () => {
    const cases = (await readJson('testdata/tasks/generated.json')) as readonly Case[];
    assert.isAtLeast(cases.length, 200);
    for (const { model: name, text, options, ids, next, scores } of cases) {
      const model = await modelOf(name);
      const what = `${name}: ${JSON.stringify(text)}`;
      assert.equal(model.task, 'text-generation');
      if (ids.length > 0) {
        const got = await model.generate(text, { ...options, maxNewTokens: ids.length });
        assert.deepEqual(got.ids, [...ids], what);
        assert.deepEqual(
          got.tokens,
          ids.map((id) => model.idToToken(id)!),
        );
        assert.equal(got.finishReason, got.ids.at(-1) === model.config['eos_token_id'] ? 'eos' : 'length');
      }
      if (next) {
        const got = await model.nextToken(text, { topK: next.length });
        assert.deepEqual(
          got.map(({ id }) => id),
          next.map(([id]) => id),
          what,
        );
        got.forEach(({ id, token, text: decoded, logit, probability }, i) => {
          assert.closeTo(logit, next[i][1], 1e-5, what);
          assert.closeTo(probability, next[i][2], 1e-6, what);
          assert.equal(token, model.idToToken(id));
          assert.equal(decoded, model.decode([id]));
        });
      }
      if (scores) {
        const { tokens, perplexity } = await model.scoreTokens(text);
        assert.lengthOf(tokens, scores.length + 1);
        assert.deepEqual([tokens[0].logProbability, tokens[0].rank, tokens[0].entropy], [null, null, null]);
        scores.forEach(([logProbability, rank, entropy], i) => {
          const token = tokens[i + 1];
          assert.closeTo(token.logProbability!, logProbability, 1e-5, what);
          assert.equal(token.rank, rank, what);
          assert.closeTo(token.entropy!, entropy, 1e-5, what);
        });
        const sum = scores.reduce((all, [logProbability]) => all + logProbability, 0);
        assert.closeTo(Math.log(perplexity), -sum / scores.length, 1e-5, what);
      }
    }
  });

  for (const name of decoders)
    it(`${name}: padding on either side, and a cache, change no bit`, async () => {
      const model = await modelOf(name);
      const flags = [
        [0, 0, 0, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 1, 1, 1, 1],
        [1, 1, 1, 1, 1, 0, 0, 0, 0],
      ];
      const inputs = padded(flags);
      const all = model.forward(inputs, everything);
      const last = model.forward(inputs, { outputLogits: 'last' }).logits!;
      assertDims(last, [3, 1, all.logits!.dims[2]]);
      const rows = (x: Tensor, b: number, from: number, to: number) => slice(slice(x, 0, b, b + 1), 1, from, to);
      for (const [b, row] of flags.entries()) {
        const [from, to] = [row.indexOf(1), row.lastIndexOf(1) + 1];
        const ids = inputs.inputIds.slice(b * 9 + from, b * 9 + to);
        const alone = model.forward({ inputIds: ids, dims: [1, to - from] } as unknown as Encoding, everything);
        assertSameBits(rows(all.logits!, b, from, to), alone.logits!, 'logits');
        assertSameBits(rows(all.lastHiddenState, b, from, to), alone.lastHiddenState, 'hidden state');
        assertSameBits(slice(last, 0, b, b + 1), rows(all.logits!, b, to - 1, to), 'last');
        assertSameBits(slice(slice(slice(all.attentions![1], 0, b, b + 1), 2, from, to), 3, from, to), alone.attentions![1], 'attentions');
      }

      const whole = padded([Array<number>(30).fill(1), Array<number>(30).fill(1)]);
      const expected = model.forward(whole, everything);
      for (const ends of [[30], [1, 2, 3, 30], [17, 29, 30]]) {
        const cache = model.createCache({ maxLength: 32, batchSize: 2 });
        assert.equal(cache.maxLength, 32);
        let start = 0;
        for (const end of ends) {
          const got: TextModelOutput = model.forward(part(whole, start, end), { ...everything, cache });
          assert.equal(cache.length, end);
          assertSameBits(got.logits!, slice(expected.logits!, 1, start, end), `${start} to ${end}`);
          assertSameBits(got.attentions![0], slice(slice(expected.attentions![0], 2, start, end), 3, 0, end), 'attentions');
          start = end;
        }
        cache.truncate(4);
        assertSameBits(model.forward(part(whole, 4, 9), { cache }).logits!, slice(expected.logits!, 1, 4, 9), 'after truncate');
        cache.dispose();
        cache.dispose();
        assertThrows(() => cache.length, 'DISPOSED', ['cache']);
        assertThrows(() => model.forward(part(whole, 0, 1), { cache }), 'DISPOSED', ['cache']);
      }
    });

  it('draws the same tokens for the same seed, with the probabilities of the model', async () => {
    const model = await modelOf('tiny-gpt2');
    const options = { doSample: true, temperature: 1.5, topK: 50, topP: 0.95, minP: 0.01, maxNewTokens: 20 };
    const seen: { id: number; text: string; probability: number }[] = [];
    const first = await model.generate('The old man', { ...options, seed: 1, onToken: (token) => void seen.push(token) });
    assert.deepEqual((await model.generate('The old man', { ...options, seed: 1 })).ids, first.ids);
    assert.notDeepEqual((await model.generate('The old man', { ...options, seed: 2 })).ids, first.ids);
    // As native-tests/models/decoders_test.cpp has them.
    assert.deepEqual(first.ids, sampled);
    assert.deepEqual(
      seen.map(({ id }) => id),
      first.ids,
    );
    assert.isTrue(first.text.startsWith(seen.map(({ text }) => text).join('')));
    const next = await model.nextToken('The old man', { topK: 400 });
    assert.equal(next.find(({ id }) => id === first.ids[0])!.probability, seen[0].probability);
  });

  it('ends at a stop string, without positions, and by a signal', async () => {
    const model = await modelOf('tiny-gpt2');
    const plain = await model.generate('The old man', { maxNewTokens: 30 });
    assert.equal(plain.text, model.decode(plain.ids, { skipSpecialTokens: true }));
    const stop = plain.text.slice(2, 5);
    const stopped = await model.generate('The old man', { maxNewTokens: 30, stop: ['not there', stop] });
    assert.equal(stopped.finishReason, 'stop');
    assert.equal(stopped.text, plain.text.slice(0, plain.text.indexOf(stop)));
    assert.deepEqual(stopped.ids, plain.ids.slice(0, stopped.ids.length));
    const prompt = model.tokenize('The old man').dims[1];
    const full = await model.generate('The old man', { maxNewTokens: 1000 });
    assert.deepEqual([full.ids.length, full.finishReason], [64 - prompt, 'length']);
    const controller = new AbortController();
    let count = 0;
    const aborted = await model.generate('The old man', {
      signal: controller.signal,
      onToken: () => {
        if (++count === 3) controller.abort();
      },
    });
    assert.equal(aborted.finishReason, 'aborted');
    assert.deepEqual(aborted.ids, full.ids.slice(0, 3));
    const before = await model.generate('The old man', { signal: controller.signal });
    assert.deepEqual(before, { text: '', ids: [], tokens: [], finishReason: 'aborted' });
    const { eos_token_id } = model.config;
    assert.isNumber(eos_token_id);
    const files = await model.export();
    const id = full.ids[1];
    const ended = await attn.loadModel({ ...files, 'generation_config.json': new TextEncoder().encode(JSON.stringify({ eos_token_id: [id] })) });
    const text = await ended.generate('The old man');
    assert.equal(text.finishReason, 'eos');
    assert.deepEqual(text.ids, full.ids.slice(0, full.ids.indexOf(id) + 1));
    ended.dispose();
  });

  it('refuses bad arguments', async () => {
    const [model, other, bert] = [await modelOf('tiny-gpt2'), await modelOf('tiny-llama'), await loadCheckpoint(attn, 'tiny-bert')];
    const generate = (options: object) => model.generate('The', options as GenerateOptions);
    for (const [options, code, words] of [
      [{ maxNewToken: 1 }, 'ARGUMENT', ['maxNewToken', 'maxNewTokens']],
      [{ maxNewTokens: 0 }, 'CONFIG', ['maxNewTokens']],
      [{ maxNewTokens: 'many' }, 'ARGUMENT', ['maxNewTokens']],
      [{ temperature: 0 }, 'CONFIG', ['temperature']],
      [{ temperature: NaN }, 'CONFIG', ['temperature']],
      [{ temperature: '1' }, 'ARGUMENT', ['temperature']],
      [{ topK: -1 }, 'CONFIG', ['topK']],
      [{ topP: 0 }, 'CONFIG', ['topP']],
      [{ minP: 1.5 }, 'CONFIG', ['minP']],
      [{ repetitionPenalty: 0 }, 'CONFIG', ['repetitionPenalty']],
      [{ seed: -1 }, 'CONFIG', ['seed']],
      [{ stop: 'x' }, 'ARGUMENT', ['stop']],
      [{ stop: [''] }, 'ARGUMENT', ['stop[0]']],
      [{ onToken: 1 }, 'ARGUMENT', ['onToken']],
      [
        {
          onToken: () => {
            throw new Error('own fault');
          },
        },
        'ARGUMENT',
        ['onToken', 'own fault'],
      ],
    ] as const)
      await assertRejects(generate(options), code, ['generate', ...words]);
    await assertRejects(model.generate(3 as never), 'ARGUMENT', ['prompt']);
    await assertRejects(model.generate(''), 'ARGUMENT', ['at least one token']);
    await assertRejects(model.generate('and so on '.repeat(100)), 'OUT_OF_RANGE', ['64']);
    await assertRejects(model.scoreTokens('and so on '.repeat(100)), 'OUT_OF_RANGE', ['64']);
    await assertRejects(model.nextToken('The', { topK: 0 }), 'CONFIG', ['topK']);
    for (const call of [bert.generate('The'), bert.nextToken('The'), bert.scoreTokens('The')])
      await assertRejects(call, 'UNSUPPORTED', ['text-generation', 'text-classification']);
    await assertRejects(model.classify('The'), 'UNSUPPORTED', ['text-classification', 'text-generation']);

    const one = padded([[1, 1, 1]]);
    const cache = model.createCache({ maxLength: 4 });
    assertThrows(() => model.forward(one, { cache: {} as never }), 'ARGUMENT', ['cache', 'createCache']);
    assertThrows(() => other.forward(one, { cache }), 'ARGUMENT', ['cache']);
    assertThrows(() => model.forward(padded([[1], [1]]), { cache }), 'SHAPE', ['inputIds']);
    assertThrows(() => model.forward(padded([[1, 1, 0]]), { cache }), 'UNSUPPORTED', ['attentionMask', 'padding']);
    model.forward(one, { cache });
    assertThrows(() => model.forward(one, { cache }), 'OUT_OF_RANGE', ['room', 'maxLength']);
    assertThrows(() => cache.truncate(9), 'OUT_OF_RANGE', ['length']);
    assertThrows(() => model.forward(one, { outputLogits: 'first' as never }), 'ARGUMENT', ['outputLogits', 'last']);
    assertThrows(() => model.createCache({ maxLength: 65 }), 'OUT_OF_RANGE', ['maxLength', '64']);
    assertThrows(() => model.createCache({ maxlength: 6 } as never), 'ARGUMENT', ['maxLength']);
    assertThrows(() => bert.createCache(), 'UNSUPPORTED', ['causal']);
    model.loadStateDict(model.stateDict());
    assertThrows(() => model.forward(padded([[1]]), { cache }), 'ARGUMENT', ['cache']);
    cache.dispose();
    bert.dispose();
  });

  it('refuses a cache once the word embeddings have changed on their own', async () => {
    const model = await loadCheckpoint(attn, 'tiny-gpt2'); // its head shares them
    const words = model.wordEmbeddings;
    const one = padded([[1]]);
    for (const change of [() => words.loadStateDict(words.stateDict()), () => words.initialize({ seed: 1 })]) {
      const cache = model.createCache({ maxLength: 4 });
      model.forward(one, { cache });
      change();
      assertThrows(() => model.forward(one, { cache }), 'ARGUMENT', ['cache', 'other weights']);
      cache.dispose();
    }
    const weight = words.stateDict().get('weight')!;
    const drawn = new attn.Embedding({ numEmbeddings: weight.dims[0], embeddingDim: weight.dims[1] });
    drawn.initialize({ seed: 1 });
    assertSameBits(weight, drawn.stateDict().get('weight')!);
    model.dispose();
  });

  it('ends with its model', async () => {
    const model = await loadCheckpoint(attn, 'tiny-qwen2');
    const cache = model.createCache();
    const pending = model.generate('The', { maxNewTokens: 60, onToken: () => model.dispose() });
    await assertRejects(pending, 'DISPOSED', ['generate']);
    assertThrows(() => cache.length, 'DISPOSED', ['model']);
    cache.dispose();
  });

  it('does the same in attn/worker', async () => {
    const remote = await loadWorker(setup);
    const [model, local] = [await remote.loadModel(url('testdata/models/tiny-llama'), { cache: 'none' }), await modelOf('tiny-llama')];
    const options = { maxNewTokens: 12, doSample: true, seed: 3 };
    const seen: number[] = [];
    const got = await model.generate('The old man', { ...options, onToken: ({ id }) => void seen.push(id) });
    assert.deepEqual(got, await local.generate('The old man', options));
    assert.deepEqual(seen, got.ids);
    assert.deepEqual(await model.nextToken('The old man'), await local.nextToken('The old man'));
    assert.deepEqual(await model.scoreTokens('The old man'), await local.scoreTokens('The old man'));
    const controller = new AbortController();
    controller.abort();
    assert.deepEqual(await model.generate('The', { signal: controller.signal }), { text: '', ids: [], tokens: [], finishReason: 'aborted' });
    const throwing = () => {
      throw new Error('own fault');
    };
    await assertRejects(model.generate('The', { onToken: throwing }), 'ARGUMENT', ['onToken', 'own fault'], WorkerError);

    const whole = padded([Array<number>(12).fill(1)]);
    const expected = local.forward(whole).logits!;
    const cache = await model.createCache({ maxLength: 20 });
    await model.forward(part(whole, 0, 5), { cache });
    assert.equal(await cache.length, 5);
    assertSameBits((await model.forward(part(whole, 5, 12), { cache })).logits!, slice(expected, 1, 5, 12), 'with a cache');
    await cache.truncate(3);
    assert.deepEqual([await cache.length, await cache.maxLength], [3, 20]);
    await cache.dispose();
    await assertRejects(async () => cache.length, 'DISPOSED', ['cache'], WorkerError);
    await remote.dispose();
  });
});

/** What seed 1 draws, everywhere. */
const sampled: readonly number[] = [13, 289, 215, 219, 32, 13, 303, 316, 84, 298, 140, 227, 252, 51, 120, 115, 58, 298, 84, 307];
