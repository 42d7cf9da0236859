/** The package in browsers and everywhere else that is not Node. Nothing here runs at import. */
import type * as Contract from './attn.js';
import single from './attn.mjs';
import { loader } from './load.js';
import { createThread } from './thread.js';
import { web } from './web.js';

export { AttnError } from './error.js';

export const load: typeof Contract.load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => (await import('./attn-threads.mjs')).default, createThread }),
  models: () => import('./load_model.js'),
  onDemand: () => import('./on_demand.js'),
  training: async () => (await import('./training-web.js')).training,
});
