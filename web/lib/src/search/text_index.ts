import type { BatchOptions } from '../attn.js';
import type { Explanation, Hit, Index as Contract, Passage } from '../search.js';
import { allocate, AttnError, describe, errorWithHelp, fail } from '../args/error.js';
import { tell } from '../args/options.js';
import { aborted } from '../platform/abort.js';
import { disposeSymbol } from '../platform/dispose.js';
import { yieldEvery30ms } from '../platform/event_loop.js';
import { instanceKey } from '../platform/instance.js';
import {
  type AnyModel,
  type CheckedBatchOptions,
  type Chunk,
  type Document,
  type GivenDocument,
  hintOf,
  type Id,
  passagesOf,
  type Ranker,
  readBatchOptions,
  readDocuments,
  readIds,
  readIndexOptions,
  readLoadOptions,
  readModel,
  readQuery,
  readSearchOptions,
} from './arguments.js';
import { explain } from './explain.js';
import { type Prompts, promptsOf } from './prompts.js';
import { fileOf, parsed } from './file.js';
import { best, fused } from './ranking.js';
import { type Kind, normalize, quantized, type Rows, Vectors } from './vectors.js';
import { Words } from './words.js';

/** A part of a document with its own vector. */
interface Row extends Passage {
  readonly document: Document;
}

const textOf = ({ document, start, end }: Row): string => document.text.slice(start, end);

/** Texts embedded at once, so that few vectors are float32 at a time. */
const atOnce = 1024;
const made = Symbol();

/** Its vector identifies a model: other weights give another one. */
const testText = 'The quick brown fox jumps over the lazy dog, 1234567890.';
/** The vectors of one model in float32 and int8 have 0.99 and more. */
const leastSimilarity = 0.98;

async function testVector(op: string, model: AnyModel): Promise<Float32Array> {
  const { data } = await model.embed(testText, { prompt: '' });
  normalize(op, 'model', data);
  return data;
}

interface Settings {
  readonly kind: Kind;
  readonly prompts: Partial<Prompts>;
  readonly chunk: Chunk | undefined;
}

let assertUsable: (op: string, self: Index) => void;

export class Index implements Contract {
  readonly #model: AnyModel;
  readonly #prompts: Partial<Prompts>;
  readonly #test: Float32Array;
  readonly #chunk: Chunk | undefined;
  readonly #vectors: Vectors;
  /** By row; undefined if the document was removed. */
  #passages: (Row | undefined)[] = [];
  readonly #documents = new Map<Id, Document>();
  /** Made by the first search that needs it. */
  #words: Words | undefined;
  /** The query of each hit, for explain(). */
  readonly #queries = new WeakMap<object, string>();
  #nextId = 0;
  #removed = 0;
  /** Additions, removals and scans run one after the other. */
  #turn: Promise<unknown> = Promise.resolve();
  #disposed = false;

  constructor(key: typeof made, model: AnyModel, test: Float32Array, settings: Settings) {
    if (key !== made) fail('ARGUMENT', 'Index', 'new', 'is called', 'Index.from()');
    this.#model = model;
    this.#test = test;
    this.#prompts = settings.prompts;
    this.#chunk = settings.chunk;
    this.#vectors = new Vectors(model[instanceKey], test.length, settings.kind);
  }

