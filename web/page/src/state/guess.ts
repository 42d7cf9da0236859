/** Words for a blank, or the answer of the model's other head. */
import { batch, computed, effect, signal, untracked } from '@preact/signals';
import type { Encoding, Tensor } from 'attn';
import { openingModel } from '../model/known.ts';
import { answerFunction, isDecoder, type LoadedModel } from '../model/loaded.ts';
import { answers, baseline, hasWords, run, withModel, type Run } from './run.ts';
import { model } from './model.ts';
import { blanksOf, strongest } from './strongest.ts';
import { cellChosen } from './pointed.ts';
import { hasChanges } from './changes.ts';
import { lineOf, sourcesOf } from './map_view.ts';
import { explain, newestOnly } from './status.ts';
import { view } from './view.ts';

export interface Guess {
  readonly word: string;
  /** Probability. */
  readonly share: number;
}

export interface Guesses {
  readonly run: Run;
  readonly query: number;
  /** `word`: the query is a word, and its guesses are for a blank in its place. `next`: they are for the word after it. */
  readonly kind: 'blank' | 'word' | 'next' | 'answer';
  readonly list: readonly Guess[];
  /** Those of the unchanged model, the best first, if the model was changed. */
  readonly before?: readonly Guess[] | undefined;
}

const most = 4;
/** The number of blanks that are filled although they do not ask. */
const mostBlanks = 4;

export const guessesNext = (): boolean => model.value !== undefined && isDecoder(model.value);

/** The model in the first figure, or the one that the page opens with, fills blanks. */
export const fillsBlanks = (): boolean => (model.value ? model.value.maskToken !== undefined : openingModel(view.value.model) === 'masks');

export const queryAsked = signal<number | undefined>(undefined);

/** If the focus is on a special token, the query is that of the strongest link. */
export const query = computed<number>(() => {
  const of = run.value;
  if (!of) return 0;
  const sources = sourcesOf(lineOf(of));
  const isWord = (i: number | undefined): i is number => i !== undefined && sources[i] !== undefined;
  return [queryAsked.value, cellChosen.value.row].find(isWord) ?? strongest.value.row;
});

/** "Ġgood" -> "good" */
const plain = (token: string): string => token.replace(/^[Ġ▁]/, '').trim();

export function largestOf({ data, dims }: Tensor, row: number, count: number): readonly { readonly id: number; readonly share: number }[] {
  const width = dims[2]!;
  const logits = data.subarray(row * width, (row + 1) * width);
  const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const sum = logits.reduce((all, logit) => all + Math.exp(logit - largest), 0);
  const best: number[] = [];
  logits.forEach((logit, id) => {
    if (best.length === count && logit <= logits[best.at(-1)!]!) return;
    const at = best.findIndex((other) => logits[other]! < logit);
    best.splice(at < 0 ? best.length : at, 0, id);
    if (best.length > count) best.pop();
  });
  return best.map((id) => ({ id, share: Math.exp(logits[id]! - largest) / sum }));
}

/** A decoder's vocabulary spells bytes, so the word is what the token decodes to; without ink it is quoted. */
export async function wordOf(of: LoadedModel, id: number): Promise<string> {
  const token = plain((await of.text.idToToken(id)) ?? `#${id}`);
  if (!isDecoder(of)) return token;
  const text = await of.text.decode([id]);
  if (text === '' || text.includes('\ufffd')) return token;
  const word = text.trim();
  return /^$|\p{Cc}/u.test(word) ? JSON.stringify(text) : word;
}

export const largestWords = (of: LoadedModel, logits: Tensor, row: number, count: number): Promise<readonly Guess[]> =>
  Promise.all(largestOf(logits, row, count).map(async ({ id, share }) => ({ word: await wordOf(of, id), share })));

export async function withBlank(of: LoadedModel, inputs: Encoding, token: number): Promise<Encoding> {
  const id = await of.text.tokenToId(of.maskToken!);
  if (id === undefined) return inputs;
  const inputIds = inputs.inputIds.slice();
  inputIds[token] = id;
  return { ...inputs, inputIds };
}

/** fillMask reads a text alone, and not more of it than the model does. */
const canFill = (of: Run): boolean => of.view.pair === undefined && !of.encoding.truncated[0];

/** A word is replaced by a blank. */
async function filledBy(of: Run, token: number, topK: number): Promise<readonly Guess[]> {
  const { text } = of.view;
  const blanks = blanksOf(of);
  const [start, end] = of.encoding.offsets[0]![token]!;
  const written = blanks.includes(token) ? text : `${text.slice(0, start)}${of.model.maskToken!}${text.slice(end)}`;
  const filled = await withModel(() => of.model.text.fillMask(written, { topK }));
  const before = blanks.filter((blank) => blank < token).length;
  return filled[before]!.map(({ token: word, score }) => ({ word: plain(word), share: score }));
}

