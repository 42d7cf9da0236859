import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Attn as Direct, TextModel } from 'attn';
import { choicesIn, cosines, meanRows, mutualPairs } from '../src/arithmetic/alignment.ts';
import { isMultilingual } from '../src/model/kind.ts';
import {
  alignFromParams,
  aligned,
  alignment,
  alignToParams,
  alignView,
  defaultLayer,
  faultOfSentence,
  layerToAlign,
  mostWords,
  sentences,
  strongestPair,
  suggestionFor,
  updateAlign,
  type Alignment,
} from '../src/state/align.ts';
import { model } from '../src/state/model.ts';
import { follow, run } from '../src/state/run.ts';
import { update } from '../src/state/view.ts';
import { open, openNamed, until } from './state.ts';

const tensor = (...rows: readonly (readonly number[])[]) => ({ data: Float32Array.from(rows.flat()), dims: [rows.length, rows[0]!.length] });
const words = (...tokens: readonly (readonly number[])[]) => tokens.map((each) => ({ tokens: each }));

describe('word alignment', () => {
  it('averages the rows of the tokens of each word and leaves out other rows', () => {
    const rows = { data: Float32Array.of(9, 9, 1, 2, 3, 6, -1, 0, 9, 9), dims: [1, 5, 2] };
    expect(meanRows(rows, words([1, 2], [3]))).toEqual(tensor([2, 4], [-1, 0]));
  });

  // By hand: |(3,4)| = 5, |(5,12)| = 13, |(8,-6)| = 10.
  const first = tensor([3, 4], [8, -6], [0, 0]);
  const second = tensor([5, 12], [4, -3], [-6, -8], [0, 2]);
  const byHand = [
    [63 / 65, 0, -1, 0.8],
    [-32 / 130, 1, 0, -0.6],
    [0, 0, 0, 0],
  ];

  it('computes cosines, which are 0 for rows of zeros', () => {
    const { data, dims } = cosines(first, second);
    expect(dims).toEqual([3, 4]);
    byHand.flat().forEach((value, i) => expect(data[i], String(i)).toBeCloseTo(value, 6));
  });

  it('pairs words that choose each other', () => {
    const choices = choicesIn(cosines(first, second));
    expect(choices).toEqual({ ofRow: [0, 1, 0], ofColumn: [0, 1, 1, 0] });
    expect(mutualPairs(choices)).toEqual([
      { row: 0, column: 0 },
      { row: 1, column: 1 },
    ]);
    // The best column of row 1 prefers row 0.
    expect(mutualPairs(choicesIn(tensor([0.9, 0.1], [0.8, 0.2])))).toEqual([{ row: 0, column: 0 }]);
    expect(mutualPairs(choicesIn(tensor([0.9, 0.1], [0.8, 0.2], [0.7, 0.3])))).toEqual([{ row: 0, column: 0 }]);
  });

  it('first shows the most similar pair of different words', () => {
    const of = (pairs: Alignment['pairs']) =>
      ({
        words: [
          ['The', 'man', '.'],
          ['the', 'woman', '.'],
        ],
        similarity: tensor([0.9, 0, 0], [0, 0.5, 0], [0, 0, 1]),
        pairs,
      }) as unknown as Alignment;
    const same = [0, 1, 2].map((i) => ({ row: i, column: i }));
    expect(strongestPair(of(same))).toEqual({ row: 1, column: 1 });
    expect(strongestPair(of([same[0]!, same[2]!]))).toEqual({ row: 2, column: 2 });
  });
});

describe('the settings of the alignment', () => {
  beforeEach(() => alignFromParams(new URLSearchParams()));

  it('compare layer 8 of 12 by default', () => {
    expect([12, 6, 3, 2, 1].map(defaultLayer)).toEqual([8, 4, 2, 1, 1]);
  });

  it('suggest a translation to multilingual models', () => {
    expect([
      { model_type: 'bert', vocab_size: 119547 },
      { model_type: 'xlm-roberta', vocab_size: 282 },
      { model_type: 'deberta-v2', vocab_size: 251000 },
    ].every(isMultilingual)).toBe(true); // prettier-ignore
    expect([{ model_type: 'bert', vocab_size: 30522 }, { model_type: 'deberta-v2', vocab_size: 128100 }, {}].some(isMultilingual)).toBe(false);
    const config = { model_type: 'bert', vocab_size: 119547 };
    expect(suggestionFor({ id: 'x', config })[1]).toBe('Langsam öffnete der alte Mann die Tür.');
    expect(suggestionFor({ id: 'x', config: {} })[1]).toMatch(/^Slowly, /);
  });

  it('are saved in the address if they differ from the suggestion', () => {
    expect(alignToParams()).toEqual([]);
    updateAlign({ first: 'a & b', layer: 0 });
    const wanted = alignView.value;
    const params = new URLSearchParams(alignToParams().map(([name, text]) => [name, text]));
    expect([...params.keys()]).toEqual(['align.first', 'align.layer']);
    alignFromParams(new URLSearchParams());
    expect(alignView.value.layer).toBeUndefined();
    alignFromParams(params);
    expect(alignView.value).toEqual(wanted);
    for (const layer of ['-1', 'x', '', '1e9']) {
      alignFromParams(new URLSearchParams({ 'align.layer': layer }));
      expect(alignView.value.layer, layer).toBeUndefined();
    }
  });

  it('state the fault of a sentence without words or with too many', () => {
    const of = (count: number) => faultOfSentence({ words: Array.from({ length: count }, () => ({ text: 'a', tokens: [0] })) });
    expect(of(0)).toBe('Enter a sentence.');
    expect(of(mostWords)).toBeUndefined();
    expect(of(mostWords + 1)).toContain('41');
  });
});

