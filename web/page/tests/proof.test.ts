import { readFileSync } from 'node:fs';
import type { Attn as Direct, EncoderTrace } from 'attn';
import type { Attn } from 'attn/worker';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { erf } from '../src/check/float64.ts';
import { checkLayer } from '../src/check/layer.ts';
import type { LoadedModel } from '../src/model/loaded.ts';
import { compare, readReference, tolerance, type Compared } from '../src/state/reference.ts';
import { noteInto, rowsToCheck } from '../src/state/self_check.ts';
import { checkedSteps, inTestdata, loadDirect, openModel } from './models.ts';

let attn: Attn;
let direct: Direct;
beforeAll(async () => ({ attn, direct } = await loadDirect()));
afterAll(() => direct?.dispose());

const reference = () => readReference(attn, Uint8Array.from(readFileSync(inTestdata('page_reference.safetensors'))).buffer);

it('the sentiment classifier matches the reference values from PyTorch', async () => {
  const { rows, texts } = await compare(await openModel(direct, 'sentiment'), await reference());
  expect(texts).toBe(7);
  expect(rows.map(({ what }) => what)).toEqual([
    'Embeddings',
    'Attention weights of layer 1',
    'Attention weights of layer 2',
    'Hidden states after layer 1',
    'Hidden states after layer 2',
    'Logits',
  ]);
  for (const row of rows) {
    expect(row.passes, row.what).toBe(true);
    expect(row.difference, row.what).toBeLessThan(row.tolerance);
  }
  expect(rows.at(-1)!.count).toBe(2 * texts);
});

it('the mask model with its int8 weights as float32 matches PyTorch, and with int8 arithmetic it does not', async () => {
  const { rows, texts } = await compare(await openModel(direct, 'masks'), await reference());
  expect(texts).toBe(2);
  expect(rows.map(({ passes }) => passes)).toEqual(Array(8).fill(true));
  const rounded = await compare(await openModel(direct, 'masks', undefined, {}, 'int8'), await reference());
  expect(rounded.rows.at(-1)!.passes).toBe(false);
});

it('a classifier with one edited number fails the PyTorch comparison from that layer on', async () => {
  const of = await openModel(direct, 'sentiment');
  const name = 'bert.encoder.layer.1.output.dense.bias';
  const { data, dims } = await of.text.getParameter(name);
  data[0]! += 1e-2;
  await of.text.loadStateDict({ [name]: { data, dims } }, { strict: false });
  const { rows } = await compare(of, await reference());
  expect(rows.filter(({ passes }) => !passes).map(({ what }) => what)).toEqual(['Hidden states after layer 2', 'Logits']);
});

it('the tolerance grows with the largest value above 1', () => {
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

/** Recomputes every layer in double precision. */
async function onceMore(of: LoadedModel, change: (trace: Required<EncoderTrace>) => void = () => undefined): Promise<readonly Compared[]> {
  const inputs = await of.text.tokenize('A happy person smiles.');
  const steps = new Map<string, Compared>();
  for (let layer = 0; layer < of.layers; ++layer) {
    const { trace, hiddenStates } = await of.text.forward(inputs, { outputHiddenStates: true, trace: { layers: [layer] } });
    const own = trace!.get(layer) as Required<EncoderTrace>;
    change(own);
    const rows = Array.from({ length: inputs.dims[1]! }, (_, i) => i);
    await checkLayer(
      { ...of, parameter: (name) => of.text.getParameter(name) },
      layer,
      hiddenStates![layer]!,
      own,
      rows,
      noteInto(steps),
      async () => undefined,
    );
  }
  return [...steps.values()];
}
const failing = (steps: readonly Compared[]) => steps.filter(({ passes }) => !passes).map(({ what }) => what);

it.each(names.flatMap((name) => [[name, 'float32'] as const, [name, 'int8'] as const]))(
  'every layer of %s as %s matches a double-precision computation without the module',
  async (name, dtype) => {
    const steps = await onceMore(await openModel(direct, name, undefined, {}, dtype));
    expect(steps.map(({ what }) => what)).toEqual(name === 'tiny-mpnet' ? checkedSteps.slice(1) : checkedSteps);
    for (const { what, passes, difference, tolerance } of steps) {
      expect(passes, `${what}: ${difference}, allowed ${tolerance}`).toBe(true);
      expect(tolerance, what).toBeLessThan(1e-4);
    }
  },
);

it.each([
  ['scores', 'Scores from Q and K'],
  ['probabilities', 'Softmax of the scores'],
  ['context', 'Weighted sum of the values'],
  ['k_proj', 'Q, K, V from X'],
  ['output', 'W_O'],
  ['norm2', 'Layer norms'],
  ['ff_output', 'Feed-forward'],
] as const)('an error of 2e-5 in %s is detected', async (name, what) => {
  const of = await openModel(direct, 'sentiment');
  const steps = await onceMore(of, (trace) => {
    const { data } = trace[name];
    data[7]! += 2e-5 * Math.max(1, Math.abs(data[7]!));
  });
  expect(failing(steps)).toContain(what);
});

it('a NaN fails the comparison', async () => {
  const of = await openModel(direct, 'sentiment');
  const steps = await onceMore(of, (trace) => (trace.ff_hidden.data[3] = NaN));
  expect(failing(steps)).toEqual(['Feed-forward']);
});

it('an int8 model fails both the float32 layer checks and the PyTorch comparison', async () => {
  const of = await openModel(direct, 'sentiment', undefined, {}, 'int8');
  expect(failing(await onceMore({ ...of, dtype: 'float32' }))).toEqual(['Q, K, V from X', 'W_O', 'Feed-forward']);
  const { rows } = await compare(of, await reference());
  expect(rows.every(({ passes }) => !passes)).toBe(true);
});

it('fewer rows are checked for a long text or a large model', () => {
  const config = { model_type: 'bert', num_hidden_layers: 12, num_attention_heads: 12, hidden_size: 768, intermediate_size: 3072 };
  expect(rowsToCheck({ config }, 12)).toEqual([0, 11]);
  const small = { ...config, num_hidden_layers: 2, hidden_size: 64, intermediate_size: 256 };
  expect(rowsToCheck({ config: small }, 256)).toEqual(Array.from({ length: 256 }, (_, i) => i));
  expect(rowsToCheck({ config: { ...config, num_hidden_layers: 48 } }, 9)).toEqual([0]);
});

it.each([
  [0.1, 0.1124629160182849],
  [-0.5, -0.5204998778130465],
  [1, 0.8427007929497149],
  [2.5, 0.999593047982555],
  [5, 0.9999999999984626],
  [9, 1],
])('erf(%f) matches its exact value to 14 digits', (x, expected) => {
  expect(erf(x)).toBeCloseTo(expected, 14);
});
