export { AttnError } from '../../web/lib/src/args/error.ts';
export { Budget } from '../../web/lib/src/tokenizer/text.ts';
import * as rare from '../../web/lib/src/tokenizer/rare.ts';
import { useRareParts } from '../../web/lib/src/tokenizer/rare_parts.ts';

useRareParts(rare);
export { Tokenizer } from '../../web/lib/src/tokenizer/tokenizer.ts';
