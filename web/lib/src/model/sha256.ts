/** SHA-256 (FIPS 180-4). crypto.subtle needs all bytes at once, and is missing on insecure pages. */
import { AttnError } from '../args/error.js';
import type { ModelFile } from './model_files.js';

/** First 32 bits of the fractional parts of roots of the first primes: 64 cube roots, 8 square roots. */
function fractions(count: number, root: (prime: number) => number): Int32Array {
  const found: number[] = [];
  for (let n = 2; found.length < count; ++n) {
    let prime = true;
    for (let d = 2; d * d <= n; ++d) prime &&= n % d !== 0;
    if (prime) found.push(((root(n) % 1) * 2 ** 32) | 0);
  }
  return Int32Array.from(found);
}

const constants = /* @__PURE__ */ fractions(64, Math.cbrt);
const start = /* @__PURE__ */ fractions(8, Math.sqrt);

/** Passes on the pieces; throws at the end if the file has another digest. */
export async function* verified(op: string, { name, pieces }: ModelFile, file: string, wanted: string): AsyncGenerator<Uint8Array> {
  const digest = new Sha256();
  for await (const piece of pieces()) {
    digest.update(piece);
    yield piece;
  }
  const got = digest.hex();
  if (got !== wanted) throw new AttnError('FORMAT', `${op}: ${name} has the SHA-256 ${got}, expected ${wanted}`, { op, file, expected: wanted, got });
}

export class Sha256 {
  readonly #state = start.slice();
  readonly #words = new Int32Array(64);
  /** Bytes that do not fill a block yet. */
  readonly #rest = new Uint8Array(64);
  #size = 0;

  update(bytes: Uint8Array): this {
    const filled = this.#size % 64;
    let at = 0;
    if (filled > 0) {
      at = Math.min(64 - filled, bytes.length);
      this.#rest.set(bytes.subarray(0, at), filled);
      if (filled + at === 64) this.#compress(this.#rest, 0);
    }
    for (; at + 64 <= bytes.length; at += 64) this.#compress(bytes, at);
    if (at < bytes.length) this.#rest.set(bytes.subarray(at));
    this.#size += bytes.length;
    return this;
  }

  /** Returns hex. No bytes can be added afterwards. */
  hex(): string {
    const bits = this.#size * 8;
    this.update(Uint8Array.of(0x80));
    while (this.#size % 64 !== 56) this.update(Uint8Array.of(0));
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(bits));
    this.update(new Uint8Array(length.buffer));
    return Array.from(this.#state, (word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
  }

  #compress(bytes: Uint8Array, at: number): void {
    const w = this.#words;
    const state = this.#state;
    for (let i = 0, j = at; i < 16; ++i, j += 4) w[i] = (bytes[j]! << 24) | (bytes[j + 1]! << 16) | (bytes[j + 2]! << 8) | bytes[j + 3]!;
    for (let i = 16; i < 64; ++i) {
      const x = w[i - 15]!;
      const y = w[i - 2]!;
      const s0 = ((x >>> 7) | (x << 25)) ^ ((x >>> 18) | (x << 14)) ^ (x >>> 3);
      const s1 = ((y >>> 17) | (y << 15)) ^ ((y >>> 19) | (y << 13)) ^ (y >>> 10);
      w[i] = (w[i - 16]! + s0 + w[i - 7]! + s1) | 0;
    }
    let a = state[0]!;
    let b = state[1]!;
    let c = state[2]!;
    let d = state[3]!;
    let e = state[4]!;
    let f = state[5]!;
    let g = state[6]!;
    let h = state[7]!;
    for (let i = 0; i < 64; ++i) {
      const s1 = ((e >>> 6) | (e << 26)) ^ ((e >>> 11) | (e << 21)) ^ ((e >>> 25) | (e << 7));
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + constants[i]! + w[i]!) | 0;
      const s0 = ((a >>> 2) | (a << 30)) ^ ((a >>> 13) | (a << 19)) ^ ((a >>> 22) | (a << 10));
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] = state[0]! + a;
    state[1] = state[1]! + b;
    state[2] = state[2]! + c;
    state[3] = state[3]! + d;
    state[4] = state[4]! + e;
    state[5] = state[5]! + f;
    state[6] = state[6]! + g;
    state[7] = state[7]! + h;
  }
}
