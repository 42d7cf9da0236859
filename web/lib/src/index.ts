/** The package for browsers and all other hosts except Node. No code runs at import. */
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import { threads } from './load/thread.js';
import { web } from './load/web.js';

export * from './common.js';

export const load: typeof Contract.load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => (await import('./engine/glue/attn-threads.mjs')).default }),
  ...threads,
  models: () => import('./model/load_model.js'),
  lazyTasks: () => import('./model/lazy_tasks.js'),
  chat: () => import('./model/chat.js'),
  shards: () => import('./model/shards.js'),
  gguf: () => import('./model/gguf/gguf.js'),
  ggufParts: () => import('./model/gguf/gguf_parts.js'),
  images: () => import('./model/image_model.js'),
});
