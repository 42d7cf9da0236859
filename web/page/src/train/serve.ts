/** Executes commands in slices, so that new commands are read soon. */
import { load, type Attn } from 'attn';
import { batchOf, fingerprint, largest, pace, Trainer, type Point } from './trainer.ts';
import { folderOf } from './checkpoint.ts';
import { Learner, type State } from './learner.ts';
import type { Command, Look, Progress, Report } from './messages.ts';
import { Moments } from './moments.ts';
import { puzzles } from './puzzles.ts';
import { Random } from './random.ts';
import { reviewsTask } from './reviews.ts';
import { labelAt, written, type Example, type Task } from './task.ts';

/** Milliseconds of work between two looks at the messages. */
const slice = 8;
/** Minimum milliseconds between reports. */
const reportEvery = 30;
/** Limits of the stored snapshots: bytes and number. */
const mostBytes = 24e6;
const mostMoments = 64;
const forExamples = 3;

interface Run {
  readonly trainer: Trainer;
  /** A second model for stored weights, so that the learning one stays undisturbed. */
  readonly viewer: Learner;
  readonly moments: Moments<State>;
  points: Point[];
  loss: number;
}

export class Training {
  readonly #attn: Attn;
  readonly #tell: (report: Report, move?: readonly ArrayBuffer[]) => void;
  readonly #reviews: () => Promise<Task>;
  #id = 0;
  /** Other commands wait for it. */
  #starting: Promise<void> = Promise.resolve();
  #task: Task | undefined;
  #runs: readonly Run[] = [];
  #example: Example | undefined;
  #written = '';
  #random = new Random(0);
  #until = 0;
  #stepsPerSecond = Infinity;
  #running = false;
  #isDrawn = true;
  #lastReport = 0;
  /** Time and step of the last `go`, for steps per second. */
  #since = { time: 0, step: 0 };

  constructor(attn: Attn, reviews: () => Promise<Task>, tell: (report: Report, move?: readonly ArrayBuffer[]) => void) {
    this.#attn = attn;
    this.#reviews = reviews;
    this.#tell = tell;
  }

