import type { Answer, Entity, FilledMask, TextModel as Contract } from '../attn.js';
import { assertTask, inBatches, withTextIndex, encodeOptionsOf, promptOf, type Row, tokenized } from '../model/batches.js';
import { AttnError, describe, fail } from '../args/error.js';
import {
  answerOptions,
  classifyTokensOptions,
  fillMaskOptions,
  rankOptions,
  readDocuments,
  readText,
  readTextOptions,
  readTexts,
} from '../args/model_options.js';
import { readQuestions } from '../args/questions.js';
import type { ModelState } from '../model/model_state.js';
import type { EncodeOptions, Tokenizer } from '../tokenizer/tokenizer.js';
import { answersOf, type AnswerWindow } from './answers.js';
import { entitiesOf, type Scored } from './entities.js';
import { largest } from './largest.js';
import { type Sequence, sequences } from './sequences.js';

type Find = () => ModelState;

interface Window extends Row {
  readonly sequence: Sequence;
  readonly places: readonly number[];
  readonly number: number;
}

function windowsOf(
  op: string,
  tokenizer: Tokenizer,
  texts: readonly string[],
  index: number,
  limit: EncodeOptions,
  stride: number | undefined,
  is: (sequence: Sequence, place: number) => boolean,
): Window[] {
  const all = sequences(tokenizer, op, texts, limit, stride);
  return all.map((sequence, number) => {
    const places = [...sequence.ids.keys()].filter((place) => is(sequence, place));
    return { index, ids: sequence.ids, types: sequence.types, sequence, places, number };
  });
}

/** Places among the ids of all rows. */
function placesOf(rows: readonly Window[]): number[] {
  let start = 0;
  return rows.flatMap(({ ids, places }) => {
    const first = start;
    start += ids.length;
    return places.map((place) => first + place);
  });
}

function split(rows: readonly Window[], { data, dims }: { data: Float32Array; dims: readonly number[] }): Float32Array[][] {
  const width = dims[1]!;
  let at = 0;
  return rows.map(({ places }) => places.map(() => data.slice(at, (at += width))));
}

/** Uses transformers' heuristic if the vocabulary has no marks. */
function isSubword(tokenizer: Tokenizer, text: string, { ids, tokens, starts, ends }: Sequence, place: number): boolean {
  if (ids[place] === tokenizer.unkId) return false;
  const [start, end] = [starts[place]!, ends[place]!];
  if (tokenizer.marksWords) return [...tokens[place]!].length !== [...text.slice(start, end)].length;
  return start > 0 && !text.slice(start - 1, start + 1).includes(' ');
}

export async function classifyTokens(
  find: Find,
  texts: Parameters<Contract['classifyTokens']>[0],
  options?: Parameters<Contract['classifyTokens']>[1],
): Promise<Entity[][]> {
  const op = 'classifyTokens';
  const list = readTexts(op, texts, false) as string[];
  const read = readTextOptions(op, options, classifyTokensOptions);
  const { aggregation = 'simple', stride, ignoreLabels = ['O'] } = read.plain;
  if (aggregation === 'none' && stride !== undefined) fail('CONFIG', op, 'stride', `is ${stride}`, "no stride with aggregation 'none'");
  const { about, tokenizer } = find();
  assertTask(op, about, 'token-classification');
  const limit = encodeOptionsOf(op, about, read.plain);
  const windows = list.map((): Scored[][] => []);
  await inBatches<Window>(op, find, read, {
    count: list.length,
    rowsOf: (index) =>
      withTextIndex(op, index, () =>
        windowsOf(op, tokenizer, [list[index]!], index, limit, stride, ({ texts }, place) => texts[place]! >= 0).filter(
          ({ places }) => places.length > 0,
        ),
      ),
    method: 'classifyTokens',
    others: (rows) => [placesOf(rows), 'token-classification', 'outputs'],
    use: (rows, result) =>
      split(rows, result).forEach((scores, i) => {
        const { index, sequence, places, number } = rows[i]!;
        const text = list[index]!;
        windows[index]![number] = places.map((place, j) => ({
          scores: scores[j]!,
          start: sequence.starts[place]!,
          end: sequence.ends[place]!,
          isSubword: isSubword(tokenizer, text, sequence, place),
        }));
      }),
  });
  return list.map((text, index) => entitiesOf(text, windows[index]!, about.labels!, aggregation, new Set(ignoreLabels)));
}

/** Takes the first token of each target, as transformers. */
function targetIds(tokenizer: Tokenizer, targets: readonly string[]): Set<number> {
  const op = 'fillMask';
  if (targets.length === 0) fail('ARGUMENT', op, 'targets', 'is empty', 'at least one token');
  return new Set(
    targets.map((target, i) => {
      const id = tokenizer.tokenToId(target) ?? tokenizer.split(target, 1).ids[0];
      // The unknown token's score is not that of the target.
      if (id === undefined || (id === tokenizer.unkId && tokenizer.tokenToId(target) === undefined))
        fail('ARGUMENT', op, `targets[${i}]`, describe(target), 'a token, or a text that begins with one');
      return id;
    }),
  );
}

