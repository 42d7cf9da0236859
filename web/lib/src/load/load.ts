/** load(): selects and starts a build. */
import type { Attn, LoadOptions } from '../attn.js';
import { readBytes } from '../args/arrays.js';
import { type Build, buildOf, identifyBytes, identifyModule, isThreaded, variantOf } from './wasm_build.js';
import { abortable, aborted } from '../platform/abort.js';
import { assertFetch, download, nameOf, network, type Report } from '../platform/download.js';
import { AttnError, errorWithHelp, fail, reason, unreadable } from '../args/error.js';
import { acceptsRelaxed, assertCompiles, assertEngine } from '../platform/features.js';
import { fromNative, isNativeError } from '../engine/engine.js';
import { createInstance } from './instance.js';
import { initialPages, maximumPages, type Native, pageBytes, type ThreadWorker } from '../engine/native.js';
import { leaveOut, noWorkers, pageUrl, assetUrl } from '../platform/asset_urls.js';
import { type CheckedLoadOptions, readLoadOptions, tell, wasmKind } from '../args/options.js';
import type { Platform } from './platform.js';

/** Milliseconds. A policy blocks the workers, or a bundler omitted them. */
const threadsTimeout = 10_000;

interface Opened {
  readonly module: WebAssembly.Module;
  readonly build: Build;
  /** Bytes; 0 if unknown. */
  readonly size: number;
}

function refused(subject: string, build: Build, error: unknown): AttnError {
  const detail = { op: 'load', argument: 'wasm', build };
  const cause = { cause: error };
  try {
    assertCompiles();
  } catch (forbidden) {
    const help = "Allow script-src 'wasm-unsafe-eval' in the Content-Security-Policy, or pass a WebAssembly.Module as wasm";
    return errorWithHelp('ENVIRONMENT', `load: this host forbids compiling WebAssembly (${reason(forbidden)})`, help, detail, cause);
  }
  if (variantOf(build) === 'relaxed' && !acceptsRelaxed())
    return new AttnError('ENVIRONMENT', `load: ${subject} the ${build} build, and this engine does not accept relaxed SIMD`, detail, cause);
  return new AttnError('FORMAT', `load: ${subject} damaged WebAssembly (${reason(error)})`, detail, cause);
}

async function compileBytes(bytes: Uint8Array<ArrayBuffer>, subject: string, report: Report): Promise<Opened> {
  const build = identifyBytes(bytes, subject);
  report('compile', bytes.length, bytes.length);
  try {
    return { module: await WebAssembly.compile(bytes), build, size: bytes.length };
  } catch (error) {
    throw refused(subject, build, error);
  }
}

async function compileResponse(response: Response, name: string, signal: AbortSignal | undefined, report: Report): Promise<Opened> {
  const subject = `${name} returned`;
  // The engine compiles while downloading; the copy is for progress and error messages. Node refuses the type in
  // capitals.
  const streams =
    typeof WebAssembly.compileStreaming === 'function' && !response.bodyUsed && response.headers.get('content-type') === 'application/wasm';
  if (!streams || !response.ok || !response.body) return compileBytes(await download(response, name, signal, report), subject, report);
  const copy = response.clone();
  const compiling = WebAssembly.compileStreaming(response);
  compiling.catch(() => {}); // awaited below, after the bytes have been checked
  const bytes = await download(copy, name, signal, report);
  const build = identifyBytes(bytes, subject);
  report('compile', bytes.length, bytes.length);
  try {
    return { module: await compiling, build, size: bytes.length };
  } catch (error) {
    throw refused(subject, build, error);
  }
}

async function fetchWasm(location: string | URL, signal: AbortSignal | undefined, report: Report): Promise<Opened> {
  const name = `URL ${String(location)}`;
  assertFetch('load', 'Pass a module or bytes as wasm');
  // fetch accepts the host's own signals only.
  const ending = new AbortController();
  const end = () => ending.abort();
  signal?.addEventListener('abort', end);
  try {
    let response: Response;
    try {
      response = await fetch(location, { credentials: 'same-origin', signal: ending.signal });
    } catch (error) {
      if (signal?.aborted) throw aborted(signal);
      throw network(`${name} could not be fetched (${reason(error)})`, { url: String(location) }, error);
    }
    return await compileResponse(response, name, signal, report);
  } finally {
    signal?.removeEventListener('abort', end);
  }
}

async function openLocation(platform: Platform, location: string | URL, signal: AbortSignal | undefined, report: Report): Promise<Opened> {
  let file: Awaited<ReturnType<NonNullable<Platform['readFile']>>> | undefined;
  try {
    file = await platform.readFile?.(location);
  } catch (error) {
    throw network(`${String(location)} could not be read (${reason(error)})`, { url: String(location) }, error);
  }
  if (!file) return fetchWasm(location, signal, report);
  report('download', file.bytes.length, file.bytes.length);
  return compileBytes(file.bytes, `${file.name} holds`, report);
}

