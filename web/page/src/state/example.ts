/** The example by hand: three words, and numbers small enough for a pencil. */
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
  /** 0-based. */
  readonly step: number;
  readonly matrices: Readonly<Record<ExampleMatrix, Rows>>;
  readonly usualScale: boolean;
  readonly causal: boolean;
}

export const exampleWords = ['cats', 'chase', 'mice'] as const;

/** Rows separated by ";". Invalid text returns the same object, whose identity marks the article's numbers. */
const matrixOf = (name: ExampleMatrix): Codec<Example['matrices']> => ({
  encode: (matrices) => matrices[name].map((row) => row.join(',')).join(';'),
  decode(written, matrices) {
    const rows = written.split(';').map((row) => row.split(',').map((number) => (number.trim() === '' ? NaN : Number(number))));
    const fits = rows.length === matrices[name].length && rows.every((row) => row.length === matrices[name][0]!.length);
    return fits && rows.flat().every((value) => Number.isFinite(Math.fround(value))) ? { ...matrices, [name]: rows } : matrices;
  },
});

export const exampleSteps = 10;

/** X, Wq, Wk and Wv are from “Illustrated: Self-Attention” (Raimi Karim 2019), which has no Wo. */
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

/** Incremented to create the fields again. */
export const exampleVersion = signal(0);

function replaceExample(by: Example): void {
  ++exampleVersion.value;
  example.value = by;
}

export const resetExample = (): void => replaceExample({ ...initialExample, step: example.value.step });

export const exampleToParams = (): Params => toParams(properties, example.value, 'hand.');

export const exampleFromParams = (params: URLSearchParams): void => replaceExample({ ...initialExample, ...fromParams(properties, params, 'hand.') });

/** The article approximates its weights with one decimal and continues with these. */
const shortenedWeights = fromRows([
  [0, 0.5, 0.5],
  [0, 1, 0],
  [0, 0.9, 0.1],
]);

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
  /** Q Kᵀ before scaling. */
  readonly products: Tensor;
  readonly head: ExampleHead;
  /** A second head, with Wk for its queries, Wv for its keys and Wq for its values. */
  readonly second: ExampleHead;
  readonly merged: Tensor;
  readonly Y: Tensor;
  /** The first head's output with the article's approximate weights. */
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
  const second = await headOf(attn, K, V, Q, scale, causal);
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

export function followExample(): () => void {
  const inTurn = newestOnly();
  return effect(() => {
    const [attn, of] = [engine.value, example.value];
    if (!attn) return;
    const job = async () => {
      const now = computedExample.value?.of;
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
