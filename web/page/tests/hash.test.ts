import { describe, expect, it } from 'vitest';
import { parseMatrixText } from '../src/formats/matrix_text.ts';
import { fromHash, longestHash, toHash } from '../src/state/hash.ts';
import { initialLab, labToParams } from '../src/state/lab.ts';
import { initialView, type View } from '../src/state/view.ts';

/** Ratio of the quickest times for 16 times the length and for the length. */
function growth(run: (length: number) => unknown, length: number): number {
  const quickest = (of: number) =>
    Math.min(
      ...Array.from({ length: 5 }, () => {
        const start = performance.now();
        run(of);
        return performance.now() - start;
      }),
    );
  return quickest(16 * length) / Math.max(quickest(length), 0.05);
}

describe('the address', () => {
  it('preserves edits, including parameter names that contain separators', () => {
    const weights = [
      { name: 'a@1=b.weight', index: 7, value: -1.5 },
      { name: 'x', index: 0, value: 1e-9 },
    ];
    const view: View = {
      ...initialView,
      weights,
      change: { layer: 0, factor: 2, score: 'dot', dropout: 0, seed: 3, edits: [{ name: 'X', index: 2, value: 4 }] },
    };
    expect({ ...initialView, ...fromHash(toHash(view)) }).toEqual(view);
  });

  it.each(['@1=2', 'a@=2', 'a@1=', 'a@1', 'a=1', 'a@-1=2', 'a@1.5=2', 'a@1=x', 'a@1=1e39', `a@${'9'.repeat(400)}=1`, '=@', '@', ''])(
    'ignores the invalid edit %s',
    (text) => {
      expect(fromHash(new URLSearchParams({ weights: text }).toString())).toEqual({ weights: [] });
    },
  );

  it('ignores numbers with too many digits', () => {
    const many = '9'.repeat(400);
    const { layer, off, change } = fromHash(`layer=${many}&off=1.${many}&change=1,1,dot,0,${many}`);
    expect({ layer, off, seed: change?.seed }).toEqual({ layer: 0, off: [1], seed: 0 });
  });

  it('is ignored if it exceeds the maximum length', () => {
    const text = 'a'.repeat(longestHash - 'text='.length);
    expect(fromHash(`#text=${text}`)).toEqual({ text });
    expect(fromHash(`#text=${text}a`)).toEqual({});
  });
});

describe('parsing time', () => {
  const asEdits = (edits: string) => fromHash(`weights=${edits}`);
  it.each<readonly [string, number, (length: number) => unknown]>([
    ['an edit with many separators', 480, (length) => asEdits(`a${'@1='.repeat(length / 3)}`)],
    ['many edits', 480, (length) => asEdits('X@1=2;'.repeat(length / 6))],
    ['a long number followed by a letter', 4000, (length) => expect(() => parseMatrixText(`[[${'1'.repeat(length)}x]]`)).toThrow()],
    [
      'much whitespace',
      4000,
      (length) => labToParams({ ...initialLab, fields: { ...initialLab.fields, Q: { text: `[[1${' '.repeat(length)}2]]` } } }),
    ],
  ])('does not grow quadratically for %s', (_, length, run) => {
    expect(growth(run, length)).toBeLessThan(80);
  });
});
