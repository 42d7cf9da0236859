// The same fallback that esbuild, Babel and TypeScript use for `using`. No global is changed.
export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
export const asyncDisposeSymbol: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** Never garbage-collected. Created on first use, because no code runs at import. */
let endings: FinalizationRegistry<() => void> | undefined;

/**
 * Calls `end` after `owner` has been garbage-collected; `end` must not reference it. For workers and threads, which keep running.
 */
export function endWith(owner: object, end: () => void): void {
  endings ??= registryOf((each) => each());
  endings?.register(owner, end);
}

/** Only a safety net: not every engine has it. */
export function registryOf<T>(free: (held: T) => void): FinalizationRegistry<T> | undefined {
  return typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry(free);
}