async function wordsFor(of: Run, token: number, isBlank: boolean): Promise<readonly Guess[]> {
  const { model, inputs, options } = of;
  if (canFill(of) && !hasChanges(of.view)) return filledBy(of, token, most);
  const given = isBlank ? inputs : await withBlank(model, inputs, token);
  const { logits } = await withModel(() =>
    model.text.forward(given, { ...options, outputAttentions: false, outputHiddenStates: false, outputLogits: true }),
  );
  return largestWords(model, logits!, token, most);
}

/** The words after a token, from its last hidden state. */
async function wordsAfter({ model, hiddenStates }: Run, token: number, count: number): Promise<readonly Guess[]> {
  const { data, dims } = hiddenStates.at(-1)!;
  const width = dims[2]!;
  const row = { data: data.slice(token * width, (token + 1) * width), dims: [1, 1, width] };
  return largestWords(model, await withModel(() => model.text.unembed(row)), 0, count);
}

/** As many, so that the words of the changed model are mostly among them. */
const mostBefore = 50;

/** Edited weights are in the model itself, so they have no guess without them. */
async function listBefore(of: Run, token: number): Promise<readonly Guess[] | undefined> {
  const { model, view: asked } = of;
  if (!hasChanges(asked) || asked.weights.length > 0) return undefined;
  if (model.task === 'fill-mask') return canFill(of) && blanksOf(of).includes(token) ? filledBy(of, token, mostBefore) : undefined;
  const base = baseline.peek();
  if (isDecoder(model)) return base?.model === model && base.view.text === asked.text ? wordsAfter(base, token, mostBefore) : undefined;
  if (!model.labels || base?.model !== model || answerFunction(model) === 'identity') return undefined;
  return answers(base).map(({ label, score }) => ({ word: label, share: score }));
}

async function classOf(of: Run, token: number): Promise<readonly Guess[]> {
  const { model, inputs, options } = of;
  const { logits } = await withModel(() =>
    model.text.forward(inputs, { ...options, outputAttentions: false, outputHiddenStates: false, outputLogits: true }),
  );
  return largestOf(logits!, token, most).map(({ id, share }) => ({ word: model.tokenLabels![id]!, share }));
}

function guessesFor(of: Run, token: number): Promise<readonly Guess[]> | readonly Guess[] {
  const { task, labels } = of.model;
  if (!hasWords(of)) return [];
  const isWord = of.encoding.offsets[0]![token] !== null;
  if (!isWord && task !== 'text-classification') return [];
  if (task === 'fill-mask') return wordsFor(of, token, blanksOf(of).includes(token));
  if (isDecoder(of.model)) return wordsAfter(of, token, most);
  if (task === 'token-classification') return classOf(of, token);
  if (task !== 'text-classification' || !labels || answerFunction(of.model) === 'identity') return [];
  return answers(of)
    .slice(0, most)
    .map(({ label, score }) => ({ word: label, share: score }));
}

export const guesses = signal<Guesses | undefined>(undefined);
/** The best word of each blank that was the query, by the blank's token. */
export const filledBlanks = signal<{ readonly run: Run; readonly words: ReadonlyMap<number, string> } | undefined>(undefined);
export const guessFailure = signal<string | undefined>(undefined);

function fill(of: Run, token: number, word: string): void {
  const known = filledBlanks.peek();
  filledBlanks.value = { run: of, words: new Map([...(known?.run === of ? known.words : []), [token, word]]) };
}

/** The blanks of a text in which a word asks. */
async function fillOthers(of: Run): Promise<void> {
  for (const token of blanksOf(of).slice(0, mostBlanks)) {
    const known = filledBlanks.peek();
    if (known?.run === of && known.words.has(token)) continue;
    const [best] = await wordsFor(of, token, true);
    if (run.peek() !== of) return;
    fill(of, token, best!.word);
  }
}

/** Follows the query at once: the guesses belong to the first picture. */
export function followGuesses(): void {
  const inTurn = newestOnly();
  effect(() => {
    const [of, token] = [run.value, query.value];
    if (!of) return;
    const { task } = of.model;
    const kind = isDecoder(of.model) ? 'next' : task !== 'fill-mask' ? 'answer' : blanksOf(of).includes(token) ? 'blank' : 'word';
    const job = async () => {
      try {
        const list = await guessesFor(of, token);
        const before = await listBefore(of, token);
        if (run.peek() !== of) return;
        batch(() => {
          guesses.value = { run: of, query: token, kind, list, before };
          guessFailure.value = undefined;
          if (kind === 'blank') fill(of, token, list[0]!.word);
        });
        if (kind === 'word') await fillOthers(of);
      } catch (error) {
        // A disposed model may fail; its successor runs next.
        if (run.peek() === of) guessFailure.value = explain(error);
      }
    };
    untracked(() => void inTurn(job));
  });
}
