import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Attn as Direct } from 'attn';
import type { Attn } from 'attn/worker';
import { engine, model } from '../src/state/model.ts';
import { follow, run } from '../src/state/run.ts';
import { initialView, update, view } from '../src/state/view.ts';
import { addStates, fromHash, linkHash } from '../src/state/hash.ts';
import { storyStates } from '../src/state/story_states.ts';
import type { Command, Report } from '../src/train/messages.ts';
import { Training } from '../src/train/serve.ts';
import { settingsFor } from '../src/train/settings.ts';
import * as state from '../src/train/state.ts';
import { aMoment, until } from './state.ts';
import { loadTraining, readReviews } from './training_runs.ts';

/** Commands sent to the worker; `hearing` injects its reports. */
let told: Command[] = [];
let hearing: ((report: Report) => void) | undefined;
let connections = 0;
let attn: Direct;
vi.mock('../src/train/client.ts', () => ({
  connect(hear: (report: Report) => void) {
    ++connections;
    hearing = hear;
    const training = new Training(
      attn,
      async () => readReviews(),
      (report) => hear(report),
    );
    return {
      tell(command: Command) {
        told.push(command);
        void training.hear(command);
      },
      end: () => void training.hear({ kind: 'pause' }),
    };
  },
}));

const files: string[] = [];
vi.mock('../src/export/download.ts', () => ({ download: (_: Blob, name: string) => files.push(name) }));

beforeAll(async () => {
  attn = await loadTraining();
  engine.value = attn as unknown as Attn;
  vi.stubGlobal('matchMedia', () => ({ matches: false }));
  vi.stubGlobal('requestAnimationFrame', (callback: () => void) => setTimeout(callback, 5));
  vi.stubGlobal('document', { getElementById: () => null });
  follow();
});
afterAll(() => {
  vi.unstubAllGlobals();
  attn.dispose();
});
beforeEach(() => {
  state.choose(settingsFor('reverse'));
  state.chooseBeside('');
  state.example.value = undefined;
  state.pace.value = 'full';
  told = [];
});

const paused = () => until('a pause', () => state.phase.value === 'paused');

describe('training on the page', () => {
  it('creates a worker on demand, starts with one press and pauses at the end of the run', async () => {
    expect([connections, state.phase.value]).toEqual([0, 'idle']);
    state.choose({ steps: 30 });
    state.train();
    expect([connections, state.phase.value]).toEqual([1, 'running']);
    await until('the run', () => state.runs.value.length > 0);
    await paused();
    expect(state.step.value).toBe(30);
    expect(state.runs.value[0]!.points.map(({ step }) => step)).toEqual([0, 10, 20, 30]);
    expect(state.spoken.value).toMatch(/^Paused\. Step 30, loss \d\.\d\d, \d+ % right$/);
    expect(state.looks.value!.example).toBe('2 7 1 8 2 8 1 8');
    state.train();
    await until('more steps', () => state.step.value > 40);
    state.pauseTraining();
    await paused();
  });

  it('draws rarely if the visitor prefers reduced motion', async () => {
    const drawnWhile = async (matches: boolean) => {
      vi.stubGlobal('matchMedia', () => ({ matches }));
      state.startAgain();
      await paused();
      told = [];
      state.train();
      await until('some steps', () => state.step.value > 0 || told.length > 1);
      await aMoment(400);
      state.pauseTraining();
      await paused();
      return told.filter(({ kind }) => kind === 'drawn').length;
    };
    const still = await drawnWhile(true);
    expect(still).toBeLessThan(3);
    expect(await drawnWhile(false)).toBeGreaterThan(still);
  });

  it('takes one step at a time', async () => {
    state.takeOneStep();
    await paused();
    expect(state.step.value).toBe(1);
    state.takeOneStep();
    expect(state.phase.value).toBe('running');
    await paused();
    expect(state.step.value).toBe(2);
  });

  it('restarts from the same seed with the same result, even during a run', async () => {
    state.choose({ steps: 10 });
    state.train();
    await paused();
    const first = state.runs.value[0]!.fingerprint;
    state.choose({ steps: 10 });
    state.train();
    await until('some steps', () => state.step.value > 0);
    state.startAgain();
    await until('the new models', () => state.phase.value === 'paused' && state.step.value === 0);
    expect(state.runs.value[0]!.points).toHaveLength(1);
    state.train();
    await until('the end of the run', () => state.phase.value === 'paused' && state.step.value === 10);
    expect(state.runs.value[0]!.fingerprint).toBe(first);
  });

  it('ignores reports from an earlier start', async () => {
    state.takeOneStep();
    await paused();
    const { id } = told.find((command) => command.kind === 'start')!;
    const [looks, all] = [state.looks.value, state.runs.value];
    state.train();
    hearing!({ kind: 'progress', id: id - 1, state: 'paused', step: 999, stepsPerSecond: 1, moments: [999], runs: [] });
    hearing!({ ...looks!, id: id - 1, example: 'old' });
    expect([state.phase.value, state.step.value, state.runs.value, state.looks.value]).toEqual(['running', 1, all, looks]);
    state.pauseTraining();
    await paused();
  });

  it('discards the trained model and its later reports when a setting changes', async () => {
    state.train();
    await until('some steps', () => state.step.value > 3);
    state.choose({ heads: 2 });
    expect([state.phase.value, state.step.value, state.runs.value.length, state.looks.value]).toEqual(['idle', 0, 0, undefined]);
    await aMoment();
    expect([state.phase.value, state.step.value]).toEqual(['idle', 0]);
    state.choose({ task: 'brackets' });
    expect(state.settings.value).toEqual(settingsFor('brackets'));
  });

  it('trains a second run with one setting changed', async () => {
    state.chooseBeside('positions');
    state.choose({ steps: 20 });
    state.train();
    await paused();
    expect(state.runs.value.map(({ settings }) => settings.positions)).toEqual(['learned', 'none']);
    expect(state.spoken.value).toMatch(/right; the second run: loss/);
    expect(state.looks.value!.runs).toHaveLength(2);
  });

  it('shows earlier moments and returns to the current one', async () => {
    state.choose({ steps: 40 });
    state.train();
    await paused();
    const now = state.looks.value!.runs[0]!.attentions;
    expect(state.moments.value).toEqual([0, 10, 20, 30, 40]);
    state.lookAt(1);
    await until('step 10', () => state.looks.value!.step === 10);
    expect(state.looks.value!.runs[0]!.attentions).not.toEqual(now);
    state.lookAt(4);
    expect(state.moment.value).toBeUndefined();
    await until('the current moment', () => state.looks.value!.step === 40);
    expect(state.looks.value!.runs[0]!.attentions).toEqual(now);
  });

  it('accepts another example, explains an invalid one and keeps the last valid one', async () => {
    state.takeOneStep();
    await paused();
    state.setExample('1 2 3 4 5 6 7 8');
    await until('the typed example', () => state.looks.value!.example === '1 2 3 4 5 6 7 8');
    state.setExample('1 2 3');
    await until('the reason for the refusal', () => state.refused.value);
    expect(state.refused.value).toBe('It has 3 symbols and needs 8.');
    expect(state.looks.value!.example).toBe('1 2 3 4 5 6 7 8');
    state.another();
    expect([state.example.value, state.refused.value]).toEqual([undefined, undefined]);
    await until('another example', () => state.looks.value!.example !== '1 2 3 4 5 6 7 8');
  });

  it('adds points without copying the earlier ones', async () => {
    state.choose({ steps: 30 });
    state.takeOneStep();
    await paused();
    const [{ points }] = state.runs.value as [state.RunShown];
    state.train();
    await paused();
    expect(state.runs.value[0]!.points).toBe(points);
    expect(points.map(({ step }) => step)).toEqual([0, 10, 20, 30]);
  });

  it('saves a file for each request, but none of a run that was discarded', async () => {
    state.takeOneStep();
    await paused();
    state.saveWeights();
    state.saveWeights();
    await until('both files', () => files.length === 2);
    state.saveWeights();
    state.choose({ heads: 2 });
    state.takeOneStep();
    await paused();
    state.saveWeights();
    await until('the third file', () => files.length === 3);
    await aMoment();
    expect(files).toEqual(Array(3).fill('attn-reverse-step-1.safetensors'));
  });

  it('explains why it stopped and starts again on the next press', async () => {
    state.train();
    await until('some steps', () => state.step.value > 0);
    hearing!({ kind: 'failed', why: 'planted' });
    expect([state.failure.value, state.phase.value]).toEqual(['planted', 'idle']);
    const before = connections;
    state.takeOneStep();
    await paused();
    expect([connections - before, state.failure.value, state.step.value]).toEqual([1, undefined, 1]);
  });
});

