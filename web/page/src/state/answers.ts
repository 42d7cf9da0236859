/** The tabs of "From rows to an answer": one for each use of the last rows. */
import { computed, signal } from '@preact/signals';
import type { Params } from './address.ts';
import { shownModel } from './background.ts';
import type { LoadedModel } from '../model/loaded.ts';

const tabs = ['blank', 'classes', 'names', 'similar', 'task'] as const;
export type AnswerTab = (typeof tabs)[number];

function tabOf({ task, labels }: LoadedModel): AnswerTab {
  if (task === 'fill-mask') return 'blank';
  if (task === 'token-classification') return 'names';
  if (task === 'question-answering' || labels?.length === 1) return 'task';
  return labels ? 'classes' : 'similar';
}

const chosen = signal<AnswerTab | undefined>(undefined);

export const chooseTab = (tab: AnswerTab): void => void (chosen.value = tab);

/** Questions and rankings have a tab only with a model for them. */
export const tabsShown = computed<readonly AnswerTab[]>(() => {
  const of = shownModel.value;
  return tabs.filter((tab) => tab !== 'task' || (of && tabOf(of) === 'task'));
});

export const answerTab = computed<AnswerTab>(() => {
  const of = shownModel.value;
  if (chosen.value && tabsShown.value.includes(chosen.value)) return chosen.value;
  return of ? tabOf(of) : 'blank';
});

export const tabToParams = (): Params => (chosen.value ? [['use.tab', chosen.value]] : []);

export function tabFromParams(params: URLSearchParams): void {
  chosen.value = tabs.find((tab) => tab === params.get('use.tab'));
}
