import { batch, computed, signal } from '@preact/signals';
import { download } from '../export/download.ts';
import { firstOf, fromParams, oneOf, property, toParams, type Params, type Properties } from '../state/address.ts';
import { openFolder } from '../state/load_model.ts';
import { model } from '../state/model.ts';
import { run } from '../state/run.ts';
import { update } from '../state/view.ts';
import { connect, type Client } from './client.ts';
import type { Looks, Progress, Report, Saved } from './messages.ts';
import { changes, runsOf, settingsFor, settingsFromParams, settingsToParams, type Settings } from './settings.ts';
import type { Norm, Point } from './trainer.ts';
import { taskWords } from './words.ts';

export type Phase = 'idle' | 'starting' | 'running' | 'paused';

export interface RunShown {
  readonly settings: Settings;
  readonly points: readonly Point[];
  readonly loss: number;
  readonly norms: readonly Norm[];
  readonly parameters: number;
  readonly fingerprint: string | undefined;
}

export const settings = signal<Settings>(settingsFor('reverse'));
/** The change of the second run; '' without one. */
export const beside = signal('');
/** As typed. */
export const example = signal<string | undefined>(undefined);
/** By name in the address. */
export const paces: Readonly<Record<string, { readonly label: string; readonly stepsPerSecond: number }>> = {
  full: { label: 'maximum', stepsPerSecond: Infinity },
  '50': { label: '50 steps per second', stepsPerSecond: 50 },
  '10': { label: '10 steps per second', stepsPerSecond: 10 },
};
export const pace = signal('full');

export const phase = signal<Phase>('idle');
export const step = signal(0);
export const stepsPerSecond = signal<number | undefined>(undefined);
export const runs = signal<readonly RunShown[]>([]);
export const moments = signal<readonly number[]>([]);
export const moment = signal<number | undefined>(undefined);
export const looks = signal<Looks | undefined>(undefined);
export const refused = signal<string | undefined>(undefined);
export const failure = signal<string | undefined>(undefined);
/** Announced by screen readers. */
export const spoken = signal('');

/** The trained model that was last opened above. */
export const opened = signal<{ readonly name: string; readonly head: Saved['head'] } | undefined>(undefined);

let client: Client | undefined;
/** Reports of earlier starts are dropped. */
let starts = 0;
/** Receivers of the requested files, by the number of the request. */
const receivers = new Map<number, (saved: Saved) => void>();
let requests = 0;
/** Milliseconds between announcements. */
const sayEvery = 5000;
let lastSaid = 0;

const wantsStillness = () => matchMedia('(prefers-reduced-motion: reduce)').matches;
/** Milliseconds between pictures with reduced motion. */
const stillFor = 700;

function whenDrawn(callback: () => void): void {
  if (wantsStillness()) setTimeout(callback, stillFor);
  else requestAnimationFrame(callback);
}

const percent = (share: number) => `${Math.round(100 * share)} %`;

function say(isLast: boolean): void {
  const now = performance.now();
  const [first] = runs.peek();
  const point = first?.points.at(-1);
  if (!first || !point || (!isLast && now - lastSaid < sayEvery)) return;
  lastSaid = now;
  const all = runs.peek().map(({ points, loss }) => `loss ${loss.toFixed(2)}, ${percent(points.at(-1)!.held.accuracy)} right`);
  spoken.value = `${isLast ? 'Paused. ' : ''}Step ${step.peek()}, ${all.join('; the second run: ')}`;
}

/** In place: a long run reports thousands of times, and copies would take more time than the drawing. */
function extended(points: readonly Point[] | undefined, by: readonly Point[]): readonly Point[] {
  if (!points) return by;
  (points as Point[]).push(...by);
  return points;
}

function hearProgress(progress: Progress): void {
  batch(() => {
    const { state } = progress;
    step.value = progress.step;
    moments.value = progress.moments;
    if (state === 'running' && Number.isFinite(progress.stepsPerSecond)) stepsPerSecond.value = progress.stepsPerSecond;
    const wanted = runsOf(settings.value, beside.value);
    const before = runs.peek();
    runs.value = progress.runs.map((each, i) => ({ ...each, settings: wanted[i]!, points: extended(before[i]?.points, each.points) }));
    if (state === 'paused' || (state === 'started' && phase.value === 'starting')) phase.value = 'paused';
    if (state !== 'started') say(state === 'paused');
  });
  whenDrawn(() => client?.tell({ kind: 'drawn' }));
}

function hear(report: Report): void {
  switch (report.kind) {
    case 'ready':
      break;
    case 'progress':
      if (phase.value !== 'idle' && report.id === starts) hearProgress(report);
      break;
    case 'looks':
      // While an earlier snapshot is selected, newer maps are dropped.
      if (phase.value !== 'idle' && report.id === starts && (moment.value === undefined || report.step === moment.value)) looks.value = report;
      break;
    case 'refused':
      if (report.example === example.value) refused.value = report.why;
      break;
    case 'saved':
      receivers.get(report.request)?.(report);
      receivers.delete(report.request);
      break;
    case 'failed':
      client?.end();
      client = undefined;
      forget();
      failure.value = report.why;
  }
}

