import { effect } from '@preact/signals';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Attn as Direct, TextModel } from 'attn';
import { initialLines, linesText } from '../src/state/compare_texts.ts';
import { failure, model } from '../src/state/model.ts';
import { follow, run } from '../src/state/run.ts';
import { update } from '../src/state/view.ts';
import {
  agreement,
  explaining,
  explainLine,
  followWhy,
  isCurrent,
  lineToExplain,
  methodInFocus,
  methodNames,
  methods,
  scoreText,
  why,
  whyFailure,
  whyFromParams,
  whyToParams,
} from '../src/state/why.ts';
import { openModel } from './models.ts';
import { aMoment, type Changes, failing, gate, open, openNamed, until } from './state.ts';

let direct: Direct;
let refusal: Error | undefined;
/** Blocks attribute(). */
let held: ReturnType<typeof gate> | undefined;

const text = 'Not a good film, but never dull.';
beforeAll(async () => {
  ({ direct } = await open('sentiment'));
  model.value = await openNamed(direct, 'sentiment', { attribute });
  follow();
  await until('the map', () => run.value?.model === model.value);
});
afterAll(() => direct.dispose());
beforeEach(() => {
  refusal = held = undefined;
});

const attribute: Changes[string] = async (own, ...args) => {
  await held?.pass();
  if (refusal) throw refusal;
  return own(...args);
};
const own = () => model.value!.text as unknown as TextModel;

