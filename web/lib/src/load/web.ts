/** The common part of all hosts except Node: URLs of the package's files, and permissions. */
import type { Platform } from './platform.js';
import { noWorkers } from '../platform/asset_urls.js';

declare const WorkerGlobalScope: undefined | (new () => object);

export const web: Pick<Platform, 'urls' | 'cores' | 'sharingRefusal' | 'waitingRefusal'> = {
  // Literal expressions, so that bundlers find each file.
  urls: {
    simd: () => new URL('./attn-simd.wasm', import.meta.url),
    relaxed: () => new URL('./attn-relaxed.wasm', import.meta.url),
  },
  cores: () => globalThis.navigator?.hardwareConcurrency ?? 1,
  sharingRefusal() {
    if (typeof Worker !== 'function') return noWorkers;
    if (!globalThis.crossOriginIsolated)
      return 'the page is not cross-origin isolated (headers Cross-Origin-Opener-Policy: same-origin, Cross-Origin-Embedder-Policy: require-corp)';
    return typeof SharedArrayBuffer === 'function' ? undefined : 'this engine has no SharedArrayBuffer';
  },
  waitingRefusal() {
    if (typeof WorkerGlobalScope === 'undefined' || !(globalThis instanceof WorkerGlobalScope))
      return 'the main thread of a page may not wait for others; load attn in a worker, or through attn/worker';
    return undefined;
  },
};
