import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Attn, Tensor } from 'attn';
import { folderOf } from '../src/train/checkpoint.ts';
import { factorOf, Learner, rootOf } from '../src/train/learner.ts';
import type { Command, Looks, Progress, Report, Saved } from '../src/train/messages.ts';
import { Training } from '../src/train/serve.ts';
import { settingsFor, type Settings } from '../src/train/settings.ts';
import { labelAt, written, type Example, type TaskId } from '../src/train/task.ts';
import { batchOf, fingerprint, largest, Trainer } from '../src/train/trainer.ts';
import { Random } from '../src/train/random.ts';
import { loadTraining, readReviews, settingsOf, taskOf } from './training_runs.ts';
import { until } from './state.ts';
import kept from '../../../testdata/page_training.json' with { type: 'json' };

let attn: Attn;
beforeAll(async () => {
  attn = await loadTraining();
});
afterAll(() => attn.dispose());

const trainer = (task: TaskId, changes: Partial<Settings> = {}) => new Trainer(attn, taskOf(task), settingsOf(task, changes));

const distance = (a: Tensor, b: Tensor) => a.data.reduce((most, value, i) => Math.max(most, Math.abs(value - b.data[i]!)), 0);

/** Returns the held-out score. */
function trained(of: Trainer, steps: number) {
  while (of.step < steps) of.take();
  return of.evaluate();
}

describe('training a model', () => {
  it('learns to reverse 99 % of sequences within 15 seconds, with the same bits as in every browser', () => {
    const start = performance.now();
    const { steps, fingerprint: expected } = kept;
    const run = trainer('reverse', { steps });
    const { accuracy } = trained(run, steps);
    const seconds = (performance.now() - start) / 1000;
    expect(accuracy).toBeGreaterThanOrEqual(0.99);
    expect(seconds).toBeLessThan(15);
    // wasm-tests/page/train.test.mjs checks it in browsers.
    expect(fingerprint(run.learner.state())).toBe(expected);
    run.dispose();
  });

  it('fails to reverse without positions, because the order of tokens is lost', () => {
    const run = trainer('reverse', { positions: 'none' });
    const { accuracy, loss } = trained(run, 150);
    expect(accuracy).toBeLessThan(0.05);
    expect(loss).toBeGreaterThan(1.5);
    run.dispose();
  });

  it.each<readonly [TaskId, number, number]>([
    ['previous', 160, 0.99],
    ['sort', 160, 0.5],
    ['brackets', 60, 0.2],
    ['frequent', 100, 0.95],
    ['reviews', 60, 0.5],
  ])('improves the answers in the task %s', (task, steps, least) => {
    const run = trainer(task);
    const before = run.evaluate();
    const after = trained(run, steps);
    expect(after.accuracy).toBeGreaterThanOrEqual(least);
    expect(after.loss).toBeLessThan(before.loss);
    run.dispose();
  });

  it.each<Partial<Settings>>([
    { optimiser: 'sgd', learningRate: 0.1 },
    { optimiser: 'adam' },
    { initialisation: 'xavier_uniform', heads: 4 },
    { initialisation: 'kaiming_uniform', layers: 2 },
    { initialisation: 'normal', std: 0.1 },
    { positions: 'sinusoidal', width: 16 },
    { dropout: 0.2, causal: true },
  ])('reduces the loss with %o', (changes) => {
    const run = trainer('reverse', changes);
    const before = run.evaluate().loss;
    expect(trained(run, 40).loss).toBeLessThan(before);
    run.dispose();
  });

  it('gives the same weights for the same seed and different ones for another', () => {
    const of = (seed: number) => {
      const run = trainer('reviews', { seed });
      trained(run, 3);
      const made = fingerprint(run.learner.state());
      run.dispose();
      return made;
    };
    expect(of(1)).toBe(of(1));
    expect(of(1)).not.toBe(of(2));
  });
});

