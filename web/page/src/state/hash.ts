/** The view in the page's address, so that a link shows what its sender saw. Only what differs from the first view is there. */
import { effect, signal } from '@preact/signals';
import { exampleFromParams, exampleToParams } from './example.ts';
import { lab, labFromParams, labToParams } from './lab.ts';
import { linesFromParams, linesToParams } from './lines.ts';
import { taskTextsFromParams, taskTextsToParams } from './task_texts.ts';
import { trainFromParams, trainToParams } from '../train/state.ts';
import { initialView, update, view, type Edit, type LayerChanges, type View } from './view.ts';
import { whyFromParams, whyToParams } from './why.ts';
import { wordsFromParams, wordsToParams } from './words.ts';

/** Longer addresses are cut off by some programs on the way. None is written, and none is read: it would not be one of ours. */
export const longestHash = 8000;

/** Why nothing of an address was read; undefined: it was. */
export const unread = signal<string | undefined>(undefined);

const edits = (list: readonly Edit[]) => list.map(({ name, index, value }) => `${name}@${index}=${value}`).join(';');

function readEdits(text: string): readonly Edit[] {
  return text.split(';').flatMap((each) => {
    // From the end: a name may hold both signs, a number holds neither.
    const equals = each.lastIndexOf('=');
    const at = each.lastIndexOf('@', equals);
    if (at < 1 || equals < at || equals === each.length - 1) return [];
    const index = whole(each.slice(at + 1, equals), -1);
    const value = Number(each.slice(equals + 1));
    return index >= 0 && Number.isFinite(Math.fround(value)) ? [{ name: each.slice(0, at), index, value }] : [];
  });
}

/** Up to 15 digits: what is written with more is not a place of anything. */
const isWhole = (text: string) => /^\d{1,15}$/.test(text);
const whole = (text: string, least = 0) => (isWhole(text) ? Math.max(least, Number(text)) : least);
const wholes = (text: string) => text.split('.').filter(isWhole).map(Number);
const oneOf = <T extends string>(text: string, values: readonly T[], otherwise: T): T => (values.includes(text as T) ? (text as T) : otherwise);
const fraction = (text: string, most: number, otherwise: number) => {
  const value = Number(text);
  return text !== '' && value >= 0 && value <= most ? value : otherwise;
};

interface Field {
  readonly write: (view: View) => string;
  readonly read: (text: string, view: View) => Partial<View>;
}

const changeOf = (view: View): LayerChanges => view.change ?? { layer: view.layer, factor: 1, score: 'scaled_dot', dropout: 0, seed: 0, edits: [] };

