/**
 * The host's types, as lib dom, lib webworker or @types/node declare them. Without these libraries a name is `never`,
 * so that the declarations compile.
 */
type Instance<Name extends string> = typeof globalThis extends { readonly [name in Name]: { readonly prototype: infer T } } ? T : never;

export type AbortSignal = Instance<'AbortSignal'>;
export type Blob = Instance<'Blob'>;
export type ImageBitmap = Instance<'ImageBitmap'>;
export type Response = Instance<'Response'>;
export type URL = Instance<'URL'>;
export type Fetch = typeof globalThis extends { readonly fetch: infer T } ? T : never;
export type WebAssemblyModule = typeof globalThis extends { readonly WebAssembly: { readonly Module: { readonly prototype: infer T } } } ? T : never;

/** Bytes that `new Blob([bytes])` accepts (no view of shared memory). A plain Uint8Array before TypeScript 5.7. */
export type Bytes = ReturnType<typeof Uint8Array.of>;
