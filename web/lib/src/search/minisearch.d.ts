// The part of MiniSearch that is used: the build places the code.
export default class MiniSearch {
  constructor(options: {
    readonly fields: readonly string[];
    readonly tokenize: (text: string) => string[];
    readonly processTerm: (term: string) => string;
    readonly searchOptions: { readonly bm25: { readonly k: number; readonly b: number; readonly d: number } };
  });
  add(document: { readonly id: number; readonly text: string }): void;
  discard(id: number): void;
  search(query: string): { readonly id: number; readonly score: number; readonly queryTerms: readonly string[] }[];
}
