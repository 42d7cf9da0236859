/**
 * The portable generator splitmix32. It uses 32-bit integer operations only, so every engine and
 * native-tests/digest/draw.hpp draw the same numbers.
 */
export class Generator {
  #state: number;
  constructor(seed: number) {
    this.#state = seed >>> 0;
  }
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let z = this.#state;
    z = Math.imul(z ^ (z >>> 16), 0x21f0aaad);
    z = Math.imul(z ^ (z >>> 15), 0x735a2d97);
    return (z ^ (z >>> 15)) >>> 0;
  }
  /** 0 .. n - 1, or 0 if n is 0; n up to 2^21, so that the product is exact in a double. */
  below(n: number): number {
    return Math.floor((this.next() * n) / 4294967296);
  }
  oneIn(n: number): boolean {
    return this.below(n) === 0;
  }
  /** A multiple of 2^-23 in [-1, 1), exact in float32. */
  unit(): number {
    return (this.next() >>> 8) / 8388608 - 1;
  }
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)];
  }
  floats(count: number, factor = 1): Float32Array<ArrayBuffer> {
    const out = new Float32Array(count);
    for (let i = 0; i < count; i++) out[i] = this.unit() * factor;
    return out;
  }
}
