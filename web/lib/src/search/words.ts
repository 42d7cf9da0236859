/** Ranks by BM25 (Robertson & Zaragoza 2009), by MiniSearch. */
import MiniSearch from './minisearch.js';

/** Scripts without spaces: each character counts as a word. */
const spaceless = '[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}]';
const word = /* @__PURE__ */ new RegExp(`${spaceless}|(?:(?!${spaceless})[\\p{L}\\p{M}\\p{N}_])+`, 'gu');

export const wordsOf = (text: string): RegExpStringIterator<RegExpExecArray> => text.matchAll(word);

export interface Scored {
  readonly row: number;
  readonly score: number;
}

/** Saturation of the frequency, and influence of the length, as in Lucene; d = 0 turns MiniSearch's BM25+ into BM25. */
const bm25 = { k: 1.2, b: 0.75, d: 0 };

export class Words {
  readonly #search = new MiniSearch({
    fields: ['text'],
    // The length of a text is counted before processTerm().
    tokenize: (text) => Array.from(wordsOf(text.normalize('NFKC').toLowerCase()), ([term]) => term),
    processTerm: (term) => term,
    searchOptions: { bm25 },
  });

  add(row: number, text: string): void {
    this.#search.add({ id: row, text });
  }

  remove(row: number): void {
    this.#search.discard(row);
  }

  /** Among equal scores the lowest row is first. */
  best(query: string, count: number): Scored[] {
    // MiniSearch multiplies by the number of matched words, which makes words such as "the" count more.
    const found = this.#search.search(query).map(({ id, score, queryTerms }) => ({ row: id, score: score / queryTerms.length }));
    return found.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, count);
  }
}
