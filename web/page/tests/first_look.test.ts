import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Attn as Direct } from 'attn';
import { arc, spread } from '../src/draw/arcs.ts';
import { firstLook, fromField, isPlaying, playSteps, sentences, showStep, stepCount, stepShown, toField } from '../src/state/first_look.ts';
import { stepCaptions } from '../src/state/step_captions.ts';
import { followGuesses, guesses, largestOf, query, queryAsked } from '../src/state/guess.ts';
import { fromHash, linkHash } from '../src/state/hash.ts';
import { model } from '../src/state/model.ts';
import { cellInFocus } from '../src/state/pointed.ts';
import { follow, layerTrace, run } from '../src/state/run.ts';
import { partShown, strongest, strongestIn } from '../src/state/strongest.ts';
import { anywhere, firstVisit, initialView, setText, update, view } from '../src/state/view.ts';
import { open, openNamed, until } from './state.ts';

vi.stubGlobal('window', globalThis);

describe('columns under the words', () => {
  it('stay under their words if these are far enough apart', () => {
    expect(spread([10, 50, 90], 30, 0, 100)).toEqual([10, 50, 90]);
  });

  it('move apart as little as possible', () => {
    expect(spread([50, 52, 54], 10, 0, 200)).toEqual([42, 52, 62]);
    expect(spread([10, 50, 52], 20, 0, 200)).toEqual([10, 41, 61]);
  });

  it('stay between the edges, in order, and never closer than the gap', () => {
    for (let seed = 1; seed < 50; ++seed) {
      const wanted = Array.from({ length: 7 }, (_, i) => (Math.sin(seed * (i + 1)) + 1) * 200).sort((a, b) => a - b);
      const places = spread(wanted, 40, 20, 380);
      places.forEach((place, i) => {
        expect(place).toBeGreaterThanOrEqual(20);
        expect(place).toBeLessThanOrEqual(380 + 1e-9);
        if (i > 0) expect(place - places[i - 1]!).toBeGreaterThanOrEqual(40 - 1e-9);
      });
    }
  });

  it('are joined by arcs that begin and end at the words', () => {
    expect(arc({ x: 10, y: 90 }, { x: 110, y: 90 }, 84)).toMatch(/^M10 90C10 \d+ 110 \d+ 110 90$/);
    expect(arc({ x: 10, y: 90 }, { x: 10, y: 90 }, 84), 'a loop').toMatch(/^M1 90C/);
  });
});

describe('the sentence field', () => {
  it('shows a blank as underscores and reads them back', () => {
    for (const text of [...sentences, 'No blank_here.', '<mask> and [MASK]'])
      expect(fromField(toField(text), false, '[MASK]')).toBe(text.replace('<mask>', '[MASK]'));
    expect(fromField('I like ___.', false, '<mask>')).toBe('I like <mask>.');
    expect(fromField('snake_case __', false, '[MASK]')).toBe('snake_case [MASK]');
    expect(fromField('A cup of _.', false, '[MASK]')).toBe('A cup of [MASK].');
    expect(toField('two\nlines')).toBe('two lines');
  });

  it('loses the whole blank if a part of it is deleted', () => {
    const field = toField('a [MASK] b');
    expect(fromField(field.replace('_', ''), true, '[MASK]')).toBe('a  b');
    expect(fromField(field, true, '[MASK]')).toBe('a [MASK] b');
  });
});

describe('the strongest link', () => {
  // Rows: [CLS] a b [SEP]
  const weights = [0.9, 0, 0.1, 0, 0.1, 0.2, 0.3, 0.4, 0.1, 0.35, 0.55, 0, 0, 1, 0, 0];
  const isWord = [false, true, true, false];

  it('is between two words, not from a word to itself or to a special token', () => {
    expect(strongestIn(weights, isWord)).toEqual({ row: 2, column: 1 });
  });

  it('starts at one of the given queries', () => {
    expect(strongestIn(weights, isWord, [1])).toEqual({ row: 1, column: 2 });
  });

  it('of a single word is that word', () => {
    expect(strongestIn([1, 0, 0, 0.1, 0.9, 0, 0, 0, 1], [false, true, false])).toEqual({ row: 1, column: 1 });
  });
});

