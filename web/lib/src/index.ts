/** The package in browsers and everywhere else that is not Node. Nothing here runs at import. */
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import { createThread } from './load/thread.js';
import { web } from './load/web.js';

export { AttnError } from './args/error.js';

export const load: typeof Contract.load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => (await import('./engine/glue/attn-threads.mjs')).default, createThread }),
  models: () => import('./model/load_model.js'),
  onDemand: () => import('./model/on_demand.js'),
  training: async () => (await import('./load/training-web.js')).training,
});
