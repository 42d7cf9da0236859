/** One query, and a column for each word that it can look at. */
import { computed, signal } from '@preact/signals';
import { scoreDivisor } from '../model/kind.ts';
import { query } from './guess.ts';
import { headInFocus, layerInFocus, lineOf, placesOf, type Place } from './map_view.ts';
import { layerTrace, type LayerInFocus } from './run.ts';
import { blanksOf } from './strongest.ts';
import { view } from './view.ts';
import type { Tensor } from 'attn';

export interface Column {
  readonly token: number;
  readonly label: string;
  readonly word: string;
  readonly start: number;
  readonly end: number;
  readonly key: Float32Array;
  readonly value: Float32Array;
  readonly score: number;
  readonly weight: number;
  readonly isMasked: boolean;
}

export interface FirstLook {
  readonly of: LayerInFocus;
  readonly head: number;
  /** Index of the query's token, and its place among the columns. */
  readonly token: number;
  readonly place: number;
  readonly isBlank: boolean;
  readonly query: Float32Array;
  readonly columns: readonly Column[];
  /** Weight of the tokens without a column: special tokens, and a second text. */
  readonly elsewhere: number;
  /** Those tokens, each once, if they are few. */
  readonly elsewhereOn: string;
  /** Σ weight · value. */
  readonly sum: Float32Array;
  readonly isOff: boolean;
  /** Scores are divided by the root of this: mostly the width of a key. */
  readonly width: number;
}

/** (1,H,L,D): the row of a token. */
function rowOf({ data, dims }: Tensor, head: number, token: number): Float32Array {
  const [, , length, width] = dims as [number, number, number, number];
  return data.subarray((head * length + token) * width, (head * length + token + 1) * width);
}

const mostElsewhere = 3;

const isInFirstText = ({ source, range }: Place): boolean => source === 0 && range !== undefined;

export const firstLook = computed<FirstLook | undefined>(() => {
  const of = layerTrace.value;
  if (!of || of.layer !== layerInFocus.value) return undefined;
  const { run: made, trace, layer } = of;
  const head = headInFocus.value;
  const token = Math.min(query.value, made.tokens.length - 1);
  const scores = rowOf(trace.masked_scores, head, token);
  const weights = rowOf(trace.weights, head, token);
  const columns = placesOf(lineOf(made), 'hide', false)
    .filter(isInFirstText)
    .map(({ tokens: [i], label, range }): Column => {
      const at = i!;
      const score = scores[at]!;
      const [from, end] = range!;
      const written = made.view.text.slice(from, end);
      const word = written.trim() || written;
      return {
        token: at,
        label,
        word,
        // Tokens of decoders begin with the space before them.
        start: from + written.indexOf(word),
        end,
        key: rowOf(trace.k, head, at),
        value: rowOf(trace.v, head, at),
        score,
        weight: weights[at]!,
        isMasked: score === -Infinity || score < -1e30,
      };
    });
  const inColumns = new Set(columns.map((column) => column.token));
  const others = new Set(made.tokens.filter((_, i) => !inColumns.has(i)));
  const shown = columns.reduce((sum, { weight }) => sum + weight, 0);
  return {
    of,
    head,
    token,
    place: columns.findIndex((column) => column.token === token),
    isBlank: blanksOf(made).includes(token),
    query: rowOf(trace.q, head, token),
    columns,
    elsewhere: Math.max(0, 1 - shown),
    elsewhereOn: others.size <= mostElsewhere ? [...others].join(' ') : '',
    sum: rowOf(trace.context, head, token),
    isOff: view.value.off.includes(layer * made.model.heads + head),
    width: scoreDivisor(made.model.config, trace.q.dims[3]!),
  };
});

export const isFirstPictureDrawn = signal(false);

/** The blank in the sentence field: as wide as a word. */
export const blank = '________';

/** A blank as it is written in the field. */
export const toField = (text: string): string => text.replaceAll(/\[MASK\]|<mask>/g, blank).replaceAll(/\s*\n\s*/g, ' ');

/** After a change: underscores that are no part of a word are a blank, and deleting a part of a blank deletes all of it. */
export const fromField = (text: string, isDeletion: boolean, mask: string): string =>
  text.replaceAll(/(?<![\p{L}\p{N}])_+(?![\p{L}\p{N}])|_{3,}/gu, (line) => (isDeletion && line.length < blank.length ? '' : mask));

export const sentences = [
  'She drank a cup of [MASK].',
  'The boy kicked the [MASK].',
  'I went to the [MASK] to buy some bread.',
  'My mother and my [MASK] came home.',
] as const;

/** The sentences with a word in their blank, for models that fill none. */
const wordsInBlanks = ['coffee', 'ball', 'store', 'father'] as const;
export const withoutBlank = (sentence: string): string => {
  const at = sentences.findIndex((each) => each === sentence);
  return at < 0 ? sentence : sentence.replace('[MASK]', wordsInBlanks[at]!);
};

/** Up to the blank, or without the full stop. */
export const beginningOf = (sentence: string): string => sentence.replace(/ (\[MASK\]|<mask>).*|\.$/, '');

/** 1 to 5 while the steps are played or looked at one by one; 0: the whole figure. */
export const stepShown = signal(0);
export const isPlaying = signal(false);

export const stepCount = 5;

/** Time to read the captions. */
const stepMilliseconds = [6000, 6000, 6000, 4000];
let timer: ReturnType<typeof setTimeout> | undefined;

export function showStep(step: number): void {
  clearTimeout(timer);
  isPlaying.value = false;
  stepShown.value = step;
}

/** From this step on, and the last one stays; without motion only this one, and the visitor goes on. */
export function playSteps(withMotion: boolean, from = 1): void {
  showStep(from);
  if (!withMotion) return;
  isPlaying.value = true;
  const go = () => {
    ++stepShown.value;
    if (stepShown.value === stepCount) isPlaying.value = false;
    else wait();
  };
  const wait = () => (timer = setTimeout(go, stepMilliseconds[stepShown.value - 1]));
  wait();
}
