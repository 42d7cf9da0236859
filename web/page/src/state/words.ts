import { computed, signal } from '@preact/signals';
import type { Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { truncate, longestMessage, longestToken } from '../formats/truncate.ts';
import { firstOf, fromParams, property, text, toParams, type Params, type Properties } from './address.ts';
import { backgroundValue, editedWeights, shownModel } from './background.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { engine } from './model.ts';
import { principalComponents } from './pca.ts';
import { toLengthOne } from './pooling.ts';
import { withModel } from './run.ts';
import { isUnknown } from './text_notes.ts';

export interface WordsView {
  readonly word: string;
  readonly first: string;
  readonly second: string;
  /** a is to b as c is to the answer. */
  readonly analogy: readonly [string, string, string];
  readonly map: string;
  /** Per word. */
  readonly neighbours: number;
}

const properties: Properties<WordsView> = {
  word: property('word', 'funny', text),
  first: property('first', 'good', text),
  second: property('second', 'bad', text),
  analogy: property<WordsView['analogy']>('analogy', ['man', 'king', 'woman'], {
    encode: (words) => words.join(':'),
    decode(words, before) {
      const [a, b, c, ...more] = words.split(':');
      return a === undefined || b === undefined || c === undefined || more.length > 0 ? before : [a, b, c];
    },
  }),
  map: property('map', 'good great bad terrible funny boring boy girl man woman king queen music song', text),
  neighbours: property<number>('neighbours', 2, {
    encode: String,
    decode: (count, before) => (/^\d{1,15}$/.test(count) && Number(count) <= mostMapNeighbours ? Number(count) : before),
  }),
};

export const initialWords = firstOf(properties);

export const wordsView = signal(initialWords);

export function updateWords(changes: Partial<WordsView>): void {
  wordsView.value = { ...wordsView.value, ...changes };
}

export const wordsToParams = (): Params => toParams(properties, wordsView.value, 'words.', 1000);

export function wordsFromParams(params: URLSearchParams): void {
  wordsView.value = { ...initialWords, ...fromParams(properties, params, 'words.') };
}

/** Well-known analogies (Mikolov et al. 2013) within the small vocabulary. */
export const analogies: readonly WordsView['analogy'][] = [
  ['father', 'mother', 'brother'],
  ['he', 'his', 'she'],
  ['boy', 'girl', 'son'],
  ['man', 'king', 'woman'],
  ['man', 'actor', 'woman'],
  ['love', 'loved', 'laugh'],
];
const expected = ['sister', 'her', 'daughter', 'queen', 'actress', 'laughed'];
/** The answer of larger models. */
export const expectedAnswer = (asked: WordsView['analogy']): string | undefined =>
  expected[analogies.findIndex((each) => each.join() === asked.join())];

/** In the mask model's vocabulary the initial words have no good answers; others replace them until the visitor chooses. */
type Replaced = Pick<WordsView, 'analogy' | 'word' | 'map'>;
const ofMasks: Replaced = {
  analogy: analogies[0]!,
  word: 'coffee',
  map: 'dog cat horse bird fish coffee tea milk beer water mother father brother sister son france spain italy germany monday friday sunday',
};
const inUse = <K extends keyof Replaced>(name: K) =>
  computed(() => {
    const [now, initial]: readonly [Replaced, Replaced] = [wordsView.value, initialWords];
    return now[name] === initial[name] && shownModel.value?.id === 'masks' ? ofMasks[name] : now[name];
  });
export const analogyInUse = inUse('analogy');
export const wordInUse = inUse('word');
export const mapInUse = inUse('map');
/** The words for the mask model are many already. */
export const neighboursInUse = computed(() => (mapInUse.value === wordsView.value.map ? wordsView.value.neighbours : 0));

/** Neither a part of a word nor a sign. */
export const isWholeWord = (token: string): boolean => /^\p{L}[\p{L}\p{M}]+$/u.test(token);

export const mostMapWords = 24;
export const mostMapNeighbours = 5;
export const nearestCount = 10;
export const analogyCount = 5;

export interface Word {
  readonly text: string;
  readonly id: number | undefined;
  readonly pieces: readonly string[];
}

export interface Near {
  readonly id: number;
  readonly token: string;
  readonly similarity: number;
}

/** Without the mark that begins a word in some vocabularies. */
export const readable = (token: string): string => truncate(token.replace(/^[Ġ▁](?=.)/, ''), longestToken);

export async function findWords(of: LoadedModel, texts: readonly string[]): Promise<readonly Word[]> {
  if (texts.length === 0) return [];
  // With a space, as inside a sentence: some vocabularies distinguish the two.
  const encoding = await of.text.tokenize(texts.map((text) => ` ${text.trim()}`));
  return Promise.all(
    texts.map(async (each, i) => {
      const text = each.trim();
      const places = encoding.tokens[i]!.flatMap((_, j) => (encoding.offsets[i]![j] ? [j] : []));
      const pieces = places.map((j) => encoding.tokens[i]![j]!);
      const one = pieces.length === 1 && !isUnknown(pieces[0]!);
      // Pieces such as ##ing are typed as in the vocabulary.
      const id = one ? encoding.inputIds[i * encoding.dims[1]! + places[0]!] : text === '' ? undefined : await of.text.tokenToId(text);
      return { text, id, pieces };
    }),
  );
}

export function faultOfWord({ text, id, pieces }: Word): string | undefined {
  if (id !== undefined) return undefined;
  if (text === '') return 'Enter a word.';
  const word = truncate(text, longestToken);
  if (pieces.some(isUnknown) || pieces.length === 0) return `The model does not know “${word}”.`;
  const read = truncate(pieces.slice(0, longestToken).map(readable).join(' + '), longestMessage);
  return `“${word}” is not one token: the model reads it as ${read}. Try a more common word.`;
}

async function named(of: LoadedModel, near: readonly { readonly id: number; readonly similarity: number }[]): Promise<readonly Near[]> {
  return Promise.all(near.map(async ({ id, similarity }) => ({ id, similarity, token: readable((await of.text.idToToken(id)) ?? String(id)) })));
}

/** Dependencies of all values below. */
function needed(): { readonly of: LoadedModel; readonly attn: Attn } | undefined {
  void editedWeights.value;
  return shownModel.value && engine.value && { of: shownModel.value, attn: engine.value };
}

export interface Neighbours {
  readonly word: Word;
  readonly near: readonly Near[];
}

/** (tokens,E) */
export const tableDims = ({ shapes }: LoadedModel): readonly number[] | undefined =>
  [...shapes].find(([name]) => /word_embeddings|tok_embeddings/.test(name))?.[1];

const sampled = 512;

/** With the rows at length 1, |Σ u|² is the sum of the cosines of all pairs, each row with itself included. */
async function typicalCosine(attn: Attn, of: LoadedModel): Promise<number | undefined> {
  const [tokens = 0] = tableDims(of) ?? [];
  const count = Math.min(sampled, tokens);
  if (count < 2) return undefined;
  const table = await of.text.wordEmbeddings;
  const rows = await withModel(() => table.forward(Array.from({ length: count }, (_, i) => Math.floor((i * tokens) / count))));
  const { data, dims } = await toLengthOne(attn, rows);
  const width = dims[1]!;
  let all = 0;
  for (let e = 0; e < width; ++e) {
    let sum = 0;
    for (let i = e; i < data.length; i += width) sum += data[i]!;
    all += sum * sum;
  }
  return (all - count) / (count * (count - 1));
}

/** Mean cosine of two tokens, over a part of the vocabulary. */
export const typical = backgroundValue<number>(() => {
  const given = needed();
  return given && (() => typicalCosine(given.attn, given.of));
});

export const neighbours = backgroundValue<Neighbours>(() => {
  const [given, text] = [needed(), wordInUse.value];
  if (!given) return undefined;
  return async () => {
    const { of } = given;
    const [word] = (await findWords(of, [text])) as [Word];
    if (word.id === undefined) return { word, near: [] };
    const table = await of.text.wordEmbeddings;
    return { word, near: await named(of, await withModel(() => table.nearest(word.id!, nearestCount))) };
  };
});

export interface Similarity {
  readonly words: readonly Word[];
  readonly similarity: number | undefined;
}

export const similarity = backgroundValue<Similarity>(() => {
  const [given, { first, second }] = [needed(), wordsView.value];
  if (!given) return undefined;
  return async () => {
    const { of } = given;
    const words = await findWords(of, [first, second]);
    const [a, b] = words.map(({ id }) => id);
    if (a === undefined || b === undefined) return { words, similarity: undefined };
    const table = await of.text.wordEmbeddings;
    return { words, similarity: await withModel(() => table.similarity(a, b)) };
  };
});

export interface Analogy {
  readonly words: readonly Word[];
  /** The whole words nearest to b - a + c, without the three. */
  readonly near: readonly Near[];
}

export const analogy = backgroundValue<Analogy>(() => {
  const [given, texts] = [needed(), analogyInUse.value];
  if (!given) return undefined;
  return async () => {
    const { of } = given;
    const words = await findWords(of, texts);
    const [a, b, c] = words.map(({ id }) => id);
    if (a === undefined || b === undefined || c === undefined) return { words, near: [] };
    const table = await of.text.wordEmbeddings;
    const near = await named(of, await withModel(() => table.analogy(a, b, c, 8 * analogyCount)));
    return { words, near: near.filter(({ token }) => isWholeWord(token)).slice(0, analogyCount) };
  };
});

export interface MapPoint {
  readonly token: string;
  readonly x: number;
  readonly y: number;
  /** The chosen word whose neighbour it is, by index. */
  readonly of: number | undefined;
}

export interface WordMap {
  readonly points: readonly MapPoint[];
  readonly missing: readonly Word[];
  readonly shares: readonly [number, number];
}

export const readWords = (text: string): readonly string[] => [...new Set(text.split(/[\s,;]+/).filter((word) => word !== ''))];

export function faultOfMap(words: readonly string[]): string | undefined {
  if (words.length < 3) return 'Enter at least 3 words.';
  if (words.length > mostMapWords) return `There are ${words.length} words. Keep at most ${mostMapWords}.`;
  return undefined;
}

async function mapOf(attn: Attn, of: LoadedModel, texts: readonly string[], count: number): Promise<WordMap> {
  const words = await findWords(of, texts);
  const table = await of.text.wordEmbeddings;
  const points = new Map<number, { readonly token: string; readonly of: number | undefined }>();
  for (const { id } of words) if (id !== undefined) points.set(id, { token: readable((await of.text.idToToken(id))!), of: undefined });
  const chosen = [...points.keys()];
  for (const [place, id] of chosen.entries())
    for (const near of await named(of, await withModel(() => table.nearest(id, count))))
      if (!points.has(near.id)) points.set(near.id, { token: near.token, of: place });
  const missing = words.filter(({ id }) => id === undefined);
  if (points.size === 0) return { points: [], missing, shares: [0, 0] };
  const rows: Tensor = await withModel(() => table.forward([...points.keys()]));
  const { points: places, shares } = await principalComponents(await toLengthOne(attn, rows), (x, weight) => attn.linear(x, weight));
  return { points: [...points.values()].map((point, i) => ({ ...point, x: places[i]![0], y: places[i]![1] })), missing, shares };
}

export const wordMap = backgroundValue<WordMap>(() => {
  const [given, map, count] = [needed(), mapInUse.value, neighboursInUse.value];
  const texts = readWords(map);
  if (!given || faultOfMap(texts)) return undefined;
  return () => mapOf(given.attn, given.of, texts, count);
});
