/**
 * The host of the suites: Node or a browser page. A host sets `globalThis.attnHost` and the globals describe, it,
 * before and after, and imports the suites afterwards.
 */
import { load, type Attn, type LoadOptions } from 'attn';

/** A cache that the tests can inspect. */
export interface CacheKind {
  readonly storage: CacheStorage;
  /** Undefined: those of the host. */
  readonly locks?: Pick<LockManager, 'request'>;
  /** Runs the body with this cache for loadModel(). */
  within<T>(body: () => Promise<T>): Promise<T>;
}

export interface Host {
  readonly engine: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  readonly canThread: boolean;
  readonly takesRelaxed: boolean;
  /** wasm-debug and wasm-asan are a single binary in a copy of the package, without other variants. */
  readonly build: 'release' | 'debug' | 'asan';
  readonly complete: boolean;
  /** Both ends of attn/worker run in one thread (node/worker_here.ts). */
  readonly inOneThread?: boolean;
  readonly server: string;
  /** Only in Node. */
  readonly folderCaches?: () => CacheKind;
  note(text: string): void;
}

declare global {
  var attnHost: Host;
}

export const host: Host = globalThis.attnHost;

export const takesLong = host.build === 'release' && (host.engine === 'node' || host.complete);

/**
 * Options of this set-up. A shared memory reserves its maximum in the address space until it is collected, and the
 * suites load so many instances that a page in WebKitGTK would run out of it; so the maximum is below the default.
 */
export const setup: LoadOptions = {
  variant: host.variant,
  threads: host.threads,
  ...(host.threads > 1 && { maximumMemory: 2 ** 28 }),
};

export function loadHere(options: LoadOptions = {}): Promise<Attn> {
  return load({ ...setup, ...options });
}

export const disposeSymbol: typeof Symbol.dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');

export function url(path: string): string {
  return new URL(path, host.server).href;
}

export async function bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url(path));
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

/**
 * Returns the bytes in use after every thread has worked: each allocates a few bytes at its first task, and the
 * assignment of tasks is up to the scheduler.
 */
export function settledHeap(attn: Attn): number {
  const x = { data: new Float32Array(8 * 128 * 32).fill(0.5), dims: [8, 128, 32] };
  let [used, same] = [-1, 0];
  for (let round = 0; round < 500 && same < (attn.info.threads > 1 ? 30 : 2); round++) {
    attn.scaledDotProductAttention(x, x, x);
    const now = attn.info.heap.used;
    same = now === used ? same + 1 : 0;
    used = now;
  }
  return used;
}
