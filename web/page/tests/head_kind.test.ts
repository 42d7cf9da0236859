import { describe, expect, it } from 'vitest';
import { headSummary, kindText, lookText } from '../src/model/head_kind.ts';

const length = 8;
const special = Array.from({ length }, (_, i) => i === 0 || i === length - 1);
/** Weights of `share` at column `to(row)`, the rest uniform. */
const looking = (to: (row: number) => number, share = 0.9) => {
  const weights = new Float32Array(length * length).fill((1 - share) / length);
  for (let i = 0; i < length; ++i) {
    const column = to(i);
    weights[i * length + Math.min(length - 1, Math.max(0, column))]! += share;
  }
  return weights;
};

describe('the kind of a head', () => {
  it.each([
    ['previous', (i: number) => i - 1],
    ['next', (i: number) => i + 1],
    ['self', (i: number) => i],
    ['separator', () => 0],
    ['separator', () => length - 1],
    ['mixed', () => 3],
  ] as const)('is %s if the weights have that pattern', (kind, to) => {
    expect(headSummary(looking(to), special).kind).toBe(kind);
  });
  it('is diffuse, with the entropy of a uniform distribution, if all weights are equal', () => {
    const { kind, entropy, shares } = headSummary(
      looking(() => 0, 0),
      special,
    );
    expect(kind).toBe('diffuse');
    expect(entropy).toBeCloseTo(Math.log(length), 5);
    expect(shares).toEqual({ previous: 0.125, next: 0.125, self: 0.125, separator: 0.25 });
  });
  it('counts a preceding special token both as previous and as separator', () => {
    const { shares } = headSummary(
      looking((i) => i - 1, 1),
      special,
    );
    expect(shares.previous).toBe(1);
    // Only the first of six words follows [CLS].
    expect(shares.separator).toBeCloseTo(1 / 6, 6);
  });
  it('has no shares for a text without words or tokens', () => {
    expect(headSummary(new Float32Array([0.5, 0.5, 0.5, 0.5]), [true, true])).toMatchObject({ kind: 'diffuse', shares: { self: 0, separator: 0 } });
    expect(headSummary(new Float32Array(0), []).entropy).toBe(0);
  });
  it('is described with its share', () => {
    expect(
      kindText(
        headSummary(
          looking((i) => i),
          special,
        ),
      ),
    ).toBe('mostly the token itself, 91 %');
    expect(
      kindText(
        headSummary(
          looking(() => 3),
          special,
        ),
      ),
    ).toMatch(/^different tokens for different queries, on average about 1\.\d per query$/);
  });
  it('is described as the predicate of a sentence', () => {
    expect(
      lookText(
        headSummary(
          looking((i) => i),
          special,
        ),
      ),
    ).toBe('attends mostly to the token itself: 91 % of the weight');
    expect(
      lookText(
        headSummary(
          looking(() => 3),
          special,
        ),
      ),
    ).toMatch(/^attends from each token to different ones; the weight of a row spreads over about 1\.\d tokens$/);
  });
});
