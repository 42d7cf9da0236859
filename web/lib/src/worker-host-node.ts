import { parentPort } from 'node:worker_threads';
import nodeEndpoint from './comlink-node.js';
import { serve } from './host.js';
import { load } from './node.js';

serve(load, () => import('./load_model.js'), nodeEndpoint(parentPort!));
