import { aborted } from './abort.js';
import { arrayTag } from '../args/arrays.js';
import { yieldEvery30ms } from './event_loop.js';
import { AttnError, describe, errorWithHelp, fail, isAttnError, networkErrors, reason } from '../args/error.js';

export type Report = (phase: 'download' | 'compile' | 'start', loaded: number, total?: number) => void;

/** Bytes, well above the size of any build. */
const largestWasm = 64 * 2 ** 20;

export const network = networkErrors('load', { argument: 'wasm' });

/** Throws ENVIRONMENT with advice. */
export function assertFetch(op: string, help: string): void {
  try {
    if (typeof globalThis.fetch === 'function') return;
  } catch {
    return; // the error is reported when fetch is called
  }
  throw errorWithHelp('ENVIRONMENT', `${op}: this host has no fetch`, `${help} (Jest: @jest-environment node has fetch)`, { op });
}

export function nameOf(response: Response): string {
  return response.url === '' ? 'the given Response' : `URL ${response.url}`;
}

/** The stream of a caller's Response may contain anything. */
export function assertBytes(chunk: unknown): void {
  if (arrayTag(chunk) !== 'Uint8Array') throw new TypeError(`a piece of its body ${describe(chunk)}, expected a Uint8Array`);
}

async function collect(response: Response, name: string, report: Report): Promise<Uint8Array<ArrayBuffer>> {
  // For a compressed body the header counts the compressed bytes.
  const length = response.headers.get('content-encoding') === null ? Number(response.headers.get('content-length')) : 0;
  const total = length > 0 ? length : undefined;
  const chunks: Uint8Array[] = [];
  let loaded = 0;
  report('download', 0, total);
  const reader = response.body?.getReader();
  const turn = yieldEvery30ms();
  while (reader) {
    const { done, value } = await reader.read();
    if (done) break;
    assertBytes(value);
    await turn();
    chunks.push(value);
    loaded += value.length;
    report('download', loaded, total);
    if (loaded > largestWasm) {
      reader.cancel().catch(() => {});
      throw new AttnError('FORMAT', `load: ${name} returned more than ${largestWasm} bytes, expected attn's WebAssembly`, {
        op: 'load',
        argument: 'wasm',
      });
    }
  }
  const bytes = new Uint8Array(loaded);
  let at = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, at);
    at += chunk.length;
  }
  return bytes;
}

/** Throws NETWORK for an error status and an interrupted body. */
export async function download(response: Response, name: string, signal: AbortSignal | undefined, report: Report): Promise<Uint8Array<ArrayBuffer>> {
  if (!response.ok) {
    response.body?.cancel().catch(() => {});
    throw network(`${name} answered ${response.status} ${response.statusText}`.trimEnd(), { url: response.url, status: response.status });
  }
  if (response.bodyUsed) fail('ARGUMENT', 'load', 'wasm', 'is a Response whose body has been read', 'a fresh Response');
  try {
    return await collect(response, name, report);
  } catch (error) {
    if (isAttnError(error)) throw error;
    if (signal?.aborted) throw aborted(signal);
    throw network(`${name} broke off (${reason(error)})`, { url: response.url }, error);
  }
}
