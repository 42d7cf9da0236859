/** mulberry32, the same in every engine. */
export class Random {
  #state: number;

  /** Streams of one seed are independent. */
  constructor(seed: number, stream = 0) {
    this.#state = (Math.imul(seed ^ (seed / 2 ** 32), 0x9e3779b1) ^ Math.imul(stream + 1, 0x85ebca77)) >>> 0;
    this.below(2);
  }

  /** 0 ... n − 1 */
  below(n: number): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * n);
  }
}

/** A 32-bit hash (FNV-1a with a final mix); not cryptographic. */
export function hash(numbers: ArrayLike<number>, start = 0x811c9dc5): number {
  let sum = start;
  for (let i = 0; i < numbers.length; ++i) sum = Math.imul(sum ^ numbers[i]!, 0x01000193);
  sum = Math.imul(sum ^ (sum >>> 16), 0x85ebca6b);
  return (sum ^ (sum >>> 13)) >>> 0;
}
