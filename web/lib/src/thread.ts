/** Threads outside of Node: workers that run the threads glue. */
import type { Platform } from './load.js';
import { startWorker } from './start_worker.js';

export const createThread: NonNullable<Platform['createThread']> = (onError) => {
  // By its name the glue knows that it runs as a thread.
  const { worker } = startWorker(() => new Worker(new URL('./attn-threads.mjs', import.meta.url), { type: 'module', name: 'em-pthread' }));
  worker.addEventListener('error', (event) => {
    // Else it would be an error of the worker that started this one, too, and end it.
    event.preventDefault();
    onError(event.message || 'its script could not be loaded');
  });
  return worker;
};
