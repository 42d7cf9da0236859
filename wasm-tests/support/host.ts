/**
 * The host of the suites: Node or a browser page. A host sets `globalThis.attnHost` and the globals describe, it,
 * before and after, and imports the suites afterwards.
 */
import { load, type Attn, type LoadOptions } from 'attn';

export interface Host {
  readonly engine: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  /** Node, or an isolated page that runs the suites in a worker. */
  readonly canThread: boolean;
  readonly takesRelaxed: boolean;
  /** wasm-debug and wasm-asan are a single binary in a copy of the package, without other variants. */
  readonly build: 'release' | 'debug' | 'asan';
  /** One set-up per engine is complete; the others skip suites that only repeat JavaScript. */
  readonly complete: boolean;
  readonly server: string;
  /** Logs a line next to the counts. */
  note(text: string): void;
}

declare global {
  var attnHost: Host;
}

export const host: Host = globalThis.attnHost;

/**
 * Whether to run the large model and all texts: in every release set-up in Node, and in the complete one of each
 * browser.
 */
export const takesLong = host.build === 'release' && (host.engine === 'node' || host.complete);

/**
 * Options of this set-up. A shared memory reserves its maximum in the address space until it is collected, and the
 * suites load so many instances that a page in WebKitGTK would run out of it; so the maximum is below the default.
 */
export const setup: LoadOptions = {
  variant: host.variant,
  threads: host.threads,
  ...(host.threads > 1 && { maximumMemory: 2 ** 28 }),
  // Node loads the build with training by default; only the complete set-up uses it.
  ...(host.build === 'release' && !host.complete && { training: false }),
};

export function loadHere(options: LoadOptions = {}): Promise<Attn> {
  return load({ ...setup, ...options });
}

/** The key that compilers use for `using` in engines without Symbol.dispose. */
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
