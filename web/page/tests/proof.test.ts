import { readFileSync } from 'node:fs';
import type { Attn as Direct, EncoderTrace } from 'attn';
import type { Attn } from 'attn/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { largestDifference } from '../src/differences.ts';
import type { LoadedModel } from '../src/state/model.ts';
import { compare, readReference, tolerance } from '../src/state/reference.ts';
import { recompute } from '../src/state/self_check.ts';
import { inTestdata, loadDirect, openModel } from './models.ts';

let attn: Attn;
let direct: Direct;
beforeAll(async () => ({ attn, direct } = await loadDirect()));
afterAll(() => direct.dispose());

const reference = () => readReference(attn, Uint8Array.from(readFileSync(inTestdata('page_reference.safetensors'))).buffer);

it('the sentiment classifier gives the numbers that PyTorch has given', async () => {
  const { rows, texts } = await compare(await openModel(direct, 'sentiment'), await reference());
  expect(texts).toBe(7);
  expect(rows.map(({ what }) => what)).toEqual([
    'Embeddings',
    'Attention weights of layer 1',
    'Attention weights of layer 2',
    'Hidden states after layer 1',
    'Hidden states after layer 2',
    'Logits of the classifier',
  ]);
  for (const row of rows) {
    expect(row.passes, row.what).toBe(true);
    expect(row.difference, row.what).toBeLessThan(row.tolerance);
  }
  expect(rows.at(-1)!.count).toBe(2 * texts);
});

it('a classifier with one number written over does not, from there on', async () => {
  const of = await openModel(direct, 'sentiment');
  const name = 'bert.encoder.layer.1.output.dense.bias';
  const { data, dims } = await of.text.getParameter(name);
  data[0]! += 1e-3;
  await of.text.loadStateDict({ [name]: { data, dims } }, { strict: false });
  const { rows } = await compare(of, await reference());
  expect(rows.filter(({ passes }) => !passes).map(({ what }) => what)).toEqual(['Hidden states after layer 2', 'Logits of the classifier']);
});

it('what is allowed grows with the largest value, not below 1', () => {
  expect(tolerance(1e-7, [0.5, -0.25])).toBeCloseTo(1.2e-6, 12);
  expect(tolerance(1e-7, [0.5, -3])).toBeCloseTo(3.6e-6, 12);
});

const names = [
  'sentiment',
  'tiny-bert-legacy',
  'tiny-distilbert',
  'tiny-roberta',
  'tiny-xlm-roberta',
  'tiny-mpnet',
  'tiny-modernbert',
  'tiny-modernbert-2024',
];

/** By step, how far the layers of a model are from themselves computed step by step. */
async function stepByStep(of: LoadedModel): Promise<Record<string, number>> {
  const inputs = await of.text.tokenize('A happy person smiles.');
  const differences: Record<string, number> = {};
  for (let layer = 0; layer < of.layers; ++layer) {
    const { trace, hiddenStates } = await of.text.forward(inputs, { outputHiddenStates: true, trace: { layers: [layer] } });
    const own = trace!.get(layer) as Required<EncoderTrace>;
    await recompute(attn, of, layer, hiddenStates![layer]!, own, (what, made, traced) => {
      // As the page has it: of the largest value, where that is above 1.
      const size = traced.data.reduce((most, value) => (Number.isFinite(value) ? Math.max(most, Math.abs(value)) : most), 1);
      differences[what] = Math.max(differences[what] ?? 0, largestDifference(made.data, traced.data) / size);
    });
  }
  return differences;
}

it.each(names.flatMap((name) => [[name, 'float32'] as const, [name, 'int8'] as const]))(
  'every layer of %s as %s gives the same when it is computed step by step',
  async (name, dtype) => {
    const differences = await stepByStep(await openModel(direct, name, undefined, {}, dtype));
    expect(Object.keys(differences)).toEqual([
      'Softmax of the scores',
      'Attention from Q, K, V',
      'Q, K, V from X',
      'W_O',
      'Layer norms',
      'Feed-forward',
    ]);
    for (const [what, difference] of Object.entries(differences)) expect(difference, what).toBeLessThan(1e-6);
  },
);

it('int8 is not float32, and what is not rounded does not give its numbers', async () => {
  const of = await openModel(direct, 'sentiment', undefined, {}, 'int8');
  const differences = await stepByStep({ ...of, dtype: 'float32' });
  for (const what of ['Q, K, V from X', 'W_O', 'Feed-forward']) expect(differences[what], what).toBeGreaterThan(1e-4);
  const { rows } = await compare(of, await reference());
  expect(rows.every(({ passes }) => !passes)).toBe(true);
});
