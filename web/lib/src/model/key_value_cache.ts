import type { KeyValueCache as Contract } from '../attn.js';
import { cacheNumbers, nextCacheNumber } from '../args/caches.js';
import { AttnError } from '../args/error.js';
import { disposeSymbol, endWith } from '../platform/dispose.js';

type Ask = (op: string, name: string, ...args: readonly unknown[]) => unknown;

export class KeyValueCache implements Contract {
  readonly maxLength: number;
  readonly #ask: Ask;
  readonly #free: () => void;
  #number: number | undefined = nextCacheNumber();

  /** `free` must not reference the cache. */
  constructor(ask: Ask, free: (number: number) => void, options: unknown) {
    const number = this.#number!;
    this.#ask = ask;
    this.maxLength = ask('createCache', 'createCache', number, options) as number;
    this.#free = () => free(number);
    endWith(this, this.#free);
    cacheNumbers.set(this, (op) => this.#find(op));
  }

  #find(op: string): number {
    if (this.#number === undefined) throw new AttnError('DISPOSED', `${op}: this cache was disposed of`, { op });
    return this.#number;
  }

  get length(): number {
    return this.#ask('length', 'cacheLength', this.#find('length')) as number;
  }

  truncate(length: number): void {
    this.#ask('truncate', 'cacheLength', this.#find('truncate'), length ?? NaN);
  }

  dispose(): void {
    if (this.#number === undefined) return;
    this.#number = undefined;
    this.#free();
  }

  [disposeSymbol](): void {
    this.dispose();
  }
}
