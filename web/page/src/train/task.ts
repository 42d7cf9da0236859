/** What a task is: symbols, examples made of a seed, and where one would look to solve them. */
import type { Random } from './random.ts';

/** A label that counts for nothing, as in torch. */
export const ignored = -100;
/** Stands before an example that has one answer: the answer is read there. */
export const first = '[CLS]';
export const unknown = '[UNK]';
export const padding = '[PAD]';

export type TaskId = 'reverse' | 'previous' | 'sort' | 'brackets' | 'frequent' | 'reviews';

export interface Example {
  /** Places in Task.symbols. */
  readonly ids: readonly number[];
  /** Places in Task.answers: one for each id, or one alone. */
  readonly labels: readonly number[];
}

export interface Task {
  readonly id: TaskId;
  /** The last are unknown, padding and first, as far as a task has them. */
  readonly symbols: readonly string[];
  readonly answers: readonly string[];
  /** Ids of an example, at most. */
  readonly length: number;
  /** Whether an example has one answer, read at its first place, instead of one for each place. */
  readonly isOne: boolean;
  /** An example for training; where `held` is given, one of those that are never trained on. */
  readonly draw: (random: Random, held: boolean) => Example;
  /** An example of these ids, or why it is none. */
  readonly read: (text: string) => Example | string;
  /** (L,L): the weight that one would expect, where one can say it beforehand. */
  readonly expected: ((ids: readonly number[]) => Float32Array) | undefined;
}

/** How an example is written down. */
export const written = ({ symbols }: Task, ids: readonly number[]): string =>
  ids
    .map((id) => symbols[id]!)
    .filter((symbol) => symbol !== first)
    .join(' ');

export const labelAt = ({ answers }: Task, label: number | undefined): string => (label === undefined || label === ignored ? '' : answers[label]!);
