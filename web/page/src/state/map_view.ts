/** The map of the head in focus, with or without special tokens, by tokens or words. */
import { computed } from '@preact/signals';
import { scaleFor, type Scale } from '../draw/scale.ts';
import { hidingIn, withOwnMask, type ModelChanges } from './changes.ts';
import { run, type Run } from './run.ts';
import { view, type SpecialTokens, type View } from './view.ts';

export interface TokenLine {
  readonly tokens: readonly string[];
  /** null: a special token. */
  readonly offsets: readonly (readonly [number, number] | null)[];
  readonly texts: readonly string[];
}

/** A row and column: a token, or the sub-words of a word. */
export interface Place {
  readonly label: string;
  readonly tokens: readonly number[];
  /** Index of the text; undefined for a special token. */
  readonly source: number | undefined;
  /** Character range in that text. */
  readonly range: readonly [number, number] | undefined;
}

export interface Shown {
  readonly places: readonly Place[];
  readonly weights: Float32Array;
  /** 1 for masked cells. */
  readonly blocked: Uint8Array | undefined;
  /** -1 if the token is hidden. */
  readonly placeOf: Int32Array;
  readonly largest: number;
}

/**
 * A pair ends with one special token; the others are before or between the texts. Without special tokens, the second
 * text begins where offsets start over.
 */
export function sourcesOf({ tokens, offsets, texts }: TokenLine): readonly (number | undefined)[] {
  const special = offsets.filter((each) => each === null).length;
  let passed = 0;
  let last = 0;
  let source = 0;
  return tokens.map((_, i) => {
    const place = offsets[i];
    if (!place) return void ++passed;
    if (texts.length > 1 && (special > 1 ? passed >= special - 1 : place[0] < last)) source = 1;
    last = place[0];
    return source;
  });
}

const endsInLetter = /[\p{L}\p{M}\p{N}]$/u;
const startsWithLetter = /^[\p{L}\p{M}\p{N}]/u;
/** Scripts without spaces, in which tokens do not continue each other. */
const unspaced = /^[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}]/u;

export function placesOf(line: TokenLine, special: SpecialTokens, mergeWords: boolean): readonly Place[] {
  const sources = sourcesOf(line);
  const places: { label: string; tokens: number[]; source: number | undefined; range: [number, number] | undefined }[] = [];
  line.tokens.forEach((token, i) => {
    const source = sources[i];
    const offsets = line.offsets[i];
    if (source === undefined || !offsets) {
      if (special === 'show') places.push({ label: token, tokens: [i], source: undefined, range: undefined });
      return;
    }
    const [start, end] = offsets;
    const text = line.texts[source]!;
    const before = places.at(-1);
    if (mergeWords && before?.range && before.source === source && before.tokens.at(-1) === i - 1 && start <= before.range[1]) {
      const piece = text.slice(start, end);
      // Bytes of one character overlap.
      const continues =
        start < before.range[1] ||
        (token.startsWith('##') && token.length > 2) ||
        (endsInLetter.test(text.slice(...before.range)) && startsWithLetter.test(piece) && !unspaced.test(piece));
      if (continues) {
        before.tokens.push(i);
        before.range[1] = Math.max(end, before.range[1]);
        before.label = text.slice(...before.range);
        return;
      }
    }
    places.push({ label: token, tokens: [i], source, range: [start, end] });
  });
  return places;
}

/**
 * (L,L) tokens -> (P,P) places: columns are summed and rows averaged, so that rows still sum to 1 (Clark et al. 2019).
 */
export function gather(weights: Float32Array, length: number, places: readonly Place[], renormalise: boolean): Float32Array {
  const size = places.length;
  if (size === length) return weights;
  const result = new Float32Array(size * size);
  for (let p = 0; p < size; ++p) {
    const rows = places[p]!.tokens;
    let sum = 0;
    for (let q = 0; q < size; ++q) {
      let total = 0;
      for (const i of rows) for (const j of places[q]!.tokens) total += weights[i * length + j]!;
      sum += total / rows.length;
      result[p * size + q] = total / rows.length;
    }
    if (renormalise && sum > 0) for (let q = 0; q < size; ++q) result[p * size + q]! /= sum;
  }
  return result;
}

/** Cells whose tokens are all masked from each other. */
export function blockedOf(changes: ModelChanges, length: number, places: readonly Place[]): Uint8Array | undefined {
  const hiding = hidingIn(changes, length);
  if (hiding.length === 0) return undefined;
  const isBlocked = (i: number, j: number) => hiding.some(({ isHidden }) => isHidden(i, j));
  const size = places.length;
  const result = new Uint8Array(size * size);
  for (let p = 0; p < size; ++p)
    for (let q = 0; q < size; ++q) result[p * size + q] = Number(places[p]!.tokens.every((i) => places[q]!.tokens.every((j) => isBlocked(i, j))));
  return result;
}

export const lineOf = ({ tokens, encoding, view: { text, pair } }: Run): TokenLine => ({
  tokens,
  offsets: encoding.offsets[0]!,
  texts: pair === undefined ? [text] : [text, pair],
});

export function headWeights({ attentions, tokens }: Run, layer: number, head: number): Float32Array {
  const cells = tokens.length ** 2;
  return attentions[layer]!.data.subarray(head * cells, (head + 1) * cells);
}

/** Limited to the model that ran. */
export const layerInFocus = computed(() => Math.min(view.value.layer, (run.value?.model.layers ?? Infinity) - 1));
export const headInFocus = computed(() => Math.min(view.value.head, (run.value?.model.heads ?? Infinity) - 1));

const special = computed(() => view.value.special);
const mergeWords = computed(() => view.value.mergeWords);
const scaleBy = computed(() => view.value.scaleBy);

export const shown = computed<Shown | undefined>(() => {
  const of = run.value;
  if (!of) return undefined;
  const length = of.tokens.length;
  const places = placesOf(lineOf(of), special.value, mergeWords.value);
  const weights = gather(headWeights(of, layerInFocus.value, headInFocus.value), length, places, special.value === 'renormalise');
  const placeOf = new Int32Array(length).fill(-1);
  places.forEach(({ tokens }, p) => tokens.forEach((i) => (placeOf[i] = p)));
  let largest = 0;
  for (const weight of weights) largest = Math.max(largest, weight);
  return { places, weights, blocked: blockedOf(withOwnMask(of.view, of.model), length, places), placeOf, largest };
});

export const scaleInUse = computed<Scale>(() => {
  const wanted = scaleBy.value;
  if (wanted !== 'auto') return wanted;
  return shown.value ? scaleFor(shown.value.weights, shown.value.largest) : 'head';
});

/** A hidden token maps to the nearest visible one before it. */
export function cellIn({ placeOf, places }: Shown, cell: View['cell']): View['cell'] {
  const find = (token: number) => {
    for (let i = Math.min(token, placeOf.length - 1); i >= 0; --i) if (placeOf[i]! >= 0) return placeOf[i]!;
    return 0;
  };
  const within = (place: number) => Math.min(place, Math.max(0, places.length - 1));
  return { row: within(find(cell.row)), column: within(find(cell.column)) };
}
