import { elements, isPlainObject } from '../args/arrays.js';
import { AttnError, describe, fail, hint, reading, reason } from '../args/error.js';
import { readCallback, readSignal } from '../args/options.js';
import { choice, readMembers, whole } from '../args/signature.js';
import type { BatchOptions, Encoding, Tensor, TextForwardOptions, TextModelOutput } from '../attn.js';
import type { Passage, SearchDocument } from '../search.js';
import { instanceKey } from '../platform/instance.js';
import type { Instance, Kind } from './vectors.js';
import type { Prompted, Prompts } from './prompts.js';

type Awaitable<T> = T | PromiseLike<T>;
export type Id = string | number;
export type Document = SearchDocument & { readonly id: Id };

/** Common to TextModel and its counterpart in attn/worker. */
export interface AnyModel extends Prompted {
  readonly config: Awaitable<Readonly<Record<string, unknown>>>;
  embed(texts: string | readonly string[], options: object): Awaitable<Tensor>;
  tokenize(texts: string, options?: object): Awaitable<Encoding>;
  forward(inputs: Encoding, options?: TextForwardOptions): Awaitable<TextModelOutput>;
  /** Undefined for a model of attn/static. */
  readonly [instanceKey]: Instance | undefined;
}

const has = (value: unknown, name: string): boolean =>
  typeof value === 'object' && value !== null && typeof (value as Record<string, unknown>)[name] === 'function';

export function readModel(op: string, value: unknown): AnyModel {
  const isModel = reading(op, 'model', () => ['embed', 'tokenize', 'forward'].every((name) => has(value, name)) && instanceKey in (value as object));
  if (!isModel) fail('ARGUMENT', op, 'model', describe(value), 'a model that loadModel() or loadStaticModel() returned');
  return value as AnyModel;
}

const isId = (value: unknown): value is Id => (typeof value === 'string' && value !== '') || Number.isSafeInteger(value);
const expectedId = 'a string or a whole number';

export interface GivenDocument {
  readonly id: Id | undefined;
  readonly text: string;
  readonly members: Readonly<Record<string, unknown>>;
}

function readDocument(op: string, argument: string, value: unknown): GivenDocument {
  if (typeof value === 'string') return { id: undefined, text: value, members: {} };
  if (!isPlainObject(value)) fail('ARGUMENT', op, argument, describe(value), 'a string or an object with a text');
  const members = { ...value };
  const { id, text } = members;
  if (typeof text !== 'string') fail('ARGUMENT', op, `${argument}.text`, describe(text), 'a string');
  if (id !== undefined && !isId(id)) fail('ARGUMENT', op, `${argument}.id`, describe(id), expectedId);
  return { id, text, members };
}

export function readDocuments(op: string, value: unknown): GivenDocument[] {
  return reading(op, 'documents', () => {
    if (!Array.isArray(value)) fail('ARGUMENT', op, 'documents', describe(value), 'an Array of strings or of objects with a text');
    return elements(value as unknown[], (each, i) => readDocument(op, `documents[${i}]`, each));
  });
}

export function readIds(op: string, value: unknown): Id[] {
  const read = (id: unknown, name: string) => (isId(id) ? id : fail('ARGUMENT', op, name, describe(id), expectedId));
  return reading(op, 'ids', () => (Array.isArray(value) ? elements(value as unknown[], (id, i) => read(id, `ids[${i}]`)) : [read(value, 'ids')]));
}

export function readQuery(op: string, value: unknown): string {
  return typeof value === 'string' ? value : fail('ARGUMENT', op, 'query', describe(value), 'a string');
}

/** embed() checks the size of batches and the priority. */
export interface CheckedBatchOptions {
  readonly batch: { readonly batchSize: unknown; readonly priority: unknown };
  readonly signal: AbortSignal | undefined;
  readonly onProgress: BatchOptions['onProgress'];
}

const batchNames = ['batchSize', 'priority', 'signal', 'onProgress'] as const satisfies readonly (keyof BatchOptions)[];

function batchOptions(op: string, [batchSize, priority, signal, onProgress]: readonly unknown[]): CheckedBatchOptions {
  return {
    batch: { batchSize, priority },
    signal: readSignal(op, signal),
    onProgress: readCallback(op, 'onProgress', onProgress) as BatchOptions['onProgress'],
  };
}

export function readBatchOptions(op: string, value: unknown): CheckedBatchOptions {
  return reading(op, 'options', () => batchOptions(op, value === undefined ? [] : readMembers(op, 'options', value, batchNames)));
}