/** In the order in which they are read: later ones may build on earlier ones. */
const fields: Readonly<Record<string, Field>> = {
  model: { write: (v) => v.model, read: (text) => ({ model: text }) },
  dtype: { write: (v) => v.dtype, read: (text) => ({ dtype: oneOf(text, ['int8', 'float32'], 'int8') }) },
  text: { write: (v) => v.text, read: (text) => ({ text }) },
  pair: { write: (v) => v.pair ?? '', read: (pair) => ({ pair }) },
  layer: { write: (v) => String(v.layer + 1), read: (text) => ({ layer: whole(text, 1) - 1 }) },
  head: { write: (v) => String(v.head + 1), read: (text) => ({ head: whole(text, 1) - 1 }) },
  cell: {
    write: ({ cell }) => `${cell.row}.${cell.column}`,
    read: (text) => {
      const [row = 0, column = 0] = wholes(text);
      return { cell: { row, column } };
    },
  },
  locked: { write: (v) => String(Number(v.locked)), read: (text) => ({ locked: text === '1' }) },
  order: { write: (v) => v.order, read: (text) => ({ order: oneOf(text, ['index', 'entropy', 'kind'], 'index') }) },
  special: { write: (v) => v.special, read: (text) => ({ special: oneOf(text, ['show', 'hide', 'renormalise'], 'show') }) },
  threshold: { write: (v) => String(v.threshold), read: (text) => ({ threshold: fraction(text, 1, 0) }) },
  colours: { write: (v) => v.scaleBy, read: (text) => ({ scaleBy: oneOf(text, ['auto', 'head', 'row', 'log'], 'auto') }) },
  part: {
    write: ({ part }) => (part ? `${part.row}.${part.column}.${part.count}` : ''),
    read: (text) => {
      const [row = 0, column = 0, count = 0] = wholes(text);
      return { part: count > 0 ? { row, column, count } : undefined };
    },
  },
  overlay: { write: (v) => v.overlay.join('.'), read: (text) => ({ overlay: wholes(text) }) },
  words: { write: (v) => String(Number(v.mergeWords)), read: (text) => ({ mergeWords: text === '1' }) },
  table: { write: (v) => String(Number(v.asTable)), read: (text) => ({ asTable: text === '1' }) },
  step: { write: (v) => String(v.step + 1), read: (text) => ({ step: whole(text, 1) - 1 }) },
  causal: { write: (v) => String(Number(v.causal)), read: (text) => ({ causal: text === '1' }) },
  padding: { write: (v) => v.padding.join('.'), read: (text) => ({ padding: wholes(text) }) },
  mask: { write: (v) => v.drawn.join('.'), read: (text) => ({ drawn: wholes(text) }) },
  off: { write: (v) => v.off.join('.'), read: (text) => ({ off: wholes(text) }) },
  weights: { write: (v) => edits(v.weights), read: (text) => ({ weights: readEdits(text) }) },
  change: {
    write: ({ change }) => (change ? [change.layer + 1, change.factor, change.score, change.dropout, change.seed].join(',') : ''),
    read: (text, now) => {
      const [layer = '', factor = '', score = '', dropout = '', seed = ''] = text.split(',');
      return {
        change: {
          ...changeOf(now),
          layer: whole(layer, 1) - 1,
          factor: fraction(factor, 1000, 1),
          score: oneOf(score, ['scaled_dot', 'dot', 'general', 'additive'], 'scaled_dot'),
          dropout: fraction(dropout, 0.99, 0),
          seed: whole(seed),
        },
      };
    },
  },
  x: {
    write: ({ change }) => (change ? edits(change.edits) : ''),
    read: (text, now) => ({ change: { ...changeOf(now), edits: readEdits(text) } }),
  },
};

export function toHash(of: View): string {
  const params = new URLSearchParams();
  for (const [name, { write }] of Object.entries(fields)) if (write(of) !== write(initialView)) params.set(name, write(of));
  return params.toString();
}

/** Everything that the page is set to: the view, the numbers of the example and the lab, texts to compare and words. */
export function linkHash(): string {
  const params = new URLSearchParams(toHash(view.value));
  const all = [
    ...exampleToParams(),
    ...trainToParams(),
    ...labToParams(lab.value),
    ...linesToParams(),
    ...taskTextsToParams(),
    ...whyToParams(),
    ...wordsToParams(),
  ];
  for (const [name, text] of all) params.set(name, text);
  return params.toString();
}

/** What is not known is left out; what makes no sense is as in the first view, and so is all of an address that is too long. */
export function fromHash(hash: string): Partial<View> {
  if (isTooLong(hash)) return {};
  const params = new URLSearchParams(hash.replace(/^#/, ''));
  let read: Partial<View> = {};
  for (const [name, field] of Object.entries(fields)) {
    const text = params.get(name);
    if (text !== null) read = { ...read, ...field.read(text, { ...initialView, ...read }) };
  }
  return read;
}

const isTooLong = (hash: string) => hash.replace(/^#/, '').length > longestHash;

/** Reads the address now and when the visitor changes it, and writes the view into it from then on. */
export function keepInHash(): void {
  const readOthers = (hash: string) => {
    const text = hash.replace(/^#/, '');
    unread.value = isTooLong(text)
      ? `Its address has ${text.length} characters after the #, and this page reads up to ${longestHash}. What you see is the page as it first opens.`
      : undefined;
    const params = new URLSearchParams(unread.value === undefined ? text : '');
    exampleFromParams(params);
    lab.value = labFromParams(params);
    linesFromParams(params);
    taskTextsFromParams(params);
    whyFromParams(params);
    wordsFromParams(params);
    trainFromParams(params);
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
