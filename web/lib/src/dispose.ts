// What esbuild, Babel and TypeScript's helpers fall back to for `using` where the engine has no such symbol. Nothing global is touched.
export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
export const asyncDisposeSymbol: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/** Only a safety net: `free` is called with what was registered for an object that is collected, on engines that tell of it. */
export function registryOf<T>(free: (held: T) => void): FinalizationRegistry<T> | undefined {
  return typeof FinalizationRegistry === 'undefined' ? undefined : new FinalizationRegistry(free);
}
