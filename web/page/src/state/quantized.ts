/** Compares int8 with float32 weights, on the text above and the lines of "Similar texts". */
import { computed } from '@preact/signals';
import type { Encoding, Tensor } from 'attn';
import { dotOfRows } from '../arithmetic/arrays.ts';
import { median } from '../formats/numbers.ts';
import { backgroundValue, editedWeights, shownModel } from './background.ts';
import { faultOf, linesText, readLines } from './compare_texts.ts';
import { answerFunction, type DType, type LoadedModel } from '../model/loaded.ts';
import { beside } from './model.ts';
import { restoreWeights, run, withModel, type LabelScore } from './run.ts';
import { sample } from './speed.ts';

export interface Differences {
  readonly largest: number;
  readonly mean: number;
  readonly count: number;
}

export function differencesOf(a: ArrayLike<number>, b: ArrayLike<number>): Differences {
  let [largest, sum] = [0, 0];
  for (let i = 0; i < a.length; ++i) {
    const difference = Math.abs(a[i]! - b[i]!);
    largest = Math.max(largest, difference);
    sum += difference;
  }
  return { largest, mean: a.length > 0 ? sum / a.length : 0, count: a.length };
}

export function together(parts: readonly Differences[]): Differences {
  const count = parts.reduce((sum, part) => sum + part.count, 0);
  return {
    largest: parts.reduce((most, { largest }) => Math.max(most, largest), 0),
    mean: parts.reduce((sum, part) => sum + part.mean * part.count, 0) / Math.max(1, count),
    count,
  };
}

/** In double precision, since 1 - cosine is tiny. */
export function cosinesOf(a: Tensor, b: Tensor): readonly number[] {
  const dot = (x: Tensor, y: Tensor, row: number) => dotOfRows(x, row, y, row);
  return Array.from({ length: a.dims[0]! }, (_, row) => dot(a, b, row) / Math.sqrt(dot(a, a, row) * dot(b, b, row)));
}

type Answer = readonly LabelScore[];

/** The likeliest label; for independent labels, all with at least 0.5; none for a regression. */
export function verdictOf(kind: ReturnType<typeof answerFunction>, answer: Answer): string {
  if (kind === 'identity') return '';
  const said = kind === 'softmax' ? answer.slice(0, 1) : answer.filter(({ score }) => score >= 0.5);
  return said
    .map(({ label }) => label)
    .sort()
    .join(', ');
}

export interface Answered {
  readonly text: string;
  readonly answers: Readonly<Record<DType, Answer>>;
  readonly flips: boolean;
}

export interface Quantized {
  readonly models: Readonly<Record<DType, LoadedModel>>;
  readonly tokens: number;
  readonly layers: readonly Differences[];
  readonly all: Differences;
  readonly cosines: readonly number[];
  readonly leastOfLines: number | undefined;
  readonly lines: number;
  readonly answered: readonly Answered[];
  /** Medians for the text above. */
  readonly milliseconds: Readonly<Record<DType, number>>;
}

type Text = string | readonly [string, string];
/** Texts per call; other calls run in between. */
const batchSize = 8;

/** Alternates, so that both see the same load of the machine. */
async function timeBoth(models: Quantized['models'], encoding: Encoding, isWanted: () => boolean): Promise<Quantized['milliseconds'] | undefined> {
  const found: Record<DType, number[]> = { int8: [], float32: [] };
  for (let i = 0; i <= 5; ++i)
    for (const dtype of ['int8', 'float32'] as const) {
      if (!isWanted()) return undefined;
      const each = await sample(models[dtype], encoding);
      // The first sample warms up.
      if (i > 0) found[dtype].push(each);
    }
  return { int8: median(found.int8), float32: median(found.float32) };
}

export async function compareBoth(
  models: Quantized['models'],
  text: Text,
  lines: readonly string[],
  isWanted: () => boolean = () => true,
): Promise<Quantized | undefined> {
  /** One after the other, so that other calls can run in between. */
  const both = async <T>(job: (of: LoadedModel) => Promise<T>) => ({
    int8: await withModel(() => job(models.int8)),
    float32: await withModel(() => job(models.float32)),
  });
  const encoding = await withModel(() => models.float32.text.tokenize(typeof text === 'string' ? text : [text]));
  const made = await both(async ({ text: each }) => (await each.forward(encoding, { outputAttentions: true })).attentions!);
  const layers = made.int8.map(({ data }, layer) => differencesOf(data, made.float32[layer]!.data));
  if (!isWanted()) return undefined;
  const own = typeof text === 'string' ? [text] : text;
  const vectors = await both((of) => of.text.embed([...own, ...lines], { normalize: true, batchSize }));
  const cosines = cosinesOf(vectors.int8, vectors.float32);
  if (!isWanted()) return undefined;
  let answered: readonly Answered[] = [];
  if (models.float32.labels) {
    const kind = answerFunction(models.float32);
    const { int8, float32 } = await both(async ({ text: each }) => [
      ...(await (typeof text === 'string' ? each.classify(text) : each.classify([text]))),
      ...(lines.length > 0 ? await each.classify(lines, { batchSize }) : []),
    ]);
    answered = [own.join(' / '), ...lines].map((said, i) => ({
      text: said,
      answers: { int8: int8[i]!, float32: float32[i]! },
      flips: verdictOf(kind, int8[i]!) !== verdictOf(kind, float32[i]!),
    }));
  }
  const milliseconds = await timeBoth(models, encoding, isWanted);
  if (!milliseconds) return undefined;
  const ofLines = cosines.slice(own.length);
  return {
    models,
    tokens: encoding.dims[1]!,
    layers,
    all: together(layers),
    cosines: cosines.slice(0, own.length),
    leastOfLines: ofLines.length > 0 ? Math.min(...ofLines) : undefined,
    lines: lines.length,
    answered,
    milliseconds,
  };
}

/** Only a change of the text starts a new comparison. */
const text = computed(() => run.value?.view.text);
const pair = computed(() => run.value?.view.pair);
const lines = computed(() => {
  const all = readLines(linesText.value);
  return faultOf(all) ? [] : all;
});

export const quantized = backgroundValue<Quantized>(() => {
  const [of, other, own, second, others] = [shownModel.value, beside.value, text.value, pair.value, lines.value];
  if (!of || !other || own === undefined || editedWeights.value.length > 0) return undefined;
  const models = of.dtype === 'int8' ? { int8: of, float32: other } : { int8: other, float32: of };
  return async (isWanted) => {
    // It may have edits from when it was the main model.
    await withModel(async () => (isWanted() ? restoreWeights(other) : undefined));
    return compareBoth(models, second === undefined ? own : [own, second], others, isWanted);
  };
});
