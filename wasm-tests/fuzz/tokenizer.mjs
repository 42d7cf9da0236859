/** Sources of the package for cost.mjs, in one bundle. */
export { AttnError } from '../../web/lib/src/args/error.ts';
export { Budget } from '../../web/lib/src/tokenizer/text.ts';
import * as rare from '../../web/lib/src/tokenizer/lazy_parts.ts';
import { useLazyParts } from '../../web/lib/src/tokenizer/lazy_slot.ts';

useLazyParts(rare);
export { Tokenizer } from '../../web/lib/src/tokenizer/tokenizer.ts';
