/** The worker of attn/worker for training; like worker-host.js in one file. */
import single from './engine/glue/attn.mjs';
import threaded from './engine/glue/attn-train-threads.mjs';
import type { Endpoint } from './worker/comlink.js';
import { serve } from './worker/host.js';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as onDemand from './model/on_demand.js';
import { training } from './load/training-web.js';
import { web } from './load/web.js';

const load = loader({
  ...web,
  single,
  models: async () => models,
  onDemand: async () => onDemand,
  training: async () => ({ ...training, ...(ATTN_THREADS && { threaded: async () => threaded }) }),
});
serve(load, async () => models, globalThis as unknown as Endpoint);
