import { beforeEach, describe, expect, it } from 'vitest';
import {
  linesToParams,
  readLines,
  linesFromParams,
  neighboursOf,
  largestOf,
  chosenLine,
  initialLines,
  furthest,
  linesText,
  faultOf,
  type Lines,
} from '../src/state/compare_texts.ts';
import {
  faultOfMap,
  faultOfWord,
  initialWords,
  readable,
  readWords,
  updateWords,
  wordsFromParams,
  wordsToParams,
  wordsView,
} from '../src/state/words.ts';

const none = new URLSearchParams();
beforeEach(() => {
  linesFromParams(none);
  wordsFromParams(none);
});

describe('compared texts', () => {
  it('are the lines that are not empty, at least one and at most 30', () => {
    expect(readLines(' a b \n\n\tc\r\n ')).toEqual(['a b', 'c']);
    expect(faultOf([])).toContain('Enter texts');
    expect(faultOf(['a'])).toBeUndefined();
    expect(faultOf(Array(30).fill('a'))).toBeUndefined();
    expect(faultOf(Array(31).fill('a'))).toContain('at most 30');
    expect(faultOf(readLines(initialLines))).toBeUndefined();
  });

  it('are saved in the address unless they are the initial ones', () => {
    expect(linesToParams()).toEqual([]);
    linesText.value = 'a & b\nc=d\ne#f';
    chosenLine.value = 2;
    const params = new URLSearchParams(new URLSearchParams(linesToParams().map(([name, text]) => [name, text])).toString());
    linesFromParams(none);
    expect(linesText.value).toBe(initialLines);
    linesFromParams(params);
    expect([linesText.value, chosenLine.value]).toEqual(['a & b\nc=d\ne#f', 2]);
    for (const line of ['-3', 'x', '', '1e999']) {
      linesFromParams(new URLSearchParams({ line }));
      expect(chosenLine.value, line).toBe(0);
    }
  });

  it('have neighbours sorted by current similarity, without the text itself', () => {
    const matrix = (...data: readonly number[]) => ({ similarity: { data: Float32Array.from(data), dims: [3, 3] }, probabilities: undefined });
    const all = matrix(1, 0.5, 0.25, 0.5, 1, 0, 0.25, 0, 1);
    const of = { texts: ['a', 'b', 'c'], all, without: undefined } as unknown as Lines;
    expect(neighboursOf(of, 0)).toEqual([
      { line: 1, before: 0.5, after: 0.5 },
      { line: 2, before: 0.25, after: 0.25 },
    ]);
    const without = matrix(1, 0.125, 0.75, 0.125, 1, 0, 0.75, 0, 1);
    expect(neighboursOf({ ...of, without }, 0).map(({ line, before, after }) => [line, before, after])).toEqual([
      [2, 0.25, 0.75],
      [1, 0.5, 0.125],
    ]);
    expect(furthest(all.similarity, without.similarity)).toEqual({ index: 2, difference: 0.5 });
    expect(largestOf(all.similarity)).toEqual([0, 1, 2]);
  });
});

describe('words', () => {
  it('are separated by spaces, commas, semicolons and line breaks, without duplicates', () => {
    expect(readWords(' good, bad;good\nking ')).toEqual(['good', 'bad', 'king']);
    expect(faultOfMap(['a', 'b'])).toBeDefined();
    expect(faultOfMap(readWords(initialWords.map))).toBeUndefined();
    expect(faultOfMap(Array.from({ length: 25 }, (_, i) => `w${i}`))).toContain('25');
  });

  it('have an explanation if they are not in the vocabulary', () => {
    expect(faultOfWord({ text: 'king', id: 7, pieces: ['king'] })).toBeUndefined();
    expect(faultOfWord({ text: '', id: undefined, pieces: [] })).toBe('Enter a word.');
    expect(faultOfWord({ text: 'kingly', id: undefined, pieces: ['king', '##ly'] })).toContain('king + ##ly');
    expect(faultOfWord({ text: '☃', id: undefined, pieces: ['[UNK]'] })).toContain('does not know');
    expect(['Ġking', '▁king', '##ly', '▁'].map(readable)).toEqual(['king', 'king', '##ly', '▁']);
  });

  it('are restored from the address, except for invalid values', () => {
    expect(wordsToParams()).toEqual([]);
    updateWords({ word: 'a&b', analogy: ['x', 'y', 'z'], neighbours: 0 });
    const wanted = wordsView.value;
    const params = new URLSearchParams(wordsToParams().map(([name, text]) => [name, text]));
    expect([...params.keys()]).toEqual(['words.word', 'words.analogy', 'words.neighbours']);
    wordsFromParams(none);
    expect(wordsView.value).toEqual(initialWords);
    wordsFromParams(params);
    expect(wordsView.value).toEqual(wanted);
    wordsFromParams(new URLSearchParams({ 'words.analogy': 'a:b', 'words.neighbours': '7' }));
    expect(wordsView.value).toEqual(initialWords);
  });
});