  static {
    assertUsable = (op, self) => {
      if (typeof self !== 'object' || self === null || !(#disposed in self))
        throw new AttnError('WRONG_INSTANCE', `${op}: this is another object, expected an Index`, { op });
      if (self.#disposed) throw new AttnError('DISPOSED', `${op}: this index was disposed of`, { op });
    };
  }

  static async from(given: unknown, documents: unknown, options?: unknown): Promise<Index> {
    const op = 'Index.from';
    const model = readModel(op, given);
    const list = readDocuments(op, documents);
    const { kind, prompts, chunk, ...batch } = readIndexOptions(op, options);
    const index = new Index(made, model, await testVector(op, model), { kind, prompts, chunk });
    try {
      await index.#add(op, list, batch);
    } catch (error) {
      index.dispose();
      throw error;
    }
    return index;
  }

  static async load(given: unknown, bytes: unknown, options?: unknown): Promise<Index> {
    const op = 'Index.load';
    const model = readModel(op, given);
    const chunk = readLoadOptions(op, options);
    const { kind, rows, test, prompts, documents, places } = parsed(op, bytes);
    const own = await testVector(op, model);
    if (own.length !== test.length) {
      const expected = `the model of the index, whose vectors have ${test.length}`;
      fail('MISMATCH', op, 'model', `has vectors of ${own.length} numbers`, expected);
    }
    const similarity = own.reduce((sum, value, e) => sum + value * test[e]!, 0);
    if (!(similarity >= leastSimilarity)) {
      const got = `has another vector for a test text (cosine ${similarity.toFixed(3)})`;
      fail('MISMATCH', op, 'model', got, 'the model that the index was made with');
    }
    const index = new Index(made, model, test, { kind, prompts, chunk });
    index.#vectors.append(rows);
    for (const document of documents) index.#documents.set(document.id, document);
    for (let i = 0; i < places.length; i += 3) index.#passages.push({ document: documents[places[i]!]!, start: places[i + 1]!, end: places[i + 2]! });
    return index;
  }

  get size(): number {
    assertUsable('size', this);
    return this.#documents.size;
  }

  async add(documents: unknown, options?: unknown): Promise<Id[]> {
    assertUsable('add', this);
    return this.#add('add', readDocuments('add', documents), readBatchOptions('add', options));
  }

  async remove(ids: unknown): Promise<void> {
    const op = 'remove';
    assertUsable(op, this);
    const list = readIds(op, ids);
    await this.#alone(op, async () => {
      for (const id of list)
        if (!this.#documents.has(id)) {
          const message = `${op}: the index has no document with the id ${JSON.stringify(id)}, expected an id of the index`;
          throw errorWithHelp('OUT_OF_RANGE', message, hintOf(id, this.#documents.keys()), { op, argument: 'ids', got: id });
        }
      const gone = new Set(list.map((id) => this.#documents.get(id)!));
      for (const id of list) this.#documents.delete(id);
      this.#passages.forEach((passage, row) => {
        if (!passage || !gone.has(passage.document)) return;
        this.#passages[row] = undefined;
        this.#words?.remove(row);
        ++this.#removed;
      });
      if (2 * this.#removed > this.#passages.length) await this.#compact();
    });
  }

  async search(query: unknown, options?: unknown): Promise<Hit[]> {
    const op = 'search';
    assertUsable(op, this);
    const text = readQuery(op, query);
    const { k, hybrid, rerank, candidates, signal } = readSearchOptions(op, options);
    const vector = await this.#embedQuery(op, text, signal);
    const depth = hybrid || rerank ? candidates : k;
    const hits = await this.#alone(op, async () => {
      const cosines = await this.#vectors.scan(vector);
      if (signal?.aborted) throw aborted(signal, op);
      const nearest = best(cosines, depth, (row) => this.#passages[row] !== undefined);
      if (!hybrid) return nearest.map((row) => this.#hit(row, cosines[row]!, cosines[row]!));
      const byWords = (await this.#indexOfWords(op, signal)).best(text, depth);
      const wordScores = new Map(byWords.map(({ row, score }) => [row, score]));
      const both = fused([nearest, byWords.map(({ row }) => row)]).slice(0, depth);
      return both.map(({ row, score }) => ({ ...this.#hit(row, score, cosines[row]!), wordScore: wordScores.get(row) ?? 0 }));
    });
    const found = await this.#reranked(rerank, text, hits, k, signal);
    for (const hit of found) this.#queries.set(hit, text);
    return found;
  }

  async #reranked(rerank: Ranker | undefined, text: string, hits: readonly Hit[], k: number, signal: AbortSignal | undefined): Promise<Hit[]> {
    if (!rerank || hits.length === 0) return hits.slice(0, k);
    const ranked = await rerank.rank(text, hits.map((hit) => hit.text), { topK: Math.max(1, k), priority: 'user', signal }); // prettier-ignore
    return ranked.slice(0, k).map(({ index, score }) => ({ ...hits[index]!, score }));
  }

  async explain(hit: unknown): Promise<Explanation> {
    const op = 'explain';
    assertUsable(op, this);
    const query = typeof hit === 'object' && hit !== null ? this.#queries.get(hit) : undefined;
    if (query === undefined) fail('ARGUMENT', op, 'hit', describe(hit), 'a hit of this index', 'Pass the object that search() returned');
    return explain(this.#model, await this.#allPrompts(), query, hit as Hit);
  }

  async save(...others: readonly unknown[]): Promise<Uint8Array<ArrayBuffer>> {
    const op = 'save';
    if (others.length > 0) fail('ARGUMENT', op, 'path', describe(others[0]), 'no argument', 'save() returns the bytes of the file');
    assertUsable(op, this);
    return this.#alone(op, async () => {
      const kept = [...this.#passages.keys()].filter((row) => this.#passages[row]);
      const documents = [...this.#documents.values()];
      const numbers = new Map(documents.map((document, i) => [document, i]));
      const places = new Int32Array(3 * kept.length);
      kept.forEach((row, i) => {
        const { document, start, end } = this.#passages[row]!;
        places.set([numbers.get(document)!, start, end], 3 * i);
      });
      const { kind } = this.#vectors;
      return fileOf(op, { kind, rows: await this.#vectors.rows(kept), test: this.#test, prompts: this.#prompts, documents, places });
    });
  }

  dispose(): void {
    if (this.#disposed) return;
    this.#disposed = true;
    this.#vectors.dispose();
    this.#words = undefined;
    this.#passages = [];
    this.#documents.clear();
  }

  [disposeSymbol](): void {
    this.dispose();
  }

  /** Waits until all earlier work has ended. */
  #alone<T>(op: string, work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(() => {
      assertUsable(op, this);
      return work();
    });
    this.#turn = result.catch(() => {});
    return result;
  }

  #hit(row: number, score: number, similarity: number): Hit {
    const { document, start, end } = this.#passages[row]!;
    return { id: document.id, text: document.text.slice(start, end), start, end, score, similarity, document };
  }

  async #indexOfWords(op: string, signal: AbortSignal | undefined): Promise<Words> {
    if (this.#words) return this.#words;
    const words = new Words();
    const sometimes = yieldEvery30ms();
    for (const [row, passage] of this.#passages.entries()) {
      if (passage) words.add(row, textOf(passage));
      await sometimes();
      if (signal?.aborted) throw aborted(signal, op);
    }
    return (this.#words = words);
  }

  async #add(op: string, given: readonly GivenDocument[], options: CheckedBatchOptions): Promise<Id[]> {
    this.#refuseUsedIds(op, given);
    const passages: (Passage & { readonly text: string; readonly of: number })[] = [];
    const sometimes = yieldEvery30ms();
    for (const [of, { text }] of given.entries()) {
      for (const { start, end } of await passagesOf(op, this.#chunk, text)) passages.push({ text: text.slice(start, end), start, end, of });
      await sometimes();
      if (options.signal?.aborted) throw aborted(options.signal, op);
    }
    const rows = await this.#embed(op, passages.map(({ text }) => text), options); // prettier-ignore
    return this.#alone(op, async () => {
      // Another addition may have ended meanwhile.
      this.#refuseUsedIds(op, given);
      const ids = new Set(given.map(({ id }) => id));
      const documents = given.map(({ id, text, members }): Document => {
        while (id === undefined && (ids.has(this.#nextId) || this.#documents.has(this.#nextId))) ++this.#nextId;
        return Object.freeze({ ...members, id: id ?? this.#nextId++, text });
      });
      this.#vectors.append(rows);
      for (const document of documents) this.#documents.set(document.id, document);
      passages.forEach(({ text, start, end, of }) => {
        const row = this.#passages.push({ document: documents[of]!, start, end }) - 1;
        this.#words?.add(row, text);
      });
      return documents.map(({ id }) => id);
    });
  }

  #refuseUsedIds(op: string, given: readonly GivenDocument[]): void {
    const seen = new Set<Id>();
    for (const [i, { id }] of given.entries()) {
      if (id === undefined) continue;
      if (this.#documents.has(id)) fail('ARGUMENT', op, `documents[${i}].id`, describe(id), 'an id that the index does not have', 'Remove it first');
      if (seen.has(id)) fail('ARGUMENT', op, `documents[${i}].id`, describe(id), 'an id that no other document has');
      seen.add(id);
    }
  }

  async #embed(op: string, texts: readonly string[], { batch, signal, onProgress }: CheckedBatchOptions): Promise<Rows> {
    const { kind, width } = this.#vectors;
    const [total, size] = [texts.length, texts.length * width];
    const data = allocate(op, size, () => (kind === 'int8' ? new Int8Array(size) : new Float32Array(size)), 'vectors');
    const scales = new Float32Array(kind === 'int8' ? total : 0);
    const { document: prompt } = await this.#allPrompts();
    const sometimes = yieldEvery30ms();
    for (let first = 0; first < total; first += atOnce) {
      const part = texts.slice(first, first + atOnce);
      // Each part starts with 0, which the one before has already reported.
      const progress: BatchOptions['onProgress'] =
        onProgress && (({ done }) => (first > 0 && done === 0 ? undefined : tell(op, onProgress, { done: first + done, total })));
      if (!this.#vectors.hasInstance) {
        await sometimes();
        if (signal?.aborted) throw aborted(signal, op);
        progress?.({ done: 0, total: part.length });
      }
      const vectors = await this.#model.embed(part, this.#optionsOf(prompt, { ...batch, signal, onProgress: progress }));
      if (!this.#vectors.hasInstance) progress?.({ done: part.length, total: part.length });
      for (let i = 0; i < part.length; ++i) normalize(op, `text ${first + i}`, vectors.data.subarray(i * width, (i + 1) * width));
      const rows = kind === 'int8' ? quantized(vectors.data, width) : { data: vectors.data, scales };
      data.set(rows.data, first * width);
      if (kind === 'int8') scales.set(rows.scales, first);
    }
    return { data, scales };
  }

  async #embedQuery(op: string, query: string, signal: AbortSignal | undefined): Promise<Float32Array> {
    const { query: prompt } = await this.#allPrompts();
    const { data } = await this.#model.embed(query, this.#optionsOf(prompt, { priority: 'user', signal }));
    normalize(op, 'query', data);
    return data;
  }

  /** Models of attn/static take a few milliseconds for a part. */
  #optionsOf(prompt: string, others: object): object {
    return this.#vectors.hasInstance ? { prompt, ...others } : { prompt };
  }

  async #allPrompts(): Promise<Prompts> {
    return { ...(await promptsOf(this.#model)), ...this.#prompts };
  }

  async #compact(): Promise<void> {
    const rows = [...this.#passages.keys()].filter((row) => this.#passages[row]);
    await this.#vectors.retain(rows);
    this.#passages = rows.map((row) => this.#passages[row]);
    this.#words = undefined; // it knows texts by their rows
    this.#removed = 0;
  }
}
