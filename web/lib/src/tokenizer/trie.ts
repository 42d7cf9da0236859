import { limits } from './limits.js';
import { atMost } from './schema.js';
import { codesOf } from './text.js';

/** Values are above 0. Open addressing takes a fraction of a Map's memory. */
export class PairMap {
  readonly #slots: Int32Array;
  // Random, so that no file can have colliding pairs.
  readonly #a = (Math.random() * 2 ** 32) | 1;
  readonly #b = (Math.random() * 2 ** 32) | 1;
  readonly #scale: number;

  constructor(count: number) {
    const room = Math.ceil(1.5 * count) + 1;
    this.#slots = new Int32Array(3 * room);
    this.#scale = room / 2 ** 32;
  }

  #slot(a: number, b: number): number {
    const slots = this.#slots;
    let i = 3 * Math.floor(((Math.imul(a, this.#a) + Math.imul(b, this.#b)) >>> 0) * this.#scale);
    while (slots[i + 2] !== 0 && (slots[i] !== a || slots[i + 1] !== b)) {
      i += 3;
      if (i === slots.length) i = 0;
    }
    return i;
  }

  get(a: number, b: number): number {
    return this.#slots[this.#slot(a, b) + 2];
  }

  set(a: number, b: number, value: number): void {
    const i = this.#slot(a, b);
    this.#slots[i] = a;
    this.#slots[i + 1] = b;
    this.#slots[i + 2] = value;
  }
}

// Flags of a label: last of its row; other labels follow as well; a word ends here.
const CODE = 2 ** 21 - 1;
const LAST = 2 ** 21;
const BRANCHES = 2 ** 22;
const WORD = 2 ** 23;

/**
 * A state is the index of its label; 0 is the root and "no such state". A word shares the labels of earlier words and
 * stores its rest in a row with its number at the end: four bytes per character.
 */
export class Trie {
  readonly #labels: Int32Array;
  readonly #branches: PairMap;

  /** The last of equal words counts. */
  constructor(words: readonly string[]) {
    let characters = 0;
    for (const word of words) characters += word.length;
    atMost('the vocabulary', characters, 'characters', limits.characters);
    const branches = (this.#branches = new PairMap(words.length));
    const labels = (this.#labels = new Int32Array(characters + words.length + 2));
    labels[0] = LAST;
    labels[1] = -1;
    let size = 2;
    words.forEach((word, number) => {
      const codes = codesOf(word);
      let [at, i] = [0, 0];
      for (let next; i < codes.length && (next = this.step(at, codes[i])) > 0; ++i) at = next;
      if (i < codes.length) {
        labels[at] |= BRANCHES;
        branches.set(at, codes[i], size);
        while (i < codes.length) labels[size++] = codes[i++];
        labels[size - 1] |= LAST;
        labels[size++] = number;
      } else if (labels[at] & LAST) labels[at + 1] = number;
      else {
        labels[at] |= WORD;
        branches.set(at, -1, number + 1);
      }
    });
    if (size < 0.75 * labels.length) this.#labels = labels.slice(0, size);
  }

  step(at: number, code: number): number {
    const labels = this.#labels;
    const label = labels[at];
    if ((label & LAST) === 0 && (labels[at + 1] & CODE) === code) return at + 1;
    return label & BRANCHES ? this.#branches.get(at, code) : 0;
  }

  numberAt(at: number): number {
    const label = this.#labels[at];
    if (label & LAST) return this.#labels[at + 1];
    return label & WORD ? this.#branches.get(at, -1) - 1 : -1;
  }

  /** Returns -1 without a path. */
  walk(codes: readonly number[], from = 0, to = codes.length, start = 0): number {
    let at = start;
    for (let i = from; i < to; ++i) if ((at = this.step(at, codes[i])) === 0) return -1;
    return at;
  }
}
