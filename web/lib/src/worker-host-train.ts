/** The worker script of attn/worker with training; one file, as worker-host.js. */
import single from './engine/glue/attn.mjs';
import threaded from './engine/glue/attn-train-threads.mjs';
import type { Endpoint } from './worker/comlink.js';
import { serve } from './worker/worker_server.js';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as lazyTasks from './model/lazy_tasks.js';
import { training } from './load/training-web.js';
import { web } from './load/web.js';

const load = loader({
  ...web,
  single,
  models: async () => models,
  lazyTasks: async () => lazyTasks,
  training: async () => ({ ...training, ...(ATTN_THREADS && { threaded: async () => threaded }) }),
});
serve(load, async () => models, globalThis as unknown as Endpoint);
