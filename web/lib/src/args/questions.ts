import { fail } from './error.js';
import { readTexts } from './model_options.js';

/** Pairs two lists element by element, and one text with each element of a list. */
export function readQuestions(question: unknown, context: unknown): { isOne: boolean; pairs: (readonly [question: string, context: string])[] } {
  const op = 'answer';
  const read = (name: string, value: unknown) => {
    const list = readTexts(op, value, false, name) as string[];
    const empty = list.indexOf('');
    const isList = typeof value !== 'string';
    if (empty >= 0) fail('ARGUMENT', op, isList ? `${name}[${empty}]` : name, 'is empty', 'a non-empty text');
    return { length: list.length, isList, at: (index: number) => list[isList ? index : 0]! };
  };
  const [questions, contexts] = [read('question', question), read('context', context)];
  const { length } = questions.isList ? questions : contexts;
  if (contexts.isList && contexts.length !== length)
    fail('ARGUMENT', op, 'context', `has ${contexts.length} elements`, `${length} elements, one for each question`);
  const pairs = Array.from({ length }, (_, i) => [questions.at(i), contexts.at(i)] as const);
  return { isOne: !questions.isList && !contexts.isList, pairs };
}
