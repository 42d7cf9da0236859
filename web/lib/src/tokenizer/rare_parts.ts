/**
 * Slot for code that few tokenizers need. It is loaded when a tokenizer needs it; then that tokenizer is read again.
 */
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

/**
 * Calls `use` with the lazy code. If it is not loaded yet, returns undefined; the tokenizer being read is then
 * discarded.
 */
export function rareParts<T>(use: (rare: Rare) => T): T | undefined {
  areWanted = true;
  return rare && use(rare);
}

/** Whether the tokenizer that was just read has to be read again with the lazy code. */
export function lacksRareParts(): boolean {
  const lacks = areWanted && !rare;
  areWanted = false;
  return lacks;
}

export const useRareParts = (parts: Rare): void => void (rare = parts);
