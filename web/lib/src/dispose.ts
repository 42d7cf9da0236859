// What esbuild, Babel and TypeScript's helpers fall back to for `using` where the engine has no such symbol. Nothing global is touched.
export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
export const asyncDisposeSymbol: typeof Symbol.asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');
