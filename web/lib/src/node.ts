import { readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { Worker } from 'node:worker_threads';
import type * as Contract from './attn.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import { disk, kindOf, pathOf } from './platform/node_disk.js';
import { packageFile } from './platform/node_files.js';

export * from './common.js';

export const load: typeof Contract.load = loader({
  urls: {
    simd: () => packageFile('attn-simd.wasm', () => new URL('./attn-simd.wasm', import.meta.url)),
    relaxed: () => packageFile('attn-relaxed.wasm', () => new URL('./attn-relaxed.wasm', import.meta.url)),
    ...(ATTN_THREADS && {
      'simd-threads': () => packageFile('attn-simd-threads.wasm', () => new URL('./attn-simd-threads.wasm', import.meta.url)),
      'relaxed-threads': () => packageFile('attn-relaxed-threads.wasm', () => new URL('./attn-relaxed-threads.wasm', import.meta.url)),
    }),
  },
  single,
  ...(ATTN_THREADS && {
    threaded: async () => (await import('./engine/glue/attn-threads-node.mjs')).default,
    createThread(onError) {
      // The glue recognises a thread by this name.
      const options = { name: 'em-pthread', workerData: 'em-pthread' };
      const worker = packageFile(
        'attn-threads-node.mjs',
        () => new Worker(new URL('./attn-threads-node.mjs', import.meta.url), options),
        (url) => new Worker(url, options),
      );
      worker.on('error', (error) => onError(error.message));
      return worker;
    },
  }),
  // Node 20. Deno has its own flags.
  relaxedBy: process.versions['v8']?.startsWith('11.3') ? ' unless it is started as node --experimental-wasm-relaxed-simd' : '',
  cores: availableParallelism,
  sharingRefusal: () => undefined,
  waitingRefusal: () => undefined,
  readFile(location) {
    const path = pathOf(location);
    if (path === undefined) return undefined;
    return (async () => {
      const about = await stat(path);
      if (!about.isFile()) throw new Error(`it ${kindOf(about)}, expected a regular file`);
      return { name: path, bytes: await readFile(path) };
    })();
  },
  models: () => import('./model/load_model.js'),
  lazyTasks: () => import('./model/lazy_tasks.js'),
  chat: () => import('./model/chat.js'),
  shards: () => import('./model/shards.js'),
  gguf: () => import('./model/gguf/gguf.js'),
  ggufParts: () => import('./model/gguf/gguf_parts.js'),
  images: () => import('./model/image_model.js'),
  disk,
});
