/** Writes the state into the page's address, so that a link shows what its sender saw. */
import { effect, signal } from '@preact/signals';
import { fromParams, toParams, type Params } from './address.ts';
import { exampleFromParams, exampleToParams } from './example.ts';
import { lab, labFromParams, labToParams } from './lab.ts';
import { linesFromParams, linesToParams } from './compare_texts.ts';
import { taskTextsFromParams, taskTextsToParams } from './task_texts.ts';
import { trainFromParams, trainToParams } from '../train/state.ts';
import { initialView, properties, update, view, type View } from './view.ts';
import { whyFromParams, whyToParams } from './why.ts';
import { wordsFromParams, wordsToParams } from './words.ts';

/** Some programs cut longer addresses: none is written or read. */
export const longestHash = 8000;

/** Why the address was not read. */
export const unread = signal<string | undefined>(undefined);

/** Each of the other states has its own parameters. */
const others: readonly { readonly write: () => Params; readonly read: (params: URLSearchParams) => void }[] = [
  { write: exampleToParams, read: exampleFromParams },
  { write: trainToParams, read: trainFromParams },
  { write: () => labToParams(lab.value), read: (params) => (lab.value = labFromParams(params)) },
  { write: linesToParams, read: linesFromParams },
  { write: taskTextsToParams, read: taskTextsFromParams },
  { write: whyToParams, read: whyFromParams },
  { write: wordsToParams, read: wordsFromParams },
];

const written = (params: Params) => new URLSearchParams(params as [string, string][]).toString();

export const toHash = (of: View): string => written(toParams(properties, of));

export const linkHash = (): string => written([...toParams(properties, view.value), ...others.flatMap(({ write }) => write())]);

/** Unknown names are ignored; invalid values, or an overlong address, give the first view. */
export const fromHash = (hash: string): Partial<View> => (isTooLong(hash) ? {} : fromParams(properties, new URLSearchParams(hash.replace(/^#/, ''))));

const isTooLong = (hash: string) => hash.replace(/^#/, '').length > longestHash;

export function keepInHash(): void {
  const readOthers = (hash: string) => {
    const text = hash.replace(/^#/, '');
    unread.value = isTooLong(text)
      ? `Its address has ${text.length} characters after the #, and this page reads at most ${longestHash}. You see the page as it first opens.`
      : undefined;
    const params = new URLSearchParams(unread.value === undefined ? text : '');
    for (const { read } of others) read(params);
  };
  update(fromHash(location.hash));
  readOthers(location.hash);
  let seen = location.hash;
  let timer: number | undefined;
  effect(() => {
    const hash = linkHash();
    // Browsers limit how often the address may change.
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      // The visitor has just entered another address, and its event is still to come.
      if (hash.length > longestHash || location.hash !== seen) return;
      history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
      seen = location.hash;
    }, 300);
  });
  addEventListener('hashchange', () => {
    seen = location.hash;
    const hash = seen.slice(1);
    if (!isTooLong(hash) && document.getElementById(hash)) return;
    view.value = { ...initialView, ...fromHash(hash) };
    readOthers(hash);
  });
}
