/**
 * What a host (Node or a browser page) tells the suites. A host sets `globalThis.attnHost` and the globals describe, it, before and after, and only
 * then imports the suites.
 */
import { load, type Attn, type LoadOptions } from 'attn';

export interface Host {
  /** node, chromium, firefox or webkit. */
  readonly engine: string;
  /** The set-up under test. */
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  /** Threads can be had here: Node, or an isolated page whose suites run in a worker. */
  readonly canThread: boolean;
  /** Whether this engine takes relaxed SIMD. */
  readonly takesRelaxed: boolean;
  /** wasm-debug and wasm-asan are one binary in a copy of the package: the other variants are not there. */
  readonly build: 'release' | 'debug' | 'asan';
  /** One set-up of each engine. The others leave out what is JavaScript alone and would only be repeated. */
  readonly complete: boolean;
  /** The test server, which serves testdata/, wasm/, digest.txt and the bad files of support/server.mjs. */
  readonly server: string;
  /** A line for the log, beside the counts. */
  note(text: string): void;
}

declare global {
  var attnHost: Host;
}

export const host: Host = globalThis.attnHost;

/** Whether the large model and all texts are asked here: in every set-up of Node that is not a checked build, and in one of each browser. */
export const takesLong = host.build === 'release' && (host.engine === 'node' || host.complete);

/**
 * What this set-up loads. A shared memory takes its largest size from the address space at once and gives it back when it is collected: the suites
 * load so many instances that a page of WebKitGTK would run out of it, so they ask for less than the default.
 */
export const setup: LoadOptions = {
  variant: host.variant,
  threads: host.threads,
  ...(host.threads > 1 && { maximumMemory: 2 ** 28 }),
  // In Node the default is the build that trains: one set-up has that, the others the one that pages load.
  ...(host.build === 'release' && !host.complete && { training: false }),
};

/** The package as this set-up loads it. */
export function loadHere(options: LoadOptions = {}): Promise<Attn> {
  return load({ ...setup, ...options });
}

/** What `using` calls; engines without it have the key that compilers fall back to. */
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
 * Bytes of heap in use once every thread has worked: a thread takes a few bytes for itself at its first task, and which thread gets a task is up to
 * the machine.
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
