/** How fast this browser is: the text above, many copies of it at once, and what its registers alone could do. */
import { effect, signal, untracked } from '@preact/signals';
import type { Encoding, RuntimeInfo } from 'attn';
import type { Attn } from 'attn/worker';
import { encoderSize, multiplyAdds } from '../flops.ts';
import { median } from '../numbers.ts';
import { idle, inBackground, shownModel } from './derived.ts';
import { engine, type LoadedModel } from './model.ts';
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
}

export interface Speed {
  readonly model: LoadedModel;
  readonly tokens: number;
  readonly alone: Timed;
  readonly batch: Timed;
  /** GFLOP/s of multiply-adds in registers alone. */
  readonly peak: number;
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

async function time(of: LoadedModel, encoding: Encoding, times: number): Promise<number> {
  await sample(of, encoding); // the first is not counted
  const found: number[] = [];
  for (let i = 0; i < times; ++i) found.push(await sample(of, encoding));
  return median(found);
}

/** The best of a few samples, as benchmarks/wasm/measure.mjs has it. */
async function peakOf(attn: Attn): Promise<number> {
  let best = 0;
  for (let i = 0; i < 4; ++i) {
    const start = performance.now();
    const done = await attn.peak(5e8);
    best = Math.max(best, (2e-6 * done) / (performance.now() - start));
  }
  return best;
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
    const alone = { copies: 1, milliseconds: await time(of, encoding, samples), multiplyAdds: each };
    const batch = { copies, milliseconds: await time(of, copiesOf(encoding, copies), 5), multiplyAdds: each * copies };
    const peak = await peakOf(attn);
    speed.value = { model: of, tokens: length, alone, batch, peak, info: await attn.info };
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
