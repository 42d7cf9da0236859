// Whether src/bindings and web/lib still agree: what Embind says the module has must do for what web/lib takes it to be.
// Only compiled, by tools/test.mjs.
import type { MainModule } from '../build/wasm-release/attn-embind.js';
import type { Native } from '../web/lib/src/engine/native.js';

export const module = (made: MainModule): Native => made;
