/** Compares a few texts, one per line: similarity and answers, with all heads and with some off. */
import { signal } from '@preact/signals';
import type { Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { firstOf, fromParams, place, property, text, toParams, type Params, type Properties } from './address.ts';
import { backgroundValue, editedWeights, headsOff, shownModel } from './background.ts';
import { argmax } from '../arithmetic/arrays.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { answersWithout } from './pooling.ts';
import { withModel } from './run.ts';

export const mostLines = 30;

const properties: Properties<{ readonly lines: string; readonly line: number }> = {
  lines: property(
    'lines',
    [
      'The acting is wonderful.',
      'A superb performance by the whole cast.',
      'The acting is dreadful.',
      'The music is beautiful.',
      'The music is an awful noise.',
      'I laughed from beginning to end.',
      'A dull waste of two hours.',
      'Funny, warm and moving.',
    ].join('\n'),
    text,
  ),
  line: property('line', 0, place),
};
export const { lines: initialLines } = firstOf(properties);

export const linesText = signal(initialLines);
export const chosenLine = signal(0);

export const readLines = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');

export function faultOf(lines: readonly string[]): string | undefined {
  if (lines.length === 0) return 'Enter texts, one per line.';
  if (lines.length > mostLines) return `There are ${lines.length} texts. Keep at most ${mostLines}, one per line.`;
  return undefined;
}

export const linesToParams = (): Params => toParams(properties, { lines: linesText.value, line: chosenLine.value }, '', 2000);

export function linesFromParams(params: URLSearchParams): void {
  const { lines, line } = { ...firstOf(properties), ...fromParams(properties, params) };
  linesText.value = lines;
  chosenLine.value = line;
}

export interface LineAnswers {
  readonly similarity: Tensor;
  /** (N,C) in the order of the model's labels. */
  readonly probabilities: Tensor | undefined;
}

export interface Lines {
  readonly model: LoadedModel;
  readonly texts: readonly string[];
  readonly all: LineAnswers;
  readonly off: readonly number[];
  /** With `off`; undefined if all heads are on. */
  readonly without: LineAnswers | undefined;
}

/** Texts per forward; newer requests can interrupt in between. */
const batchSize = 8;

async function withAll(attn: Attn, of: LoadedModel, texts: readonly string[]): Promise<LineAnswers> {
  const vectors = await withModel(() => of.text.embed(texts, { normalize: true, batchSize }));
  const { labels } = of;
  let probabilities: Tensor | undefined;
  if (labels) {
    const classes = await withModel(() => of.text.classify(texts, { batchSize }));
    // The model's labels; those of the page may be truncated.
    const whole = (await of.text.labels)!;
    const scores = classes.flatMap((each) => whole.map((label) => each.find((one) => one.label === label)!.score));
    probabilities = { data: Float32Array.from(scores), dims: [texts.length, labels.length] };
  }
  return { similarity: await attn.linear(vectors, vectors), probabilities };
}

async function withSome(
  attn: Attn,
  of: LoadedModel,
  texts: readonly string[],
  off: readonly number[],
  isWanted: () => boolean,
): Promise<LineAnswers | undefined> {
  const rows: { readonly vectors: Tensor; readonly probabilities: Tensor | undefined }[] = [];
  for (let first = 0; first < texts.length; first += batchSize) {
    if (!isWanted()) return undefined;
    rows.push(await answersWithout(attn, of, await of.text.tokenize(texts.slice(first, first + batchSize)), off));
  }
  const together = (parts: readonly Tensor[]): Tensor => ({
    data: Float32Array.from(parts.flatMap(({ data }) => Array.from(data))),
    dims: [texts.length, parts[0]!.dims[1]!],
  });
  const vectors = together(rows.map((each) => each.vectors));
  return {
    similarity: await attn.linear(vectors, vectors),
    probabilities: rows[0]!.probabilities && together(rows.map((each) => each.probabilities!)),
  };
}

export const lines = backgroundValue<Lines>(() => {
  const [of, attn, texts, off] = [shownModel.value, engine.value, readLines(linesText.value), headsOff.value];
  // Dependency: edited weights change the results.
  void editedWeights.value;
  if (!of || !attn || faultOf(texts)) return undefined;
  return async (isWanted) => {
    const all = await withAll(attn, of, texts);
    const without = off.length > 0 ? await withSome(attn, of, texts, off, isWanted) : undefined;
    return { model: of, texts, all, off, without };
  };
});

/** Most similar first. */
export function neighboursOf(
  { texts, all, without }: Lines,
  line: number,
): readonly { readonly line: number; readonly before: number; readonly after: number }[] {
  const at = ({ similarity }: LineAnswers, other: number) => similarity.data[line * texts.length + other]!;
  return texts
    .map((_, other) => ({ line: other, before: at(all, other), after: at(without ?? all, other) }))
    .filter((each) => each.line !== line)
    .sort((a, b) => b.after - a.after);
}

export function furthest(a: Tensor, b: Tensor): { readonly index: number; readonly difference: number } {
  let [index, difference] = [0, 0];
  a.data.forEach((value, i) => {
    if (Math.abs(b.data[i]! - value) > Math.abs(difference)) [index, difference] = [i, b.data[i]! - value];
  });
  return { index, difference };
}

export function largestOf({ data, dims }: Tensor): readonly number[] {
  const [rows, columns] = dims as [number, number];
  return Array.from({ length: rows }, (_, i) => argmax(data.subarray(i * columns, (i + 1) * columns)));
}
