/** Threads outside of Node: workers that run the threads glue. */
import type { Platform } from './platform.js';
import { asThread, startWorker } from '../platform/start_worker.js';

export const createThread: NonNullable<Platform['createThread']> = (onError) =>
  // By its name the glue knows that it runs as a thread.
  asThread(
    startWorker(() => new Worker(new URL('./attn-threads.mjs', import.meta.url), { type: 'module', name: 'em-pthread' })),
    onError,
  );
