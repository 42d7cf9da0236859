import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Attn as Direct, TextModel } from 'attn';
import { model } from '../src/state/model.ts';
import { follow, run } from '../src/state/run.ts';
import { update } from '../src/state/view.ts';
import { agreement, explaining, explainLine, isCurrent, methods, scoreText, why, whyFailure } from '../src/state/why.ts';
import { failing, open, openNamed, until } from './state.ts';

let direct: Direct;
let loads = 0;
let refusal: Error | undefined;
vi.mock('attn/worker', async (original) => ({
  ...(await original<typeof import('attn/worker')>()),
  load(options: unknown) {
    ++loads;
    expect(options).toEqual({ training: true });
    return refusal ? Promise.reject(refusal) : Promise.resolve(direct);
  },
}));

const text = 'Not a good film, but never dull.';
beforeAll(async () => {
  ({ direct } = await open('sentiment'));
  follow();
  await until('the map', () => run.value?.model === model.value);
});
afterAll(() => direct.dispose());
beforeEach(() => {
  refusal = undefined;
});

/** The model's own numbers. */
const own = () => model.value!.text as unknown as TextModel;

describe('why a line is answered so', () => {
  it('is nothing but a reason where what computes gradients cannot be had', async () => {
    refusal = failing('NETWORK', 'planted');
    await explainLine(text);
    expect([whyFailure.value, why.value, explaining.value]).toEqual(['planted (NETWORK)', undefined, undefined]);
  });

  it('is told by each method, for the answer, as the package gives it', async () => {
    const before = loads;
    await explainLine(text);
    expect([whyFailure.value, explaining.value, loads - before]).toEqual([undefined, undefined, 1]);
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
    expect([why.value!.text, loads - before], 'loaded once').toEqual(['Good.', 1]);
  });

  it('is that of the edited weights, and no longer current when they change', async () => {
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

  it('is nothing for a model without a classifier', async () => {
    const before = why.value;
    model.value = await openNamed(direct, 'tiny-mpnet-mean');
    await until('the map', () => run.value?.model === model.value);
    await explainLine(text);
    expect(why.value).toBe(before);
    expect(isCurrent(before!)).toBe(false);
  });
});

describe('how alike two lists are', () => {
  it('does not depend on their scale, and leaves out what does not count', () => {
    expect(agreement([1, 2, 3], [10, 20, 30], () => true)).toBeCloseTo(1, 12);
    expect(agreement([1, 2, 3], [3, 2, 1], () => true)).toBeCloseTo(-1, 12);
    expect(agreement([1, 2, 99], [2, 4, -7], (i) => i < 2)).toBeCloseTo(1, 12);
  });
});