describe('the explanation of an answer', () => {
  it('is only an error message if a method fails', async () => {
    refusal = failing('NETWORK', 'planted');
    await explainLine(text);
    expect([whyFailure.value, why.value, explaining.value]).toEqual(['planted (NETWORK)', undefined, undefined]);
    expect(failure.value).toBeUndefined();
  });

  it('offers a restart after a trap', async () => {
    refusal = failing('INTERNAL', 'planted');
    await explainLine(text);
    expect(failure.value).toMatchObject({ code: 'INTERNAL', what: 'The module has stopped.' });
    failure.value = undefined;
  });

  it('matches attribute() of the package for every method', async () => {
    await explainLine(text);
    expect([whyFailure.value, explaining.value]).toEqual([undefined, undefined]);
    const made = why.value!;
    const [[{ label, score } = { label: '', score: 0 }] = []] = await own().classify([text]);
    expect(made).toMatchObject({ text, label, score });
    expect(scoreText(made)).toBe(`${(100 * score).toFixed(1)} %`);
    for (const method of methods) {
      const expected = await own().attribute(text, { method, target: label });
      expect([...made.scores[method]], method).toEqual([...expected.scores]);
      expect(made.tokens).toEqual(expected.tokens);
      if (expected.delta !== undefined) expect(made.delta).toBe(expected.delta);
    }
    expect(made.delta).toBeLessThan(0.01);
    await explainLine('Good.');
    expect(why.value!.text).toBe('Good.');
  });

  it('uses edited weights and is outdated when they change', async () => {
    await explainLine(text);
    const plain = why.value!;
    expect(isCurrent(plain)).toBe(true);
    update({ weights: [{ name: 'classifier.bias', index: 0, value: 50 }] });
    await until('the edit', () => run.value!.view.weights.length === 1);
    expect(isCurrent(plain)).toBe(false);
    await explainLine(text);
    expect(why.value!.label).toBe(model.value!.labels![0]);
    expect(why.value!.score).toBeGreaterThan(0.999);
    update({ weights: [] });
    await until('no edit', () => run.value!.view.weights.length === 0);
  });

  it('is dropped if the weights change meanwhile', async () => {
    await explainLine(text);
    const before = why.value;
    const explained = explainLine('Good.');
    update({ weights: [{ name: 'classifier.bias', index: 0, value: 50 }] });
    await explained;
    expect([why.value, whyFailure.value, explaining.value]).toEqual([before, undefined, undefined]);
    await until('the edit', () => run.value!.view.weights.length === 1);
    update({ weights: [] });
    await until('no edit', () => run.value!.view.weights.length === 0);
  });

  it('is dropped if another model is shown meanwhile, and computed for that model if the address contains it', async () => {
    await explainLine(text);
    const [of, before] = [model.value!, why.value];
    held = gate();
    linesText.value = text;
    whyFromParams(new URLSearchParams('why=1.gradient_x_input'));
    const stop = followWhy();
    await until('the first method', () => held!.waiting === 1);
    const next = await openNamed(direct, 'sentiment');
    model.value = next;
    expect(why.value).toBe(before);
    held.let();
    await until('the explanation', () => why.value !== before);
    expect(why.value).toMatchObject({ model: next, text });
    expect(whyFailure.value).toBeUndefined();
    stop();
    model.value = of;
    await until('the map', () => run.value?.model === of);
    linesText.value = initialLines;
  });

  it('leaves no float32 copy behind if another model is shown', async () => {
    const of = model.value!;
    const int8 = await openModel(direct, 'sentiment', undefined, undefined, 'int8');
    model.value = { ...int8, id: 'int8', name: 'sentiment as int8' };
    await until('the map', () => run.value?.model === model.value);
    const loaded = direct.info.heap.used;
    const stop = effect(() => {
      if (explaining.value !== methodNames.integrated_gradients) return;
      expect(direct.info.heap.used, 'with the copy').toBeGreaterThan(loaded + 1e5);
      model.value = of;
    });
    expect(await explainLine(text)).toBe(false);
    stop();
    expect([whyFailure.value, explaining.value]).toEqual([undefined, undefined]);
    await until('the map', () => run.value?.model === of);
    expect(direct.info.heap.used).toBeLessThanOrEqual(loaded + 1e5);
  });

  it('takes a float32 copy of int8 weights, which is freed', async () => {
    const of = model.value!;
    const int8 = await openModel(direct, 'sentiment', undefined, undefined, 'int8');
    model.value = { ...int8, id: 'int8', name: 'sentiment as int8' };
    await until('the map', () => run.value?.model === model.value);
    const loaded = direct.info.heap.used;
    await explainLine(text);
    expect(whyFailure.value).toBeUndefined();
    const copy = await direct.loadModel(await own().export(), { weights: 'float32' });
    const { label } = why.value!;
    const expected = await copy.attribute(text, { method: 'integrated_gradients', target: label });
    expect([...why.value!.scores.integrated_gradients]).toEqual([...expected.scores]);
    copy.dispose();
    expect(direct.info.heap.used).toBeLessThanOrEqual(loaded + 1e5);
    model.value = of;
    await until('the map', () => run.value?.model === of);
  });

  it('is in the address with its line and method, and is computed again from it', async () => {
    linesText.value = `Good.\n${text}\nBad.`;
    lineToExplain.value = 1;
    methodInFocus.value = 'gradient_x_input';
    await explainLine(text);
    expect(whyToParams()).toEqual([['why', '2.gradient_x_input']]);
    lineToExplain.value = 2;
    expect(whyToParams(), 'another line is selected').toEqual([]);
    const made = why.value;
    whyFromParams(new URLSearchParams('why=1.attention_rollout'));
    expect(whyToParams(), 'while it is being computed').toEqual([['why', '1.attention_rollout']]);
    followWhy();
    await until('the explanation', () => why.value !== made);
    expect(why.value!.text).toBe('Good.');
    expect([lineToExplain.value, methodInFocus.value, whyToParams()]).toEqual([0, 'attention_rollout', [['why', '1.attention_rollout']]]);
  });

  it('is not requested by an address with an invalid line or method', async () => {
    const made = why.value;
    for (const asked of ['', 'why=', 'why=0.attention_rollout', 'why=1', 'why=1.leave_one_out', 'why=1.toString', 'why=99999.attention_rollout']) {
      whyFromParams(new URLSearchParams(asked));
      expect([lineToExplain.value, methodInFocus.value], asked).toEqual([0, 'integrated_gradients']);
    }
    whyFromParams(new URLSearchParams('why=9.attention_rollout'));
    await aMoment();
    expect(why.value, 'there are only three lines').toBe(made);
    expect(explaining.value).toBeUndefined();
    linesText.value = initialLines;
  });

  it('is not computed for a model without a classifier', async () => {
    const before = why.value;
    model.value = await openNamed(direct, 'tiny-mpnet-mean');
    await until('the map', () => run.value?.model === model.value);
    await explainLine(text);
    expect(why.value).toBe(before);
    expect(isCurrent(before!)).toBe(false);
  });
});

describe('the agreement between two lists', () => {
  it('does not depend on their scale and ignores excluded values', () => {
    expect(agreement([1, 2, 3], [10, 20, 30], () => true)).toBeCloseTo(1, 12);
    expect(agreement([1, 2, 3], [3, 2, 1], () => true)).toBeCloseTo(-1, 12);
    expect(agreement([1, 2, 99], [2, 4, -7], (i) => i < 2)).toBeCloseTo(1, 12);
  });
});
