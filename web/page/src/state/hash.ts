/** The state in the address, so that a link shows what its sender saw. */
import { batch, effect, signal } from '@preact/signals';
import { fromParams, toParams, type Params } from './address.ts';
import { partIds, type PartId } from './parts.ts';
import { initialView, properties, view, type View } from './view.ts';

/** Some programs cut longer addresses: none is written or read. */
export const longestHash = 8000;

export const unread = signal<string | undefined>(undefined);

/** A state of the parts below the first picture, with its own parameters in the address. */
export interface OtherState {
  readonly write: () => Params;
  readonly read: (params: URLSearchParams) => void;
}

/** Until their code is loaded, their parameters stay as the address has them. */
const others = signal<readonly OtherState[]>([]);
const waiting = signal<Params>([]);
const ofView = new Set(Object.values(properties).flatMap(({ address }) => Object.keys(address)));

/** Called once. */
export function addStates(states: readonly OtherState[]): void {
  if (others.peek().length > 0) return;
  batch(() => {
    const params = new URLSearchParams(waiting.peek() as [string, string][]);
    for (const { read } of states) read(params);
    others.value = states;
    waiting.value = [];
  });
}

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
  return written([...model, ...own, ...others.value.flatMap(({ write }) => write()), ...waiting.value]);
}

/** Unknown names are ignored; invalid values, or an overlong address, give the first view. */
export const fromHash = (hash: string): Partial<View> => (isTooLong(hash) ? {} : fromParams(properties, new URLSearchParams(textOf(hash))));

const isTooLong = (hash: string) => textOf(hash).length > longestHash;

let goTo: (part: PartId) => void = () => undefined;

export const enterPart = (part: PartId): void => goTo(part);

/** `fresh`: the view of an address without properties. */
export function keepInHash(fresh: View = initialView): void {
  const readOthers = (hash: string) => {
    const text = textOf(hash);
    unread.value = isTooLong(text)
      ? `Its address has ${text.length} characters after the #, and this page reads at most ${longestHash}. You see the page as it first opens.`
      : undefined;
    const params = new URLSearchParams(unread.value === undefined ? text : '');
    for (const { read } of others.peek()) read(params);
    waiting.value = others.peek().length > 0 ? [] : [...params].filter(([name]) => !ofView.has(name));
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
    // With Back and Forward as well, keeps what the visitor has done.
    if (isOwn(history.state) || partIn(seen) === textOf(seen)) partInAddress.value = partIn(seen);
    else read(seen);
  });
  goTo = (part) => {
    partInAddress.value = part;
    history.pushState(own, '', `#${hashNow()}`);
    seen = location.hash;
  };
}
