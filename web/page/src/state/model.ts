/** The module in its worker, and its models. */
import { signal } from '@preact/signals';
import { load, type Attn } from 'attn/worker';
import type { Origin, Reason } from '../model/errors.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { codeOf, status } from './status.ts';

export interface Loading {
  readonly name: string;
  readonly phase: string;
  readonly file?: string | undefined;
  readonly loaded: number;
  readonly total?: number | undefined;
  /** Share of all files, 0 to 1. */
  readonly progress: number;
  readonly bytesPerSecond: number;
  cancel(): void;
}

/** model/errors.ts has the words for it. */
export interface Failure extends Reason {
  readonly what: string;
  readonly code: unknown;
  /** A model that the page's server lacks but the Hub may have. */
  readonly onHub?: string;
}

export const engine = signal<Attn | undefined>(undefined);
export const model = signal<LoadedModel | undefined>(undefined);
export const loading = signal<Loading | undefined>(undefined);
export const failure = signal<Failure | undefined>(undefined);
/** The same model with the other kind of weights, for comparison. */
export const beside = signal<LoadedModel | undefined>(undefined);
export const loadingBeside = signal<Loading | undefined>(undefined);
export const besideFailure = signal<Failure | undefined>(undefined);

/** The status names the failure; cause and remedy are shown next to the control. */
export function fail(what: string, error: unknown, origin: Origin = { host: undefined }, onHub?: string): void {
  failure.value = { what, error, origin, code: codeOf(error), ...(onHub !== undefined && { onHub }) };
  status.value = { text: what, failed: true };
}

let starting: Promise<Attn | undefined> | undefined;

/** Calls during a start share it. */
export const startEngine = (): Promise<Attn | undefined> => (starting ??= start().finally(() => (starting = undefined)));

/** Ends the module and its worker, whose memory is then free for the next one. */
export function stopEngine(): void {
  const old = engine.value;
  engine.value = undefined;
  old?.terminate();
}

async function start(): Promise<Attn | undefined> {
  try {
    failure.value = undefined;
    // One thread: small models finish before a second thread would have woken up.
    return (engine.value = await load());
  } catch (error) {
    fail('The module could not be started.', error);
    return undefined;
  }
}
