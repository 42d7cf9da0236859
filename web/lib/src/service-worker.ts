/** The package where import() is not allowed and no worker can be started: service workers, worklets. All of it comes with the first import. */
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import * as models from './model/load_model.js';
import * as onDemand from './model/on_demand.js';
import { web } from './load/web.js';

export * from './common.js';

export const load: typeof Contract.load = loader({ ...web, single, models: async () => models, onDemand: async () => onDemand });
