/** Results of the model's task head for those texts. */
import { signal } from '@preact/signals';
import type { Answer, Entity, FilledMask, RankedDocument } from 'attn';
import { backgroundValue, editedWeights, shownModel } from './background.ts';
import { readLines } from './compare_texts.ts';
import type { LoadedModel } from '../model/loaded.ts';
import { withModel } from './run.ts';
import { taskTexts } from './task_texts.ts';

export const aggregations = ['first', 'simple', 'average', 'max', 'none'] as const;
export type Aggregation = (typeof aggregations)[number];
export const aggregation = signal<Aggregation>('first');

export const mostDocuments = 30;
/** Longer texts would slow down typing. */
export const longestText = 20_000;

interface Made<T> {
  readonly of: LoadedModel;
  readonly texts: readonly string[];
  readonly found: T;
}

const tooLong = (text: string, what: string): string | undefined =>
  text.length > longestText ? `${what} has ${text.length} characters. Keep at most ${longestText}.` : undefined;

export const faultOfNames = (text: string): string | undefined => (text.trim() ? tooLong(text, 'The text') : 'There is no text. Enter one.');
export const faultOfMasked = (text: string, mask: string): string | undefined =>
  text.includes(mask) ? tooLong(text, 'The text') : `There is no ${mask} in the text. Insert one in place of a missing word.`;
export const faultOfQuestion = (text: string): string | undefined => (text.trim() ? undefined : 'There is no question. Enter one.');
export const faultOfContext = (text: string): string | undefined =>
  text.trim() ? tooLong(text, 'The text') : 'There is no text to answer from. Enter one.';
export const faultOfQuery = (text: string): string | undefined => (text.trim() ? undefined : 'There is no query. Enter one.');
export function faultOfDocuments(documents: readonly string[]): string | undefined {
  if (documents.length < 2) return 'Enter at least 2 lines to put in order.';
  return documents.length > mostDocuments ? `There are ${documents.length} lines. Keep at most ${mostDocuments}.` : undefined;
}

function following<T>(
  task: LoadedModel['task'],
  read: () => readonly string[] | undefined,
  run: (of: LoadedModel, texts: readonly string[]) => Promise<T | undefined>,
) {
  return backgroundValue<Made<T>>(() => {
    const [of, texts] = [shownModel.value, read()];
    // Dependency: edited weights change the results.
    void editedWeights.value;
    if (!of || of.task !== task || !texts) return undefined;
    return async () => {
      const found = await withModel(() => run(of, texts));
      return found && { of, texts, found };
    };
  });
}

export const entities = following<readonly Entity[]>(
  'token-classification',
  () => {
    const text = taskTexts.names.value;
    return faultOfNames(text) ? undefined : [text, aggregation.value];
  },
  async (of, [text, how]) => {
    // Overlong texts are split into windows that overlap by `stride` tokens; without aggregation there is one window.
    const options = how === 'none' ? {} : { stride: 16 };
    return (await of.text.classifyTokens([text!], { aggregation: how as Aggregation, ...options }))[0]!;
  },
);

export const filled = following<readonly (readonly FilledMask[])[]>(
  'fill-mask',
  () => {
    const text = taskTexts.masked.value;
    return text.trim() ? [text] : undefined;
  },
  async (of, [text]) => (faultOfMasked(text!, of.maskToken!) ? undefined : of.text.fillMask(text!, { topK: 8 })),
);

export const found = following<readonly Answer[]>(
  'question-answering',
  () => {
    const [question, context] = [taskTexts.question.value, taskTexts.context.value];
    return faultOfQuestion(question) || faultOfContext(context) ? undefined : [question, context];
  },
  (of, [question, context]) => of.text.answer(question!, context!, { topK: 3 }),
);

export const ranks = following<readonly RankedDocument[]>(
  'text-classification',
  () => {
    const [query, documents] = [taskTexts.query.value, readLines(taskTexts.documents.value)];
    return shownModel.value?.labels?.length !== 1 || faultOfQuery(query) || faultOfDocuments(documents) ? undefined : [query, ...documents];
  },
  (of, [query, ...documents]) => of.text.rank(query!, documents),
);
