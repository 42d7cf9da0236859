/** Where model files are cached: the Cache API, or in Node a folder (node_cache.ts). */

export type Store = Pick<Cache, 'match' | 'put' | 'delete' | 'keys'>;

export interface ModelStorage {
  /** Files of models that have loaded, by {@link keyOf}. */
  readonly files: Store;
  /** Partial downloads: each URL ends with an offset as `attn-part`. */
  readonly parts: Store;
  /** Undefined on hosts without Web Locks. */
  readonly locks:
    | {
        request(name: string, options: { ifAvailable?: boolean; signal?: AbortSignal }, work: (lock: object | null) => unknown): Promise<unknown>;
      }
    | undefined;
}

/** Rejects outside browsers, on insecure pages, and if storage is blocked: reading `caches` throws for an opaque origin. */
export const browserStorage = async (): Promise<ModelStorage> => ({
  files: await caches.open('attn-models'),
  parts: await caches.open('attn-models-parts'),
  locks: globalThis.navigator?.locks,
});

/** The URL of a file in the cache. Signatures and tokens in a query change, and may be secret. */
export function keyOf(url: string | URL): URL {
  const key = new URL(url);
  key.search = key.hash = key.username = key.password = '';
  return key;
}
