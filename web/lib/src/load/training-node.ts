import { Worker } from 'node:worker_threads';
import single from '../engine/glue/attn-train.mjs';
import type { Training } from './platform.js';
import { modelGradients } from '../model/model_gradients.js';
import { complete, hold, prepare } from '../engine/training.js';
import { packageFile } from '../platform/node_files.js';

export const training: Training = {
  urls: {
    'train-simd': () => packageFile('attn-train-simd.wasm', () => new URL('./attn-train-simd.wasm', import.meta.url)),
    'train-relaxed': () => packageFile('attn-train-relaxed.wasm', () => new URL('./attn-train-relaxed.wasm', import.meta.url)),
    ...(ATTN_THREADS && {
      'train-simd-threads': () => packageFile('attn-train-simd-threads.wasm', () => new URL('./attn-train-simd-threads.wasm', import.meta.url)),
      'train-relaxed-threads': () =>
        packageFile('attn-train-relaxed-threads.wasm', () => new URL('./attn-train-relaxed-threads.wasm', import.meta.url)),
    }),
  },
  single,
  ...(ATTN_THREADS && {
    threaded: async () => (await import('../engine/glue/attn-train-threads-node.mjs')).default,
    createThread(onError) {
      const options = { name: 'em-pthread', workerData: 'em-pthread' };
      const worker = packageFile(
        'attn-train-threads-node.mjs',
        () => new Worker(new URL('./attn-train-threads-node.mjs', import.meta.url), options),
        (url) => new Worker(url, options),
      );
      worker.on('error', (error) => onError(error.message));
      return worker;
    },
  }),
  prepare,
  hold,
  complete,
  modelGradients,
};
