/** The view in the page's address, so that a link shows what its sender saw. Only what differs from the first view is there. */
import { effect, signal } from '@preact/signals';
import { fromParams, toParams, type Params } from './address.ts';
import { exampleFromParams, exampleToParams } from './example.ts';
import { lab, labFromParams, labToParams } from './lab.ts';
import { linesFromParams, linesToParams } from './lines.ts';
import { taskTextsFromParams, taskTextsToParams } from './task_texts.ts';
import { trainFromParams, trainToParams } from '../train/state.ts';
import { initialView, properties, update, view, type View } from './view.ts';
import { whyFromParams, whyToParams } from './why.ts';
import { wordsFromParams, wordsToParams } from './words.ts';

/** Longer addresses are cut off by some programs on the way. None is written, and none is read: it would not be one of ours. */
export const longestHash = 8000;

/** Why nothing of an address was read; undefined: it was. */
export const unread = signal<string | undefined>(undefined);

/** Texts to compare, words, the numbers of the example and the lab: each reads and writes its own part of the address. */
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

/** Everything that the page is set to. */
export const linkHash = (): string => written([...toParams(properties, view.value), ...others.flatMap(({ write }) => write())]);

/** What is not known is left out; what makes no sense is as in the first view, and so is all of an address that is too long. */
export const fromHash = (hash: string): Partial<View> => (isTooLong(hash) ? {} : fromParams(properties, new URLSearchParams(hash.replace(/^#/, ''))));

const isTooLong = (hash: string) => hash.replace(/^#/, '').length > longestHash;

/** Reads the address now and when the visitor changes it, and writes the view into it from then on. */
export function keepInHash(): void {
  const readOthers = (hash: string) => {
    const text = hash.replace(/^#/, '');
    unread.value = isTooLong(text)
      ? `Its address has ${text.length} characters after the #, and this page reads up to ${longestHash}. What you see is the page as it first opens.`
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
    // Browsers refuse more than some hundred changes of the address within a minute or so.
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      // Where the visitor has just written another address, its event is on the way.
      if (hash.length > longestHash || location.hash !== seen) return;
      history.replaceState(null, '', hash ? `#${hash}` : location.pathname + location.search);
      seen = location.hash;
    }, 300);
  });
  addEventListener('hashchange', () => {
    seen = location.hash;
    const hash = seen.slice(1);
    if (!isTooLong(hash) && document.getElementById(hash)) return; // a link to a section
    view.value = { ...initialView, ...fromHash(hash) };
    readOthers(hash);
  });
}
