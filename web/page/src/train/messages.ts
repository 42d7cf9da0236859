/** What the page and the worker that trains tell each other. */
import type { Settings } from './settings.ts';
import type { Norm, Point } from './trainer.ts';

export type Command =
  /** New models; what trained before is let go. Of two runs one thing differs. */
  | { readonly kind: 'start'; readonly id: number; readonly runs: readonly Settings[]; readonly example: string | undefined }
  /** Steps until this one, or until `pause`; so many a second at most. */
  | { readonly kind: 'go'; readonly until: number; readonly stepsPerSecond: number }
  | { readonly kind: 'pause' }
  /** Shows the models of this step, or the newest, on another example, or the one before. */
  | { readonly kind: 'look'; readonly step: number | undefined; readonly example: string | undefined }
  /** Draws an example that is held out. */
  | { readonly kind: 'another' }
  /** What was told has been drawn: there may be more. */
  | { readonly kind: 'drawn' }
  /** The files of the first run's model. */
  | { readonly kind: 'save'; readonly step: number | undefined };

export interface Progress {
  readonly kind: 'progress';
  /** Of the start that it is about. */
  readonly id: number;
  readonly state: 'started' | 'running' | 'paused';
  readonly step: number;
  readonly stepsPerSecond: number;
  /** Steps whose models can be looked at. */
  readonly moments: readonly number[];
  readonly runs: readonly {
    /** Those that are new. */
    readonly points: readonly Point[];
    /** Of the batch of the newest step. */
    readonly loss: number;
    readonly norms: readonly Norm[];
    readonly parameters: number;
    /** Where the run stands still. */
    readonly fingerprint: string | undefined;
  }[];
}

/** A model on an example. */
export interface Look {
  /** By layer, (H,L,L). */
  readonly attentions: readonly Float32Array[];
  /** As words: one for each token, or one alone; '' where none is asked for. */
  readonly answers: readonly string[];
}

export interface Looks {
  readonly kind: 'looks';
  readonly id: number;
  readonly step: number;
  readonly example: string;
  readonly tokens: readonly string[];
  /** What would be right; '' where none is asked for, and none where that is not known. */
  readonly labels: readonly string[];
  /** (L,L), where it can be said beforehand. */
  readonly expected: Float32Array | undefined;
  readonly runs: readonly Look[];
}

export interface Saved {
  readonly kind: 'saved';
  readonly step: number;
  /** Weights under torch's names. */
  readonly weights: Uint8Array<ArrayBuffer>;
  /** A folder of a model, as transformers reads it. */
  readonly folder: Readonly<Record<string, Uint8Array<ArrayBuffer> | string>>;
  /** What makes answers of the last hidden states, where the folder has no head: (C,E) and (C). */
  readonly head: { readonly weight: Float32Array; readonly bias: Float32Array; readonly answers: readonly string[] } | undefined;
}

export type Report =
  | { readonly kind: 'ready' }
  | Progress
  | Looks
  | Saved
  /** The example is none. */
  | { readonly kind: 'refused'; readonly example: string; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };
