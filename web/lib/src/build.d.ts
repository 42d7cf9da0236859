/** Whether the build has threads: false for `make wasm`. The bundler replaces it by its value. */
declare const ATTN_THREADS: boolean;
