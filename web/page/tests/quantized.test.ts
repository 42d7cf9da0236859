import { afterAll, describe, expect, it } from 'vitest';
import type { Attn as Direct } from 'attn';
import { linesText, initialLines } from '../src/state/compare_texts.ts';
import type { LoadedModel } from '../src/model/loaded.ts';
import { beside, model } from '../src/state/model.ts';
import { compareBoth, cosinesOf, differencesOf, quantized, together, verdictOf, type Quantized } from '../src/state/quantized.ts';
import { follow, run } from '../src/state/run.ts';
import { update, view } from '../src/state/view.ts';
import { openModel } from './models.ts';
import { aMoment, changed, open, until } from './state.ts';

describe('the difference between two lists', () => {
  it('has a maximum, a mean and a count, also over several lists', () => {
    expect(differencesOf([], [])).toEqual({ largest: 0, mean: 0, count: 0 });
    const parts = [differencesOf([1, 2, 3], [1.5, 2, 3.25]), differencesOf([0.25], [-1])] as const;
    expect(parts).toEqual([
      { largest: 0.5, mean: 0.25, count: 3 },
      { largest: 1.25, mean: 1.25, count: 1 },
    ]);
    expect(together(parts)).toEqual({ largest: 1.25, mean: 0.5, count: 4 });
    expect(together([])).toEqual({ largest: 0, mean: 0, count: 0 });
  });

  it('includes the cosine of each row, regardless of its length', () => {
    const tensor = (...rows: number[][]) => ({ data: Float32Array.from(rows.flat()), dims: [rows.length, 2] });
    expect(cosinesOf(tensor([3, 4], [1, 0], [2, 0]), tensor([6, 8], [0, 5], [-1, 0]))).toEqual([1, 0, -1]);
    expect(cosinesOf(tensor([1, 1]), tensor([1, 0]))[0]).toBeCloseTo(Math.SQRT1_2, 15);
  });
});

describe('the verdict of a model', () => {
  const scores = (...pairs: (readonly [string, number])[]) => pairs.map(([label, score]) => ({ label, score }));
  it('is the likeliest label or all likely labels in a fixed order, and empty for a regression', () => {
    const answer = scores(['b', 0.6], ['a', 0.5], ['c', 0.499]);
    expect(verdictOf('softmax', answer)).toBe('b');
    expect(verdictOf('sigmoid', answer)).toBe('a, b');
    expect(verdictOf('sigmoid', scores(['a', 0.7], ['b', 0.6]))).toBe('a, b');
    expect(verdictOf('sigmoid', scores(['a', 0.4]))).toBe('');
    expect(verdictOf('identity', scores(['x', 3]))).toBe('');
  });
});

const ends: (() => void)[] = [];
let direct: Direct;
afterAll(() => {
  for (const end of ends) end();
  direct?.dispose();
});

async function expected({ int8, float32 }: Quantized['models'], text: string) {
  const of = async ({ text: each }: LoadedModel) => ({
    maps: (await each.forward(await each.tokenize(text), { outputAttentions: true })).attentions!,
    vector: (await each.embed(text, { normalize: true })).data,
    answer: (await each.classify(text))[0]!,
  });
  const [a, b] = [await of(int8), await of(float32)];
  const all = a.maps.flatMap(({ data }, layer) => Array.from(data, (value, i) => Math.abs(value - b.maps[layer]!.data[i]!)));
  return {
    largest: Math.max(...all),
    mean: all.reduce((sum, each) => sum + each) / all.length,
    cosine: a.vector.reduce((sum, value, i) => sum + value * b.vector[i]!, 0),
    answers: { int8: a.answer, float32: b.answer },
  };
}

async function assertTold(found: Quantized, text: string) {
  const { largest, mean, cosine, answers } = await expected(found.models, text);
  expect(largest).toBeGreaterThan(1e-4);
  expect(found.all.largest).toBe(largest);
  expect(found.all.mean).toBeCloseTo(mean, 9);
  expect(found.cosines[0]).toBeCloseTo(cosine, 6);
  expect(found.cosines[0]).toBeLessThan(1 - 1e-8);
  expect(found.answered[0]).toMatchObject({ text, answers });
}

