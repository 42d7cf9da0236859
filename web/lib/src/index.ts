/** The package in browsers and everywhere else that is not Node. Nothing here runs at import. */
import type * as Contract from './attn.js';
import single from './attn.mjs';
import { loader } from './load.js';
import { startWorker } from './trusted.js';

export { AttnError } from './error.js';

declare const WorkerGlobalScope: undefined | (new () => object);

export const load: typeof Contract.load = loader({
  // Written out, so that bundlers see each file.
  urls: {
    simd: () => new URL('./attn-simd.wasm', import.meta.url),
    relaxed: () => new URL('./attn-relaxed.wasm', import.meta.url),
    'simd-threads': () => new URL('./attn-simd-threads.wasm', import.meta.url),
    'relaxed-threads': () => new URL('./attn-relaxed-threads.wasm', import.meta.url),
  },
  single,
  threaded: async () => (await import('./attn-threads.mjs')).default,
  createThread(onError) {
    // By its name the glue knows that it runs as a thread.
    const worker = startWorker(() => new Worker(new URL('./attn-threads.mjs', import.meta.url), { type: 'module', name: 'em-pthread' }));
    worker.addEventListener('error', (event) => onError(event.message || 'its script could not be loaded'));
    return worker;
  },
  cores: () => globalThis.navigator?.hardwareConcurrency ?? 1,
  sharingRefusal() {
    if (globalThis.crossOriginIsolated !== true)
      return 'the page is not cross-origin isolated (headers Cross-Origin-Opener-Policy: same-origin, Cross-Origin-Embedder-Policy: require-corp)';
    return typeof SharedArrayBuffer === 'function' ? undefined : 'this engine has no SharedArrayBuffer';
  },
  waitingRefusal() {
    if (typeof WorkerGlobalScope === 'undefined' || !(globalThis instanceof WorkerGlobalScope))
      return 'the main thread of a page may not wait for others; load attn in a worker, or through attn/worker';
    return typeof Worker === 'function' ? undefined : 'workers cannot be started here';
  },
});
