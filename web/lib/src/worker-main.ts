import type { Endpoint } from './comlink.js';
import { serve } from './host.js';
import { load } from './index.js';

/** Takes messages from here on. */
export const start = (): void => serve(load, globalThis as unknown as Endpoint);
