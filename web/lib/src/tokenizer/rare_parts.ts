/** What few tokenizers have: it comes when one is read that has, and that one is then read again. */
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

/** What `use` makes of them; while they are not here nothing, and whatever is made without them will not be used. */
export function rareParts<T>(use: (rare: Rare) => T): T | undefined {
  areWanted = true;
  return rare && use(rare);
}

/** Whether what has just been read is to be read again, with them. */
export function lacksRareParts(): boolean {
  const lacks = areWanted && !rare;
  areWanted = false;
  return lacks;
}

export const useRareParts = (parts: Rare): void => void (rare = parts);
