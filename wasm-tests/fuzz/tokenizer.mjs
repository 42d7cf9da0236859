/** What cost.mjs needs of the package's sources, in one bundle. */
export { AttnError } from '../../web/lib/src/error.ts';
export { Budget } from '../../web/lib/src/tokenizer/text.ts';
import { useScripts } from '../../web/lib/src/tokenizer/unicode.ts';
import * as unicodeScripts from '../../web/lib/src/tokenizer/unicode_scripts.ts';

useScripts(unicodeScripts);
export { Tokenizer } from '../../web/lib/src/tokenizer/tokenizer.ts';
