import { describe, expect, it } from 'vitest';
import { blockedOf, cellIn, gather, placesOf, sourcesOf, type Shown, type TokenLine } from '../src/state/map_view.ts';
import { initialView } from '../src/state/view.ts';

const line: TokenLine = {
  texts: ['Don’t film it.'],
  tokens: ['[CLS]', 'don', '’', 't', 'fi', '##lm', 'it', '.', '[SEP]'],
  offsets: [null, [0, 3], [3, 4], [4, 5], [6, 8], [8, 10], [11, 13], [13, 14], null],
};
const labels = (of: TokenLine, merge = true) => placesOf(of, 'hide', merge).map(({ label }) => label);

describe('the source text of a token', () => {
  it('is defined for tokens of the text and undefined for special tokens', () => {
    expect(sourcesOf(line)).toEqual([undefined, 0, 0, 0, 0, 0, 0, 0, undefined]);
  });
  it('is found in pairs with different numbers of separators and with an empty first text', () => {
    const pair = (offsets: TokenLine['offsets']) => sourcesOf({ texts: ['a', 'b'], tokens: offsets.map(() => 't'), offsets });
    expect(pair([null, [0, 1], null, [0, 1], null])).toEqual([undefined, 0, undefined, 1, undefined]);
    expect(pair([null, [0, 1], null, null, [0, 1], null])).toEqual([undefined, 0, undefined, undefined, 1, undefined]);
    expect(pair([null, null, [0, 1], null])).toEqual([undefined, undefined, 1, undefined]);
    expect(pair([[0, 1], [2, 3], [0, 1], [2, 3]])).toEqual([0, 0, 1, 1]); // prettier-ignore
  });
});

describe('merging subwords into words', () => {
  it('joins WordPiece tokens that start with ##, but not punctuation', () => {
    expect(labels(line)).toEqual(['don', '’', 't', 'film', 'it', '.']);
    expect(labels(line, false)).toEqual(['don', '’', 't', 'fi', '##lm', 'it', '.']);
  });
  it('joins byte-level BPE tokens without a space before them, including tokens that share a letter', () => {
    const bpe: TokenLine = {
      texts: ['unheard of é!'],
      tokens: ['un', 'heard', 'Ġof', 'ĠÃ', '©', '!'],
      offsets: [
        [0, 2],
        [2, 7],
        [7, 10],
        [11, 12],
        [11, 12],
        [12, 13],
      ],
    };
    expect(labels(bpe)).toEqual(['unheard', 'Ġof', 'é', '!']);
  });
  it('keeps Chinese characters and tokens of different texts apart', () => {
    const offsets: TokenLine['offsets'] = [[0, 1], [1, 2], [0, 1], [1, 2]]; // prettier-ignore
    expect(labels({ texts: ['我爱', 'xy'], tokens: ['我', '爱', 'x', '##y'], offsets })).toEqual(['我', '爱', 'xy']);
    expect(labels({ texts: ['ab', 'xy'], tokens: ['a', '##b', 'x', '##y'], offsets })).toEqual(['ab', 'xy']);
  });
});

describe('the displayed matrix', () => {
  const weights = Float32Array.from([0.5, 0.25, 0.125, 0.125, 0.25, 0.25, 0.25, 0.25, 0, 0.5, 0.25, 0.25, 1, 0, 0, 0]);
  const small: TokenLine = { texts: ['film'], tokens: ['[CLS]', 'fi', '##lm', '[SEP]'], offsets: [null, [0, 2], [2, 4], null] };
  it('is the weight array of the model if no option is set', () => {
    expect(gather(weights, 4, placesOf(small, 'show', false), false)).toBe(weights);
  });
  it('sums columns and averages rows of merged tokens, so that rows still sum to 1', () => {
    const merged = gather(weights, 4, placesOf(small, 'show', true), false);
    expect([...merged]).toEqual([0.5, 0.375, 0.125, 0.125, 0.625, 0.25, 1, 0, 0]);
  });
  it('omits hidden special tokens and rescales rows to sum to 1 on request', () => {
    const places = placesOf(small, 'hide', false);
    expect([...gather(weights, 4, places, false)]).toEqual([0.25, 0.25, 0.5, 0.25]);
    const sums = gather(weights, 4, places, true);
    expect(sums[0]! + sums[1]!).toBeCloseTo(1, 6);
    expect(sums[2]).toBeCloseTo(2 / 3, 6);
  });
  it('keeps zeros in a row that has no weight left', () => {
    const onlySpecial = new Float32Array(16);
    onlySpecial[4] = 1;
    expect([...gather(onlySpecial, 4, placesOf(small, 'renormalise', false), true)]).toEqual([0, 0, 0, 0]);
  });
  it('marks a cell as blocked if the masks block all of its token pairs', () => {
    const tokens = placesOf(small, 'show', false);
    expect(blockedOf(initialView, 4, tokens)).toBeUndefined();
    expect([...blockedOf({ ...initialView, causal: true }, 4, tokens)!]).toEqual([0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0, 0]);
    // A word is visible if any of its token pairs is.
    expect([...blockedOf({ ...initialView, causal: true }, 4, placesOf(small, 'hide', true))!]).toEqual([0]);
    expect([...blockedOf({ ...initialView, padding: [3], drawn: [4] }, 4, tokens)!]).toEqual([0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1]);
  });
});

it('the cell in focus contains the selected tokens, or is the nearest visible cell', () => {
  const places = placesOf(line, 'hide', true);
  const placeOf = new Int32Array(9).fill(-1);
  places.forEach(({ tokens }, p) => tokens.forEach((i) => (placeOf[i] = p)));
  const shown = { places, placeOf } as unknown as Shown;
  expect(cellIn(shown, { row: 5, column: 6 })).toEqual({ row: 3, column: 4 });
  expect(cellIn(shown, { row: 0, column: 8 })).toEqual({ row: 0, column: 5 });
  expect(cellIn(shown, { row: 400, column: 1 })).toEqual({ row: 5, column: 0 });
});
