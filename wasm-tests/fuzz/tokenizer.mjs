/** What cost.mjs needs of the package's sources, in one bundle. */
export { AttnError } from '../../web/lib/src/error.ts';
export { Budget } from '../../web/lib/src/tokenizer/text.ts';
export { Tokenizer } from '../../web/lib/src/tokenizer/tokenizer.ts';
