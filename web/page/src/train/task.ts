import type { Random } from './random.ts';

/** Label of positions without an answer, as in PyTorch. */
export const ignored = -100;
/** Precedes examples with one answer, which is read at this position. */
export const first = '[CLS]';
export const unknown = '[UNK]';
export const padding = '[PAD]';

export type TaskId = 'reverse' | 'previous' | 'sort' | 'brackets' | 'frequent' | 'reviews';

export interface Example {
  /** Indices into Task.symbols. */
  readonly ids: readonly number[];
  /** Indices into Task.answers: one per id, or a single one. */
  readonly labels: readonly number[];
}

export interface Task {
  readonly id: TaskId;
  /** Unknown, padding and first come last, if the task has them. */
  readonly symbols: readonly string[];
  readonly answers: readonly string[];
  readonly length: number;
  /** One answer per example, read at its first position, instead of one per position. */
  readonly isOne: boolean;
  /** Held-out examples are never used for training. */
  readonly draw: (random: Random, held: boolean) => Example;
  /** The example for a text, or why it is invalid. */
  readonly read: (text: string) => Example | string;
  /** (L,L): the expected weights, if known. */
  readonly expected: ((ids: readonly number[]) => Float32Array) | undefined;
}

export const written = ({ symbols }: Task, ids: readonly number[]): string =>
  ids
    .map((id) => symbols[id]!)
    .filter((symbol) => symbol !== first)
    .join(' ');

export const labelAt = ({ answers }: Task, label: number | undefined): string => (label === undefined || label === ignored ? '' : answers[label]!);
