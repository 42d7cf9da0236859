/**
 * The worker script in one file: bundlers treat workers as single-file scripts by default, and WebKitGTK 2.50 runs a worker's first
 * module a second time if another module imports it, which would create two servers.
 */
import single from './engine/glue/attn.mjs';
import threaded from './engine/glue/attn-threads.mjs';
import type { Endpoint } from './worker/comlink.js';
import { serve } from './worker/worker_server.js';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as lazyTasks from './model/lazy_tasks.js';
import * as gguf from './model/gguf/gguf.js';
import * as ggufParts from './model/gguf/gguf_parts.js';
import * as images from './model/image_model.js';
import * as shards from './model/shards.js';
import { threads } from './load/thread.js';
import { web } from './load/web.js';

const load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => threaded }),
  ...threads,
  models: async () => models,
  lazyTasks: async () => lazyTasks,
  shards: async () => shards,
  gguf: async () => gguf,
  ggufParts: async () => ggufParts,
  images: async () => images,
});
serve(load, async () => models, globalThis as unknown as Endpoint);
