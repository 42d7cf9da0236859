import type { Stats } from 'node:fs';
import { open, readFile, stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import type * as Contract from './attn.js';
import { AttnError } from './args/error.js';
import single from './engine/glue/attn.mjs';
import { loader } from './load/load.js';
import type { Disk } from './model/model_files.js';
import { packageFile } from './platform/node_files.js';

export * from './common.js';

/** A single letter before a colon is a Windows drive. */
function pathOf(location: string | URL): string | undefined {
  if (typeof location === 'string' && !/^[a-z][a-z0-9+.-]+:/i.test(location)) return location;
  const url = new URL(location);
  return url.protocol === 'file:' ? fileURLToPath(url) : undefined;
}

const kindOf = (about: Stats) => (about.isDirectory() ? 'is a folder' : about.isFIFO() ? 'is a FIFO' : 'is a device or a socket');

const disk: Disk = {
  pathOf,
  join,
  async size(path) {
    try {
      const about = await stat(path);
      // Opening a pipe blocks one of Node's threads, and no signal ends that.
      if (!about.isFile()) throw new AttnError('FORMAT', `loadModel: ${path} ${kindOf(about)}, expected a regular file`, { op: 'loadModel', path });
      return about.size;
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
      throw error;
    }
  },
  async *read(path, pieceBytes) {
    const file = await open(path);
    try {
      const buffer = new Uint8Array(pieceBytes);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, buffer.length); // Node before 20.12 requires offset and length
        if (bytesRead === 0) return;
        yield buffer.subarray(0, bytesRead);
      }
    } finally {
      await file.close();
    }
  },
};

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
  disk,
});
