/**
 * Types of the host that attn's types name, as lib dom, lib webworker or @types/node declare them. Without any of these a name is `never`, and the
 * declarations still compile.
 */
type Instance<Name extends string> = typeof globalThis extends { readonly [name in Name]: { readonly prototype: infer T } } ? T : never;

export type AbortSignal = Instance<'AbortSignal'>;
export type Blob = Instance<'Blob'>;
export type Response = Instance<'Response'>;
export type URL = Instance<'URL'>;
export type Fetch = typeof globalThis extends { readonly fetch: infer T } ? T : never;
export type WebAssemblyModule = typeof globalThis extends { readonly WebAssembly: { readonly Module: { readonly prototype: infer T } } } ? T : never;

/** What attn allocates: `new Blob([bytes])` takes it, which takes no view of shared memory. Before TypeScript 5.7: Uint8Array. */
export type Bytes = ReturnType<typeof Uint8Array.of>;