async function openOwn(platform: Platform, build: Build, signal: AbortSignal | undefined, report: Report): Promise<Opened> {
  const file = `attn-${build}.wasm`;
  const help = `If a bundler has left out attn/dist/${file}, copy it next to the bundle, or pass it as wasm`;
  let location: URL;
  try {
    location = new URL(assetUrl(platform.urls[build]!().href), pageUrl());
  } catch (cause) {
    const message = `load: ${file} has no URL here (${reason(cause)})`;
    throw errorWithHelp('ENVIRONMENT', message, `${leaveOut}, or pass the bytes as wasm`, { op: 'load' }, { cause });
  }
  try {
    return await openLocation(platform, location, signal, report);
  } catch (error) {
    if (!(error instanceof AttnError) || !['NETWORK', 'FORMAT'].includes(error.code)) throw error;
    throw errorWithHelp(error.code, error.message, help, error.detail, { cause: error.cause ?? error });
  }
}

async function openGiven(
  platform: Platform,
  wasm: NonNullable<LoadOptions['wasm']>,
  signal: AbortSignal | undefined,
  report: Report,
): Promise<Opened> {
  switch (wasmKind(wasm)) {
    case 'location':
      return openLocation(platform, wasm as string | URL, signal, report);
    case 'response':
      return compileResponse(wasm as Response, nameOf(wasm as Response), signal, report);
    case 'module':
      return { module: wasm as WebAssembly.Module, build: identifyModule(wasm as WebAssembly.Module), size: 0 };
    case 'bytes':
      return compileBytes(readBytes('load', 'wasm', wasm), 'wasm is', report);
  }
}

function createMemory(threaded: boolean, maximumMemory: number | undefined): WebAssembly.Memory {
  let maximum = maximumMemory === undefined ? maximumPages : Math.floor(maximumMemory / pageBytes);
  for (;;) {
    try {
      return new WebAssembly.Memory({ initial: initialPages, maximum, shared: threaded });
    } catch (cause) {
      // The address space of a shared memory is reserved at once, and 4 GiB may be too much.
      if (threaded && maximumMemory === undefined && maximum > 128 * initialPages) maximum /= 2;
      else
        throw new AttnError(
          'MEMORY',
          `load: a memory of ${initialPages * pageBytes} to ${maximum * pageBytes} bytes is not available`,
          { op: 'load' },
          { cause },
        );
    }
  }
}

const threadsFailed = (why: string) => new AttnError('ENVIRONMENT', `load: ${why}`, { op: 'load', argument: 'threads' });

interface Started {
  readonly native: Native;
  stop(): void;
}

async function start(platform: Platform, { module, build }: Opened, threads: number, maximumMemory: number | undefined): Promise<Started> {
  const memory = createMemory(isThreaded(build), maximumMemory);
  const workers: ThreadWorker[] = [];
  const stop = () => workers.forEach((worker) => worker.terminate());
  let timer: ReturnType<typeof setTimeout> | undefined;
  try {
    const factory = isThreaded(build) ? await platform.threaded!() : platform.single;
    const native = await new Promise<Native>((resolve, reject) => {
      if (threads > 1)
        timer = setTimeout(() => reject(threadsFailed(`the thread workers did not start within ${threadsTimeout / 1000} s`)), threadsTimeout);
      factory({
        wasmMemory: memory,
        threads,
        createWorker() {
          const failed = (why: string) => reject(threadsFailed(`a thread worker could not be started (${why})`));
          try {
            const worker = platform.createThread!(failed);
            workers.push(worker);
            return worker;
          } catch (error) {
            failed(reason(error));
            throw error;
          }
        },
        instantiateWasm(imports, done) {
          WebAssembly.instantiate(module, imports)
            .then((instance) => done(instance, module))
            .catch(reject);
          return {};
        },
      }).then(resolve, reject);
    });
    if (maximumMemory !== undefined) native.setMemoryLimit(maximumMemory);
    if (threads > 1) native.setNumThreads(threads);
    return { native, stop };
  } catch (error) {
    stop();
    throw error;
  } finally {
    if (timer !== undefined) clearTimeout(timer); // worklets have none
  }
}

function startError(error: unknown): unknown {
  if (error instanceof AttnError) return error;
  if (isNativeError(error)) return fromNative(error);
  const cause = { cause: error };
  if (error instanceof WebAssembly.LinkError)
    return new AttnError(
      'FORMAT',
      `load: the .wasm is of another version of attn than this package (${reason(error)})`,
      { op: 'load', argument: 'wasm' },
      cause,
    );
  if (error instanceof RangeError) return new AttnError('MEMORY', `load: out of memory (${reason(error)})`, { op: 'load' }, cause);
  return new AttnError('ENVIRONMENT', `load: the module did not start (${reason(error)})`, { op: 'load' }, cause);
}

const sharingRefusal = (platform: Platform) =>
  platform.createThread ? platform.sharingRefusal() : ATTN_THREADS ? noWorkers : "this build of attn has no others ('make page' makes one that does)";