describe('the part of the map that a long text shows', () => {
  const long = (count: number) => Array.from({ length: count }, (_, i) => `word ${i}`).join(' ');

  it('becomes automatic when the text becomes long, and is the whole map again when it becomes short', () => {
    view.value = initialView;
    const partAfter = (text: string, pair?: string) => {
      setText(text, pair);
      return view.value.part;
    };
    expect(partAfter('a short text')).toBeUndefined();
    expect(partAfter(long(60))).toBe('auto');
    expect(partAfter(long(61))).toBe('auto');
    expect(fromHash(linkHash()).part).toBe('auto');
    expect(partAfter('a short text')).toBeUndefined();
    expect(partAfter('a short text', long(60))).toBe('auto');
  });

  it("is the visitor's while the text stays long", () => {
    setText(long(60), undefined);
    update({ part: undefined });
    setText(long(61), undefined);
    expect(view.value.part).toBeUndefined();
    const part = { row: 3, column: 4, count: 10 };
    update({ part });
    setText('a short text', undefined);
    expect(view.value.part).toEqual(part);
    view.value = initialView;
  });
});

describe('the numbers of the first figure', () => {
  let direct: Direct;
  beforeAll(async () => {
    ({ direct } = await open('masks', firstVisit));
    follow();
    followGuesses();
  });
  const shown = async (text: string) => {
    await until(text, () => run.value?.view.text === text && layerTrace.value?.run === run.value && guesses.value?.run === run.value);
    return { now: firstLook.value!, made: guesses.value! };
  };

  it('add up: scores are q·k/√d, weights and the rest are 100 %, the sum is weights times values', async () => {
    const { now } = await shown(firstVisit.text);
    expect(now.columns.map(({ label }) => label)).toEqual(['she', 'drank', 'a', 'cup', 'of', '[MASK]', '.']);
    expect([now.place, now.isBlank, now.width]).toEqual([5, true, 32]);
    const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    for (const { key, score } of now.columns) expect(dot(now.query, key) / Math.sqrt(32)).toBeCloseTo(score, 3);
    expect(now.elsewhere + now.columns.reduce((sum, { weight }) => sum + weight, 0)).toBeCloseTo(1, 5);
    const sum = Array.from(now.sum, (_, d) => now.columns.reduce((all, { weight, value }) => all + weight * value[d]!, 0));
    const size = Math.max(...Array.from(now.sum, Math.abs));
    sum.forEach((value, d) => expect(Math.abs(value - now.sum[d]!)).toBeLessThan(2 * now.elsewhere * size + 0.02));
  });

  it('have the guesses of fillMask, and those of the logits once the model is changed', async () => {
    const { made } = await shown(firstVisit.text);
    const [expected] = await model.value!.text.fillMask(firstVisit.text, { topK: 4 });
    expect(made).toMatchObject({ kind: 'blank', list: expected!.map(({ token, score }) => ({ word: token, share: score })), before: undefined });
    const { logits } = await model.value!.text.forward(run.value!.inputs);
    const [best] = largestOf(logits!, 6, 1);
    expect(await model.value!.text.idToToken(best!.id)).toBe(expected![0]!.token);
    expect(best!.share).toBeCloseTo(expected![0]!.score, 5);
    update({ off: [4, 5, 6, 7] });
    await until('the changed guess', () => guesses.value?.run.view.off.length === 4);
    expect(guesses.value!.before![0]).toEqual({ word: expected![0]!.token, share: expected![0]!.score });
    expect(guesses.value!.list[0]!.share).not.toBeCloseTo(expected![0]!.score, 3);
    expect(firstLook.value!.isOff).toBe(true);
    update({ off: [] });
    await until('the guess again', () => guesses.value?.run.view.off.length === 0);
  });

  it('start a map of many tokens at its strongest link, and show all of a short text', async () => {
    const text = 'The dog saw the cat and the bird. '.repeat(12).trim();
    setText(text, undefined);
    await shown(text);
    const size = run.value!.tokens.length;
    expect(size, 'the limit of this model').toBe(64);
    const { row, column } = strongest.value;
    const { row: top, column: left, count } = partShown.value;
    expect(count).toBe(32);
    for (const [place, first] of [
      [row, top],
      [column, left],
    ] as const)
      expect([place >= first, place < first + count]).toEqual([true, true]);
    update({ cell: { row: 1, column: 2 } });
    expect(partShown.value, 'pointing at a cell does not move the map').toEqual({ row: top, column: left, count });
    update({ part: undefined });
    expect(partShown.value).toEqual({ row: 0, column: 0, count: size });
    setText(firstVisit.text, undefined);
    await shown(firstVisit.text);
    update({ part: 'auto' });
    expect(partShown.value).toEqual({ row: 0, column: 0, count: 9 });
    update({ part: undefined });
  });

  it('have no guess for an empty text', async () => {
    setText('', undefined);
    const { now, made } = await shown('');
    expect([now.columns, made.list]).toEqual([[], []]);
    setText(firstVisit.text, undefined);
    await shown(firstVisit.text);
  });

  it('ask for the word under the pointer, with a blank in its place', async () => {
    queryAsked.value = 2;
    await until('the word', () => guesses.value?.query === 2);
    expect([query.value, firstLook.value!.place, guesses.value!.kind]).toEqual([2, 1, 'word']);
    const [expected] = await model.value!.text.fillMask('She [MASK] a cup of [MASK].', { topK: 4 });
    expect(guesses.value!.list.map(({ word }) => word)).toEqual(expected!.map(({ token }) => token));
    queryAsked.value = 0; // a special token
    expect(query.value).toBe(6);
    queryAsked.value = undefined;
    await until('the blank', () => guesses.value?.query === 6);
  });

  it('move the focus to the strongest link after typing, and keep a chosen cell otherwise', async () => {
    update({ cell: { row: 2, column: 4 } });
    expect(query.value).toBe(2);
    setText('The boy kicked the [MASK].', undefined);
    expect(view.value.cell).toBe(anywhere);
    await shown('The boy kicked the [MASK].');
    expect(cellInFocus.value).toEqual({ row: 5, column: 3 });
    setText('A dog barks.', undefined);
    const { made } = await shown('A dog barks.');
    const { row, column } = cellInFocus.value;
    expect(row).not.toBe(column);
    expect([row, column].every((token) => token > 0 && token < run.value!.tokens.length - 1)).toBe(true);
    expect(made.kind).toBe('word');
    setText('', undefined);
    expect((await shown('')).made.list, 'there is no word').toEqual([]);
  });

  it('are the answers of a classifier, or none', async () => {
    const classifier = await openNamed(direct, 'sentiment');
    model.value = classifier;
    view.value = { ...initialView, model: 'sentiment', text: 'a happy child' };
    await until('the answers', () => guesses.value?.run.model === classifier && guesses.value.run.view.text === 'a happy child');
    const { list, kind } = guesses.value!;
    expect([kind, list.length]).toEqual(['answer', 2]);
    expect(list.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1, 4);
    model.value = await openNamed(direct, 'tiny-mpnet-mean');
    await until('the other model', () => guesses.value?.run.model === model.value);
    expect(guesses.value!.list).toEqual([]);
  });
});

describe('the steps', () => {
  afterEach(() => {
    showStep(0);
    vi.useRealTimers();
  });

  it('are played once, with time to read, and the last one stays', () => {
    vi.useFakeTimers();
    playSteps(true);
    const seen = [stepShown.value];
    let passed = 0;
    for (; isPlaying.value && passed < 30_000; passed += 100) {
      vi.advanceTimersByTime(100);
      if (seen.at(-1) !== stepShown.value) seen.push(stepShown.value);
    }
    expect(seen).toEqual([1, 2, 3, 4, 5]);
    expect([stepCaptions.length, stepCount]).toEqual([5, 5]);
    expect(Math.abs(passed - 22_000)).toBeLessThan(300);
    vi.advanceTimersByTime(10_000);
    expect(stepShown.value).toBe(5);
  });

  it('wait for the visitor without motion, or once one was chosen', () => {
    vi.useFakeTimers();
    playSteps(false);
    vi.advanceTimersByTime(5000);
    expect([stepShown.value, isPlaying.value]).toEqual([1, false]);
    playSteps(true);
    showStep(4);
    vi.advanceTimersByTime(5000);
    expect([stepShown.value, isPlaying.value]).toEqual([4, false]);
  });
});
