/**
 * The worker of attn/worker, in one file with all that it may need. Bundlers take workers for scripts of one file unless they are told otherwise,
 * and WebKit (WebKitGTK 2.50) runs a worker's first module once more when another module imports it: there would be two hosts.
 */
import single from './engine/glue/attn.mjs';
import threaded from './engine/glue/attn-threads.mjs';
import type { Endpoint } from './worker/comlink.js';
import { serve } from './worker/worker_server.js';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as lazyTasks from './model/lazy_tasks.js';
import { threads } from './load/thread.js';
import { web } from './load/web.js';

const load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => threaded }),
  ...threads,
  models: async () => models,
  lazyTasks: async () => lazyTasks,
});
serve(load, async () => models, globalThis as unknown as Endpoint);
