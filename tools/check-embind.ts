// Checks that the module's declarations (Embind) are assignable to the types in web/lib. Only compiled, by
// tools/test.mjs.
import type { MainModule } from '../build/wasm-release/attn-embind.js';
import type { Native } from '../web/lib/src/engine/native.js';

export const module = (made: MainModule): Native => made;
