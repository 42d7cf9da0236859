/** The worker of attn/worker for training; like worker-host.js in one file. */
import single from './attn.mjs';
import threaded from './attn-train-threads.mjs';
import type { Endpoint } from './comlink.js';
import { serve } from './host.js';
import { loader } from './load.js';
import * as models from './load_model.js';
import * as onDemand from './on_demand.js';
import { training } from './training-web.js';
import { web } from './web.js';

const load = loader({
  ...web,
  single,
  models: async () => models,
  onDemand: async () => onDemand,
  training: async () => ({ ...training, ...(ATTN_THREADS && { threaded: async () => threaded }) }),
});
serve(load, async () => models, globalThis as unknown as Endpoint);
