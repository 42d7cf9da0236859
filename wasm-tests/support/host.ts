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
  /** The test server, which serves testdata/, wasm/, digest.txt and the bad files of support/server.mjs. */
  readonly server: string;
  /** A line for the log, beside the counts. */
  note(text: string): void;
}

declare global {
  // eslint-disable-next-line no-var
  var attnHost: Host;
}

export const host: Host = globalThis.attnHost;

/** The package as this set-up loads it. */
export function loadHere(options: LoadOptions = {}): Promise<Attn> {
  return load({ variant: host.variant, threads: host.threads, ...options });
}

export function url(path: string): string {
  return new URL(path, host.server).href;
}

export async function bytes(path: string): Promise<Uint8Array<ArrayBuffer>> {
  const response = await fetch(url(path));
  if (!response.ok) throw new Error(`${path}: HTTP ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}
