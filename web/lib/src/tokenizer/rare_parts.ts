/** Holds code that few tokenizers need. A tokenizer that needs it is read again once it is loaded. */
import type { readOtherTokens } from './other_tokens.js';
import type { Matcher } from './text.js';

interface Rare {
  readonly readOtherTokens: typeof readOtherTokens;
  readonly patterns: ReadonlyMap<string, Matcher>;
  readonly runScripts: string;
  readonly scriptLengths: string;
}

let rare: Rare | undefined;
let areWanted = false;

/** Returns undefined if the code is not loaded; the tokenizer is then discarded. */
export function rareParts<T>(use: (rare: Rare) => T): T | undefined {
  areWanted = true;
  return rare && use(rare);
}

export function lacksRareParts(): boolean {
  const lacks = areWanted && !rare;
  areWanted = false;
  return lacks;
}

export const useRareParts = (parts: Rare): void => void (rare = parts);
