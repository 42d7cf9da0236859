/**
 * `attn/cache`: lists and deletes the model files that `loadModel` of `attn` and `attn/worker` has stored, in a browser
 * in Cache Storage and in Node in a folder. It is a separate file that loads no WebAssembly.
 * @packageDocumentation
 */
import type { URL } from './host.js';

export { AttnError } from './attn.js';
export type { ErrorCode } from './attn.js';

/** Options of {@link cache}. */
export interface CacheOptions {
  /**
   * In Node, the folder that was passed to `loadModel`. Default the environment variable `ATTN_CACHE_DIR`. In a browser
   * it is an `ENVIRONMENT` error.
   */
  cacheDir?: string | undefined;
}

/** A cached file. */
export interface CachedFile {
  /** URL of the file without its query. */
  readonly url: string;
  /** Bytes in the cache. */
  readonly bytes: number;
  /** False for an interrupted download, which the next load of the model continues. */
  readonly complete: boolean;
  /** When the file, or its last part, was stored; missing if an older version stored it. */
  readonly date?: Date;
}

/**
 * Type of {@link cache}. Each function throws `ENVIRONMENT` if there is no Cache Storage (a page without https, an
 * opaque origin, some private windows), or in Node no folder is named.
 */
export interface ModelFileCache {
  /**
   * Lists the cached files by URL.
   *
   * @example
   * ```ts
   * import { cache } from 'attn/cache';
   *
   * console.log(await cache.list({ cacheDir: 'model-cache' })); // []
   * ```
   */
  list(options?: CacheOptions): Promise<CachedFile[]>;
  /**
   * Deletes a file, or all files of a folder, and returns the number of entries of {@link ModelFileCache.list} that
   * were deleted. Loaded models remain usable.
   *
   * @param source URL of a file or folder, in a page relative to it; its query does not matter
   * @throws {AttnError} `ARGUMENT` if the source is not a URL, also if it is undefined
   * @example
   * ```ts
   * import { cache } from 'attn/cache';
   *
   * console.log(await cache.delete('https://a.test/model', { cacheDir: 'model-cache' })); // 0
   * ```
   */
  delete(source: string | URL, options?: CacheOptions): Promise<number>;
  /**
   * Deletes all files.
   *
   * @example
   * ```ts
   * import { cache } from 'attn/cache';
   *
   * console.log(await cache.delete({ cacheDir: 'model-cache' })); // 0
   * ```
   */
  delete(options?: CacheOptions): Promise<number>;
  /**
   * Returns the bytes of all cached files.
   *
   * @example
   * ```ts
   * import { cache } from 'attn/cache';
   *
   * console.log(await cache.size({ cacheDir: 'model-cache' })); // 0
   * ```
   */
  size(options?: CacheOptions): Promise<number>;
}

/** The cached model files: of this origin, or in Node of a folder. */
export declare const cache: ModelFileCache;
