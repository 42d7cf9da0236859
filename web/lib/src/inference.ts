/** attn/inference: as index.ts, without training, whose four builds a bundler then leaves out. */
import type * as Contract from './attn.js';
import { inference } from './load/inference.js';
import { loader } from './load/load.js';

export * from './common.js';

export const load: typeof Contract.load = loader(inference);