  async hear(command: Command): Promise<void> {
    if (command.kind === 'start') return (this.#starting = this.#start(command));
    await this.#starting;
    switch (command.kind) {
      case 'go':
        this.#until = command.until;
        this.#stepsPerSecond = command.stepsPerSecond;
        this.#since = { time: performance.now(), step: this.#step };
        if (this.#running) break;
        this.#running = true;
        await this.#work();
        break;
      case 'pause':
        this.#until = this.#step;
        break;
      case 'look':
        if (command.example === undefined || this.#read(command.example)) this.#look(command.step);
        break;
      case 'another':
        if (this.#task) this.#show(this.#task.draw(this.#random, true));
        this.#look(undefined);
        break;
      case 'drawn':
        this.#isDrawn = true;
        break;
      case 'save':
        this.#save(command);
        break;
    }
  }

  get #step(): number {
    return this.#runs[0]?.trainer.step ?? 0;
  }

  async #start({ id: start, runs: all, example }: Extract<Command, { readonly kind: 'start' }>): Promise<void> {
    this.#until = 0;
    for (const { trainer, viewer } of this.#runs) {
      trainer.dispose();
      viewer.dispose();
    }
    this.#runs = [];
    const { task: id, seed } = all[0]!;
    const task = puzzles.find((each) => each.id === id) ?? (await this.#reviews());
    this.#id = start;
    this.#task = task;
    this.#random = new Random(seed, forExamples);
    this.#runs = all.map((settings) => {
      const trainer = new Trainer(this.#attn, task, settings);
      const count = Math.min(mostMoments, Math.floor(mostBytes / (4 * trainer.learner.parameterCount)));
      const run = { trainer, viewer: new Learner(this.#attn, task, settings), moments: new Moments<State>(count, pace), points: [], loss: NaN };
      run.moments.add(0, trainer.learner.state());
      return run;
    });
    for (const run of this.#runs) {
      const held = run.trainer.evaluate();
      run.points = [{ step: 0, training: held, held }];
      run.loss = held.loss;
    }
    if (example === undefined || !this.#read(example)) this.#show(task.draw(this.#random, true));
    this.#tellAll('started');
  }

  /** Trains until `#until`; messages are read in between. */
  async #work(): Promise<void> {
    while (this.#runs.length > 0 && this.#step < this.#until) {
      const start = performance.now();
      const due = this.#since.step + Math.ceil(((start - this.#since.time) / 1000) * this.#stepsPerSecond);
      while (this.#step < Math.min(this.#until, due) && performance.now() - start < slice) this.#takeStep();
      if (this.#isDrawn && performance.now() - this.#lastReport >= reportEvery) this.#tellAll('running');
      await (this.#step < due ? yieldToEventLoop() : new Promise((resolve) => setTimeout(resolve, 10)));
    }
    this.#running = false;
    for (const { trainer, moments } of this.#runs) moments.add(trainer.step, trainer.learner.state());
    this.#tellAll('paused');
  }

  #takeStep(): void {
    for (const run of this.#runs) {
      const { trainer, moments } = run;
      const training = trainer.take();
      run.loss = training.loss;
      if (trainer.step % pace !== 0) continue;
      run.points.push({ step: trainer.step, training, held: trainer.evaluate() });
      if (moments.wants(trainer.step)) moments.add(trainer.step, trainer.learner.state());
    }
  }

  #tellAll(state: Progress['state']): void {
    this.#report(state);
    this.#look(undefined);
  }

  #report(state: Progress['state']): void {
    this.#lastReport = performance.now();
    this.#isDrawn = false;
    const { time, step } = this.#since;
    const runs: Progress['runs'] = this.#runs.map((run) => {
      const { points, loss, trainer } = run;
      run.points = [];
      return {
        points,
        loss,
        norms: trainer.norms(),
        parameters: trainer.learner.parameterCount,
        fingerprint: state === 'running' ? undefined : fingerprint(trainer.learner.state()),
      };
    });
    this.#tell({
      kind: 'progress',
      id: this.#id,
      state,
      step: this.#step,
      stepsPerSecond: ((this.#step - step) * 1000) / (this.#lastReport - time),
      moments: this.#runs[0]?.moments.steps ?? [],
      runs,
    });
  }

  /** Makes the text the current example, if it is valid. */
  #read(text: string): boolean {
    const read = this.#task?.read(text);
    if (typeof read === 'string') this.#tell({ kind: 'refused', example: text, why: read });
    if (!read || typeof read === 'string') return false;
    this.#show(read, text);
    return true;
  }

  #show(example: Example, text = written(this.#task!, example.ids)): void {
    this.#example = example;
    this.#written = text;
  }

  #look(step: number | undefined): void {
    const [task, example] = [this.#task, this.#example];
    if (!task || !example) return;
    const { ids, labels } = example;
    const runs = this.#runs.map((run) => this.#lookAt(run, task, example, step));
    this.#tell({
      kind: 'looks',
      id: this.#id,
      step: step ?? this.#step,
      example: this.#written,
      tokens: ids.map((id) => task.symbols[id]!),
      labels: labels.map((label) => labelAt(task, label)),
      expected: task.expected?.(ids),
      runs,
    });
  }

  #lookAt({ trainer, viewer, moments }: Run, task: Task, example: Example, step: number | undefined): Look {
    const moment = step === undefined ? undefined : moments.at(step);
    if (moment) viewer.load(moment.value);
    const { logits, attentions } = (moment ? viewer : trainer.learner).forward(batchOf(task, [example]), { outputAttentions: true });
    const asked = example.labels.length === example.ids.length ? example.labels : undefined;
    return {
      attentions: attentions.map(({ data }) => data),
      answers: Array.from(largest(logits.data, task.answers.length), (answer, i) => labelAt(task, asked?.[i] ?? 0) && task.answers[answer]!),
    };
  }

  #save({ request, step }: Extract<Command, { readonly kind: 'save' }>): void {
    const [task, run] = [this.#task, this.#runs[0]];
    if (!task || !run) return;
    const { trainer, moments } = run;
    const moment = step === undefined ? undefined : moments.at(step);
    const state = moment?.value ?? trainer.learner.state();
    const at = moment?.step ?? trainer.step;
    const { settings } = trainer;
    const described = Object.fromEntries(Object.entries({ ...settings, step: at }).map(([name, value]) => [name, String(value)]));
    const weights = this.#attn.writeSafetensors(new Map(state), described);
    const head = task.isOne
      ? undefined
      : { weight: state.get('classifier.weight')!.data, bias: state.get('classifier.bias')!.data, answers: task.answers };
    this.#tell({ kind: 'saved', request, step: at, weights, folder: folderOf(this.#attn, task, settings, state), head });
  }
}

/** Lets messages in. A timer would wait several milliseconds each time. */
function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

export async function serve(reviewsUrl: string): Promise<void> {
  const tell = (report: Report) => postMessage(report);
  const fail = (error: unknown) => tell({ kind: 'failed', why: error instanceof Error ? error.message : String(error) });
  try {
    // Fixed-width SIMD on every machine: fused multiply-adds round differently.
    const attn = await load({ variant: 'simd' });
    let reviews: Promise<Task> | undefined;
    const fetchReviews = async () => {
      const response = await fetch(reviewsUrl);
      if (!response.ok) throw new Error(`The film reviews could not be downloaded (${response.status}).`);
      return reviewsTask(new Uint8Array(await response.arrayBuffer()));
    };
    const training = new Training(attn, () => (reviews ??= fetchReviews()), tell);
    addEventListener('message', ({ data }: MessageEvent<Command>) => void training.hear(data).catch(fail));
    tell({ kind: 'ready' });
  } catch (error) {
    fail(error);
  }
}
