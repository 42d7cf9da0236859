import type { Attn as Direct, TextModel as DirectModel } from 'attn';
import type { Attn } from 'attn/worker';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { largestDifference } from '../src/arithmetic/differences.ts';
import { answersWithout, poolingOf } from '../src/state/pooling.ts';
import { loadDirect, openModel } from './models.ts';

const texts = ['A happy person smiles.', 'Was it bad?', 'The film was not bad, it was good!'];

let attn: Attn;
let direct: Direct;
beforeAll(async () => ({ attn, direct } = await loadDirect()));
afterAll(() => direct?.dispose());

describe('answers with all heads switched on', () => {
  it.each([
    ['sentiment', 'mean', undefined],
    ['tiny-mpnet-mean', 'mean', undefined],
    ['tiny-bert-cls', 'cls', undefined],
    ['tiny-bert-multilabel', 'mean', undefined],
    ['tiny-bert-multilabel', 'mean', 'regression'],
    ['sentiment', 'mean', 'multi_label_classification'],
  ])('match embed and classify: model %s, pooling %s, problem type %s', async (name, pooling, problem) => {
    const of = await openModel(direct, name, undefined, problem === undefined ? {} : { problem_type: problem });
    expect(await poolingOf(of)).toBe(pooling);
    const { vectors, probabilities } = await answersWithout(attn, of, await of.text.tokenize(texts), []);
    const embedded = await of.text.embed(texts, { normalize: true });
    expect(vectors.dims).toEqual(embedded.dims);
    expect(largestDifference(vectors.data, embedded.data)).toBeLessThan(1e-6);
    expect(probabilities !== undefined).toBe(of.labels !== undefined);
    if (!of.labels) return;
    const classes = await of.text.classify(texts);
    const scores = classes.flatMap((each) => of.labels!.map((label) => each.find((one) => one.label === label)!.score));
    expect(largestDifference(probabilities!.data, Float32Array.from(scores))).toBeLessThan(1e-6);
  });

  it('use max pooling if the checkpoint specifies it', async () => {
    const ofMaximum = (text: DirectModel) =>
      new Proxy(text, {
        get: (target, name) => {
          const value = Reflect.get(target, name, target);
          if (name === 'embed') return (given: string[], options: object) => target.embed(given, { pooling: 'max', ...options });
          return typeof value === 'function' ? value.bind(target) : value;
        },
      });
    const of = await openModel(direct, 'tiny-mpnet-mean', ofMaximum);
    expect(await poolingOf(of)).toBe('max');
    const { vectors } = await answersWithout(attn, of, await of.text.tokenize(texts), []);
    expect(largestDifference(vectors.data, (await of.text.embed(texts, { normalize: true })).data)).toBeLessThan(1e-6);
  });
});

it('each head that is switched off changes the answers in a different way', async () => {
  const of = await openModel(direct, 'sentiment');
  const encoding = await of.text.tokenize(texts);
  const without = async (off: readonly number[]) => (await answersWithout(attn, of, encoding, off)).probabilities!.data.join();
  const answers = await Promise.all([[], [0], [1], [7], [0, 7]].map(without));
  expect(new Set(answers).size).toBe(5);
});