/** Resets the results, which belong to other settings. */
function forget(): void {
  client?.tell({ kind: 'pause' });
  receivers.clear();
  batch(() => {
    phase.value = 'idle';
    step.value = 0;
    stepsPerSecond.value = undefined;
    runs.value = [];
    moments.value = [];
    moment.value = undefined;
    looks.value = undefined;
  });
}

export function choose(changed: Partial<Settings>): void {
  const isOther = changed.task !== undefined && changed.task !== settings.value.task;
  forget();
  batch(() => {
    settings.value = isOther ? settingsFor(changed.task) : { ...settings.value, ...changed };
    if (isOther) {
      example.value = undefined;
      refused.value = undefined;
    }
  });
}

export function chooseBeside(change: string): void {
  forget();
  beside.value = change;
}

export function startAgain(): void {
  forget();
  batch(() => {
    phase.value = 'starting';
    failure.value = undefined;
    spoken.value = '';
  });
  client ??= connect(hear);
  client.tell({
    kind: 'start',
    id: ++starts,
    runs: runsOf(settings.value, beside.value),
    example: example.value ?? taskWords[settings.value.task].example,
  });
}

function go(until: number): void {
  if (phase.value === 'idle') startAgain();
  batch(() => {
    moment.value = undefined;
    phase.value = 'running';
  });
  lastSaid = performance.now();
  client!.tell({ kind: 'go', until, stepsPerSecond: paces[pace.value]!.stepsPerSecond });
}

/** Trains to the end of the run or, from there, until paused. */
export const train = (): void => go(step.value < settings.value.steps ? settings.value.steps : Infinity);
export const takeOneStep = (): void => go(step.value + 1);
export const pauseTraining = (): void => client?.tell({ kind: 'pause' });

export function choosePace(name: string): void {
  pace.value = name;
  if (phase.value === 'running') train();
}

const lookNow = () => {
  if (phase.value !== 'idle') client?.tell({ kind: 'look', step: moment.value, example: example.value });
};

export function lookAt(index: number): void {
  const all = moments.value;
  moment.value = index >= all.length - 1 ? undefined : all[index];
  lookNow();
}

export function setExample(text: string): void {
  batch(() => {
    example.value = text;
    refused.value = undefined;
  });
  lookNow();
}

export function another(): void {
  batch(() => {
    example.value = undefined;
    refused.value = undefined;
  });
  client?.tell({ kind: 'another' });
}

function withFiles(callback: (saved: Saved) => void): void {
  receivers.set(++requests, callback);
  client?.tell({ kind: 'save', request: requests, step: moment.value });
}

export const saveWeights = (): void =>
  withFiles(({ weights, step: at }) =>
    download(new Blob([weights], { type: 'application/octet-stream' }), `attn-${settings.value.task}-step-${at}.safetensors`),
  );

export const openAbove = (): void =>
  withFiles(({ folder, step: at, head }) => {
    const { task, causal, layers } = settings.value;
    const name = `trained here: ${task}, step ${at}`;
    const text = looks.value?.example ?? '';
    // int8 weights would differ from the trained ones.
    update({ dtype: 'float32' });
    void openFolder(name, folder, { text, pair: undefined, causal, layer: layers - 1, head: 0 }).then(() => {
      if (model.value?.name !== name) return;
      opened.value = { name, head };
      document.getElementById('sentence')?.scrollIntoView();
    });
  });

/** Includes changes made above; undefined if the model is not open or has a head. */
export const answersAbove = computed(() => {
  const [of, above] = [run.value, opened.value];
  if (!of || !above?.head || of.model.name !== above.name) return undefined;
  const { weight, bias, answers } = above.head;
  const { data, dims } = of.hiddenStates.at(-1)!;
  const [, length = 0, width = 0] = dims;
  return Array.from({ length }, (_, i) => {
    const logits = Array.from(bias, (start, c) => {
      let sum = start;
      for (let e = 0; e < width; ++e) sum += data[i * width + e]! * weight[c * width + e]!;
      return sum;
    });
    return answers[logits.indexOf(Math.max(...logits))]!;
  });
});

const longestExample = 300;
const properties: Properties<{ readonly beside: string; readonly example: string | undefined; readonly pace: string }> = {
  beside: property('beside', '', oneOf(...Object.keys(changes))),
  example: property<string | undefined>('example', undefined, {
    encode: (text) => text ?? '',
    decode: (text) => text.slice(0, longestExample) || undefined,
  }),
  pace: property('pace', 'full', oneOf(...Object.keys(paces))),
};

export const trainToParams = (): Params => [
  ...settingsToParams(settings.value),
  ...toParams(properties, { beside: beside.value, example: example.value, pace: pace.value }, 'train.', longestExample),
];

export function trainFromParams(params: URLSearchParams): void {
  const now = settingsFromParams(params);
  const also = { ...firstOf(properties), ...fromParams(properties, params, 'train.') };
  if (JSON.stringify([now, also.beside]) !== JSON.stringify([settings.value, beside.value])) forget();
  batch(() => {
    settings.value = now;
    beside.value = also.beside;
    example.value = also.example;
    pace.value = also.pace;
  });
}