describe('a model without score scaling', () => {
  const without = settingsOf('reverse', { scale: false, heads: 2 });
  it('has scores that are not divided by √D', () => {
    const task = taskOf('reverse');
    const scaled = new Learner(attn, task, { ...without, scale: true });
    const state = scaled.state();
    const plain = new Learner(attn, task, without);
    const batch = batchOf(task, [task.draw(new Random(1), true)]);
    const [words, places] = ['word', 'position'].map((name) => state.get(`${name}_embeddings.weight`)!.data) as [Float32Array, Float32Array];
    const x = Float32Array.from({ length: 8 * 32 }, (_, i) => words[batch.ids[Math.floor(i / 32)]! * 32 + (i % 32)]! + places[i]!);
    const mha = new attn.MultiHeadAttention({ embedDim: 32, numHeads: 2, scale: 1 });
    const prefix = 'encoder.layers.0.self_attn.';
    mha.loadStateDict(new Map([...state].filter(([name]) => name.startsWith(prefix)).map(([name, tensor]) => [name.slice(prefix.length), tensor])));
    const norm = attn.layerNorm({ data: x, dims: [1, 8, 32] }, undefined, undefined, 1e-12);
    const { weights } = mha.forward(norm, undefined, undefined, { needWeights: true });
    const { attentions } = plain.forward(batch, { outputAttentions: true });
    const differs = scaled.forward(batch, { outputAttentions: true }).attentions;
    expect(distance(attentions[0]!, weights!)).toBeLessThan(1e-5);
    expect(distance(differs[0]!, weights!)).toBeGreaterThan(0.1);
    for (const each of [scaled, plain, mha]) each.dispose();
  });

  it.each(['adamw', 'sgd'] as const)('takes steps of %s as if its weights were not enlarged', (optimiser) => {
    const settings = settingsOf('reverse', { scale: false, heads: 4, width: 64, optimiser });
    const root = rootOf(settings);
    expect(root).toBe(2);
    const run = new Trainer(attn, taskOf('reverse'), settings);
    const before = run.learner.state();
    run.take();
    const after = run.learner.state();
    // The first warm-up step uses a twentieth.
    const rate = settings.learningRate / 20;
    for (const [name, { data }] of run.learner.gradients()) {
      const factor = factorOf(name, root);
      // `own` and `slope` belong to the original weight. Adam's first step has the size of the rate for any gradient.
      const wrong = data.findIndex((gradient, i) => {
        const own = before.get(name)!.data[i]! / factor;
        const step = after.get(name)!.data[i]! / factor - own;
        const slope = gradient * factor;
        if (optimiser === 'adamw' && Math.abs(slope) < 1e-5) return false;
        const expected = optimiser === 'sgd' ? -rate * slope : -rate * (Math.sign(slope) + 0.01 * own);
        return Math.abs(step - expected) > 0.01 * Math.abs(expected) + 3e-7;
      });
      expect(wrong, name).toBe(-1);
    }
    run.dispose();
  });
});

describe('gradient norms', () => {
  it('cover all weights of each part, in forward order', () => {
    const run = trainer('brackets');
    run.take();
    const norms = run.norms();
    expect(norms.map(({ part }) => part)).toEqual([
      'embeddings',
      'layer 1, attention',
      'layer 1, feed-forward',
      'layer 2, attention',
      'layer 2, feed-forward',
      'classifier',
    ]);
    const all = Math.hypot(...norms.map(({ norm }) => norm));
    expect(all).toBeCloseTo(attn.clipGradNorm(run.learner.modules, Infinity), 4);
    run.dispose();
  });
});

describe('the folder of a trained model', () => {
  it.each<readonly [TaskId, Partial<Settings>]>([
    ['reverse', {}],
    ['reverse', { positions: 'none', scale: false }],
    ['brackets', { positions: 'sinusoidal' }],
    ['frequent', { layers: 2 }],
    ['reviews', { causal: true }],
  ])('opens as a DistilBERT with the same results: %s %o', async (id, changes) => {
    const task = taskOf(id);
    const settings = settingsOf(id, changes);
    const run = new Trainer(attn, task, settings);
    trained(run, 20);
    const example = task.draw(new Random(3), true);
    const { logits, attentions } = run.learner.forward(batchOf(task, [example]), { outputAttentions: true });
    const model = await attn.loadModel(folderOf(attn, task, settings, run.learner.state()));
    const encoding = model.tokenize(written(task, example.ids));
    expect([...encoding.inputIds]).toEqual(example.ids);
    const opened = model.forward(encoding, { outputAttentions: true, isCausal: settings.causal });
    const close = (a: Tensor, b: Tensor) => expect(distance(a, b)).toBeLessThan(1e-4);
    attentions.forEach((each, layer) => close(each, opened.attentions![layer]!));
    expect(model.labels).toEqual(task.isOne ? task.answers : undefined);
    if (task.isOne) close(logits, opened.logits!);
    else {
      const state = run.learner.state();
      const made = attn.linear({ ...opened.lastHiddenState }, state.get('classifier.weight')!, state.get('classifier.bias')!);
      close(logits, made);
    }
    run.dispose();
    model.dispose();
  });
});

function started() {
  const reports: Report[] = [];
  const training = new Training(
    attn,
    async () => readReviews(),
    (report) => {
      reports.push(report);
      // Confirms drawing, as the page does.
      if (report.kind === 'progress') void training.hear({ kind: 'drawn' });
    },
  );
  const last = <K extends Report['kind']>(kind: K) => reports.findLast((report): report is Extract<Report, { kind: K }> => report.kind === kind);
  return { training, reports, last, tell: (command: Command) => training.hear(command) };
}
const begin = (runs: readonly Settings[], example?: string): Command => ({ kind: 'start', id: 1, runs, example });
const go = (to: number): Command => ({ kind: 'go', until: to, stepsPerSecond: Infinity });

