/** As hostile.ts, for language models, chat templates, attn/lens, attn/search and attn/tokenizer: any value as any argument. */
import type { Attn, Encoding, TextModel } from 'attn';
import * as lens from 'attn/lens';
import { Index } from 'attn/search';
import { Tokenizer } from '../../web/lib/src/tokenizer/text_tokenizer.ts';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { bytes, loadHere } from '../support/host.ts';
import { assertGoodError, at, hostiles, pathsOf, replaced, skip } from '../support/hostile.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertSameBits } from '../support/tensors.ts';

/** Far more than any call takes, and far less than an endless iterator or four thousand million holes. */
const mostSeconds = 10;

type Run = (...args: readonly unknown[]) => unknown;

describe('hostile arguments of language models', () => {
  const ids = [5, 36, 67, 98];
  const others = [5, 40, 67, 98];
  let attn: Attn;
  let model: TextModel;
  let calls: Readonly<Record<string, { readonly run: Run; readonly good: readonly unknown[] }>>;
  const inputs = { inputIds: Int32Array.from(ids), dims: [1, ids.length] } as unknown as Encoding;

  before(async () => {
    attn = await loadHere({ maximumMemory: 2 ** 28 });
    model = await loadCheckpoint(attn, 'tiny-gpt2');
    const tokenizer = Tokenizer.fromFiles({ 'tokenizer.json': await bytes('testdata/models/tiny-gpt2/tokenizer.json') });
    const hidden = model.forward(inputs).lastHiddenState;
    const cache = model.createCache({ maxLength: 8 });
    const of = (self: unknown, name: string): Run => (...args) => (self as Record<string, Run>)[name](...args); // prettier-ignore
    const ofModel = (name: string, ...good: readonly unknown[]) => ({ run: of(model, name), good });
    const ofLens = (name: keyof typeof lens, ...good: readonly unknown[]) => ({
      run: (...args: readonly unknown[]) => of(lens, name)(model, ...args),
      good,
    });
    const { signal } = new AbortController();
    const ofIndex = (name: string, ...good: readonly unknown[]) => ({ run: of(index, name), good });
    const index = await Index.from(model, ['The old man', { id: 'a', text: 'the sea' }]);
    const [hit] = await index.search('The');
    const batch = { batchSize: 1, priority: 'user', signal, onProgress: () => {} };
    const prompts = { document: 'a', query: 'b' };
    calls = {
      generate: ofModel('generate', 'The old', { maxNewTokens: 1, doSample: true, topP: 0.9, seed: 1, stop: ['x'], onToken: () => {}, signal }),
      nextToken: ofModel('nextToken', 'The old', { topK: 2 }),
      scoreTokens: ofModel('scoreTokens', 'The old'),
      createCache: { run: (options) => model.createCache(options as never).dispose(), good: [{ maxLength: 5, batchSize: 2 }] },
      truncate: { run: of(cache, 'truncate'), good: [0] },
      unembed: ofModel('unembed', hidden),
      forward: {
        run: (...args) => {
          cache.truncate(0);
          return of(model, 'forward')(...args);
        },
        good: [inputs, { cache, outputLogits: 'last', patch: { layer: 0, hiddenState: hidden } }],
      },
      decode: ofModel('decode', ids, { skipSpecialTokens: true }),
      applyChatTemplate: ofModel('applyChatTemplate', [{ role: 'user', content: 'Hi' }], {
        addGenerationPrompt: true,
        chatTemplate: '{{ messages[0].content }}',
        tools: [{}],
        documents: [{}],
        variables: { a: 1 },
      }),
      logitLens: ofLens('logitLens', ids, { layers: [0], positions: [1], topK: 2, signal }),
      logitAttribution: ofLens('logitAttribution', ids, { target: 3, contrast: 4, position: 1 }),
      patchActivations: ofLens('patchActivations', ids, others, { answer: 3, contrast: 4, site: 'mlp', position: 2, positions: [1] }),
      attributionPatching: ofLens('attributionPatching', ids, others, { answer: 3, contrast: 4, site: 'mlp', position: 2, positions: [1] }),
      headScores: ofLens('headScores', { kinds: ['previousToken'], text: ids, seed: 2 }),
      attribute: ofLens('attribute', ids, { method: 'leave_one_out', target: 3, contrast: 4, position: 2 }),
      rollout: ofLens('rollout', ids, { position: 1 }),
      attentionGradient: ofLens('attentionGradient', ids, { target: 3, contrast: 4, position: 2 }),
      trace: ofLens('trace', ids, ['hook_resid_pre']),
      'Index.from': {
        run: async (...args) => (await (of(Index, 'from')(...args) as Promise<Index>)).dispose(),
        good: [model, [{ id: 1, text: 'old' }], { vectors: 'float32', prompts, chunk: () => [{ start: 0, end: 1 }], ...batch }],
      },
      'Index.load': { run: async (bytes) => (await Index.load(model, bytes as Uint8Array)).dispose(), good: [await index.save()] },
      'index.add': {
        run: async (...args) => index.remove(await (of(index, 'add')(...args) as Promise<string[]>)),
        good: [['The', { text: 'old', title: 'a' }], batch],
      },
      'index.remove': {
        run: async (ids) => {
          await index.add([{ id: 'x', text: 'a' }]).catch(() => {});
          return index.remove(ids as string);
        },
        good: [['x']],
      },
      'index.search': ofIndex('search', 'The', { k: 2, hybrid: true, rerank: undefined, candidates: 3, signal }),
      'index.explain': ofIndex('explain', hit),
      'tokenizer.encodeWords': { run: of(tokenizer, 'encodeWords'), good: [['The', 'old'], { maxLength: 8 }] },
      'tokenizer.decode': { run: of(tokenizer, 'decode'), good: [Int32Array.from(ids)] },
    };
  });
  after(() => attn.dispose());

  for (const name of [
    ...['generate', 'nextToken', 'scoreTokens', 'createCache', 'truncate', 'unembed', 'forward', 'decode', 'applyChatTemplate', 'logitLens'],
    ...['logitAttribution', 'patchActivations', 'attributionPatching', 'headScores', 'attribute', 'rollout', 'attentionGradient', 'trace'],
    ...['Index.from', 'Index.load', 'index.add', 'index.remove', 'index.search', 'index.explain'],
    ...['tokenizer.encodeWords', 'tokenizer.decode'],
  ])
    it(`${name}: every value in every position`, async () => {
      const { run, good } = calls[name];
      const expected = model.forward(inputs).logits!;
      await run(...good);
      for (const path of pathsOf(good))
        for (const { name: value, of } of hostiles) {
          const other = of(at(good, path));
          if (other === skip) continue;
          const what = `${value} as argument ${path.join('.')}`;
          const start = Date.now();
          try {
            await run(...replaced(good, path, other));
          } catch (error) {
            assertGoodError(error, what);
          }
          assert.isBelow(Date.now() - start, 1000 * mostSeconds, what);
        }
      assertSameBits(model.forward(inputs).logits!, expected);
    });

  it('weights of NaN are reported, not turned into tokens and numbers', async () => {
    const own = await loadCheckpoint(attn, 'tiny-gpt2');
    const state = own.stateDict();
    state.get('transformer.ln_f.bias')!.data[3] = NaN;
    own.loadStateDict(state);
    for (const call of [
      () => own.generate('The'),
      () => own.nextToken('The'),
      () => own.scoreTokens('The old'),
      () => lens.logitLens(own, ids),
      () => lens.logitAttribution(own, ids, { target: 3 }),
      () => lens.patchActivations(own, ids, others, { answer: 3 }),
      () => lens.attributionPatching(own, ids, others, { answer: 3 }),
    ])
      await assertRejects(call(), 'OUT_OF_RANGE', ['NaN']);
    own.dispose();
  });

  it('covers every function of attn/lens', () => {
    for (const [name, value] of Object.entries(lens)) if (name !== 'AttnError') assert.property(calls, name, typeof value);
  });
});
