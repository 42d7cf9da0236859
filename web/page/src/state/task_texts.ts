/** Texts for the tasks in sections/tasks.tsx. Links contain them whichever model is loaded. */
import { signal, type Signal } from '@preact/signals';
import type { Params } from './address.ts';

const texts = {
  names: 'Marie Curie was born in Warsaw and worked in Paris for the Sorbonne. In 1903 she won the Nobel Prize.',
  masked: 'She drank a cup of [MASK].',
  question: 'Who opened the first bakery?',
  context: 'The town had no bread of its own until Mary Smith opened the first bakery in 1897. Her brother drove the flour up the hill.',
  query: 'a film to cheer me up',
  documents: 'A warm and funny film.\nTwo dull hours.\nThe music is loud.\nI laughed from beginning to end.',
} as const;
export type TaskText = keyof typeof texts;
const names = Object.keys(texts) as TaskText[];

export const taskTexts = Object.fromEntries(names.map((name) => [name, signal<string>(texts[name])])) as Readonly<Record<TaskText, Signal<string>>>;

/** Longer texts would crowd the view out of a link. */
const longest = 1500;

export const taskTextsToParams = (): Params =>
  names.flatMap((name) => {
    const text = taskTexts[name].value;
    return text === texts[name] || text.length > longest ? [] : [[`use.${name}`, text] as const];
  });

export function taskTextsFromParams(params: URLSearchParams): void {
  for (const name of names) taskTexts[name].value = params.get(`use.${name}`) ?? texts[name];
}