describe('the address', () => {
  addStates(storyStates);
  it('stores and restores the settings, second run, example and pace', () => {
    state.choose({ task: 'sort' });
    state.choose({ heads: 4, positions: 'sinusoidal', seed: 12 });
    state.chooseBeside('scale');
    state.example.value = '3 1 4 1 5 9 2 6';
    state.pace.value = '10';
    const hash = linkHash();
    expect(fromHash(hash)).toEqual({ model: 'sentiment' });
    const { task, heads, positions, seed } = state.settings.value;
    state.choose(settingsFor('reverse'));
    state.trainFromParams(new URLSearchParams(hash));
    expect(state.settings.value).toMatchObject({ task, heads, positions, seed });
    expect([state.beside.value, state.example.value, state.pace.value]).toEqual(['scale', '3 1 4 1 5 9 2 6', '10']);
    state.trainFromParams(new URLSearchParams('train.beside=constructor&train.pace=toString'));
    expect([state.settings.value, state.beside.value, state.pace.value]).toEqual([settingsFor('reverse'), '', 'full']);
  });

  it('leaves a run alone if its settings are unchanged', async () => {
    state.takeOneStep();
    await paused();
    state.trainFromParams(new URLSearchParams(''));
    expect(state.step.value).toBe(1);
    state.trainFromParams(new URLSearchParams('train.heads=2'));
    expect(state.step.value).toBe(0);
  });
});

describe('the trained model opened in the page', () => {
  it('computes the same as during training, and its answers depend on the switched-off heads', async () => {
    view.value = { ...initialView, off: [3], causal: true };
    state.choose({ steps: 160 });
    state.train();
    await paused();
    const { answers, attentions } = state.looks.value!.runs[0]!;
    state.openAbove();
    await until('the model', () => model.value?.name === 'trained here: reverse, step 160' && run.value?.model === model.value && state.opened.value);
    expect(view.value).toMatchObject({ text: '2 7 1 8 2 8 1 8', causal: false, off: [], layer: 0, head: 0, dtype: 'float32' });
    expect([model.value!.layers, model.value!.heads, model.value!.dtype]).toEqual([1, 1, 'float32']);
    const above = run.value!.attentions[0]!.data;
    expect(Math.max(...attentions[0]!.map((weight, i) => Math.abs(weight - above[i]!)))).toBeLessThan(1e-4);
    expect(state.answersAbove.value).toEqual(answers);
    expect(answers.join(' ')).toBe('8 1 8 2 8 1 7 2');
    update({ off: [0] });
    await until('the answers without the head', () => state.answersAbove.value?.join(' ') !== answers.join(' '));
  });
});
