/** A tokenizer that needs this code is read again once it is loaded. */
import type { readOtherTokens } from './other_tokens.js';
import type { Matcher } from './text.js';

interface LazyParts {
  readonly readOtherTokens: typeof readOtherTokens;
  readonly patterns: ReadonlyMap<string, Matcher>;
  readonly runScripts: string;
  readonly scriptLengths: string;
}

let rare: LazyParts | undefined;
let areWanted = false;

/** Returns undefined if the code is not loaded; the tokenizer is then discarded. */
export function lazyParts<T>(use: (rare: LazyParts) => T): T | undefined {
  areWanted = true;
  return rare && use(rare);
}

export function lacksLazyParts(): boolean {
  const lacks = areWanted && !rare;
  areWanted = false;
  return lacks;
}

export const useLazyParts = (parts: LazyParts): void => void (rare = parts);
