/** The browser platform without training. */
import single from '../engine/glue/attn.mjs';
import type { Platform } from './platform.js';
import { threads } from './thread.js';
import { web } from './web.js';

export const inference: Platform = {
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => (await import('../engine/glue/attn-threads.mjs')).default }),
  ...threads,
  models: () => import('../model/load_model.js'),
  lazyTasks: () => import('../model/lazy_tasks.js'),
};
