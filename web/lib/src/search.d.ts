/// <reference lib="esnext.disposable" />
/**
 * `attn/search`: semantic search over texts with the vectors of a model of `attn`, `attn/worker` or `attn/static`. It is
 * a separate file, which a page loads only if it imports it.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { Index } from 'attn/search';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/sentiment'); // or another, such as all-MiniLM-L6-v2
 * const index = await Index.from(model, ['a warm film', 'a cold soup']);
 * const [best] = await index.search('warm films');
 * console.log(best.text); // a warm film
 * ```
 * @packageDocumentation
 */
import type { BatchOptions, TextModel } from './attn.js';
import type { AbortSignal, Bytes } from './host.js';
import type { StaticModel } from './static.js';
import type { TextModel as WorkerTextModel } from './worker.js';

export { AttnError } from './attn.js';
export type { BatchOptions, ErrorCode, TextModel } from './attn.js';
export type { StaticModel } from './static.js';

/** A model of `attn`, `attn/worker` or `attn/static`. */
export type SearchModel = TextModel | WorkerTextModel | StaticModel;

/** A text to be found, with any further members, such as a title or a URL. */
export interface SearchDocument {
  /** Different from all other ids of the index. Default a number that is not in use. */
  readonly id?: string | number | undefined;
  readonly text: string;
  readonly [member: string]: unknown;
}

/** A part of a text: `text.slice(start, end)`. */
export interface Passage {
  readonly start: number;
  readonly end: number;
}

/** Options of {@link Index.load}. */
export interface LoadIndexOptions {
  /**
   * Divides a document's text into passages, each with its own vector, such as `(text) => chunk(tokenizer, text, …)`
   * with `attn/chunk`. A hit is a passage, and a document without passages is never found. By default a text is one
   * passage, of which the model reads as many tokens as it can take.
   */
  chunk?: ((text: string) => readonly Passage[] | PromiseLike<readonly Passage[]>) | undefined;
}

/** Options of {@link Index.from}. */
export interface IndexOptions extends BatchOptions, LoadIndexOptions {
  /**
   * Storage of the vectors. `'int8'`, the default, needs a quarter of the memory of `'float32'`, is faster, and changes
   * similarities by about 0.002.
   */
  vectors?: 'int8' | 'float32' | undefined;
  /**
   * Prompts in front of the documents and of the queries, such as `{ document: 'passage: ', query: 'query: ' }` for E5.
   * Default those of the model ({@link TextModel.prompts}): `query`, and the first of `document`, `passage` and `corpus`
   * that is not empty.
   */
  prompts?: { readonly document?: string | undefined; readonly query?: string | undefined } | undefined;
}

/** Options of {@link Index.search}. */
export interface SearchOptions {
  /** Maximal number of hits, from 0. Default 10. */
  k?: number | undefined;
  /**
   * Also ranks the texts by the words that they share with the query (BM25), and merges both rankings by reciprocal
   * rank fusion: score = Σ 1 / (60 + rank) (Cormack et al. 2009). Finds names, numbers and rare words that a model does
   * not know. The first such search reads all texts; later ones take a few milliseconds. Default false.
   */
  hybrid?: boolean | undefined;
  /**
   * A cross-encoder: its `rank` reads the query together with each candidate, and its scores
   * order the hits. Slower and more accurate than vectors. Default none.
   */
  rerank?: TextModel | WorkerTextModel | undefined;
  /** Number of texts of each ranking that are merged, and of texts that are reranked; at least `k`. Default 50. */
  candidates?: number | undefined;
  /** Ends the search with `ABORTED`. */
  signal?: AbortSignal | undefined;
}

/** A place that {@link Index.search} found. */
export interface Hit {
  /** Id of the document. */
  id: string | number;
  /** The part of the document's text that was found: `document.text.slice(start, end)`. */
  text: string;
  start: number;
  end: number;
  /** Orders the hits: the score of `rerank`, else with `hybrid` that of the fusion, else the similarity. */
  score: number;
  /** Cosine of the angle between the vectors of the query and of the text. */
  similarity: number;
  /** BM25 score of the shared words; 0 if the text is no candidate by its words; only with `hybrid`. */
  wordScore?: number;
  /** The document, with its further members; frozen. */
  document: SearchDocument & { readonly id: string | number };
}

/** Words that met, made by {@link Index.explain}. Punctuation and words that are truncated are missing. */
export interface Explanation {
  /**
   * Words of the query, with their places in it, and the most similar word of the text with its place in the document;
   * `undefined` if the text has no words.
   */
  query: { text: string; start: number; end: number; match: { text: string; start: number; end: number; similarity: number } | undefined }[];
  /** Words of the text, with their places in the document, and the similarity to the most similar word of the query. */
  text: { text: string; start: number; end: number; similarity: number }[];
}

/**
 * Texts that can be searched by meaning, made by {@link Index.from}.
 *
 * A search compares the query with every text (exact search); the model's instance computes it, with its threads and in
 * its memory. A model of `attn/static` has no instance: its index needs no WebAssembly, and `batchSize` and `priority`
 * have no effect. Calls may overlap: a search sees the documents of the additions and removals that have ended.
 */
export class Index {
  private constructor();

