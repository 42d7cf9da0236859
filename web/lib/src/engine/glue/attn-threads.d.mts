// Emscripten's glue, beside the compiled package: dist/attn-threads.mjs.
import type { Factory } from '../native.js';
declare const factory: Factory;
export default factory;
