import type { LoadOptions } from '../attn.js';
import { addAbortListener, removeAbortListener } from './abort_listeners.js';
import { arrayTag, isArrayBuffer } from './arrays.js';
import { AttnError, describe, fail, reading, reason } from './error.js';
import { choice, readMembers, whole } from './signature.js';

/** By tags, so that objects of other realms work. */
export function wasmKind(wasm: unknown): 'location' | 'response' | 'module' | 'bytes' {
  const expected = 'a URL, an ArrayBuffer, a Uint8Array, a Response or a WebAssembly.Module';
  if (wasm === '') fail('ARGUMENT', 'load', 'wasm', 'is ""', expected);
  const tag = Object.prototype.toString.call(wasm).slice(8, -1);
  if (typeof wasm === 'string' || tag === 'URL') return 'location';
  if (tag === 'Response') return 'response';
  if (tag === 'WebAssembly.Module') return 'module';
  if (isArrayBuffer(wasm) || arrayTag(wasm) === 'Uint8Array') return 'bytes';
  fail('ARGUMENT', 'load', 'wasm', describe(wasm), expected);
}

/** Any object with these members; their exceptions become ARGUMENT. */
export function readSignal(op: string, value: unknown): AbortSignal | undefined {
  if (value === undefined) return undefined;
  const members = ['aborted', 'addEventListener', 'removeEventListener'];
  if (typeof value !== 'object' || value === null || !members.every((name) => name in value))
    fail('ARGUMENT', op, 'signal', describe(value), 'an AbortSignal');
  const signal = value as AbortSignal;
  const use = <T>(work: () => T) => reading(op, 'signal', work);
  const facade = {
    get aborted() {
      return use(() => signal.aborted);
    },
    get reason() {
      return use(() => signal.reason as unknown);
    },
    addEventListener: (_: string, listener: () => void) => use(() => addAbortListener(signal, listener)),
    removeEventListener(_: string, listener: () => void) {
      try {
        removeAbortListener(signal, listener);
      } catch {
        // The listener is not needed any more.
      }
    },
  };
  return facade as unknown as AbortSignal;
}

export function readCallback(op: string, name: string, value: unknown): unknown {
  if (value !== undefined && typeof value !== 'function') fail('ARGUMENT', op, name, describe(value), 'a function');
  return value;
}

export function readCacheDir(op: string, value: unknown): string | undefined {
  if (value !== undefined && (typeof value !== 'string' || value === '')) fail('ARGUMENT', op, 'cacheDir', describe(value), 'the path of a folder');
  return value as string | undefined;
}

/** Turns an exception of a callback into ARGUMENT. */
export function tell<P>(op: string, callback: ((value: P) => void) | undefined, value: P, argument = 'onProgress'): void {
  try {
    callback?.(value);
  } catch (cause) {
    throw new AttnError('ARGUMENT', `${op}: ${argument} threw (${reason(cause)})`, { op, argument }, { cause });
  }
}

export interface CheckedLoadOptions {
  readonly wasm: LoadOptions['wasm'];
  readonly variant: 'auto' | 'simd' | 'relaxed';
  readonly threads: number | 'auto';
  readonly maximumMemory: number | undefined;
  readonly signal: AbortSignal | undefined;
  readonly onProgress: LoadOptions['onProgress'];
}

const names = ['wasm', 'variant', 'threads', 'maximumMemory', 'training', 'signal', 'onProgress'] as const satisfies readonly (keyof LoadOptions)[];
const variants = ['auto', 'simd', 'relaxed'] as const;

/** `leastMemory`: initial bytes of the module. */
export function readLoadOptions(value: unknown, leastMemory: number): CheckedLoadOptions {
  return reading('load', 'options', () => readOptions('load', value, leastMemory));
}

function readOptions(op: string, value: unknown, leastMemory: number): CheckedLoadOptions {
  const [wasm, variant, threads, maximumMemory, training, signal, onProgress] = value === undefined ? [] : readMembers(op, 'options', value, names);
  if (wasm !== undefined) wasmKind(wasm);
  if (typeof threads === 'string' && threads !== 'auto') fail('ARGUMENT', op, 'threads', describe(threads), "a whole number from 1 to 64, or 'auto'");
  if (training !== undefined && typeof training !== 'boolean') fail('ARGUMENT', op, 'training', describe(training), 'true or false');
  return {
    wasm: wasm as LoadOptions['wasm'],
    variant: variant === undefined ? 'auto' : variants[choice(op, 'variant', variant, variants)]!,
    threads: threads === undefined ? 1 : threads === 'auto' ? 'auto' : whole(op, 'threads', threads, 1, 64),
    maximumMemory: maximumMemory === undefined ? undefined : whole(op, 'maximumMemory', maximumMemory, leastMemory, 2 ** 32),
    signal: readSignal(op, signal),
    onProgress: readCallback(op, 'onProgress', onProgress) as LoadOptions['onProgress'],
  };
}
