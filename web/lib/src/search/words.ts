/** Ranking by the words that a query and a text share: BM25+ (Lv & Zhai 2011) of MiniSearch. */
import MiniSearch from './minisearch.js';

/** Scripts that are written without spaces: each of their characters counts as a word. */
const spaceless = '[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}]';
const word = /* @__PURE__ */ new RegExp(`${spaceless}|(?:(?!${spaceless})[\\p{L}\\p{M}\\p{N}_])+`, 'gu');

export const wordsOf = (text: string): RegExpStringIterator<RegExpExecArray> => text.matchAll(word);
export const normalForm = (term: string): string => term.normalize('NFKC').toLowerCase();

export interface Scored {
  readonly row: number;
  readonly score: number;
}

export class Words {
  readonly #search = new MiniSearch({ fields: ['text'], tokenize: (text) => Array.from(wordsOf(text), ([term]) => term), processTerm: normalForm });

  add(row: number, text: string): void {
    this.#search.add({ id: row, text });
  }

  remove(row: number): void {
    this.#search.discard(row);
  }

  /** Returns the `count` texts with the largest scores; of equal scores the lowest row is first. */
  best(query: string, count: number): Scored[] {
    const found = this.#search.search(query).map(({ id, score }) => ({ row: id, score }));
    return found.sort((a, b) => b.score - a.score || a.row - b.row).slice(0, count);
  }
}
