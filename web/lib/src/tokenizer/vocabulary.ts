import { codesOf } from './text.js';
import { PairMap, Trie } from './trie.js';

/** The tokens of a model, numbered as its file has them. Ids are those numbers, unless it gives others, which tokens may share. */
export class Vocabulary {
  readonly tokens: readonly string[];
  readonly trie: Trie;
  readonly #ids: Int32Array | undefined;
  /** By id, the number of the last that has it, and one more. */
  readonly #numbers: PairMap | undefined;

  constructor(tokens: readonly string[], ids?: Int32Array) {
    this.tokens = tokens;
    this.trie = new Trie(tokens);
    if (!ids || ids.every((id, number) => id === number)) return;
    const numbers = (this.#numbers = new PairMap(ids.length));
    this.#ids = ids;
    ids.forEach((id, number) => numbers.set(id, 0, number + 1));
  }

  /** The number of a token, given by its code points or by the beginning that a state of the trie stands for; -1 where there is none. */
  find(codes: readonly number[], from = 0, to = codes.length, start = 0): number {
    const at = this.trie.walk(codes, from, to, start);
    return at < 0 ? -1 : this.trie.numberAt(at);
  }

  /** The id of a number. */
  id(number: number): number {
    return this.#ids ? this.#ids[number] : number;
  }

  /** Of the tokens with the same id the one that stands for all. */
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
