import { describe, expect, it } from 'vitest';
import {
  changesOf,
  hasChanges,
  hidingIn,
  noChanges,
  partsOf,
  summaryOf,
  toggled,
  type LayerChanges,
  type ModelChanges,
} from '../src/state/changes.ts';
import { initialView } from '../src/state/view.ts';

const layer: LayerChanges = { layer: 1, factor: 2, score: 'dot', dropout: 0.5, seed: 3, edits: [{ name: 'X', index: 4, value: 2 }] };
const all: ModelChanges = {
  causal: true,
  padding: [1, 2],
  drawn: [7],
  off: [3, 4],
  weights: [{ name: 'a.weight', index: 1, value: 3 }],
  change: layer,
};
const names = {
  layer: 1,
  heads: 4,
  token: (index: number) => `“${index}”`,
  edit: ({ name, value }: { name: string; value: number }) => `${name}: ${value}`,
};

describe('changes of the model', () => {
  it('are listed in words, each with the update that undoes it', () => {
    expect(partsOf(all, names)).toEqual([
      { what: 'later tokens hidden', without: { causal: false } },
      { what: '“1” hidden as padding', without: { padding: [2] } },
      { what: '“2” hidden as padding', without: { padding: [1] } },
      { what: '1 cell blocked by the drawn mask', without: { drawn: [] } },
      { what: 'layer 1, head 4 switched off', without: { off: [4] } },
      { what: 'layer 2, head 1 switched off', without: { off: [3] } },
      { what: 'a.weight: 3', without: { weights: [] } },
      { what: 'score scale × 2', without: { change: { ...layer, factor: 1 } } },
      { what: 'score function dot', without: { change: { ...layer, score: 'scaled_dot' } } },
      { what: 'dropout 0.5, seed 3', without: { change: { ...layer, dropout: 0 } } },
      { what: 'X: 2', without: { change: { ...layer, edits: [] } } },
    ]);
    expect(partsOf({ ...noChanges, change: layer }, { ...names, layer: 0 })).toEqual([
      { what: 'changes in layer 2; one here replaces them', without: { change: undefined } },
    ]);
    const scaled: LayerChanges = { ...layer, score: 'scaled_dot', dropout: 0, edits: [] };
    expect(partsOf({ ...noChanges, change: scaled }, names), 'undoing the only change removes the change of the layer').toEqual([
      { what: 'score scale × 2', without: { change: undefined } },
    ]);
  });

  it('have a short summary', () => {
    expect(summaryOf(all, 4)).toEqual([
      'causal mask',
      '2 tokens hidden',
      '1 cell masked',
      'heads 1.4, 2.1 off',
      '1 weight edited',
      'layer 2: scale × 2',
      'layer 2: plain products',
      'layer 2: dropout 0.5',
      'layer 2: 1 number of its input edited',
    ]);
    expect(summaryOf({ ...noChanges, off: [0] }, 4)).toEqual(['head 1.1 off']);
    expect(summaryOf({ ...noChanges, off: [0, 1, 2, 3, 4, 5, 6] }, 4)).toEqual(['heads (7) off']);
    expect(summaryOf(noChanges, 4)).toEqual([]);
  });

  it('are extracted from a view without its other settings', () => {
    expect(changesOf(initialView)).toEqual(noChanges);
    expect(changesOf({ ...initialView, ...all })).toEqual(all);
    expect([hasChanges(initialView), hasChanges({ ...noChanges, change: layer })]).toEqual([false, true]);
  });

  it('explain why a query does not attend to a key', () => {
    const reasons = (row: number, column: number) =>
      hidingIn({ ...noChanges, causal: true, padding: [1], drawn: [2 * 3 + 1] }, 3).flatMap(({ reason, isHidden }) =>
        isHidden(row, column) ? [reason] : [],
      );
    expect(reasons(0, 2)).toEqual(['the key comes later, and the causal mask hides later keys']);
    expect(reasons(1, 1)).toEqual(['the key is hidden as padding']);
    expect(reasons(2, 1)).toEqual(['the key is hidden as padding', 'you blocked it in the drawn mask']);
    expect(reasons(2, 2)).toEqual([]);
  });

  it('keep lists sorted when a number is toggled', () => {
    expect([toggled([1, 3], 2), toggled([1, 2, 3], 2)]).toEqual([
      [1, 2, 3],
      [1, 3],
    ]);
  });
});
