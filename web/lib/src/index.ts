/** The package for browsers and all other hosts except Node. No code runs at import. */
import type * as Contract from './attn.js';
import { inference } from './load/inference.js';
import { loader } from './load/load.js';

export * from './common.js';

export const load: typeof Contract.load = loader({ ...inference, training: async () => (await import('./load/training-web.js')).training });
