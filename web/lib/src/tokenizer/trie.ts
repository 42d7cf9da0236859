import { fail } from '../error.js';
import { limits } from './limits.js';
import { atMost, op } from './schema.js';

/** Pairs of numbers, each with a number above 0: edges of tries, merges of BPE. Open addressing in one array takes a fraction of a Map's memory. */
export class PairMap {
  #slots = new Int32Array(3 * 64);
  #shift = 26;
  #size = 0;
  // Drawn for each map, so that no file can be made of colliding pairs.
  readonly #a = (Math.random() * 2 ** 32) | 1;
  readonly #b = (Math.random() * 2 ** 32) | 1;

  #slot(a: number, b: number): number {
    const slots = this.#slots;
    let i = 3 * ((Math.imul(a, this.#a) + Math.imul(b, this.#b)) >>> this.#shift);
    while (slots[i + 2] !== 0 && (slots[i] !== a || slots[i + 1] !== b)) {
      i += 3;
      if (i === slots.length) i = 0;
    }
    return i;
  }

  /** 0 for a pair that is not there. */
  get(a: number, b: number): number {
    return this.#slots[this.#slot(a, b) + 2];
  }

  /** Adds a pair, unless it is there; tells its number. */
  add(a: number, b: number, value: number): number {
    let i = this.#slot(a, b);
    if (this.#slots[i + 2] !== 0) return this.#slots[i + 2];
    if (2 * ++this.#size > this.#slots.length / 3) {
      const old = this.#slots;
      this.#slots = new Int32Array(2 * old.length);
      --this.#shift;
      for (let j = 0; j < old.length; j += 3) if (old[j + 2] !== 0) this.#slots.set(old.subarray(j, j + 3), this.#slot(old[j], old[j + 1]));
      i = this.#slot(a, b);
    }
    this.#slots[i] = a;
    this.#slots[i + 1] = b;
    return (this.#slots[i + 2] = value);
  }
}

/** Words as paths of code points. Node 0 is the root; since no edge leads there, it also stands for "no such node". */
export class Trie {
  readonly #edges = new PairMap();
  /** What was added last with the word that ends at a node, or -1. */
  readonly values: number[] = [-1];

  add(word: readonly number[], value: number): void {
    atMost('a token', word.length, 'characters', limits.token);
    if (this.values.length > limits.prefixes) fail('UNSUPPORTED', op, 'the vocabulary', `has more than ${limits.prefixes} prefixes`, 'fewer');
    let node = 0;
    for (const code of word) {
      node = this.#edges.add(node, code, this.values.length);
      if (node === this.values.length) this.values.push(-1);
    }
    this.values[node] = value;
  }

  step(node: number, code: number): number {
    return this.#edges.get(node, code);
  }
}