export async function fillMask(find: Find, given: unknown, options?: unknown): Promise<FilledMask[][] | FilledMask[][][]> {
  const op = 'fillMask';
  const list = readTexts(op, given, false) as string[];
  const read = readTextOptions(op, options, fillMaskOptions);
  const { topK = 5, targets } = read.plain;
  const { about, tokenizer } = find();
  assertTask(op, about, 'fill-mask');
  const { maskId } = tokenizer;
  if (maskId === undefined) throw new AttnError('UNSUPPORTED', `${op}: the tokenizer has no mask token`, { op });
  const wanted = targets && targetIds(tokenizer, targets);
  const limit = encodeOptionsOf(op, about, { truncation: false, maxLength: about.positions });
  const isMask = ({ ids }: Sequence, place: number) => ids[place] === maskId;
  const filled: FilledMask[][][] = [];
  await inBatches<Window>(op, find, read, {
    count: list.length,
    rowsOf: (index) =>
      withTextIndex(op, index, () => {
        const windows = windowsOf(op, tokenizer, [list[index]!], index, limit, undefined, isMask);
        if (windows[0]!.places.length === 0) {
          const mask = tokenizer.idToToken(maskId)!;
          fail('ARGUMENT', op, `texts[${index}]`, `has no ${mask}`, 'at least one', `Insert ${mask} where a word should be predicted`);
        }
        return windows;
      }),
    method: 'classifyTokens',
    others: (rows) => [placesOf(rows), 'fill-mask', 'outputs'],
    use: (rows, result) =>
      split(rows, result).forEach((scored, row) => {
        const { index, sequence, places } = rows[row]!;
        filled[index] = scored.map((scores, i) =>
          largest(scores, topK, wanted).map((id) => {
            const ids = sequence.ids.slice();
            ids[places[i]!] = id;
            // With several masks the others stay visible.
            const text = tokenizer.decode(
              ids.filter((each) => !tokenizer.isPadding(each)),
              places.length === 1,
            );
            return { token: tokenizer.decode([id]), id, score: scores[id]!, text };
          }),
        );
      }),
  });
  return typeof given === 'string' ? filled[0]! : filled;
}

/** As in transformers' pipeline. */
const mostOfAnswer = 384;

export async function answer(find: Find, givenQuestion: unknown, givenContext: unknown, options?: unknown): Promise<Answer[] | Answer[][]> {
  const op = 'answer';
  const { isOne, pairs } = readQuestions(givenQuestion, givenContext);
  const read = readTextOptions(op, options, answerOptions);
  const { topK = 1, maxAnswerLength = 15, allowEmpty = false } = read.plain;
  const { about, tokenizer } = find();
  assertTask(op, about, 'question-answering');
  const limit = encodeOptionsOf(op, about, { maxLength: read.plain.maxLength ?? Math.min(about.maxLength, mostOfAnswer) });
  const stride = read.plain.stride ?? Math.min(limit.maxLength >> 1, 128);
  const { clsId } = tokenizer;
  // CLS has the score of "no answer".
  const isSeen = ({ ids, texts }: Sequence, place: number) => texts[place] === 1 || (texts[place]! < 0 && ids[place] === clsId);
  const found = pairs.map((): AnswerWindow[] => []);
  await inBatches<Window>(op, find, read, {
    count: pairs.length,
    rowsOf: (index) => withTextIndex(op, index, () => windowsOf(op, tokenizer, pairs[index]!, index, limit, stride, isSeen)),
    method: 'classifyTokens',
    others: (batch) => [placesOf(batch), 'question-answering', 'tokens'],
    use: (batch, result) =>
      split(batch, result).forEach((scores, i) => {
        const { index, sequence, places, number } = batch[i]!;
        found[index]![number] = answerWindow(sequence, places, scores);
      }),
  });
  const answers = pairs.map(([, context], index) => answersOf(context, found[index]!, { topK, maxAnswerLength, allowEmpty }));
  return isOne ? answers[0]! : answers;
}

function answerWindow(sequence: Sequence, places: readonly number[], scores: readonly Float32Array[]): AnswerWindow {
  const inside = [...places.keys()].filter((i) => sequence.texts[places[i]!] === 1);
  const word = inside.map((i) => sequence.words[places[i]!]!);
  const [first, last] = [new Map<number, number>(), new Map<number, number>()];
  inside.forEach((i, j) => {
    if (!first.has(word[j]!)) first.set(word[j]!, sequence.starts[places[i]!]!);
    last.set(word[j]!, sequence.ends[places[i]!]!);
  });
  const none = scores[0]!;
  return {
    startScores: inside.map((i) => scores[i]![0]!),
    endScores: inside.map((i) => scores[i]![1]!),
    starts: word.map((each) => first.get(each)!),
    ends: word.map((each) => last.get(each)!),
    empty: places[0] === 0 ? Math.fround(none[0]! * none[1]!) : 0,
  };
}

export async function rank(
  find: Find,
  givenQuery: Parameters<Contract['rank']>[0],
  givenDocuments: Parameters<Contract['rank']>[1],
  options?: Parameters<Contract['rank']>[2],
): ReturnType<Contract['rank']> {
  const op = 'rank';
  const query = readText(op, 'query', givenQuery);
  const documents = readDocuments(givenDocuments);
  const read = readTextOptions(op, options, rankOptions);
  const { about, tokenizer } = find();
  assertTask(op, about, 'text-classification');
  if (about.labels!.length !== 1)
    fail(
      'UNSUPPORTED',
      op,
      'the head',
      `has ${about.labels!.length} labels`,
      'one label, as a cross-encoder has',
      'Use classify() for several labels',
    );
  const limit = encodeOptionsOf(op, about, read.plain);
  const asked = promptOf(op, about, read.plain) + query;
  const scores = new Float32Array(documents.length);
  const truncated: boolean[] = [];
  await inBatches(op, find, read, {
    count: documents.length,
    rowsOf: (index) => {
      const row = tokenized(op, tokenizer, [asked, documents[index]!], index, limit);
      truncated[index] = row.truncated;
      return [row];
    },
    method: 'classify',
    others: () => [],
    use: (rows, { data }) => rows.forEach(({ index }, i) => (scores[index] = data[i]!)),
  });
  const order = Array.from(scores, (score, index) => ({ index, score, truncated: truncated[index]! })).sort((a, b) => b.score - a.score);
  return order.slice(0, read.plain.topK ?? order.length);
}
