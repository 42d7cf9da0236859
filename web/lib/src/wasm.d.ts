/**
 * `import wasm from 'attn/attn-simd.wasm'`, for `load({ wasm })`: what a tool makes of such an import differs (a `WebAssembly.Module` in workerd, a URL
 * by esbuild's loader `file`), and `load` takes all of it.
 */
import type { LoadOptions } from './attn.js';
declare const wasm: NonNullable<LoadOptions['wasm']>;
export default wasm;
