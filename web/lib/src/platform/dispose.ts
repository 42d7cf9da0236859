// What esbuild, Babel and TypeScript's helpers fall back to for `using` where the engine has no such symbol. Nothing global is touched.
export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
export const asyncDisposeSymbol: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** Outlives all that it watches. Made when it is first needed: nothing runs at import. */
let endings: FinalizationRegistry<() => void> | undefined;

/** Calls `end` when `owner` has been collected; `end` must not hold it. The same safety net, for what keeps running by itself: workers. */
export function endWith(owner: object, end: () => void): void {
  endings ??= registryOf((each) => each());
  endings?.register(owner, end);
}

/** Only a safety net: `free` is called with what was registered for an object that is collected, on engines that tell of it. */
export function registryOf<T>(free: (held: T) => void): FinalizationRegistry<T> | undefined {
  return typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry(free);
}
