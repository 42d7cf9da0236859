import { codesOf } from './text.js';
import { PairMap, Trie } from './trie.js';

/** Tokens are numbered in file order. Ids are these numbers unless the file has ids, which tokens may share. */
export class Vocabulary {
  readonly tokens: readonly string[];
  readonly trie: Trie;
  readonly #ids: Int32Array | undefined;
  /** By id: 1 + the last token's number. */
  readonly #numbers: PairMap | undefined;

  constructor(tokens: readonly string[], ids?: Int32Array) {
    this.tokens = tokens;
    this.trie = new Trie(tokens);
    if (!ids || ids.every((id, number) => id === number)) return;
    const numbers = (this.#numbers = new PairMap(ids.length));
    this.#ids = ids;
    ids.forEach((id, number) => numbers.set(id, 0, number + 1));
  }

  /** Continues from state `start`; -1 if unknown. */
  find(codes: readonly number[], from = 0, to = codes.length, start = 0): number {
    const at = this.trie.walk(codes, from, to, start);
    return at < 0 ? -1 : this.trie.numberAt(at);
  }

  id(number: number): number {
    return this.#ids ? this.#ids[number] : number;
  }

  /** Tokens with the same id share one number. */
  shared(number: number): number {
    return this.#ids && number >= 0 ? this.#numbers!.get(this.#ids[number], 0) - 1 : number;
  }

  idOf(token: string): number | undefined {
    const number = this.find(codesOf(token));
    return number < 0 ? undefined : this.id(number);
  }

  tokenOf(id: number): string | undefined {
    return this.tokens[this.#numbers ? this.#numbers.get(id, 0) - 1 : id];
  }
}
