import type { Attn, FineTuneExample, FineTuneOptions, FineTuneProgress, TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { loadHere, url } from '../support/host.ts';
import { loadCheckpoint } from '../support/model_cases.ts';

const good = [
  'a warm , funny and clever film',
  'beautifully acted from start to end',
  'one of the best of the year',
  'moving , honest and alive',
  'a delight',
];
const bad = [
  'dull and far too long',
  'a boring mess without any ideas',
  'the jokes are stale and the plot is stupid',
  'tedious',
  'it never works and it never ends',
];
/** The same examples as in native-tests/models/fine_tuning_test.cpp. */
const films = (ofGood: string, ofBad: string): FineTuneExample[] =>
  good.flatMap((text, i) => [
    { text, label: ofGood },
    { text: bad[i]!, label: ofBad },
  ]);
const turned = films('negative', 'positive');
const much: FineTuneOptions = { epochs: 12, batchSize: 4, learningRate: 3e-3 };

const stateOf = (model: TextModel) => new Map([...model.stateDict()].map(([name, { data }]) => [name, [...data]]));
const changed = (model: TextModel, before: ReturnType<typeof stateOf>) => {
  const now = stateOf(model);
  return [...before.keys()].filter((name) => before.get(name)!.some((x, i) => !Object.is(x, now.get(name)![i])));
};
const answer = async (model: TextModel, text: string) => (await model.classify(text))[0]![0]!;

describe('fine-tuning of text models', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('learns the opposite labels, with the same result as the native library', async () => {
    const model = await loadCheckpoint(attn, 'sentiment');
    const files = (await model.export()) as Record<string, Uint8Array>;
    const seen: FineTuneProgress[] = [];
    const { loss, ...others } = await model.fineTune(turned, { ...much, onProgress: (p) => void seen.push(p) });
    assert.deepEqual(others, {});
    assert.closeTo(loss, 0.0230146, 1e-6);
    assert.lengthOf(seen, 36);
    assert.deepEqual({ ...seen.at(-1)!, loss: 0 }, { epoch: 12, step: 36, steps: 36, loss: 0 });
    // The config has a dropout of 0.1, which is disabled there.
    const config = { ...model.config, hidden_dropout_prob: 0, attention_probs_dropout_prob: 0 };
    const without = await attn.loadModel({ ...files, 'config.json': new TextEncoder().encode(JSON.stringify(config)) });
    assert.closeTo((await without.fineTune(turned, much)).loss, 0.020145, 1e-6);
    for (const { text, label } of turned) assert.equal((await answer(without, text as string)).label, label);
    without.dispose();
    model.dispose();
    const other = await loadCheckpoint(attn, 'sentiment');
    assert.notEqual((await other.fineTune(turned, { ...much, seed: 1 })).loss, loss);
    other.dispose();
  });

  it('refuses an invalid dropout in the config', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert-cls');
    const files = (await model.export()) as Record<string, Uint8Array>;
    const config = { ...model.config, hidden_dropout_prob: 1 };
    const other = await attn.loadModel({ ...files, 'config.json': new TextEncoder().encode(JSON.stringify(config)) });
    await assertRejects(other.fineTune(films('good', 'bad')), 'CONFIG', ['dropout', 'from 0 up to, not including, 1']);
    assert.isUndefined(other.labels);
    other.dispose();
    model.dispose();
  });

  it('trains the head alone, or the last layers, and evaluates the held-out examples', async () => {
    for (const layers of ['head', 0, 1] as const) {
      const model = await loadCheckpoint(attn, 'tiny-distilbert');
      const before = stateOf(model);
      const labels = model.labels;
      const seen: FineTuneProgress[] = [];
      const options: FineTuneOptions = { epochs: 2, batchSize: 3, learningRate: 1e-3, layers, validation: 0.3, onProgress: (p) => void seen.push(p) };
      const { validationAccuracy } = await model.fineTune(films(labels![0]!, labels![1]!), options);
      assert.deepEqual(
        seen.map((p) => p.validationLoss !== undefined),
        [false, false, true, false, false, true],
      );
      assert.equal(validationAccuracy, seen.at(-1)!.validationAccuracy);
      assert.isTrue([0, 1 / 3, 2 / 3, 1].includes(validationAccuracy!));
      const names = changed(model, before);
      assert.include(names, 'classifier.weight');
      assert.equal(
        names.some((name) => name.includes('layer.1.')),
        layers === 1,
      );
      assert.isFalse(names.some((name) => name.includes('embeddings') || name.includes('layer.0.')));
      model.dispose();
    }
  });

  it('replaces the head for other labels, and exports a model with it', async () => {
    for (const name of ['tiny-bert-cls', 'tiny-mpnet-mean', 'sentiment']) {
      const model = await loadCheckpoint(attn, name);
      const before = model.labels;
      await model.fineTune(films('tasty "tea"', 'milk'), { ...much, learningRate: 5e-3, labels: ['milk', 'tasty "tea"'] });
      assert.notDeepEqual(model.labels, before);
      assert.deepEqual(model.labels, ['milk', 'tasty "tea"']);
      assert.deepEqual(model.config['id2label'], { 0: 'milk', 1: 'tasty "tea"' });
      assert.match((model.config['architectures'] as string[])[0]!, /ForSequenceClassification$/);
      assert.equal((await answer(model, 'tedious')).label, 'milk');
      const again = await attn.loadModel(await model.export());
      assert.deepEqual(again.labels, model.labels);
      assert.deepEqual([...again.parameterShapes()], [...model.parameterShapes()]);
      assert.isEmpty(changed(again, stateOf(model)));
      assert.deepEqual(await answer(again, 'a film'), await answer(model, 'a film'));
      model.dispose();
      again.dispose();
    }
    const model = await loadCheckpoint(attn, 'tiny-bert-cls');
    await model.fineTune([
      { text: 'a', label: 2 },
      { text: ['b', 'c'], label: 0 },
    ]);
    assert.deepEqual(model.labels, ['LABEL_0', 'LABEL_1', 'LABEL_2']);
    model.dispose();
  });

  it('reports no accuracy for regression, whichever file declares it', async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert');
    await model.fineTune([{ text: 'a', label: 0 }], { epochs: 1, labels: ['score'] });
    const files = (await model.export()) as Record<string, Uint8Array>;
    const numbers = good.map((text, i) => ({ text, label: i - 1.5 }));
    const activation = (name: string) => ({ sentence_transformers: { activation_fn: `torch.nn.modules.${name}` } });
    const saying = (said: object) =>
      attn.loadModel({ ...files, 'config.json': new TextEncoder().encode(JSON.stringify({ ...model.config, ...said })) });
    for (const said of [{ problem_type: 'regression' }, activation('linear.Identity')]) {
      const other = await saying(said);
      const seen: FineTuneProgress[] = [];
      const result = await other.fineTune(numbers, { epochs: 1, validation: 0.4, onProgress: (p) => void seen.push(p) });
      assert.deepEqual(Object.keys(result), ['loss']);
      assert.isNumber(seen.at(-1)!.validationLoss);
      assert.isUndefined(seen.at(-1)!.validationAccuracy);
      other.dispose();
    }
    const other = await saying(activation('activation.Sigmoid'));
    await assertRejects(other.fineTune(numbers), 'OUT_OF_RANGE', ['examples[0].label', 'from 0 to 1']);
    other.dispose();
    model.dispose();
  });

  it('an abort retains the weights of the last complete step', async () => {
    const model = await loadCheckpoint(attn, 'sentiment');
    const run = async (options: FineTuneOptions) => {
      let [last, step] = [stateOf(model), 0];
      const onProgress = (p: FineTuneProgress) => {
        [last, step] = [stateOf(model), p.step];
        options.onProgress?.(p);
      };
      const error = await model.fineTune(turned, { ...much, ...options, onProgress }).catch((error: unknown) => error);
      assert.isEmpty(changed(model, last));
      return { step, error: error as Error };
    };
    const stop = new AbortController();
    const stopped = await run({ signal: stop.signal, onProgress: ({ step }) => step === 3 && stop.abort() });
    assert.equal(stopped.step, 3);
    await assertRejects(Promise.reject(stopped.error), 'ABORTED', []);
    await assertRejects(Promise.reject((await run({ signal: AbortSignal.abort() })).error), 'ABORTED', []);
    const thrown = await run({
      onProgress: () => {
        throw new Error('enough');
      },
    });
    assert.equal(thrown.step, 1);
    await assertRejects(Promise.reject(thrown.error), 'ARGUMENT', ['onProgress']);
    const wild = await run({ learningRate: 1e30, epochs: 50 });
    assert.isAbove(wild.step, 0);
    await assertRejects(Promise.reject(wild.error), 'OUT_OF_RANGE', [`of step ${wild.step + 1}`]);
    model.dispose();

    const other = await loadCheckpoint(attn, 'sentiment');
    const first = other.fineTune(turned, much);
    await assertRejects(other.fineTune(turned), 'BUSY', []);
    assert.equal((await other.classify('tedious')).length, 1);
    other.dispose();
    await assertRejects(first, 'DISPOSED', []);
  });

  it('refuses invalid calls, and changes nothing', async () => {
    const model = await loadCheckpoint(attn, 'sentiment');
    const before = stateOf(model);
    const check = async (code: Parameters<typeof assertRejects>[1], words: string[], examples: unknown, options?: unknown) => {
      await assertRejects(model.fineTune(examples as never, options as never), code, words);
      assert.isEmpty(changed(model, before));
      assert.deepEqual(model.labels, ['negative', 'positive']);
    };
    for (const examples of [undefined, {}, 'a', [], [5], [{ text: 'a' }], [{ text: 5, label: 0 }], [{ text: ['a'], label: 0 }]])
      await check('ARGUMENT', ['examples'], examples);
    await check('ARGUMENT', ['lable', 'label'], [{ text: 'a', lable: 0 }]);
    for (const label of [2, -1, 0.5, NaN, Infinity]) await check('OUT_OF_RANGE', ['examples[0].label'], [{ text: 'a', label }]);
    await check('OUT_OF_RANGE', ['examples[1].label', 'neutral', 'negative, positive'], [turned[0], { text: 'b', label: 'neutral' }]);
    await check('OUT_OF_RANGE', ['examples[0].label'], turned, { labels: ['x', 'y'] });
    for (const [name, value] of [
      ['epochs', 0],
      ['batchSize', 0],
      ['learningRate', 0],
      ['learningRate', NaN],
      ['weightDecay', -1],
      ['validation', 1],
      ['layers', 'last'],
    ] as const)
      await check('CONFIG', [name], turned, { [name]: value });
    await check('OUT_OF_RANGE', ['layers'], turned, { layers: 99 });
    await check('ARGUMENT', ['labels[1]'], turned, { labels: ['a', 'a'] });
    await check('ARGUMENT', ['labels'], turned, { labels: [] });
    await check('ARGUMENT', ['epoch', 'epochs'], turned, { epoch: 3 });
    await check('ARGUMENT', ['onProgress'], turned, { onProgress: 5 });
    model.dispose();
    const int8 = await loadCheckpoint(attn, 'tiny-bert', 'int8');
    await assertRejects(int8.fineTune([{ text: 'a', label: 0 }]), 'UNSUPPORTED', ['float32 weights']);
    int8.dispose();
    const several = await loadCheckpoint(attn, 'tiny-bert-multilabel');
    await assertRejects(several.fineTune([{ text: 'a', label: 0 }]), 'UNSUPPORTED', ['multi-label']);
    several.dispose();
  });

  it('trains a language model on texts; prompts have no loss', async () => {
    const model = await loadCheckpoint(attn, 'tiny-gpt2');
    const [prompt, text, other] = ['the cat', ' sat on the mat', 'once upon a time'];
    const { tokens } = await model.scoreTokens(prompt + text);
    const { offsets } = model.tokenize(prompt + text);
    const ofText = tokens.filter((_, i) => i > 0 && offsets[0]![i]![1] > prompt.length);
    const others = (await model.scoreTokens(other)).tokens.slice(1);
    assert.isAbove(ofText.length, 1);
    const wanted = -[...ofText, ...others].reduce((sum, { logProbability }) => sum + logProbability!, 0) / (ofText.length + others.length);
    const seen: FineTuneProgress[] = [];
    const once = { epochs: 1, learningRate: 1e-9, onProgress: (p: FineTuneProgress) => void seen.push(p) };
    const files = (await model.export()) as Record<string, Uint8Array>;
    const config = { ...model.config, attn_pdrop: 0, resid_pdrop: 0, embd_pdrop: 0 };
    const still = await attn.loadModel({ ...files, 'config.json': new TextEncoder().encode(JSON.stringify(config)) });
    await still.fineTune([{ prompt, text }, other], once);
    assert.closeTo(seen[0]!.loss, wanted, 1e-5);
    still.dispose();

    const examples = ['the cat sat on the mat', { prompt: 'two and two is', text: ' four<|endoftext|>' }];
    await model.fineTune(examples, { epochs: 150, batchSize: 2, learningRate: 0.01 });
    const { text: learned, finishReason } = await model.generate('two and two is');
    assert.deepEqual([learned, finishReason], [' four', 'eos']);
    const again = await attn.loadModel((await model.export()) as Record<string, Uint8Array>);
    assert.deepEqual(await again.generate('two and two is'), await model.generate('two and two is'));
    again.dispose();
    model.dispose();
  });

  it('judges held-out texts by their tokens', async () => {
    const model = await loadCheckpoint(attn, 'tiny-llama');
    const seen: FineTuneProgress[] = [];
    const texts = ['the cat sat on the mat', 'the cat sat on the mat', 'the cat sat on the mat'];
    const { validationAccuracy } = await model.fineTune(texts, {
      epochs: 60,
      batchSize: 2,
      learningRate: 0.01,
      validation: 0.34,
      onProgress: (p) => void seen.push(p),
    });
    assert.equal(validationAccuracy, 1);
    assert.closeTo(seen.at(-1)!.validationLoss!, Math.log((await model.scoreTokens(texts[0]!)).perplexity), 1e-5);
    model.dispose();
  });

  it('refuses invalid texts for a language model, and changes nothing', async () => {
    const model = await loadCheckpoint(attn, 'tiny-gpt2');
    const before = stateOf(model);
    const check = async (code: Parameters<typeof assertRejects>[1], words: string[], examples: unknown, options?: unknown) => {
      await assertRejects(model.fineTune(examples as never, options as never), code, words);
      assert.isEmpty(changed(model, before));
    };
    for (const examples of [undefined, 'a text', [], [5], [{ prompt: 'a' }], [{ text: 5 }], [{ text: 'a b', prompt: 5 }], [['a', 'b']]])
      await check('ARGUMENT', ['examples'], examples);
    await check('ARGUMENT', ['examples[0].label', 'text, prompt'], [{ text: 'a b', label: 'x' }]);
    for (const example of ['', 'a', { prompt: 'a prompt', text: '' }, { prompt: 'the '.repeat(200), text: 'cat' }])
      await check('ARGUMENT', ['examples[1]', 'at least one token'], ['a text', example]);
    await check('ARGUMENT', ['labels', 'language model'], ['a text'], { labels: ['a'] });
    await check('OUT_OF_RANGE', ['layers', 'shares the word embeddings'], ['a text'], { layers: 'head' });
    model.dispose();
    const classifier = await loadCheckpoint(attn, 'sentiment');
    await assertRejects(classifier.fineTune([{ text: 'a', prompt: 'b' }]), 'ARGUMENT', ['examples[0].prompt']);
    await assertRejects(classifier.fineTune(['a']), 'ARGUMENT', ['examples[0]', '{ text, label }']);
    classifier.dispose();
  });

  it('gives the same in attn/worker', async () => {
    const remote = await loadWorker();
    const there = await remote.loadModel(url('testdata/models/tiny-bert-cls'), { cache: 'none' });
    const here = await loadCheckpoint(attn, 'tiny-bert-cls');
    const seen: FineTuneProgress[] = [];
    const options: FineTuneOptions = { epochs: 2, validation: 0.2, layers: 'head', onProgress: (p) => void seen.push(p) };
    const examples = films('good', 'bad');
    const of = await there.fineTune(examples, options);
    const steps = seen.splice(0);
    assert.deepEqual(await here.fineTune(examples, options), of);
    assert.deepEqual(seen, steps);
    assert.deepEqual(await there.labels, ['bad', 'good']);
    assert.deepEqual(await there.config, here.config);
    assert.deepEqual(await there.classify('tedious'), await here.classify('tedious'));
    await assertRejects(there.fineTune(examples, { epochs: 1000, signal: AbortSignal.abort() }), 'ABORTED', []);
    await assertRejects(there.fineTune([{ text: 'a', label: 'c' }]), 'OUT_OF_RANGE', ['examples[0].label']);
    await assertRejects(there.fineTune([{ text: 'a', label: 'c' }], { epoch: 1 } as never), 'ARGUMENT', ['epochs']);
    const decoder = await loadCheckpoint(attn, 'tiny-llama');
    const far = await remote.loadModel(url('testdata/models/tiny-llama'), { cache: 'none' });
    const texts = ['the cat sat on the mat', { prompt: 'two and', text: ' two is four' }];
    assert.deepEqual(await far.fineTune(texts, { epochs: 2 }), await decoder.fineTune(texts, { epochs: 2 }));
    assert.deepEqual(await far.scoreTokens('the cat'), await decoder.scoreTokens('the cat'));
    decoder.dispose();
    await remote.dispose();
    here.dispose();
  });
});
