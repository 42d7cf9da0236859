import type { Settings } from './settings.ts';
import type { Norm, Point } from './trainer.ts';

export type Command =
  /** Replaces all models. Two runs differ in one setting. */
  | { readonly kind: 'start'; readonly id: number; readonly runs: readonly Settings[]; readonly example: string | undefined }
  /** Trains up to this step or until `pause`. */
  | { readonly kind: 'go'; readonly until: number; readonly stepsPerSecond: number }
  | { readonly kind: 'pause' }
  /** At a step or the newest one, for a new or the current example. */
  | { readonly kind: 'look'; readonly step: number | undefined; readonly example: string | undefined }
  /** Draws a held-out example. */
  | { readonly kind: 'another' }
  /** The page has drawn the last report, so the next may follow. */
  | { readonly kind: 'drawn' }
  /** Of the first run's model; the answer has the same `request`. */
  | { readonly kind: 'save'; readonly request: number; readonly step: number | undefined };

export interface Progress {
  readonly kind: 'progress';
  readonly id: number;
  readonly state: 'started' | 'running' | 'paused';
  readonly step: number;
  readonly stepsPerSecond: number;
  /** Steps whose weights are stored. */
  readonly moments: readonly number[];
  readonly runs: readonly {
    /** New points only. */
    readonly points: readonly Point[];
    readonly loss: number;
    readonly norms: readonly Norm[];
    readonly parameters: number;
    /** Only while the run is paused. */
    readonly fingerprint: string | undefined;
  }[];
}

export interface Look {
  /** By layer, (H,L,L). */
  readonly attentions: readonly Float32Array[];
  /** One per token, or a single one; '' for positions without an answer. */
  readonly answers: readonly string[];
}

export interface Looks {
  readonly kind: 'looks';
  readonly id: number;
  readonly step: number;
  readonly example: string;
  readonly tokens: readonly string[];
  /** Right answers: '' for positions without one, and empty if they are unknown. */
  readonly labels: readonly string[];
  /** (L,L), if known. */
  readonly expected: Float32Array | undefined;
  readonly runs: readonly Look[];
}

export interface Saved {
  readonly kind: 'saved';
  readonly request: number;
  readonly step: number;
  /** safetensors with PyTorch names. */
  readonly weights: Uint8Array<ArrayBuffer>;
  /** A model folder that transformers can read. */
  readonly folder: Readonly<Record<string, Uint8Array<ArrayBuffer> | string>>;
  /** The classifier, (C,E) and (C), if the folder has no head. */
  readonly head: { readonly weight: Float32Array; readonly bias: Float32Array; readonly answers: readonly string[] } | undefined;
}

export type Report =
  | { readonly kind: 'ready' }
  | Progress
  | Looks
  | Saved
  | { readonly kind: 'refused'; readonly example: string; readonly why: string }
  | { readonly kind: 'failed'; readonly why: string };