function threadsOf(platform: Platform, wanted: CheckedLoadOptions['threads'], notes: string[]): number {
  const refusal = sharingRefusal(platform) ?? platform.waitingRefusal();
  const cores = platform.cores();
  const asked = wanted === 'auto' ? Math.max(1, Math.min(4, Math.floor(cores / 2))) : wanted;
  const threads = refusal === undefined ? asked : 1;
  if (wanted === 'auto' && asked === 1) notes.push(`one thread: 'auto' takes half of the cores, and there are ${cores}`);
  else if (threads < asked) notes.push(`one thread instead of ${asked}: ${refusal}`);
  return threads;
}

function reporterOf({ signal, onProgress }: CheckedLoadOptions): Report {
  return (phase, loaded, total) => {
    if (signal?.aborted) throw aborted(signal);
    tell('load', onProgress, total === undefined ? { phase, loaded } : { phase, loaded, total });
  };
}

async function instantiate(platform: Platform, opened: Opened, threads: number, notes: string[], options: CheckedLoadOptions): Promise<Attn> {
  try {
    const started = await start(platform, opened, threads, options.maximumMemory);
    try {
      const { models, lazyTasks, chat, shards, gguf, ggufParts, images, disk } = platform;
      const parts = { models, lazyTasks, chat, shards, gguf, ggufParts, images, disk };
      return createInstance({ ...started, variant: variantOf(opened.build), threads, notes, ...parts });
    } catch (error) {
      started.stop();
      throw error;
    }
  } catch (error) {
    throw startError(error);
  }
}

async function loadGiven(platform: Platform, wasm: NonNullable<LoadOptions['wasm']>, options: CheckedLoadOptions, report: Report): Promise<Attn> {
  const notes: string[] = [];
  // Some hosts forbid probing, which a compiled module makes unnecessary.
  if (wasmKind(wasm) !== 'module') assertEngine();
  let threads = threadsOf(platform, options.threads, notes);
  const opened = await openGiven(platform, wasm, options.signal, report);
  const { build, size } = opened;
  if (options.variant !== 'auto' && options.variant !== variantOf(build)) {
    const expected = `"auto" or ${JSON.stringify(variantOf(build))}`;
    fail('CONFIG', 'load', 'variant', `is ${JSON.stringify(options.variant)}`, expected, `The given wasm is the ${build} build`);
  }
  const sharing = sharingRefusal(platform);
  if (isThreaded(build) && sharing !== undefined)
    throw new AttnError('ENVIRONMENT', `load: the given wasm is the ${build} build, which needs shared memory (${sharing})`, {
      op: 'load',
      argument: 'wasm',
    });
  if (!isThreaded(build) && threads > 1) {
    notes.push(`one thread instead of ${threads}: the given wasm is the ${build} build`);
    threads = 1;
  }
  if (variantOf(build) === 'simd') notes.push('simd: the given wasm is that build');
  report('start', size, size);
  return instantiate(platform, opened, threads, notes, options);
}

async function loadOwn(platform: Platform, options: CheckedLoadOptions, report: Report): Promise<Attn> {
  const notes: string[] = [];
  assertEngine();
  const { variant: wanted, signal } = options;
  if (wanted === 'relaxed' && !acceptsRelaxed())
    throw new AttnError('ENVIRONMENT', 'load: variant is "relaxed", but this engine does not accept relaxed SIMD', {
      op: 'load',
      argument: 'variant',
    });
  const variant = wanted === 'auto' ? (acceptsRelaxed() ? 'relaxed' : 'simd') : wanted;
  const threads = threadsOf(platform, options.threads, notes);
  if (variant === 'simd')
    notes.push(wanted === 'simd' ? 'simd: chosen by variant' : `simd: this engine does not accept relaxed SIMD${platform.relaxedBy ?? ''}`);
  const attempt = async (count: number) => {
    const opened = await openOwn(platform, buildOf(variant, count > 1), signal, report);
    report('start', opened.size, opened.size);
    return instantiate(platform, opened, count, notes, options);
  };
  try {
    return await attempt(threads);
  } catch (error) {
    // A problem with threads must not prevent running with one.
    const given = error instanceof AttnError && (error.code === 'ABORTED' || error.code === 'ARGUMENT');
    if (threads === 1 || given || signal?.aborted) throw error;
    notes.push(`one thread instead of ${threads}: ${reason(error).replace(/^load: /, '')}`);
    return attempt(1);
  }
}

async function run(platform: Platform, options: CheckedLoadOptions): Promise<Attn> {
  const { wasm, signal } = options;
  const report = reporterOf(options);
  const attn = await (wasm === undefined ? loadOwn(platform, options, report) : loadGiven(platform, wasm, options, report));
  if (signal?.aborted) {
    attn.dispose();
    throw aborted(signal);
  }
  return attn;
}

export function loader(platform: Platform): (options?: LoadOptions) => Promise<Attn> {
  return async (options) => {
    const checked = readLoadOptions(options, initialPages * pageBytes);
    return abortable(checked.signal, () => run(platform, checked)).catch((error: unknown) => {
      throw unreadable('load', 'options', error);
    });
  };
}
