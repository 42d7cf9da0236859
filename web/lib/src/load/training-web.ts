/** Training in browsers and everywhere else that is not Node. It comes with the first load({ training: true }), so a page that does not train is as small as it was. */
import single from '../engine/glue/attn-train.mjs';
import type { Training } from './platform.js';
import { asThread, startWorker } from '../platform/start_worker.js';
import { modelGradients } from '../model/model_gradients.js';
import { complete, hold, prepare } from '../engine/training.js';

export const training: Training = {
  // Written out, so that bundlers see each file.
  urls: {
    'train-simd': () => new URL('./attn-train-simd.wasm', import.meta.url),
    'train-relaxed': () => new URL('./attn-train-relaxed.wasm', import.meta.url),
    ...(ATTN_THREADS && {
      'train-simd-threads': () => new URL('./attn-train-simd-threads.wasm', import.meta.url),
      'train-relaxed-threads': () => new URL('./attn-train-relaxed-threads.wasm', import.meta.url),
    }),
  },
  single,
  ...(ATTN_THREADS && {
    threaded: async () => (await import('../engine/glue/attn-train-threads.mjs')).default,
    // Glue knows by the start of its name that it is a thread; webpack makes one file of workers with one name.
    createThread: (onError) =>
      asThread(
        startWorker(() => new Worker(new URL('./attn-train-threads.mjs', import.meta.url), { type: 'module', name: 'em-pthread-train' })),
        onError,
      ),
  }),
  prepare,
  hold,
  complete,
  modelGradients,
};