  /**
   * Embeds documents and creates an index of them.
   *
   * @param model a model for embeddings
   * @param documents texts, or objects with a text
   * @param options see {@link IndexOptions}
   * @throws {AttnError} `ARGUMENT` if a document has no text, an id is used twice, or `chunk` throws or returns something
   * else than places in the text
   * @throws {AttnError} `OUT_OF_RANGE` if a vector has NaN or infinity
   * @throws {AttnError} `MEMORY` if the vectors do not fit into memory
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const documents = [{ id: 'a', text: 'a warm film', year: 1994 }, { id: 'b', text: 'a cold soup' }];
   * const index = await Index.from(model, documents, { vectors: 'float32' });
   * const [best] = await index.search('a warm film', { k: 1 });
   * console.log(best.id, best.document.year); // a 1994
   * index.dispose();
   *
   * // A vector for each line.
   * const chunk = (text: string) => Array.from(text.matchAll(/.+/g), ({ 0: line, index }) => ({ start: index, end: index + line.length }));
   * const lines = await Index.from(model, ['a warm film\na cold soup'], { chunk });
   * console.log((await lines.search('soup', { k: 1 }))[0].start); // 12
   * ```
   */
  static from(model: SearchModel, documents: readonly (string | SearchDocument)[], options?: IndexOptions): Promise<Index>;

  /**
   * Reads an index that {@link Index.save} wrote. The file may come from anywhere: every part of it is checked.
   *
   * @param model the model that the index was made with; its weights may be int8 in one place and float32 in the other
   * @param bytes the whole file
   * @param options see {@link LoadIndexOptions}: how later additions are divided
   * @throws {AttnError} `FORMAT` if the bytes are not an index, or are damaged
   * @throws {AttnError} `UNSUPPORTED` if a later version of attn wrote the index
   * @throws {AttnError} `MISMATCH` if the index is of another model: its vector of a test text differs (cosine below
   * 0.98; a model that was changed less is not noticed)
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const bytes = await (await Index.from(model, ['a warm film', 'a cold soup'])).save();
   * const index = await Index.load(model, bytes);
   * console.log((await index.search('a warm film'))[0].text); // a warm film
   * ```
   */
  static load(model: SearchModel, bytes: Uint8Array | ArrayBuffer, options?: LoadIndexOptions): Promise<Index>;

  /** Number of documents. */
  readonly size: number;

  /**
   * Adds documents. If it fails, the index is unchanged.
   *
   * @param documents texts, or objects with a text
   * @param options see {@link BatchOptions}
   * @returns the ids of the documents
   * @throws {AttnError} those of {@link Index.from}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film']);
   * console.log(await index.add(['a cold soup', { id: 'x', text: 'a book' }]), index.size); // [ 1, 'x' ] 3
   * ```
   */
  add(documents: readonly (string | SearchDocument)[], options?: BatchOptions): Promise<(string | number)[]>;

  /**
   * Removes documents. The memory of their vectors is freed once more than half of the vectors are unused.
   *
   * @param ids an id or several
   * @throws {AttnError} `OUT_OF_RANGE` if the index does not have an id; nothing has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film', 'a cold soup']);
   * await index.remove(0);
   * console.log((await index.search('film')).map(({ text }) => text)); // [ 'a cold soup' ]
   * ```
   */
  remove(ids: string | number | readonly (string | number)[]): Promise<void>;

  /**
   * Finds the texts that are most similar to a query.
   *
   * @param query one text
   * @param options see {@link SearchOptions}
   * @returns hits by descending score; of equal scores the earlier text is first
   * @throws {AttnError} `CONFIG` if an option is out of range
   * @throws {AttnError} `UNSUPPORTED` if the model of `rerank` is no cross-encoder
   * @throws {AttnError} `OUT_OF_RANGE` if the query's vector has NaN or infinity
   * @throws {AttnError} `DISPOSED` if the index, the model or the instance was disposed of
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film', 'a cold soup']);
   * const [{ text, score, start, end }] = await index.search('a warm film', { k: 1 });
   * console.log(text, score.toFixed(2), start, end); // a warm film 1.00 0 11
   *
   * const [first] = await index.search('soup', { hybrid: true });
   * console.log(first.text, first.wordScore! > 0); // a cold soup true
   * ```
   */
  search(query: string, options?: SearchOptions): Promise<Hit[]>;

  /**
   * Finds which words of the query and of a hit's text met: compares the last hidden states of all words, as late
   * interaction does (MaxSim of ColBERT, Khattab & Zaharia 2020). A word of several tokens counts as their sum.
   *
   * A model that was not trained for late interaction compares words less well than texts: read the result as a hint.
   *
   * @param hit an object that {@link Index.search} returned
   * @throws {AttnError} `ARGUMENT` if another index or no index returned the object
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film', 'a cold soup']);
   * const [hit] = await index.search('good film');
   * for (const { text, match } of (await index.explain(hit)).query) console.log(text, match!.text);
   * // good …
   * // film film
   * ```
   */
  explain(hit: Hit): Promise<Explanation>;

  /**
   * Writes the index as one file in the safetensors format: tensors `vectors` (N,E), `scales` (N) for int8, `places`
   * (N,3) with the document, start and end of each vector, `documents` (JSON as UTF-8) and `test` (E).
   *
   * @throws {AttnError} `ARGUMENT` if a document cannot be written as JSON
   * @throws {AttnError} `MEMORY` if the file does not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film', 'a cold soup']);
   * const bytes = await index.save();
   * console.log(bytes.length < 1500); // true
   * ```
   */
  save(): Promise<Bytes>;

  /**
   * Frees the vectors. Later calls of `dispose` do nothing; any other use throws `DISPOSED`.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   * import { Index } from 'attn/search';
   *
   * const attn = await load();
   * const index = await Index.from(await attn.loadModel('models/sentiment'), ['a warm film']);
   * index.dispose();
   * index.search('film').catch(({ code }) => console.log(code)); // DISPOSED
   * ```
   */
  dispose(): void;
  /** Calls {@link Index.dispose}. */
  [Symbol.dispose](): void;
}
