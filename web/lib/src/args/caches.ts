import { describe, fail } from './error.js';

/** Numbers of caches by the public object. The functions throw if the cache was disposed of. */
export const cacheNumbers = new WeakMap<object, (op: string) => number>();

let last = 0;
/** Unique, so that a cache of another model or instance is not found. */
export const nextCacheNumber = (): number => ++last;

export function readCache(op: string, argument: string, value: unknown): number {
  const find = typeof value === 'object' && value !== null ? cacheNumbers.get(value) : undefined;
  if (!find) fail('ARGUMENT', op, argument, describe(value), 'a cache', 'createCache() makes one');
  return find(op);
}
