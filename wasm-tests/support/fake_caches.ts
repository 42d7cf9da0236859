/** A Cache API and Web Locks for hosts that have none, and a cache whose storage is full. */

interface Entry {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly headers: [string, string][];
}

class FakeCache {
  readonly entries = new Map<string, Entry>();
  readonly #room: () => number;

  constructor(room: () => number) {
    this.#room = room;
  }

  async match(url: string): Promise<Response | undefined> {
    const entry = this.entries.get(url);
    return entry && new Response(entry.bytes.slice(), { headers: entry.headers });
  }

  async put(url: string, response: Response): Promise<void> {
    const bytes = new Uint8Array(await response.arrayBuffer());
    if (bytes.length > this.#room()) throw new DOMException('no room left', 'QuotaExceededError');
    this.entries.set(url, { bytes, headers: [...response.headers] });
  }

  async delete(request: string | Request): Promise<boolean> {
    return this.entries.delete(typeof request === 'string' ? request : request.url);
  }

  async keys(): Promise<Request[]> {
    return Array.from(this.entries.keys(), (url) => new Request(url));
  }
}

/** `room`: bytes that an entry may have. */
export function fakeCaches(room: () => number = () => Infinity): CacheStorage {
  const all = new Map<string, FakeCache>();
  return {
    async open(name: string) {
      if (!all.has(name)) all.set(name, new FakeCache(room));
      return all.get(name);
    },
    async match(url: string) {
      for (const cache of all.values()) if (cache.entries.has(url)) return cache.match(url);
      return undefined;
    },
  } as unknown as CacheStorage;
}

/** Exclusive locks that are asked for with `ifAvailable`. */
function fakeLocks(): LockManager {
  const held = new Set<string>();
  return {
    async request(name: string, _options: object, work: (lock: object | null) => unknown) {
      if (held.has(name)) return work(null);
      held.add(name);
      try {
        return await work({ name });
      } finally {
        held.delete(name);
      }
    },
  } as unknown as LockManager;
}

/** Runs `body` while this member of an object is `value`. */
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

/** Runs `body` with another global. */
export const withGlobal = <T>(name: string, value: unknown, body: () => Promise<T>): Promise<T> => withMember(globalThis, name, value, body);

/** Runs `body` with these caches as the global ones, and with locks. */
export function withCaches<T>(caches: CacheStorage | undefined, body: () => Promise<T>): Promise<T> {
  const run = () => withGlobal('caches', caches, body);
  return globalThis.navigator?.locks ? run() : withGlobal('navigator', { locks: fakeLocks() }, run);
}
