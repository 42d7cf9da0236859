/** False in builds without threads, which build.mjs makes of `make wasm`. Replaced by its value when the package is bundled. */
declare const ATTN_THREADS: boolean;