describe('the int8 and float32 versions of a model', () => {
  const texts = ['A film with wonderful actors and a terrible script.', 'Dull.'] as const;
  it('are compared once both are loaded, and again for each new text', async () => {
    const { of, direct: module } = await open('sentiment', { text: texts[0] });
    direct = module;
    ends.push(quantized.follow());
    follow();
    await until('the run', () => run.value?.model === of);
    await aMoment();
    expect(quantized.value.value, 'nothing is compared before both are loaded').toBeUndefined();
    beside.value = { ...(await openModel(direct, 'sentiment', undefined, {}, 'int8')), id: 'sentiment', name: 'the same' };
    await until('the comparison', () => quantized.value.value);
    const first = quantized.value.value!;
    expect(first.models).toEqual({ float32: of, int8: beside.value });
    await assertTold(first, texts[0]);
    expect(first.tokens).toBe(12);
    expect(first.layers.length).toBe(2);
    expect(first.all.count).toBe(2 * 4 * 12 * 12);
    expect(Math.max(...first.layers.map(({ largest }) => largest))).toBe(first.all.largest);
    expect([first.lines, first.answered.length, first.cosines.length]).toEqual([8, 9, 1]);
    expect(first.answered.slice(1).map(({ text }) => text)).toEqual(initialLines.split('\n'));
    expect(first.leastOfLines).toBeGreaterThan(0.99);
    expect(first.leastOfLines).toBeLessThan(1);
    expect(Math.min(first.milliseconds.int8, first.milliseconds.float32)).toBeGreaterThan(0);
    update({ text: texts[1] });
    await until('the new text', () => quantized.value.value!.tokens === 4);
    await assertTold(quantized.value.value!, texts[1]);
  });

  it('are compared on a text pair and on the lines', async () => {
    linesText.value = 'one\ntwo\nthree';
    update({ text: 'Good?', pair: 'Not at all.' });
    await until('two vectors', () => quantized.value.value!.cosines.length === 2 && quantized.value.value!.lines === 3);
    const { answered, models, all, tokens } = quantized.value.value!;
    expect(answered.map(({ text }) => text)).toEqual(['Good? / Not at all.', 'one', 'two', 'three']);
    const [answer] = await models.int8.text.classify([['Good?', 'Not at all.']]);
    expect(answered[0]!.answers.int8).toEqual(answer);
    expect(all.count).toBe(2 * 4 * tokens * tokens);
    linesText.value = ' ';
    await until('no lines', () => quantized.value.value!.lines === 0);
    expect([quantized.value.value!.leastOfLines, quantized.value.value!.answered.length]).toEqual([undefined, 1]);
    linesText.value = initialLines;
  });

  it('are compared only with the weights of the files, even if they were edited before', async () => {
    update({ text: texts[0], pair: undefined });
    await until('the text', () => quantized.value.value!.answered[0]!.text === texts[0] && quantized.value.value!.lines === 8);
    const plain = quantized.value.value!;
    const name = 'bert.encoder.layer.0.attention.self.query.bias';
    update({ weights: [{ name, index: 0, value: 50 }] });
    await until('the edit', () => run.value!.view.weights.length === 1);
    // After the swap, the edited model is the second copy.
    const [above, other] = [model.value!, beside.value!];
    model.value = other;
    beside.value = above;
    await until('the run', () => run.value!.model === other && run.value!.view.weights.length === 1);
    await aMoment(200);
    expect(quantized.value.value).toBe(plain);
    expect((await above.text.getParameter(name)).data[0]).toBe(50);
    update({ weights: [] });
    await until('the comparison', () => quantized.value.value !== plain);
    const again = quantized.value.value!;
    expect(again.models).toEqual(plain.models);
    expect({ ...again, milliseconds: 0 }).toEqual({ ...plain, milliseconds: 0 });
  });

  it('are marked as different if their answers differ', async () => {
    const models = quantized.value.value!.models;
    const turned = changed(models.int8.text as never, {
      classify: async (own, given, options) => {
        const answers = (await own(given, options)) as { label: string; score: number }[][];
        return answers.map((each, i) => (i === 1 ? each.toReversed() : each));
      },
    });
    const of = { ...models, int8: { ...models.int8, text: turned as never } };
    const { answered } = (await compareBoth(of, texts[0], ['good', 'bad', 'great']))!;
    expect(answered.map(({ flips }) => flips)).toEqual([false, false, true, false]);
  });

  it('stop being compared if the result is no longer needed', async () => {
    const models = quantized.value.value!.models;
    let asked = 0;
    for (const most of [0, 1, 2, 7]) {
      asked = 0;
      expect(await compareBoth(models, texts[0], [], () => ++asked <= most)).toBeUndefined();
      expect(asked).toBe(most + 1);
    }
    expect(view.value.text).toBe(texts[0]);
  });

  it('are compared without answers if the model has no labels', async () => {
    const open = (dtype: 'int8' | 'float32') => openModel(direct, 'tiny-bert-cls', undefined, {}, dtype);
    const { answered, layers } = (await compareBoth({ int8: await open('int8'), float32: await open('float32') }, 'One text.', []))!;
    expect(answered).toEqual([]);
    expect(layers.length).toBeGreaterThan(0);
  });
});
