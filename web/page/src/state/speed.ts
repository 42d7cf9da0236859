/** Measures the text alone, many copies at once, and the peak of the registers. */
import { effect, signal, untracked } from '@preact/signals';
import type { Encoding, RuntimeInfo } from 'attn';
import type { Attn } from 'attn/worker';
import { encoderSize, gigaflops, multiplyAdds } from '../model/flops.ts';
import { median } from '../formats/numbers.ts';
import { idle, inBackground, shownModel } from './background.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { run, withModel } from './run.ts';
import { explain } from './status.ts';

export const samples = 9;

export interface Timed {
  readonly copies: number;
  /** Median. */
  readonly milliseconds: number;
  readonly multiplyAdds: number;
  /** Median share of the peak, which is measured next to each sample because other programs slow both. */
  readonly share: number;
}

export interface Speed {
  readonly model: LoadedModel;
  readonly tokens: number;
  readonly alone: Timed;
  readonly batch: Timed;
  /** GFLOP/s of multiply-adds in registers alone, sorted. */
  readonly peaks: readonly number[];
  /** Milliseconds for a message to the worker and its reply. */
  readonly way: number;
  readonly disturbance: Disturbance | undefined;
  readonly info: RuntimeInfo;
}

export const speed = signal<Speed | undefined>(undefined);
export const measuring = signal(false);
export const speedFailure = signal<string | undefined>(undefined);

/** A batch reduces the share of messages and of the start of each product. */
function copiesOf(encoding: Encoding, copies: number): Encoding {
  const length = encoding.dims[1]!;
  const repeat = <T extends Int32Array | Uint8Array>(make: new (length: number) => T, row: T): T => {
    const all = new make(copies * length);
    for (let i = 0; i < copies; ++i) all.set(row, i * length);
    return all;
  };
  return {
    ...encoding,
    inputIds: repeat(Int32Array, encoding.inputIds),
    attentionMask: repeat(Uint8Array, encoding.attentionMask),
    tokenTypeIds: repeat(Int32Array, encoding.tokenTypeIds),
    dims: [copies, length],
  };
}

/** Minimum: Firefox's clock ticks once per millisecond without cross-origin isolation, longer than a small model's forward. */
export const sampleMilliseconds = 20;

/** Milliseconds per forward. */
export const sample = (of: LoadedModel, encoding: Encoding): Promise<number> =>
  withModel(async () => {
    const start = performance.now();
    let elapsed;
    let done = 0;
    do {
      await of.text.forward(encoding);
      ++done;
      elapsed = performance.now() - start;
    } while (elapsed < sampleMilliseconds);
    return elapsed / done;
  });

const peakOperations = 2.5e8;

async function peakNow(attn: Attn): Promise<number> {
  const start = performance.now();
  const done = await attn.peak(peakOperations);
  return (2e-6 * done) / (performance.now() - start);
}

async function time(attn: Attn, of: LoadedModel, encoding: Encoding, times: number, each: number, peaks: number[]): Promise<Timed> {
  await sample(of, encoding); // warm-up
  const copies = encoding.dims[0]!;
  const found: number[] = [];
  const shares: number[] = [];
  for (let i = 0; i < times; ++i) {
    const milliseconds = await sample(of, encoding);
    const peak = await peakNow(attn);
    found.push(milliseconds);
    peaks.push(peak);
    shares.push(gigaflops(each * copies, milliseconds) / peak);
  }
  return { copies, milliseconds: median(found), multiplyAdds: each * copies, share: median(shares) };
}

async function wayTo(attn: Attn): Promise<number> {
  const found: number[] = [];
  for (let i = 0; i < 15; ++i) {
    const start = performance.now();
    for (let j = 0; j < 4; ++j) await attn.info;
    found.push((performance.now() - start) / 4);
  }
  return median(found);
}

/** Quartiles of the peak on an idle computer differ by less. */
const steady = 1.2;
let best = 0;

export type Disturbance = { readonly kind: 'unsteady' | 'slower'; readonly from: number; readonly to: number };

export function disturbanceOf(peaks: readonly number[], bestSoFar: number): Disturbance | undefined {
  const at = (share: number) => peaks[Math.round(share * (peaks.length - 1))]!;
  if (at(0.75) > steady * at(0.25)) return { kind: 'unsteady', from: at(0), to: at(1) };
  if (bestSoFar > steady * at(0.5)) return { kind: 'slower', from: at(0.5), to: bestSoFar };
  return undefined;
}

/** Long enough to time, but short enough for typing. */
const wantedMultiplyAdds = 2e8;

async function measureNow(): Promise<void> {
  const [of, attn, now] = [shownModel.peek(), engine.peek(), run.peek()];
  if (!of || !attn || !now) return;
  try {
    const { encoding } = now;
    const length = encoding.dims[1]!;
    const each = multiplyAdds(encoderSize(of.config), length).total;
    const copies = Math.min(256, Math.max(1, Math.round(wantedMultiplyAdds / each)));
    const peaks: number[] = [];
    const alone = await time(attn, of, encoding, samples, each, peaks);
    const batch = await time(attn, of, copiesOf(encoding, copies), 5, each, peaks);
    peaks.sort((a, b) => a - b);
    const disturbance = disturbanceOf(peaks, best);
    best = Math.max(best, peaks.at(-1)!);
    speed.value = { model: of, tokens: length, alone, batch, peaks, way: await wayTo(attn), disturbance, info: await attn.info };
    speedFailure.value = undefined;
  } catch (error) {
    if (shownModel.peek() === of) speedFailure.value = explain(error);
  }
}

export async function measure(): Promise<void> {
  if (measuring.peek()) return;
  measuring.value = true;
  await idle();
  await inBackground(measureNow);
  measuring.value = false;
  // Another model was loaded meanwhile.
  if (shownModel.peek() && shownModel.peek() !== speed.peek()?.model && speedFailure.peek() === undefined) void measure();
}

/** Once per model; again on request. */
export const followSpeed = (): (() => void) =>
  effect(() => {
    if (shownModel.value) untracked(() => void measure());
  });
