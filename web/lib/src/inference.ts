/** attn/inference: index.ts without training, so that bundlers omit those four builds. */
import type * as Contract from './attn.js';
import { inference } from './load/inference.js';
import { loader } from './load/load.js';

export * from './common.js';

export const load: typeof Contract.load = loader(inference);
