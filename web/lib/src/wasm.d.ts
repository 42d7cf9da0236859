/**
 * The value of `import wasm from 'attn/attn-simd.wasm'`, for `load({ wasm })`. It depends on the tool, for example a
 * `WebAssembly.Module` in workerd and a URL with esbuild's loader `file`; `load` accepts all of them.
 */
import type { LoadOptions } from './attn.js';
declare const wasm: NonNullable<LoadOptions['wasm']>;
export default wasm;