/** A missing prompt is the model's. */
export function readPrompts(op: string, value: unknown): Partial<Prompts> {
  if (value === undefined) return {};
  const names = ['document', 'query'];
  const given = readMembers(op, 'prompts', value, names, 'prompts.').map((prompt, i) => {
    if (prompt !== undefined && typeof prompt !== 'string') fail('ARGUMENT', op, `prompts.${names[i]}`, describe(prompt), 'a string');
    return [names[i], prompt] as const;
  });
  return Object.fromEntries(given.filter(([, prompt]) => prompt !== undefined));
}

export const kinds: readonly Kind[] = ['int8', 'float32'];

export type Chunk = (text: string) => Awaitable<unknown>;

export function readLoadOptions(op: string, value: unknown): Chunk | undefined {
  return reading(op, 'options', () => {
    const [chunk] = value === undefined ? [] : readMembers(op, 'options', value, ['chunk']);
    return readCallback(op, 'chunk', chunk) as Chunk | undefined;
  });
}

/** Exceptions of the caller's function become ARGUMENT. */
export async function passagesOf(op: string, chunk: Chunk | undefined, text: string): Promise<Passage[]> {
  if (!chunk) return [{ start: 0, end: text.length }];
  let list: unknown;
  try {
    list = await chunk(text);
  } catch (cause) {
    throw new AttnError('ARGUMENT', `${op}: chunk threw (${reason(cause)})`, { op, argument: 'chunk' }, { cause });
  }
  return reading(op, 'chunk', () => {
    if (!Array.isArray(list)) fail('ARGUMENT', op, 'chunk', `returned something that ${describe(list)}`, 'an Array of places in the text');
    return elements(list as unknown[], (each, i) => {
      const { start, end } = typeof each === 'object' && each !== null ? (each as { start?: unknown; end?: unknown }) : {};
      const isPlace = Number.isInteger(start) && Number.isInteger(end) && 0 <= (start as number) && (start as number) < (end as number);
      if (!isPlace || (end as number) > text.length)
        fail('ARGUMENT', op, `chunk()[${i}]`, describe(each), `{ start, end } with 0 <= start < end <= ${text.length}`);
      return { start: start as number, end: end as number };
    });
  });
}

export interface CheckedIndexOptions extends CheckedBatchOptions {
  readonly kind: Kind;
  readonly prompts: Partial<Prompts>;
  readonly chunk: Chunk | undefined;
}

export function readIndexOptions(op: string, value: unknown): CheckedIndexOptions {
  return reading(op, 'options', () => {
    const names = ['vectors', 'prompts', 'chunk', ...batchNames];
    const [vectors, prompts, chunk, ...rest] = value === undefined ? [] : readMembers(op, 'options', value, names);
    const kind = vectors === undefined ? 'int8' : kinds[choice(op, 'vectors', vectors, kinds)]!;
    const divide = readCallback(op, 'chunk', chunk) as Chunk | undefined;
    return { kind, prompts: readPrompts(op, prompts), chunk: divide, ...batchOptions(op, rest) };
  });
}

/** A cross-encoder. */
export interface Ranker {
  rank(query: string, documents: readonly string[], options: object): Awaitable<{ index: number; score: number }[]>;
}

export interface CheckedSearchOptions {
  readonly k: number;
  readonly hybrid: boolean;
  readonly rerank: Ranker | undefined;
  readonly candidates: number;
  readonly signal: AbortSignal | undefined;
}

export function readSearchOptions(op: string, value: unknown): CheckedSearchOptions {
  return reading(op, 'options', () => {
    const names = ['k', 'hybrid', 'rerank', 'candidates', 'signal'];
    const [k = 10, hybrid = false, rerank, candidates = 50, signal] = value === undefined ? [] : readMembers(op, 'options', value, names);
    if (typeof hybrid !== 'boolean') fail('ARGUMENT', op, 'hybrid', describe(hybrid), 'true or false');
    if (rerank !== undefined && !has(rerank, 'rank')) fail('ARGUMENT', op, 'rerank', describe(rerank), 'a model that loadModel() returned');
    const most = 2 ** 31 - 1;
    const wanted = whole(op, 'k', k, 0, most);
    return {
      k: wanted,
      hybrid,
      rerank: rerank as Ranker | undefined,
      candidates: Math.max(wanted, whole(op, 'candidates', candidates, 1, most)),
      signal: readSignal(op, signal),
    };
  });
}

export const hintOf = (id: Id, known: Iterable<Id>): string | undefined => {
  const [text, list] = [String(id), [...known].slice(0, 1000)];
  // Often a number is passed as a string.
  const other = list.find((each) => String(each) === text);
  return other === undefined ? hint(text, list.map(String)) : `Did you mean the ${typeof other} ${JSON.stringify(other)}?`;
};
