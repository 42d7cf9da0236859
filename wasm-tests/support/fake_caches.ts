/** A Cache API and Web Locks for hosts that have none, and a cache whose storage is full. */
import { type CacheKind, host } from './host.ts';

interface Entry {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: [string, string][];
}

class FakeCache {
  readonly entries = new Map<string, Entry>();
  readonly #room: (others: number) => number;

  constructor(room: (others: number) => number) {
    this.#room = room;
  }

  async match(request: string | Request): Promise<Response | undefined> {
    const entry = this.entries.get(typeof request === 'string' ? request : request.url);
    return entry && new Response(entry.bytes.slice(), { headers: entry.headers });
  }

  async put(url: string, response: Response): Promise<void> {
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length > this.#room(this.entries.get(url)?.bytes.length ?? 0)) throw new DOMException('no room left', 'QuotaExceededError');
    this.entries.set(url, { bytes, headers: [...response.headers] });
  }

  async delete(request: string | Request): Promise<boolean> {
    return this.entries.delete(typeof request === 'string' ? request : request.url);
  }

  async keys(): Promise<Request[]> {
    return Array.from(this.entries.keys(), (url) => new Request(url));
  }
}

/** `room`: bytes that an entry may have; `quota`: bytes of all entries. */
export function fakeCaches(room: () => number = () => Infinity, quota = Infinity): CacheStorage {
  const all = new Map<string, FakeCache>();
  const used = () => [...all.values()].flatMap(({ entries }) => [...entries.values()]).reduce((sum, { bytes }) => sum + bytes.length, 0);
  const left = (replaced: number) => Math.min(room(), quota - used() + replaced);
  return {
    async open(name: string) {
      if (!all.has(name)) all.set(name, new FakeCache(left));
      return all.get(name);
    },
    async match(url: string) {
      for (const cache of all.values()) if (cache.entries.has(url)) return cache.match(url);
      return undefined;
    },
  } as unknown as CacheStorage;
}

function fakeLocks(): LockManager {
  const held = new Map<string, Promise<unknown>>();
  return {
    async request(name: string, { ifAvailable, signal }: LockOptions, work: (lock: object | null) => unknown) {
      if (held.has(name) && ifAvailable) return work(null);
      signal?.throwIfAborted();
      const ended = new Promise<never>((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason as Error)));
      ended.catch(() => {});
      while (held.has(name)) await Promise.race([held.get(name), ended]);
      let release = () => {};
      held.set(name, new Promise<void>((resolve) => (release = resolve)));
      try {
        return await work({ name });
      } finally {
        held.delete(name);
        release();
      }
    },
  } as unknown as LockManager;
}

/** The key of a cached file. */
export function keyOf(address: string): string {
  const key = new URL(address);
  key.search = '';
  return key.href;
}

export async function withMember<T>(owner: object, name: string, value: unknown, body: () => Promise<T>): Promise<T> {
  const own = Object.getOwnPropertyDescriptor(owner, name);
  Object.defineProperty(owner, name, { value, configurable: true, writable: true });
  try {
    return await body();
  } finally {
    if (own) Object.defineProperty(owner, name, own);
    else Reflect.deleteProperty(owner, name);
  }
}

export const withGlobal = <T>(name: string, value: unknown, body: () => Promise<T>): Promise<T> => withMember(globalThis, name, value, body);

export function withCaches<T>(caches: CacheStorage | undefined, body: () => Promise<T>): Promise<T> {
  const run = () => withGlobal('caches', caches, body);
  return globalThis.navigator?.locks ? run() : withGlobal('navigator', { locks: fakeLocks() }, run);
}

const ofPages = (storage: CacheStorage): CacheKind => ({ storage, within: (body) => withCaches(storage, body) });

/** Fake caches, those of the host if it has any, and in Node a folder. */
export const cacheKinds: Readonly<Record<string, () => CacheKind>> = {
  ...(host.complete && { 'made up': () => ofPages(fakeCaches()) }),
  ...(typeof caches !== 'undefined' && { 'of the host': () => ofPages(caches) }),
  ...(host.folderCaches && { 'in a folder': host.folderCaches }),
};
