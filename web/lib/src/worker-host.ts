import type { Endpoint } from './comlink.js';
import { serve } from './host.js';
import { load } from './index.js';

serve(load, globalThis as unknown as Endpoint);
