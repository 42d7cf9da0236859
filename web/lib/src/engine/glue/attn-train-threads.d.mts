// Emscripten's glue, beside the compiled package: dist/attn-train-threads.mjs.
import type { Factory } from '../native.js';
declare const factory: Factory;
export default factory;
