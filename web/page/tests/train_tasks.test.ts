import { describe, expect, it } from 'vitest';
import { isHeld, puzzles } from '../src/train/puzzles.ts';
import { hash, Random } from '../src/train/random.ts';
import {
  changes,
  faultOf,
  fitted,
  settingsFromParams,
  ranges,
  runsOf,
  settingsFor,
  taskIds,
  settingsToParams,
  type Settings,
} from '../src/train/settings.ts';
import { first, ignored, written, type Example, type Task } from '../src/train/task.ts';
import { Moments } from '../src/train/moments.ts';
import { overlap } from '../src/train/maps.tsx';
import { axisOf } from '../src/train/curve.tsx';
import { taskWords } from '../src/train/words.ts';
import { readReviews, reviewsBytes, taskOf } from './training_runs.ts';

const draws = (task: Task, held: boolean, count = 200): readonly Example[] => {
  const random = new Random(5);
  return Array.from({ length: count }, () => task.draw(random, held));
};
const withoutFirst = (task: Task, ids: readonly number[]) => ids.filter((id) => task.symbols[id] !== first);

/** Independent solutions. */
const solutions: Readonly<Record<string, (symbols: readonly string[]) => readonly (string | undefined)[]>> = {
  reverse: (symbols) => symbols.map((_, i) => symbols.at(-1 - i)),
  previous: (symbols) => [undefined, ...symbols.slice(0, -1)],
  sort: (symbols) => [...symbols].sort(),
  brackets(symbols) {
    let rest = symbols.join('');
    const answers: (string | undefined)[] = symbols.map(() => undefined);
    const places = symbols.map((_, i) => i);
    // Repeatedly removes an innermost pair.
    for (let at = rest.search(/[([{]\?/); at >= 0; at = rest.search(/[([{]\?/)) {
      answers[places[at + 1]!] = { '(': ')', '[': ']', '{': '}' }[rest[at]!]!;
      rest = rest.slice(0, at) + rest.slice(at + 2);
      places.splice(at, 2);
    }
    return answers;
  },
  frequent(symbols) {
    const sorted = [...new Set(symbols)].sort((a, b) => symbols.filter((each) => each === b).length - symbols.filter((each) => each === a).length);
    return [sorted[0]];
  },
};

describe.each(puzzles.map((task) => [task.id, task] as const))('the task %s', (id, task) => {
  it('finds the right labels for drawn and typed examples', () => {
    for (const example of draws(task, false)) {
      const symbols = withoutFirst(task, example.ids).map((each) => task.symbols[each]!);
      expect(example.labels.map((label) => (label === ignored ? undefined : task.answers[label]))).toEqual(solutions[id]!(symbols));
      expect(example.ids.length).toBe(task.length);
      expect(task.read(written(task, example.ids))).toEqual(example);
      expect(task.read(symbols.join(''))).toEqual(example);
    }
  });

  it('never trains on held-out examples, and its first example is held out', () => {
    expect(draws(task, true).every(({ ids }) => isHeld(withoutFirst(task, ids)))).toBe(true);
    expect(draws(task, false).some(({ ids }) => isHeld(withoutFirst(task, ids)))).toBe(false);
    const example = task.read(taskWords[id].example!) as Example;
    expect(isHeld(withoutFirst(task, example.ids))).toBe(true);
  });

  it('explains why an example is invalid', () => {
    expect(task.read('%')).toMatch(/^“%” is not one of/);
    expect(task.read(task.symbols[0]!)).toMatch(/^It has 1 symbols and needs/);
  });

  it('expects attention rows that sum to 1, or to 0 if nothing is expected', () => {
    const [{ ids }] = draws(task, true, 1) as [Example];
    const expected = task.expected!(ids);
    for (let i = 0; i < ids.length; ++i) {
      const sum = expected.subarray(i * ids.length, (i + 1) * ids.length).reduce((a, b) => a + b, 0);
      expect(sum === 0 || Math.abs(sum - 1) < 1e-6).toBe(true);
    }
    expect(overlap(expected, expected, ids.length)).toBeCloseTo(1, 6);
  });
});

describe('invalid examples', () => {
  it('are rejected if brackets do not match or letters are equally frequent', () => {
    expect(taskOf('brackets').read('?(?(?(?(?(?(')).toMatch(/do not match/);
    expect(taskOf('frequent').read('aaaaabbbbbc')).toMatch(/equally frequent/);
  });
});

describe('the film reviews', () => {
  const task = readReviews();
  it('take at most 200 kB, and few are both held out and trained on', () => {
    expect(reviewsBytes().length).toBeLessThan(200e3);
    expect(task.answers).toEqual(['negative', 'positive']);
    const seen = new Set(draws(task, false, 20000).map(({ ids }) => ids.join()));
    expect(seen.size).toBeGreaterThan(3000);
    expect(draws(task, true, 2000).filter(({ ids }) => seen.has(ids.join())).length, 'reviews both held out and trained on').toBeLessThan(10);
  });

  it('are lowercased, split into known words and truncated', () => {
    const { ids } = draws(task, true, 1)[0]!;
    expect(ids[0]).toBe(task.symbols.indexOf(first));
    const known = task.read('A good FILM, zyzzyva!') as Example;
    expect(known.ids.map((id) => task.symbols[id])).toEqual([first, 'a', 'good', 'film', ',', '[UNK]', '!']);
    expect((task.read('a '.repeat(100)) as Example).ids.length).toBe(task.length);
    expect(task.read('  ')).toBe('Write a few words.');
  });
});

describe('random numbers from a seed', () => {
  it('are reproducible, evenly distributed and different for each seed and stream', () => {
    const draw = (seed: number, stream?: number) => {
      const random = new Random(seed, stream);
      return Array.from({ length: 1000 }, () => random.below(10));
    };
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1).slice(0, 6)).toEqual([8, 3, 9, 4, 2, 8]);
    for (const other of [draw(2), draw(1, 1), draw(2 ** 32 + 1)]) expect(other).not.toEqual(draw(1));
    for (let digit = 0; digit < 10; ++digit) expect(draw(3).filter((each) => each === digit).length).toBeGreaterThan(60);
  });

  it('hash to different bits if one bit changes', () => {
    const bits = (a: number, b: number) => [...((a ^ b) >>> 0).toString(2)].filter((bit) => bit === '1').length;
    expect(bits(hash([1, 2, 3]), hash([1, 2, 2]))).toBeGreaterThan(6);
  });
});

describe('settings in an address', () => {
  const roundTrip = (of: Settings) => settingsFromParams(new URLSearchParams(settingsToParams(of).map(([name, value]) => [name, value])));
  it('are restored, and the defaults of a task are not written', () => {
    for (const task of taskIds) {
      expect(settingsToParams(settingsFor(task)).length).toBe(task === 'reverse' ? 0 : 1);
      const other: Settings = {
        task,
        layers: 2,
        heads: 4,
        width: 64,
        positions: 'sinusoidal',
        scale: false,
        initialisation: 'normal',
        std: 0.3,
        dropout: 0.15,
        causal: true,
        optimiser: 'sgd',
        learningRate: 0.05,
        batch: 8,
        steps: 50,
        seed: 77,
      };
      expect(roundTrip(other)).toEqual(other);
    }
  });

  it.each([
    'train.layers=3',
    'train.heads=0',
    'train.width=1e9',
    'train.positions=up',
    'train.scale=yes',
    'train.batch=',
    'train.seed=-1',
    'train.task=x',
  ])('keep their defaults if %s is invalid', (text) => expect(settingsFromParams(new URLSearchParams(text))).toEqual(settingsFor('reverse')));

  it('have a width that suits the number of heads', () => {
    for (let heads = 1; heads <= 4; ++heads)
      for (let width = ranges.width[0]; width <= ranges.width[1]; ++width) {
        const fit = fitted({ ...settingsFor('reverse'), heads, width });
        expect(faultOf('width', fit.width, heads), `${width} of ${heads}`).toBeUndefined();
      }
    expect(faultOf('width', 32, 3)).toMatch(/multiple of 6/);
    expect(faultOf('layers', 1.5)).toMatch(/whole number/);
  });

  it('differ in one value between the two runs', () => {
    for (const id of Object.keys(changes))
      for (const task of taskIds) {
        const [one, other, ...more] = runsOf(settingsFor(task), id);
        const differ = Object.keys(one!).filter((name) => one![name as keyof Settings] !== other![name as keyof Settings]);
        expect([differ.length, more.length], `${id} of ${task}: ${differ.join()}`).toEqual([1, 0]);
      }
    expect(runsOf(settingsFor('sort'), '')).toHaveLength(1);
  });
});

describe('stored moments of a run', () => {
  it('are few, evenly spaced, and include the first and the newest', () => {
    const moments = new Moments<string>(8, 10);
    for (let step = 0; step <= 1000; ++step) if (moments.wants(step)) moments.add(step, `at ${step}`);
    moments.add(1003, 'at 1003');
    const { steps } = moments;
    expect(steps.length).toBeLessThanOrEqual(9);
    expect([steps[0], steps.at(-1)]).toEqual([0, 1003]);
    const gaps = new Set(steps.slice(1, -1).map((step, i) => step - steps[i]!));
    expect(gaps.size).toBe(1);
    expect(moments.at(1003)?.value).toBe('at 1003');
    expect(moments.at(steps[2]!)?.value).toBe(`at ${steps[2]}`);
    expect(moments.at(steps[2]! + 1)?.value).toBe(`at ${steps[2]}`);
  });
});

describe('chart axes', () => {
  it.each([
    [2.3, 4, 3, 1],
    [1, 4, 1, 0.25],
    [400, 3, 400, 200],
  ])('reach %d with about %d marks', (most, marks, end, every) => {
    expect(axisOf(most, marks)).toEqual({ end, every });
  });
  it('have an end above 0 if there is no data', () => expect(axisOf(0).end).toBeGreaterThan(0));
});
