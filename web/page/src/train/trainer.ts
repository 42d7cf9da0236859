import type { Attn, Optimizer } from 'attn';
import { Learner, factorOf, rootOf, type Batch, type State } from './learner.ts';
import { hash, Random } from './random.ts';
import type { Settings } from './settings.ts';
import { ignored, padding, type Example, type Task } from './task.ts';

export interface Score {
  readonly loss: number;
  /** Share of the examples without a wrong answer. */
  readonly accuracy: number;
}

export interface Point {
  readonly step: number;
  /** On the step's batch, before the step. */
  readonly training: Score;
  /** After the step. */
  readonly held: Score;
}

export interface Norm {
  readonly part: string;
  readonly norm: number;
}

/** Steps between evaluations. */
export const pace = 10;
const heldOut = 256;
const warmup = 20;
/** Final learning rate relative to the initial one. */
const lowest = 0.1;

/** Streams of the seed. */
const [forTraining, forHeldOut] = [1, 2];

export function batchOf(task: Task, examples: readonly Example[]): Batch {
  const length = examples.reduce((most, { ids }) => Math.max(most, ids.length), 0);
  const dims = [examples.length, length] as const;
  const isPadded = examples.some(({ ids }) => ids.length < length);
  const ids = new Int32Array(examples.length * length).fill(Math.max(0, task.symbols.indexOf(padding)));
  const mask = isPadded ? new Uint8Array(ids.length) : undefined;
  examples.forEach((example, b) => {
    ids.set(example.ids, b * length);
    mask?.fill(1, b * length, b * length + example.ids.length);
  });
  return { ids, dims, mask, labels: Int32Array.from(examples.flatMap(({ labels }) => labels)) };
}

export function largest(data: Float32Array, classes: number): Int32Array {
  return Int32Array.from({ length: data.length / classes }, (_, i) => {
    let best = i * classes;
    for (let j = best + 1; j < (i + 1) * classes; ++j) if (data[j]! > data[best]!) best = j;
    return best - i * classes;
  });
}

function accuracyOf(labels: Int32Array, answers: Int32Array, examples: number): number {
  const each = labels.length / examples;
  let right = 0;
  for (let b = 0; b < examples; ++b) {
    let isRight = true;
    for (let i = b * each; i < (b + 1) * each; ++i) isRight &&= labels[i] === ignored || labels[i] === answers[i];
    right += Number(isRight);
  }
  return right / examples;
}

/** In the order of the forward pass. */
const partsOf = (layers: number): readonly string[] => [
  'embeddings',
  ...Array.from({ length: layers }, (_, i) => [`layer ${i + 1}, attention`, `layer ${i + 1}, feed-forward`]).flat(),
  'classifier',
];

function partOf(name: string): string {
  const [, layer, inside] = /^encoder\.layers\.(\d+)\.(\w+)/.exec(name) ?? [];
  if (layer !== undefined) return `layer ${Number(layer) + 1}, ${inside === 'self_attn' || inside === 'norm1' ? 'attention' : 'feed-forward'}`;
  return name.startsWith('classifier') ? 'classifier' : 'embeddings';
}

export class Trainer {
  readonly learner: Learner;
  readonly settings: Settings;
  step = 0;
  readonly #attn: Attn;
  readonly #task: Task;
  readonly #optimizer: Optimizer;
  readonly #random: Random;
  readonly #held: Batch;

  constructor(attn: Attn, task: Task, settings: Settings) {
    this.settings = settings;
    this.#attn = attn;
    this.#task = task;
    this.learner = new Learner(attn, task, settings);
    this.#optimizer = optimizerOf(attn, this.learner, settings);
    this.#random = new Random(settings.seed, forTraining);
    const random = new Random(settings.seed, forHeldOut);
    this.#held = batchOf(
      task,
      Array.from({ length: heldOut }, () => task.draw(random, true)),
    );
  }

  take(): Score {
    const { batch, steps, learningRate, seed } = this.settings;
    const examples = batchOf(
      this.#task,
      Array.from({ length: batch }, () => this.#task.draw(this.#random, false)),
    );
    const { logits } = this.learner.forward(examples, { seed: hash([seed, this.step]) });
    const { loss, gradient } = this.#attn.crossEntropy(logits, examples.labels);
    this.#optimizer.zeroGrad();
    this.learner.backward(gradient);
    // Starts at 1: the rate of step 0 would be 0.
    this.#optimizer.learningRate = this.#attn.cosineSchedule(this.step + 1, {
      learningRate,
      warmup: Math.min(warmup, steps - 1),
      steps,
      minimum: lowest * learningRate,
    });
    this.#optimizer.step();
    ++this.step;
    return { loss, accuracy: accuracyOf(examples.labels, largest(logits.data, logits.dims.at(-1)!), batch) };
  }

  evaluate(): Score {
    const { logits } = this.learner.forward(this.#held);
    const { loss } = this.#attn.crossEntropy(logits, this.#held.labels);
    return { loss, accuracy: accuracyOf(this.#held.labels, largest(logits.data, logits.dims.at(-1)!), heldOut) };
  }

  /** Norms of the last gradients. */
  norms(): readonly Norm[] {
    const root = rootOf(this.settings);
    const squares = new Map(partsOf(this.settings.layers).map((part) => [part, 0]));
    for (const [name, { data }] of this.learner.gradients()) {
      const factor = factorOf(name, root);
      const sum = data.reduce((total, value) => total + (value * factor) ** 2, 0);
      squares.set(partOf(name), (squares.get(partOf(name)) ?? 0) + sum);
    }
    return Array.from(squares, ([part, sum]) => ({ part, norm: Math.sqrt(sum) }));
  }

  dispose(): void {
    this.#optimizer.dispose();
    this.learner.dispose();
  }
}

function optimizerOf(attn: Attn, { modules }: Learner, settings: Settings): Optimizer {
  const { optimiser, learningRate } = settings;
  const weightDecay = optimiser === 'adamw' ? 0.01 : 0;
  const root = rootOf(settings);
  // Adam's steps do not depend on the size of a gradient, but those of SGD do, and a larger weight has a smaller gradient.
  const group = (names: RegExp, factor: number) => ({
    names,
    learningRate: learningRate * (optimiser === 'sgd' ? factor * factor : factor),
    weightDecay: weightDecay / factor,
  });
  const groups = root === 1 ? [] : [group(/in_proj/, root), group(/out_proj\.weight/, 1 / root)];
  switch (optimiser) {
    case 'sgd':
      return new attn.SGD(modules, { learningRate, momentum: 0.9, groups });
    case 'adam':
      return new attn.Adam(modules, { learningRate, groups });
    case 'adamw':
      return new attn.AdamW(modules, { learningRate, weightDecay, groups });
  }
}

/** 16 hexadecimal digits that identify the weights to the last bit. */
export function fingerprint(state: State): string {
  return [0x811c9dc5, 0x9747b28c]
    .map((start) => {
      let sum = start;
      for (const { data } of state.values()) sum = hash(new Int32Array(data.buffer, data.byteOffset, data.length), sum);
      return sum.toString(16).padStart(8, '0');
    })
    .join('');
}
