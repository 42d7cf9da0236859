/** The example by hand: three words, numbers that can be followed with a pencil, and what the module makes of them. */
import { effect, signal, untracked } from '@preact/signals';
import type { Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { fromRows, mergeHeads, transposed } from '../arithmetic/arrays.ts';
import { firstOf, flag, fromParams, place, property, toParams, type Codec, type Params, type Properties } from './address.ts';
import { engine } from './model.ts';
import { explain, newestOnly } from './status.ts';

export const exampleMatrices = ['X', 'Wq', 'Wk', 'Wv', 'Wo'] as const;
export type ExampleMatrix = (typeof exampleMatrices)[number];
type Rows = readonly (readonly number[])[];

export interface Example {
  /** From 0. */
  readonly step: number;
  readonly matrices: Readonly<Record<ExampleMatrix, Rows>>;
  /** 1/√3 instead of the article's 1. */
  readonly usualScale: boolean;
  readonly causal: boolean;
}

/** The article numbers its inputs; words are easier to follow. */
export const exampleWords = ['cats', 'chase', 'mice'] as const;

/** A row of numbers after the other; what does not fit is as it was, and so is the very object: it says that these are the article's numbers. */
const matrixOf = (name: ExampleMatrix): Codec<Example['matrices']> => ({
  encode: (matrices) => matrices[name].map((row) => row.join(',')).join(';'),
  decode(written, matrices) {
    const rows = written.split(';').map((row) => row.split(',').map((number) => (number.trim() === '' ? NaN : Number(number))));
    const fits = rows.length === matrices[name].length && rows.every((row) => row.length === matrices[name][0]!.length);
    return fits && rows.flat().every((value) => Number.isFinite(Math.fround(value))) ? { ...matrices, [name]: rows } : matrices;
  },
});

export const exampleSteps = 10;

/** X, Wq, Wk and Wv are those of “Illustrated: Self-Attention” (Raimi Karim 2019). It ends before Wo, so that one is ours. */
const articleMatrices: Example['matrices'] = {
  X: [
    [1, 0, 1, 0],
    [0, 2, 0, 2],
    [1, 1, 1, 1],
  ],
  Wq: [
    [1, 0, 1],
    [1, 0, 0],
    [0, 0, 1],
    [0, 1, 1],
  ],
  Wk: [
    [0, 0, 1],
    [1, 1, 0],
    [0, 1, 0],
    [1, 1, 0],
  ],
  Wv: [
    [0, 2, 0],
    [0, 3, 0],
    [1, 0, 3],
    [1, 1, 0],
  ],
  Wo: [
    [1, 0, 0, 0],
    [0, 1, 0, 0],
    [0, 0, 1, 0],
    [0, 0, 0, 1],
    [1, 0, 0, 0],
    [0, 1, 0, 0],
  ],
};

const properties: Properties<Example> = {
  step: property('step', 0, { encode: place.encode, decode: (step, before) => Math.min(place.decode(step, before, undefined), exampleSteps - 1) }),
  matrices: { first: articleMatrices, address: Object.fromEntries(exampleMatrices.map((name) => [name, matrixOf(name)])) },
  usualScale: property('scale', false, { encode: (isUsual) => (isUsual ? 'root' : '1'), decode: (scale) => scale === 'root' }),
  causal: property('causal', false, flag),
};

export const initialExample = firstOf(properties);

export const example = signal<Example>(initialExample);

export function updateExample(changes: Partial<Example>): void {
  example.value = { ...example.value, ...changes };
}

export function setNumber(name: ExampleMatrix, row: number, column: number, value: number): void {
  const { matrices } = example.value;
  const rows = matrices[name].map((line, i) => (i === row ? line.map((old, j) => (j === column ? value : old)) : line));
  updateExample({ matrices: { ...matrices, [name]: rows } });
}

/** Counts how often the numbers were replaced from outside of their fields, which are made anew then. */
export const exampleVersion = signal(0);

function replaceExample(by: Example): void {
  ++exampleVersion.value;
  example.value = by;
}

/** The article's numbers, in the step that is open. */
export const resetExample = (): void => replaceExample({ ...initialExample, step: example.value.step });

export const exampleToParams = (): Params => toParams(properties, example.value, 'hand.');

export const exampleFromParams = (params: URLSearchParams): void => replaceExample({ ...initialExample, ...fromParams(properties, params, 'hand.') });

/** As the article prints the weights, shortened to one decimal: it goes on with these. */
const shortenedWeights = fromRows([
  [0, 0.5, 0.5],
  [0, 1, 0],
  [0, 0.9, 0.1],
]);

/** What one head makes of Q, K and V. */
export interface ExampleHead {
  readonly scores: Tensor;
  readonly masked: Tensor;
  readonly weights: Tensor;
  readonly weightedValues: Tensor;
  readonly output: Tensor;
}

export interface ComputedExample {
  readonly of: Example;
  readonly scale: number;
  readonly X: Tensor;
  readonly Q: Tensor;
  readonly K: Tensor;
  readonly V: Tensor;
  /** Q Kᵀ before the scale. */
  readonly products: Tensor;
  readonly head: ExampleHead;
  /** With Wq and Wk swapped, so that there are two heads to put side by side. */
  readonly second: ExampleHead;
  /** The results of both heads side by side. */
  readonly merged: Tensor;
  readonly Y: Tensor;
  /** The first head's result with the weights as the article shortens them. */
  readonly shortened: Tensor;
}

async function headOf(attn: Attn, Q: Tensor, K: Tensor, V: Tensor, scale: number, isCausal: boolean): Promise<ExampleHead> {
  const { output, trace } = await attn.scaledDotProductAttention(Q, K, V, {
    scale,
    isCausal,
    trace: ['scores', 'masked_scores', 'weights', 'weighted_values'],
  });
  return {
    scores: trace!.scores!,
    masked: trace!.masked_scores!,
    weights: trace!.weights!,
    weightedValues: trace!.weighted_values!,
    output,
  };
}

/** Two matrices of as many rows, side by side. */
const sideBySide = (a: Tensor, b: Tensor): Tensor => {
  const [length, width] = a.dims as [number, number];
  const both = new Float32Array(2 * a.data.length);
  both.set(a.data);
  both.set(b.data, a.data.length);
  return { data: mergeHeads({ data: both, dims: [1, 2, length, width] }).data, dims: [length, 2 * width] };
};

export async function computeExample(attn: Attn, of: Example): Promise<ComputedExample> {
  const { matrices, usualScale, causal } = of;
  const X = fromRows(matrices.X);
  // linear multiplies by the transpose of its second argument.
  const times = (a: Tensor, name: ExampleMatrix) => attn.linear(a, transposed(fromRows(matrices[name])));
  const [Q, K, V] = [await times(X, 'Wq'), await times(X, 'Wk'), await times(X, 'Wv')];
  const scale = usualScale ? 1 / Math.sqrt(Q.dims[1]!) : 1;
  const head = await headOf(attn, Q, K, V, scale, causal);
  const second = await headOf(attn, K, Q, V, scale, causal);
  const merged = sideBySide(head.output, second.output);
  return {
    of,
    scale,
    X,
    Q,
    K,
    V,
    products: await attn.linear(Q, K),
    head,
    second,
    merged,
    Y: await times(merged, 'Wo'),
    shortened: await attn.linear(shortenedWeights, transposed(V)),
  };
}

export const computedExample = signal<ComputedExample | undefined>(undefined);
export const exampleFailure = signal<string | undefined>(undefined);

/** Begins to follow the example; returns what ends it. */
export function followExample(): () => void {
  const inTurn = newestOnly();
  return effect(() => {
    const [attn, of] = [engine.value, example.value];
    if (!attn) return;
    const job = async () => {
      const now = computedExample.value?.of;
      // Another step shows other parts of the same numbers.
      if (now?.matrices === of.matrices && now.usualScale === of.usualScale && now.causal === of.causal) return;
      try {
        computedExample.value = await computeExample(attn, of);
        exampleFailure.value = undefined;
      } catch (error) {
        exampleFailure.value = explain(error);
      }
    };
    untracked(() => void inTurn(job));
  });
}
