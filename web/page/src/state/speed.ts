/** How fast this browser is: the text above, many copies of it at once, and what its registers alone could do. */
import { effect, signal, untracked } from '@preact/signals';
import type { Encoding, RuntimeInfo } from 'attn';
import type { Attn } from 'attn/worker';
import { encoderSize, gigaflops, multiplyAdds } from '../model/flops.ts';
import { median } from '../formats/numbers.ts';
import { idle, inBackground, shownModel } from './derived.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { run, withModel } from './run.ts';
import { explain } from './status.ts';

/** Samples of the text alone. */
export const samples = 9;

export interface Timed {
  readonly copies: number;
  /** Median, of all copies together. */
  readonly milliseconds: number;
  /** Of all copies. */
  readonly multiplyAdds: number;
  /** Of the peak that was measured beside each sample: whoever else uses the computer takes from both. Median. */
  readonly share: number;
}

export interface Speed {
  readonly model: LoadedModel;
  readonly tokens: number;
  readonly alone: Timed;
  readonly batch: Timed;
  /** GFLOP/s of multiply-adds in registers alone: each time that it was measured, rising. */
  readonly peaks: readonly number[];
  /** Milliseconds of a message to the worker and its answer. */
  readonly way: number;
  readonly disturbance: Disturbance | undefined;
  readonly info: RuntimeInfo;
}

export const speed = signal<Speed | undefined>(undefined);
export const measuring = signal(false);
export const speedFailure = signal<string | undefined>(undefined);

/** Copies beside each other, so that the way to the worker and the start of each product count for less. */
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

/**
 * What a sample takes at the least: without cross-origin isolation Firefox's clock ticks once a millisecond, and a forward of a small model takes less.
 */
export const sampleMilliseconds = 20;

/** Milliseconds of one forward, of as many as a sample takes. */
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

/** GFLOP/s of multiply-adds in registers, now. */
async function peakNow(attn: Attn): Promise<number> {
  const start = performance.now();
  const done = await attn.peak(peakOperations);
  return (2e-6 * done) / (performance.now() - start);
}

/** Samples of a forward, each beside one of the peak, which goes into `peaks`. */
async function time(attn: Attn, of: LoadedModel, encoding: Encoding, times: number, each: number, peaks: number[]): Promise<Timed> {
  await sample(of, encoding); // the first is not counted
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

/** The same peak, measured again and again, is steady on a computer that does nothing else: quarters of the samples this far apart are not. */
const steady = 1.2;
/** Best of this visit: what this computer can do when it is let. */
let best = 0;

/** Why the numbers are lower than they could be, as far as the peak tells. */
export type Disturbance = { readonly kind: 'unsteady' | 'slower'; readonly from: number; readonly to: number };

export function disturbanceOf(peaks: readonly number[], bestSoFar: number): Disturbance | undefined {
  const at = (share: number) => peaks[Math.round(share * (peaks.length - 1))]!;
  if (at(0.75) > steady * at(0.25)) return { kind: 'unsteady', from: at(0), to: at(1) };
  if (bestSoFar > steady * at(0.5)) return { kind: 'slower', from: at(0.5), to: bestSoFar };
  return undefined;
}

/** Multiply-adds of a batch: long enough to time, short enough for a visitor who types meanwhile. */
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

/** Of the model that is there when its turn comes. */
export async function measure(): Promise<void> {
  if (measuring.peek()) return;
  measuring.value = true;
  await idle();
  await inBackground(measureNow);
  measuring.value = false;
  // Another model came meanwhile.
  if (shownModel.peek() && shownModel.peek() !== speed.peek()?.model && speedFailure.peek() === undefined) void measure();
}

/** Measures once for each model; again only when asked to. */
export const followSpeed = (): (() => void) =>
  effect(() => {
    if (shownModel.value) untracked(() => void measure());
  });
