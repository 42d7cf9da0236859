/** Aligns the words of two sentences by their rows at one layer (SimAlign). */
import { computed, signal } from '@preact/signals';
import type { Tensor } from 'attn';
import { choicesIn, cosines, meanRows, mutualPairs, type Choices } from '../arithmetic/alignment.ts';
import { isMultilingual } from '../model/kind.ts';
import { headMaskOf, isDecoder, type LoadedModel } from '../model/loaded.ts';
import { firstOf, fromParams, property, toParams, type Codec, type Params, type Properties } from './address.ts';
import { backgroundValue, editedWeights, headsOff, shownModel } from './background.ts';
import { placesOf } from './map_view.ts';
import { withModel } from './run.ts';
import { textNotes } from './text_notes.ts';

export const mostWords = 40;

interface AlignView {
  /** undefined: the suggestion for the model. */
  readonly first: string | undefined;
  readonly second: string | undefined;
  /** 0: the embeddings. undefined: two thirds of the layers. */
  readonly layer: number | undefined;
}

const textOrNone: Codec<string | undefined> = { encode: (text) => text ?? '', decode: (text) => text };
const properties: Properties<AlignView> = {
  first: property<string | undefined>('first', undefined, textOrNone),
  second: property<string | undefined>('second', undefined, textOrNone),
  layer: property<number | undefined>('layer', undefined, {
    encode: (layer) => (layer === undefined ? '' : String(layer)),
    decode: (digits, before) => (/^\d{1,3}$/.test(digits) ? Number(digits) : before),
  }),
};
const initial = firstOf(properties);

export const alignView = signal(initial);

export function updateAlign(changes: Partial<AlignView>): void {
  alignView.value = { ...alignView.value, ...changes };
}

export const alignToParams = (): Params => toParams(properties, alignView.value, 'align.', 1000);

export function alignFromParams(params: URLSearchParams): void {
  alignView.value = { ...initial, ...fromParams(properties, params, 'align.') };
}

type Pair<T> = readonly [first: T, second: T];

/** Sentences whose alignment is instructive with the model. */
export function suggestionFor({ id, config }: Pick<LoadedModel, 'id' | 'config'>): Pair<string> {
  if (id === 'sentiment') return ['The acting is wonderful.', 'A superb performance by the whole cast.'];
  if (id === 'entities') return ['Anna Schmidt moved from Berlin to Paris in March 2019.', 'In May 2021, Peter Weber left London for Rome.'];
  if (id === 'reactions') return ['BrCc1ccccc1.CN', 'CNCc1ccccc1'];
  if (isMultilingual(config)) return ['The old man slowly opened the door.', 'Langsam öffnete der alte Mann die Tür.'];
  return ['The old man opened the door slowly.', 'Slowly, the door was opened by an old woman.'];
}

export const sentences = computed<Pair<string> | undefined>(() => {
  const of = shownModel.value;
  if (!of) return undefined;
  const { first, second } = alignView.value;
  const suggested = suggestionFor(of);
  return [first ?? suggested[0], second ?? suggested[1]];
});

/** SimAlign recommends layer 8 of 12. */
export const defaultLayer = (layers: number): number => Math.round((2 * layers) / 3);
export const layerToAlign = computed(() => {
  const layers = shownModel.value?.layers ?? 0;
  return Math.min(layers, alignView.value.layer ?? defaultLayer(layers));
});

interface Word {
  readonly text: string;
  readonly tokens: readonly number[];
}

export interface ReadSentence {
  readonly text: string;
  readonly words: readonly Word[];
  readonly notes: readonly string[];
}

/** Special tokens are left out. The tokens of a chemical reaction are atoms and bonds, which are not joined. */
async function read(of: LoadedModel, text: string): Promise<{ readonly sentence: ReadSentence; readonly rows: () => Promise<readonly Tensor[]> }> {
  const encoding = await of.text.tokenize(text);
  const tokens = encoding.tokens[0]!;
  const places = placesOf({ tokens, offsets: encoding.offsets[0]!, texts: [text] }, 'hide', of.id !== 'reactions');
  const words = places.map((each) => ({ text: text.slice(...each.range!).trim() || each.label, tokens: each.tokens }));
  const rows = async () => {
    const headMask = headsOff.peek().length > 0 ? headMaskOf(of, headsOff.peek()) : undefined;
    const { hiddenStates } = await withModel(() => of.text.forward(encoding, { outputHiddenStates: true, outputLogits: false, headMask }));
    return hiddenStates!.map((each) => meanRows(each, words));
  };
  return { sentence: { text, words, notes: words.length > 0 ? textNotes({ tokens, encoding }) : [] }, rows };
}

interface Aligned {
  readonly model: LoadedModel;
  readonly sentences: Pair<ReadSentence>;
  /** By layer, from the embeddings on (W,E). undefined if a sentence has no words or too many. */
  readonly rows: Pair<readonly Tensor[]> | undefined;
}

export const aligned = backgroundValue<Aligned>(() => {
  const [of, texts] = [shownModel.value, sentences.value];
  // Dependencies: both change the rows.
  void [headsOff.value, editedWeights.value];
  if (!of || !texts || isDecoder(of)) return undefined;
  return async () => {
    const [first, second] = [await read(of, texts[0]), await read(of, texts[1])];
    const both = [first.sentence, second.sentence] as const;
    const isFine = both.every((each) => faultOfSentence(each) === undefined);
    return { model: of, sentences: both, rows: isFine ? [await first.rows(), await second.rows()] : undefined };
  };
});

export function faultOfSentence({ words }: Pick<ReadSentence, 'words'>): string | undefined {
  if (words.length === 0) return 'Enter a sentence.';
  if (words.length > mostWords) return `There are ${words.length} words and signs. Keep at most ${mostWords}.`;
  return undefined;
}

export interface Alignment {
  readonly words: Pair<readonly string[]>;
  readonly similarity: Tensor;
  readonly choices: Choices;
  readonly pairs: readonly { readonly row: number; readonly column: number }[];
}

export const alignment = computed<Alignment | undefined>(() => {
  const made = aligned.value.value;
  if (!made?.rows || made.model !== shownModel.value) return undefined;
  const [first, second] = made.rows;
  const similarity = cosines(first[layerToAlign.value]!, second[layerToAlign.value]!);
  const choices = choicesIn(similarity);
  const [a, b] = made.sentences;
  return { words: [a.words.map(({ text }) => text), b.words.map(({ text }) => text)], similarity, choices, pairs: mutualPairs(choices) };
});

/** The most similar pair of two different words; of signs and equal words only if there is no other. */
export function strongestPair({ words: [first, second], similarity, pairs }: Alignment): { readonly row: number; readonly column: number } {
  const rank = ({ row, column }: { readonly row: number; readonly column: number }) => {
    const [a, b] = [first[row]!.toLowerCase(), second[column]!.toLowerCase()];
    return similarity.data[row * second.length + column]! + (a !== b && /\p{L}/u.test(a) && /\p{L}/u.test(b) ? 2 : 0);
  };
  return pairs.reduce((best, each) => (rank(each) > rank(best) ? each : best));
}
