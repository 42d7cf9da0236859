import type { Platform } from './platform.js';
import { asThread, startWorker } from '../platform/start_worker.js';
import { web } from './web.js';

export const threads: Pick<Platform, 'urls' | 'createThread'> | false = ATTN_THREADS && {
  urls: {
    ...web.urls,
    'simd-threads': () => new URL('./attn-simd-threads.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./attn-relaxed-threads.wasm', import.meta.url),
  },
  createThread: (onError) =>
    // The glue recognises a thread by the worker's name.
    asThread(
      startWorker(() => new Worker(new URL('./attn-threads.mjs', import.meta.url), { type: 'module', name: 'em-pthread' })),
      onError,
    ),
};
