/**
 * The worker of attn/worker, in one file with all that it may need. Bundlers take workers for scripts of one file unless they are told otherwise,
 * and WebKit (WebKitGTK 2.50) runs a worker's first module once more when another module imports it: there would be two hosts.
 */
import single from './attn.mjs';
import threaded from './attn-threads.mjs';
import type { Endpoint } from './comlink.js';
import { serve } from './host.js';
import { loader } from './load.js';
import * as models from './load_model.js';
import * as onDemand from './on_demand.js';
import { createThread } from './thread.js';
import { web } from './web.js';

const load = loader({
  ...web,
  single,
  ...(ATTN_THREADS && { threaded: async () => threaded, createThread }),
  models: async () => models,
  onDemand: async () => onDemand,
});
serve(load, async () => models, globalThis as unknown as Endpoint);
