import { parentPort } from 'node:worker_threads';
import nodeEndpoint from './worker/comlink-node.js';
import { serve } from './worker/worker_server.js';
import { load } from './node.js';

serve(load, () => import('./model/load_model.js'), nodeEndpoint(parentPort!));
