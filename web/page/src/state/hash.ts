/** Writes the state into the page's address, so that a link shows what its sender saw. */
import { effect, signal } from '@preact/signals';
import { fromParams, toParams, type Params } from './address.ts';
import { tabFromParams, tabToParams } from './answers.ts';
import { exampleFromParams, exampleToParams } from './example.ts';
import { partIds, type PartId } from './parts.ts';
import { lab, labFromParams, labToParams } from './lab.ts';
import { linesFromParams, linesToParams } from './compare_texts.ts';
import { taskTextsFromParams, taskTextsToParams } from './task_texts.ts';
import { trainFromParams, trainToParams } from '../train/state.ts';
import { initialView, properties, view, type View } from './view.ts';
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
  { write: tabToParams, read: tabFromParams },
  { write: taskTextsToParams, read: taskTextsFromParams },
  { write: whyToParams, read: whyFromParams },
  { write: wordsToParams, read: wordsFromParams },
];

const written = (params: Params) => new URLSearchParams(params as [string, string][]).toString();

/** The part that the address names, as `#train`, alone or in front of the state. */
export const partInAddress = signal<PartId | undefined>(undefined);

const textOf = (hash: string): string => hash.replace(/^#/, '');
const partIn = (hash: string): PartId | undefined => partIds.find((id) => id === textOf(hash).split('&', 1)[0]);
/** Without a property: the page's plain address, or one of its parts. */
const isPlain = (hash: string): boolean => !hash.includes('=') || isTooLong(hash);

export const toHash = (of: View): string => written(toParams(properties, of));

/** Always names the model, because an address without one means the sentiment classifier. */
export function linkHash(): string {
  const own = toParams(properties, view.value);
  const model = own.some(([name]) => name === 'model') ? [] : [['model', view.value.model] as const];
  return written([...model, ...own, ...others.flatMap(({ write }) => write())]);
}

/** Unknown names are ignored; invalid values, or an overlong address, give the first view. */
export const fromHash = (hash: string): Partial<View> => (isTooLong(hash) ? {} : fromParams(properties, new URLSearchParams(textOf(hash))));

const isTooLong = (hash: string) => textOf(hash).length > longestHash;

let goTo: (part: PartId) => void = () => undefined;

/** Writes a part of the page into the address, as a new entry of the history. */
export const enterPart = (part: PartId): void => goTo(part);

/** `fresh`: the view of an address without properties. */
export function keepInHash(fresh: View = initialView): void {
  const readOthers = (hash: string) => {
    const text = textOf(hash);
    unread.value = isTooLong(text)
      ? `Its address has ${text.length} characters after the #, and this page reads at most ${longestHash}. You see the page as it first opens.`
      : undefined;
    const params = new URLSearchParams(unread.value === undefined ? text : '');
    for (const { read } of others) read(params);
  };
  const read = (hash: string) => {
    partInAddress.value = partIn(hash);
    view.value = isPlain(hash) ? fresh : { ...initialView, ...fromHash(hash) };
    readOthers(hash);
  };
  /** The part of the page, then the state, which is left out as long as it is the first visitor's. */
  const hashNow = () => {
    const [hash, part] = [linkHash(), partInAddress.value];
    return [part ?? [], hash === untouched ? [] : hash].flat().join('&');
  };
  const own = { visit: performance.timeOrigin };
  const isOwn = (entry: unknown) => (entry as Partial<typeof own> | null)?.visit === own.visit;
  view.value = fresh;
  const untouched = linkHash();
  read(location.hash);
  let seen = location.hash;
  let timer: number | undefined;
  effect(() => {
    const hash = hashNow();
    // Browsers limit how often the address may change.
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      // The visitor has just entered another address, and its event is still to come.
      if (hash.length > longestHash || location.hash !== seen) return;
      history.replaceState(own, '', hash ? `#${hash}` : location.pathname + location.search);
      seen = location.hash;
    }, 300);
  });
  addEventListener('hashchange', () => {
    seen = location.hash;
    // Going to a part of the page, with Back and Forward as well, keeps what the visitor has done.
    if (isOwn(history.state) || partIn(seen) === textOf(seen)) partInAddress.value = partIn(seen);
    else read(seen);
  });
  goTo = (part) => {
    partInAddress.value = part;
    history.pushState(own, '', `#${hashNow()}`);
    seen = location.hash;
  };
}