describe('the training worker', () => {
  it('reports a run, its moments and its answer, and pauses do not change the weights', async () => {
    const settings = settingsFor('reverse');
    const { reports, last, tell } = started();
    await tell(begin([settings], '2 7 1 8 2 8 1 8'));
    expect(last('progress')).toMatchObject({ id: 1, state: 'started', step: 0, moments: [0] });
    await tell(go(1));
    await tell(go(33));
    await tell(go(150));
    const end = last('progress')!;
    expect(end).toMatchObject({ state: 'paused', step: 150 });
    const straight = trainer('reverse');
    trained(straight, 150);
    expect(end.runs[0]!.fingerprint).toBe(fingerprint(straight.learner.state()));
    straight.dispose();
    const points = reports.flatMap((report) => (report.kind === 'progress' ? report.runs[0]!.points : []));
    expect(points.map(({ step }) => step)).toEqual(Array.from({ length: 16 }, (_, i) => 10 * i));
    const looks = last('looks')!;
    expect(looks.runs[0]!.answers.join(' ')).toBe('8 1 8 2 8 1 7 2');
    expect(looks.labels).toEqual(looks.runs[0]!.answers);
    await tell({ kind: 'look', step: 10, example: undefined });
    expect(last('looks')!.step).toBe(10);
    expect(last('looks')!.runs[0]!.attentions).not.toEqual(looks.runs[0]!.attentions);
    await tell({ kind: 'look', step: undefined, example: undefined });
    expect(last('looks')!.runs[0]!.attentions).toEqual(looks.runs[0]!.attentions);
  });

  it('stops when it is paused, and continues', async () => {
    const { last, tell } = started();
    await tell(begin([settingsFor('reverse')]));
    const running = tell(go(Infinity));
    await until('some steps', () => (last('progress')?.step ?? 0) > 5);
    await tell({ kind: 'pause' });
    await running;
    const { state, step } = last('progress')!;
    expect(state).toBe('paused');
    await tell(go(step + 1));
    expect(last('progress')!.step).toBe(step + 1);
  });

  it('starts again during a run and reports only the new one', async () => {
    const { reports, last, tell } = started();
    await tell(begin([settingsFor('reverse')]));
    const running = tell(go(Infinity));
    await until('some steps', () => (last('progress')?.step ?? 0) > 5);
    await tell({ ...begin([settingsFor('sort')]), id: 2 } as Command);
    await running;
    const of = reports.filter((report): report is Progress => report.kind === 'progress' && report.id === 2);
    expect(of.map(({ step }) => step)).toEqual(of.map(() => 0));
  });

  it('trains two runs from one seed', async () => {
    const settings = settingsFor('reverse');
    const { last, tell } = started();
    await tell(begin([settings, { ...settings, scale: false }]));
    await tell(go(20));
    const [one, other] = last('progress')!.runs;
    expect(one!.fingerprint).not.toBe(other!.fingerprint);
    const alone = trainer('reverse', { scale: false });
    trained(alone, 20);
    expect(other!.fingerprint).toBe(fingerprint(alone.learner.state()));
    alone.dispose();
    expect(last('looks')!.runs).toHaveLength(2);
  });

  it('limits the number of steps per second', async () => {
    const { last, tell } = started();
    await tell(begin([settingsFor('reverse')]));
    const start = performance.now();
    await tell({ kind: 'go', until: 10, stepsPerSecond: 50 });
    expect(performance.now() - start).toBeGreaterThan(150);
    expect(last('progress')!.step).toBe(10);
  });

  it('explains an invalid example and offers another held-out one', async () => {
    const { last, tell } = started();
    await tell(begin([settingsFor('frequent')], 'e a a c d a e a a e d'));
    expect(last('looks')).toMatchObject({ example: 'e a a c d a e a a e d', labels: ['a'] });
    await tell({ kind: 'look', step: undefined, example: 'e a' });
    expect(last('refused')).toMatchObject({ example: 'e a', why: 'It has 2 symbols and needs 11.' });
    expect(last('looks')!.example).toBe('e a a c d a e a a e d');
    await tell({ kind: 'another' });
    const { example, labels, tokens } = last('looks') as Looks;
    expect(example).not.toBe('e a a c d a e a a e d');
    expect(tokens[0]).toBe('[CLS]');
    const task = taskOf('frequent');
    expect(labels).toEqual((task.read(example) as Example).labels.map((label) => labelAt(task, label)));
  });

  it('saves the model of a moment under the names of stateDict()', async () => {
    const { last, tell } = started();
    await tell(begin([settingsFor('reverse')]));
    await tell(go(30));
    await tell({ kind: 'save', request: 1, step: 10 });
    const { weights, step, head, folder } = last('saved') as Saved;
    expect(step).toBe(10);
    const straight = trainer('reverse');
    trained(straight, 10);
    const state = straight.learner.state();
    const read = attn.parseSafetensors(weights);
    expect([...read.keys()].sort()).toEqual([...state.keys()].sort());
    expect(fingerprint(new Map([...state.keys()].map((name) => [name, read.get(name) as Tensor])))).toBe(fingerprint(state));
    straight.dispose();
    expect(Object.keys(folder).sort()).toEqual(['config.json', 'model.safetensors', 'tokenizer.json', 'tokenizer_config.json']);
    expect(head!.answers).toHaveLength(10);
  });
});

describe('the largest of each row', () => {
  it('is the first of equal values', () => expect([...largest(Float32Array.of(1, 3, 3, 0, -1, -2), 3)]).toEqual([1, 0]));
});