describe('the alignment of two sentences by a model', () => {
  let direct: Direct;
  let stop: () => void;
  beforeAll(async () => {
    ({ direct } = await open('sentiment'));
    follow();
    await until('the map', () => run.value?.model === model.value);
    stop = aligned.follow();
  });
  afterAll(() => {
    stop();
    direct.dispose();
  });
  beforeEach(() => alignFromParams(new URLSearchParams()));
  const shown = async () => {
    await until('the alignment', () => aligned.value.value?.sentences.every(({ text }, i) => text === sentences.value![i]));
    return alignment.value;
  };

  it('joins sub-words, leaves out special tokens and finds words of similar meaning', async () => {
    const of = (await shown())!;
    expect(of.words).toEqual([
      ['The', 'acting', 'is', 'wonderful', '.'],
      ['A', 'superb', 'performance', 'by', 'the', 'whole', 'cast', '.'],
    ]);
    expect(of.pairs.map(({ row, column }) => [of.words[0][row], of.words[1][column]])).toContainEqual(['wonderful', 'superb']);
    updateAlign({ first: 'An unputdownable film' });
    expect((await shown())!.words[0]).toEqual(['An', 'unputdownable', 'film']);
    expect(aligned.value.value!.sentences[0].words[1]!.tokens.length).toBeGreaterThan(1);
  });

  it('uses the chosen layer, at most the last', async () => {
    updateAlign({ first: 'film', second: 'film the film', layer: 9 });
    const of = (await shown())!;
    expect(layerToAlign.value).toBe(2);
    const text = model.value!.text as unknown as TextModel;
    const [a, b] = ['film', 'film the film'].map((each) => text.forward(text.tokenize(each), { outputHiddenStates: true }).hiddenStates![2]!);
    // [CLS] is at place 0.
    const width = a!.dims[2]!;
    const [x, y] = [a!.data.subarray(width, 2 * width), b!.data.subarray(3 * width, 4 * width)];
    const dot = (p: Float32Array, q: Float32Array) => p.reduce((sum, value, i) => sum + value * q[i]!, 0);
    expect(of.similarity.data[2]).toBeCloseTo(dot(x, y) / Math.sqrt(dot(x, x) * dot(y, y)), 5);
    updateAlign({ layer: 0 });
    expect(alignment.value!.similarity.data[0], 'equal words at equal places have equal embeddings').toBeCloseTo(1, 6);
  });

  it('changes with heads that are off', async () => {
    updateAlign({ layer: 2 });
    const before = (await shown())!.similarity.data;
    update({ off: [0, 1, 2] });
    await until('another alignment', () => alignment.value!.similarity.data.some((value, i) => Math.abs(value - before[i]!) > 1e-3));
    update({ off: [] });
    await until('the alignment of before', () => alignment.value!.similarity.data.every((value, i) => Math.abs(value - before[i]!) < 1e-6));
  });

  it('is not computed for sentences without words, or with too many', async () => {
    updateAlign({ second: ' ' });
    expect(await shown()).toBeUndefined();
    expect(aligned.value.value!.sentences.map(faultOfSentence)).toEqual([undefined, 'Enter a sentence.']);
    updateAlign({ second: 'good '.repeat(41) });
    expect(await shown()).toBeUndefined();
    expect(aligned.failure.value).toBeUndefined();
  });

  it('maps the atoms of a reaction without joining them', async () => {
    model.value = await openNamed(direct, 'reactions');
    await until('the map', () => run.value?.model === model.value);
    await until('the atoms', () => alignment.value?.words[1][0] === 'C');
    const of = alignment.value!;
    expect(of.words[1].join(' ')).toBe('C N C c 1 c c c c c 1');
    expect(of.pairs.map(({ row, column }) => [of.words[0][row], of.words[1][column]])).toContainEqual(['N', 'N']);
  });
});
