/** Training outside Node. Loaded with the first load({ training: true }), so that other pages do not download it. */
import single from '../engine/glue/attn-train.mjs';
import type { Training } from './platform.js';
import { asThread, startWorker } from '../platform/start_worker.js';
import { modelGradients } from '../model/model_gradients.js';
import { complete, hold, prepare } from '../engine/training.js';

export const training: Training = {
  // Literal expressions, so that bundlers find each file.
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
    // The glue recognises a thread by the start of its name. webpack merges workers that have the same name.
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
