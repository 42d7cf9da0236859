/** Compares entities, masks, answers and ranking with transformers' pipelines; tests refusals and attn/worker. */
import type { Attn, TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';
import { loadCheckpoint, loadedOnce } from '../support/model_cases.ts';
import { assertDims, assertSameBits } from '../support/tensors.ts';

interface Case<Row> {
  readonly model: string;
  readonly text: string;
  readonly question: string;
  readonly context: string;
  readonly ids: readonly number[];
  readonly options: Readonly<Record<string, never>>;
  readonly expected: readonly Row[];
}

async function casesOf<Row>(name: string): Promise<readonly Case<Row>[]> {
  return (JSON.parse(new TextDecoder().decode(await bytes(`testdata/tasks/${name}.json`))) as { cases: Case<Row>[] }).cases;
}

/** Converts Python's offsets, in code points. */
const utf16 = (text: string, place: number) => Array.from(text).slice(0, place).join('').length;
const score = (got: number, expected: number, what: string) => assert.closeTo(got, expected, 1e-5, what);

describe('tasks', () => {
  let attn: Attn;
  const modelOf = loadedOnce(() => attn);
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it("finds the entities that transformers' pipeline finds", async () => {
    const cases = await casesOf<[label: string, score: number, start: number, end: number]>('entities');
    assert.isAtLeast(cases.length, 400);
    let found = 0;
    for (const { model, text, options, expected } of cases) {
      const [got] = await (await modelOf(model)).classifyTokens(text, options);
      const what = `${JSON.stringify(text)} with ${JSON.stringify(options)}`;
      const wanted = expected.map(([label, , from, to]) => {
        const [start, end] = [utf16(text, from), utf16(text, to)];
        return { label, text: text.slice(start, end), start, end };
      });
      assert.deepEqual(
        got.map(({ label, text, start, end }) => ({ label, text, start, end })),
        wanted,
        what,
      );
      got.forEach((each, i) => score(each.score, expected[i][1], what));
      found += got.length;
    }
    assert.isAbove(found, 2000);
  });

  describe('zero-shot classification', () => {
    const names = ['contradiction', 'neutral', 'ENTAILMENT'];
    const texts = ['she is good', 'a film about the old man and the sea, and about dogs', ''];
    const labels = ['film', 'food', 'the weather'];

    async function filesWith(idToLabel: readonly string[]): Promise<Record<string, Uint8Array>> {
      const list = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
      const files = Object.fromEntries(await Promise.all(list.map(async (name) => [name, await bytes(`testdata/models/tiny-bert/${name}`)])));
      const config = JSON.parse(new TextDecoder().decode(files['config.json'])) as object;
      const changed = { ...config, id2label: { ...idToLabel }, label2id: Object.fromEntries(idToLabel.map((name, i) => [name, i])) };
      return { ...files, 'config.json': new TextEncoder().encode(JSON.stringify(changed)) };
    }

    /** As ZeroShotClassificationPipeline, in float64. */
    function expectedOf(model: TextModel, text: string, template: string, multiLabel: boolean, entailment: number): [string, number][] {
      const rows = labels.map((label) => {
        const { logits } = model.forward(model.tokenize([[text, template.replace('{}', label)]]));
        return Array.from(logits!.data);
      });
      const exp = (index: number) => rows.map((row) => Math.exp(row[index]));
      const [entails, contradicts] = [exp(entailment), exp(entailment === 0 ? 2 : 0)];
      const sum = entails.reduce((a, b) => a + b);
      const scores = entails.map((each, i) => each / (multiLabel ? each + contradicts[i] : sum));
      return labels.map((label, i): [string, number] => [label, scores[i]]).sort((a, b) => b[1] - a[1]);
    }

    it("scores labels as transformers' pipeline does, alone, in batches and in a worker", async () => {
      const remote = await loadWorker(setup);
      for (const [names, entailment] of [
        [['contradiction', 'neutral', 'ENTAILMENT'], 2],
        [['entailment', 'neutral', 'contradiction'], 0],
      ] as const) {
        const files = await filesWith(names);
        const model = await attn.loadModel(files);
        const there = await remote.loadModel(files);
        const distinct = new Set<string>();
        for (const options of [{}, { multiLabel: true }, { hypothesisTemplate: 'she said {}' }]) {
          const got = await model.classifyZeroShot(texts, labels, options);
          texts.forEach((text, i) => {
            const { hypothesisTemplate = 'This example is {}.', multiLabel = false } = options as {
              hypothesisTemplate?: string;
              multiLabel?: boolean;
            };
            const expected = expectedOf(model, text, hypothesisTemplate, multiLabel, entailment);
            assert.deepEqual(
              got[i].map(({ label }) => label),
              expected.map(([label]) => label),
            );
            got[i].forEach((each, j) => assert.closeTo(each.score, expected[j][1], 1e-6, text));
            distinct.add(got[i].map(({ score }) => score.toFixed(6)).join());
          });
          assert.deepEqual(await model.classifyZeroShot(texts, labels, { ...options, batchSize: 1 }), got);
          assert.deepEqual(await there.classifyZeroShot(texts, labels, options), got);
        }
        assert.isAbove(distinct.size, 6);
        const [all] = await model.classifyZeroShot(texts[1], labels, { multiLabel: true });
        assert.deepEqual(await model.classifyZeroShot(texts[1], labels, { multiLabel: true, topK: 1 }), [all.slice(0, 1)]);
        // One label is scored alone, and independent of classify's own softmax.
        const [[one]] = await model.classifyZeroShot(texts[1], [labels[0]]);
        const [classes] = await model.classify([[texts[1], 'This example is film.']]);
        const of = (name: RegExp) => classes.find(({ label }) => name.test(label))!.score;
        assert.closeTo(one.score, of(/^entail/i) / (of(/^entail/i) + of(/^contra/)), 1e-6);
        model.dispose();
      }
      await remote.dispose();
    });

    it('refuses models without entailment, templates without a place for the label, and no labels', async () => {
      const model = await attn.loadModel(await filesWith(names));
      const call = (labels: unknown, options?: unknown) => model.classifyZeroShot('a', labels as string[], options as object);
      for (const hypothesisTemplate of ['', 'no place', '{} or {}'])
        await assertRejects(call(['a'], { hypothesisTemplate }), 'CONFIG', ['hypothesisTemplate is', 'a text with one {}']);
      await assertRejects(call([]), 'ARGUMENT', ['labels is empty']);
      await assertRejects(call('a'), 'ARGUMENT', ['labels is "a", expected an Array of strings']);
      await assertRejects(call(['a', 1]), 'ARGUMENT', ['labels[1]']);
      await assertRejects(call(['a'], { multiLabel: 1 }), 'ARGUMENT', ['multiLabel is 1']);
      await assertRejects(call(['a'], { multiLable: true }), 'ARGUMENT', ['Did you mean multiLabel?']);
      assert.deepEqual(await model.classifyZeroShot([], ['a']), []);
      model.dispose();
      const words = ['classifyZeroShot: the head has the labels negative, neutral, positive', 'entailment'];
      await assertRejects((await modelOf('tiny-bert')).classifyZeroShot('a', ['b']), 'UNSUPPORTED', words);
      await assertRejects((await modelOf('tiny-bert-ner')).classifyZeroShot('a', ['b']), 'UNSUPPORTED', ['token-classification']);
    });
  });

  it("fills masks as transformers' pipeline does", async () => {
    const cases = await casesOf<readonly [token: string, id: number, score: number, text: string][]>('masks');
    assert.isAtLeast(cases.length, 200);
    for (const { model, text, options, expected } of cases) {
      const got = await (await modelOf(model)).fillMask(text, options);
      assert.deepEqual(
        got.map((mask) => mask.map(({ token, id, text }) => [token, id, text])),
        expected.map((mask) => mask.map(([token, id, , text]) => [token, id, text])),
        text,
      );
      got.forEach((mask, m) => mask.forEach((each, i) => score(each.score, expected[m][i][2], text)));
    }
  });

  it("answers as transformers' pipeline does", async () => {
    const cases = await casesOf<[text: string, score: number, start: number, end: number]>('answers');
    assert.isAtLeast(cases.length, 200);
    for (const { model, question, context, options, expected } of cases) {
      const got = await (await modelOf(model)).answer(question, context, options);
      // The pipeline fills up with answers of score 0.
      const wanted = expected.filter(([, score]) => score > 0);
      assert.deepEqual(
        got.map(({ text, start, end }) => [text, start, end]),
        wanted.map(([text, , start, end]) => [text, utf16(context, start), utf16(context, end)]),
        context,
      );
      got.forEach((each, i) => score(each.score, wanted[i][1], context));
    }
  });

  it('decodes ids to the same text as transformers', async () => {
    const cases = await casesOf<string>('decoded');
    for (const { model, ids, expected } of cases) {
      const { decode } = { decode: (skip: boolean) => loaded.decode(ids, { skipSpecialTokens: skip }) };
      const loaded = await modelOf(model);
      assert.deepEqual([decode(false), decode(true)], expected);
      assert.equal(loaded.decode(Int32Array.from(ids)), expected[0]);
    }
    assert.equal((await modelOf('tiny-bert')).decode([2 ** 31 - 1]), '', 'an id that the vocabulary does not have');
  });

  it('ranks by a head with one label like classify() of pairs', async () => {
    const files = await filesOf('tiny-bert', { id2label: { 0: 'relevant' }, label2id: { relevant: 0 } });
    const model = await attn.loadModel({ ...files, 'model.safetensors': await oneLabel('tiny-bert') });
    const documents = ['It was bad.', 'The film was good!', '', 'A happy person smiles at the child in the garden.'];
    const ranked = await model.rank('Was it good?', documents, { batchSize: 2 });
    const scores = (await model.classify(documents.map((text) => ['Was it good?', text] as const))).map(([{ score }]) => score);
    assert.deepEqual(
      ranked,
      scores.map((score, index) => ({ index, score, truncated: false })).sort((a, b) => b.score - a.score),
    );
    assert.deepEqual(await model.rank('Was it good?', documents, { topK: 2 }), ranked.slice(0, 2));
    const short = await model.rank('Was it good?', documents, { maxLength: 8 });
    const truncated = documents.map((_, i) => short.find(({ index }) => index === i)!.truncated);
    assert.deepEqual(
      truncated,
      model.tokenize(
        documents.map((text) => ['Was it good?', text] as const),
        { maxLength: 8 },
      ).truncated,
    );
    assert.sameMembers([...new Set(truncated)], [true, false]);
    assert.deepEqual(await model.rank('Was it good?', []), []);
    await assertRejects((await modelOf('tiny-bert')).rank('a', ['b']), 'UNSUPPORTED', ['3 labels', 'one label']);
    await assertRejects(model.rank('a', 'b' as never), 'ARGUMENT', ['documents', 'Array']);
    await assertRejects(model.rank('a', ['b'], { topK: 0 }), 'CONFIG', ['topK']);
  });

  const folder = (name: string) => ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'].map((file) => [file, `testdata/models/${name}/${file}`]); // prettier-ignore
  async function filesOf(name: string, config: object): Promise<Record<string, Uint8Array<ArrayBuffer>>> {
    const files = Object.fromEntries(await Promise.all(folder(name).map(async ([file, path]) => [file, await bytes(path)] as const)));
    const given = JSON.parse(new TextDecoder().decode(files['config.json'])) as object;
    return { ...files, 'config.json': new TextEncoder().encode(JSON.stringify({ ...given, ...config })) };
  }
  async function oneLabel(name: string): Promise<Uint8Array> {
    const tensors = attn.parseSafetensors(await bytes(`testdata/models/${name}/model.safetensors`));
    const { data, dims } = tensors.get('classifier.weight')!;
    tensors.set('classifier.weight', { data: data.slice(0, dims[1]), dims: [1, dims[1]] });
    tensors.set('classifier.bias', { data: tensors.get('classifier.bias')!.data.slice(0, 1), dims: [1] });
    return attn.writeSafetensors(tensors);
  }

  it('reports the task of a head and refuses other tasks', async () => {
    const tasks = {
      'tiny-bert': 'text-classification',
      'tiny-bert-cls': 'embedding',
      'tiny-bert-ner': 'token-classification',
      'tiny-bert-legacy': 'fill-mask',
      'tiny-bert-qa': 'question-answering',
      'tiny-bert-choice': 'multiple-choice',
    } as const;
    for (const [name, task] of Object.entries(tasks)) {
      const model = await modelOf(name);
      assert.equal(model.task, task);
      assert.equal(model.labels !== undefined, task.endsWith('classification'));
      const calls = {
        'text-classification': () => model.classify('a'),
        'token-classification': () => model.classifyTokens('a'),
        'fill-mask': () => model.fillMask('[MASK]'),
        'question-answering': () => model.answer('a', 'b'),
      };
      for (const [other, call] of Object.entries(calls))
        if (other === task) await call();
        else await assertRejects(call(), 'UNSUPPORTED', [other, task === 'embedding' ? 'without a head' : task]);
      // Every model can embed, whatever its head.
      assertDims(await model.embed('It was good'), [1, name === 'tiny-bert' || name === 'tiny-bert-cls' || name === 'tiny-bert-legacy' ? 32 : 16]);
    }
  });

  it('forward() returns logits per token, or per choice', async () => {
    const texts = ['It was bad', 'A'];
    const logits = async (name: string) => {
      const model = await modelOf(name);
      const inputs = model.tokenize(texts);
      return { length: inputs.dims[1], dims: model.forward(inputs).logits!.dims };
    };
    const { length, dims } = await logits('tiny-bert-ner');
    assert.deepEqual([...dims], [2, length, 6]);
    assert.deepEqual([...(await logits('tiny-bert-qa')).dims.slice(2)], [2]);
    assert.deepEqual([...(await logits('tiny-bert-mlm')).dims.slice(2)], [(await modelOf('tiny-bert-mlm')).config['vocab_size'] as number]);
    assert.deepEqual([...(await logits('tiny-bert-choice')).dims], [2, 1]);
    const mlm = await modelOf('tiny-bert-mlm');
    const inputs = mlm.tokenize(texts);
    const { lastHiddenState, logits: none } = mlm.forward(inputs, { outputLogits: false });
    assert.isUndefined(none);
    assertSameBits(lastHiddenState, mlm.forward(inputs).lastHiddenState);
  });

  it('splits texts by script if the tokenizer does; the table is loaded on demand', async () => {
    const files = await filesOf('tiny-bert', {});
    const tokenizer = JSON.parse(new TextDecoder().decode(files['tokenizer.json'])) as { pre_tokenizer: object };
    const pretokenizers = [{ type: 'UnicodeScripts' }, tokenizer.pre_tokenizer];
    const changed = { ...tokenizer, pre_tokenizer: { type: 'Sequence', pretokenizers } };
    const model = await attn.loadModel({ ...files, 'tokenizer.json': JSON.stringify(changed) });
    const cut = (which: TextModel) => which.tokenize('asЗима').offsets[0].filter(Boolean).map((offset) => offset![0]); // prettier-ignore
    assert.include(cut(model), 2);
    assert.notDeepEqual(cut(model), cut(await modelOf('tiny-bert')));
  });

  it('returns only the best labels of each text', async () => {
    const model = await modelOf('tiny-bert');
    const all = await model.classify(['It was good', 'It was bad']);
    assert.deepEqual(await model.classify(['It was good', 'It was bad'], { topK: 2 }), all.map((each) => each.slice(0, 2))); // prettier-ignore
    assert.deepEqual(await model.classify('It was good', { topK: 9 }), [all[0]]);
    await assertRejects(model.classify('a', { topK: 0 }), 'CONFIG', ['topK']);
  });

  it('reports which texts were truncated before embedding', async () => {
    const model = await modelOf('tiny-bert-cls');
    const { truncated } = await model.embed(['A film', 'good '.repeat(100), 'bad']);
    assert.deepEqual(truncated, [false, true, false]);
    assert.deepEqual((await model.embed('A happy person', { maxLength: 3 })).truncated, [true]);
    assert.deepEqual((await model.embed([])).truncated, []);
  });

  it('fills the masks of several texts, and reports the mask token', async () => {
    const [model, other] = [await modelOf('tiny-bert-mlm'), await modelOf('tiny-roberta-mlm')];
    assert.deepEqual([model.maskToken, other.maskToken], ['[MASK]', '<mask>']);
    const texts = ['It is [MASK].', '[MASK] film was [MASK] at all.', 'A [MASK]'];
    const done: number[] = [];
    const several = await model.fillMask(texts, { topK: 3, batchSize: 2, onProgress: (p) => done.push(p.done) });
    assert.deepEqual(done, [0, 2, 3]);
    for (const [i, text] of texts.entries()) assert.deepEqual(await model.fillMask(text, { topK: 3 }), several[i]);
    assert.deepEqual(await model.fillMask([]), []);
  });

  it("omits padding from the texts of filled masks, as transformers' pipeline does", async () => {
    const model = await modelOf('tiny-bert-mlm');
    for (const masks of await model.fillMask(['It is [MASK] [PAD] and [MASK] [PAD].', 'It is [MASK] [PAD].']))
      for (const { text } of masks.flat()) assert.notInclude(text, '[PAD]');
  });

  it('answers several questions about one context or one context each', async () => {
    const model = await modelOf('tiny-bert-qa');
    const [questions, contexts] = [
      ['Who smiles?', 'Where?', 'What was good?'],
      ['A happy person smiles in the garden.', 'The film was good. '.repeat(30), 'b'],
    ];
    const done: number[] = [];
    const several = await model.answer(questions, contexts, { topK: 2, batchSize: 1, onProgress: (p) => done.push(p.done) });
    assert.isAbove(done.length, 4, 'progress for each window');
    for (const [i, question] of questions.entries()) assert.deepEqual(await model.answer(question, contexts[i], { topK: 2 }), several[i]);
    assert.deepEqual((await model.answer(questions, contexts[0], { topK: 2 }))[0], several[0]);
    assert.deepEqual((await model.answer(questions[0], contexts, { topK: 2 }))[0], several[0]);
    assert.deepEqual(await model.answer([], []), []);
    assert.notDeepEqual(await model.answer(questions[0], contexts[1], { maxLength: 32 }), await model.answer(questions[0], contexts[1]));
  });

  it('rank() puts a prompt before the query', async () => {
    const files = await filesOf('tiny-bert', { id2label: { 0: 'relevant' }, label2id: { relevant: 0 } });
    const prompts = { prompts: { search: 'happy film: ' }, default_prompt_name: null };
    const model = await attn.loadModel({
      ...files,
      'model.safetensors': await oneLabel('tiny-bert'),
      'modules.json': JSON.stringify([{ idx: 0, name: '0', path: '', type: 'sentence_transformers.models.Transformer' }]),
      'config_sentence_transformers.json': JSON.stringify(prompts),
    });
    const documents = ['It was bad.', 'The film was good!'];
    const expected = await model.rank('happy film: Was it good?', documents);
    assert.deepEqual(await model.rank('Was it good?', documents, { promptName: 'search' }), expected);
    assert.deepEqual(await model.rank('Was it good?', documents, { prompt: 'happy film: ', promptName: 'none' }), expected);
    assert.notDeepEqual(await model.rank('Was it good?', documents), expected);
    await assertRejects(model.rank('a', documents, { promptName: 'none' }), 'CONFIG', ['rank', 'promptName', 'search']);
  });

  it('token masks may have the same integer types as ids', async () => {
    const model = await modelOf('tiny-bert-cls');
    const inputs = model.tokenize(['A happy person smiles', 'A film']);
    const { lastHiddenState } = model.forward(inputs);
    const numbers = [...inputs.attentionMask];
    for (const attentionMask of [numbers, BigInt64Array.from(numbers, BigInt), Int32Array.from(numbers), numbers.map((each) => 256 * each)])
      assertSameBits(model.forward({ ...inputs, attentionMask: attentionMask as never }).lastHiddenState, lastHiddenState);
    const given = (attentionMask: unknown) => () => model.forward({ ...inputs, attentionMask: attentionMask as never });
    assertThrows(given(['1', ...numbers.slice(1)]), 'ARGUMENT', ['attentionMask.data[0]']);
    assertThrows(given(numbers.slice(1)), 'SHAPE', ['attentionMask']);
    assertThrows(given(new Float64Array(numbers)), 'DTYPE', ['attentionMask']);
  });

  it('any batch size gives the same bits', async () => {
    const model = await modelOf('tiny-bert-ner');
    const texts = ['A happy person', '', 'The film was not bad, it was good!', 'Überraschend schön 😀', 'a'.repeat(90), 'b c'.repeat(70)];
    const expected = await model.classifyTokens(texts, { stride: 3 });
    assert.deepEqual(expected[1], []);
    for (const batchSize of [1, 2, 5]) assert.deepEqual(await model.classifyTokens(texts, { stride: 3, batchSize }), expected, `${batchSize}`);
    for (const [i, text] of texts.entries()) assert.deepEqual(await model.classifyTokens(text, { stride: 3 }), [expected[i]]);
    assert.deepEqual(await model.classifyTokens([]), []);
  });

  it('refuses invalid calls, and stays usable', async () => {
    const [ner, mlm, qa] = await Promise.all([modelOf('tiny-bert-ner'), modelOf('tiny-bert-mlm'), modelOf('tiny-bert-qa')]);
    const long = 'good '.repeat(100);
    for (const text of [long, 'a']) await assertRejects(ner.classifyTokens(text, { stride: 62 }), 'CONFIG', ['stride', '62', 'below 62']);
    await assertRejects(ner.classifyTokens('a', { stride: 1, aggregation: 'none' }), 'CONFIG', ['stride', 'none']);
    await assertRejects(ner.classifyTokens('a', { stride: -1 }), 'CONFIG', ['stride']);
    await assertRejects(ner.classifyTokens('a', { aggregation: 'mean' as never }), 'CONFIG', ['aggregation', 'average']);
    await assertRejects(ner.classifyTokens('a', { ignoreLabels: 'O' as never }), 'ARGUMENT', ['ignoreLabels', 'Array']);
    await assertRejects(ner.classifyTokens('a', { ignoreLabels: [5] as never }), 'ARGUMENT', ['ignoreLabels[0]']);
    await assertRejects(ner.classifyTokens(['a', long], { truncation: false }), 'OUT_OF_RANGE', ['texts[1]', '64']);
    await assertRejects(ner.classifyTokens([['a', 'b']] as never), 'ARGUMENT', ['texts[0]']);
    await assertRejects(ner.classifyTokens('a', { max: 5 } as never), 'ARGUMENT', ['max']);
    await assertRejects(mlm.fillMask('good'), 'ARGUMENT', ['mask', '[MASK]']);
    await assertRejects(mlm.fillMask(`${long} [MASK]`), 'OUT_OF_RANGE', ['64']);
    await assertRejects(mlm.fillMask('[MASK]', { targets: [] }), 'ARGUMENT', ['targets']);
    await assertRejects(mlm.fillMask('[MASK]', { targets: ['good', ''] }), 'ARGUMENT', ['targets[1]']);
    await assertRejects(mlm.fillMask('[MASK]', { targets: ['☃'] }), 'ARGUMENT', ['targets[0]', 'begins with']);
    await assertRejects(mlm.fillMask(5 as never), 'ARGUMENT', ['texts']);
    await assertRejects(mlm.fillMask(['[MASK]', 'good']), 'ARGUMENT', ['texts[1]', 'no [MASK]']);
    await assertRejects(mlm.fillMask(['[MASK]', `${long} [MASK]`]), 'OUT_OF_RANGE', ['texts[1]', '64']);
    await assertRejects(qa.answer(['a', ''], 'b'), 'ARGUMENT', ['question[1]', 'empty']);
    await assertRejects(qa.answer('a', ['b', '']), 'ARGUMENT', ['context[1]', 'empty']);
    await assertRejects(qa.answer(['a', 'b'], ['c']), 'ARGUMENT', ['context', '1 elements', '2 elements, one for each question']);
    await assertRejects(qa.answer('a', 'b', { maxLength: 65 }), 'OUT_OF_RANGE', ['maxLength', '64']);
    await assertRejects(qa.answer('', 'a'), 'ARGUMENT', ['question', 'empty']);
    await assertRejects(qa.answer('a', ''), 'ARGUMENT', ['context', 'empty']);
    await assertRejects(qa.answer(long, 'a'), 'OUT_OF_RANGE', ['no room', '64']);
    await assertRejects(qa.answer('a', long, { stride: 60 }), 'CONFIG', ['stride', 'below 60']);
    await assertRejects(qa.answer('a', 'b', { maxAnswerLength: 0 }), 'CONFIG', ['maxAnswerLength']);
    assertThrows(() => ner.decode('12' as never), 'ARGUMENT', ['ids']);
    assertThrows(() => ner.decode([1.5]), 'ARGUMENT', ['ids[0]']);
    assertThrows(() => ner.decode([1], { skipSpecialTokens: 1 as never }), 'ARGUMENT', ['skipSpecialTokens']);
    const controller = new AbortController();
    controller.abort();
    const { signal } = controller;
    for (const call of [() => ner.classifyTokens('a', { signal }), () => mlm.fillMask('[MASK]', { signal }), () => qa.answer('a', 'b', { signal })])
      await assertRejects(call, 'ABORTED');
    assert.deepEqual(await qa.answer('a', ' \n '), [], 'a context without tokens');
    assert.deepEqual(
      (await qa.answer('a', ' \n ', { allowEmpty: true })).map(({ text, start, end }) => ({ text, start, end })),
      [{ text: '', start: 0, end: 0 }],
    );
  });

  it('gives the same bits in attn/worker, and as int8 from its own files', async () => {
    const remote = await loadWorker(setup);
    const there = await remote.loadModel(url('testdata/models/tiny-bert-ner'), { cache: 'none' });
    const here = await modelOf('tiny-bert-ner');
    assert.equal(await there.task, 'token-classification');
    assert.deepEqual(await there.classifyTokens('A happy person'), await here.classifyTokens('A happy person'));
    assert.equal(await there.decode([5, 6, 7]), here.decode([5, 6, 7]));
    const mask = await remote.loadModel(url('testdata/models/tiny-bert-mlm'), { cache: 'none' });
    const local = await modelOf('tiny-bert-mlm');
    assert.deepEqual(await mask.fillMask('It is [MASK].', { topK: 2 }), await local.fillMask('It is [MASK].', { topK: 2 }));
    const qa = await remote.loadModel(url('testdata/models/tiny-bert-qa'), { cache: 'none' });
    assert.deepEqual(await qa.answer('Who?', 'A man'), await (await modelOf('tiny-bert-qa')).answer('Who?', 'A man'));
    assert.equal(await mask.maskToken, '[MASK]');
    assert.deepEqual(await mask.prompts, local.prompts);
    assert.deepEqual(await mask.fillMask(['It is [MASK].', '[MASK]']), await local.fillMask(['It is [MASK].', '[MASK]']));
    assert.deepEqual(await qa.answer(['Who?', 'What?'], 'A man'), await (await modelOf('tiny-bert-qa')).answer(['Who?', 'What?'], 'A man'));
    await assertRejects(mask.fillMask('[MASK]', { signal: AbortSignal.abort() }), 'ABORTED');
    await assertRejects(qa.rank('a', ['b']), 'UNSUPPORTED', ['text-classification']);
    await assertRejects(qa.rank('a', 'b' as never), 'ARGUMENT', ['documents']);
    await remote.dispose();

    for (const name of ['tiny-bert-mlm', 'tiny-mpnet-mlm', 'tiny-bert-ner', 'tiny-modernbert-qa']) {
      const int8 = await loadCheckpoint(attn, name, 'int8');
      const again = await attn.loadModel(await int8.export());
      const inputs = int8.tokenize(['It was good', 'A']);
      const { logits } = int8.forward(inputs);
      assertSameBits(again.forward(inputs).logits, logits, name);
      assert.notDeepEqual(logits!.data, (await modelOf(name)).forward(inputs).logits!.data);
      int8.dispose();
      again.dispose();
    }
  });
});
