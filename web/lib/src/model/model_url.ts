/** Downloads, caches, checks for changes and resumes after an interruption. */
import { abortable, aborted } from '../platform/abort.js';
import { assertBytes, assertFetch } from '../platform/download.js';
import { AttnError, describe, fail, isAttnError, reason } from '../args/error.js';
import { bodyOf, discard, joinedFrom, ModelCache, keptWith, type PartialDownload, quiet, storedFiles } from './model_cache.js';
import { type Disk, type Folder, type JoinedFile, type ModelFile, network, type Outcome } from './model_files.js';
import { pageUrl } from '../platform/asset_urls.js';
import { browserStorage, type ModelStorage } from '../platform/model_storage.js';
import { type CheckedModelOptions, fileNames, type FileName } from '../args/model_options.js';

const op = 'loadModel';

/** ETag or date for If-Range, which does not accept weak ETags. */
function validatorOf({ headers }: Pick<Response, 'headers'>): string {
  const tag = headers.get('etag');
  return (tag?.startsWith('"') ? tag : headers.get('last-modified')) ?? '';
}

/** Returns '' for a compressed body, which a Range request cannot continue. */
const rangeValidatorOf = (response: Pick<Response, 'headers'>) => (response.headers.get('content-encoding') === null ? validatorOf(response) : '');

/** Bytes of the body, if known: for a compressed one the header counts the compressed bytes. */
function lengthOf({ headers }: Response): number | undefined {
  const length = headers.get('content-encoding') === null ? Number(headers.get('content-length')) : 0;
  return length > 0 ? length : undefined;
}

/** Milliseconds for a server that may report changed files. */
const patience = 3000;

function isOther(kept: Headers, now: Headers): boolean {
  for (const name of ['etag', 'last-modified']) {
    const [before, after] = [kept, now].map((headers) => headers.get(name)?.replace(/^W\//, ''));
    if (before && after) return before !== after;
  }
  return false;
}

/** Joins ETags and dates of several files to those of one. */
function joinedHeaders(all: readonly (Headers | undefined)[]): Headers {
  const joined = new Headers();
  for (const name of ['etag', 'last-modified']) {
    const values = all.map((headers) => headers?.get(name)?.replace(/^W\//, ''));
    if (values.every(Boolean)) joined.set(name, values.join());
  }
  return joined;
}

const isHtml = ({ headers }: Response) => /^text\/html\b/i.test(headers.get('content-type') ?? '');

/** `locked` is true on hosts without Web Locks. */
async function withLock<T>(
  locks: ModelStorage['locks'],
  name: string,
  options: { ifAvailable?: boolean; signal?: AbortSignal },
  work: (locked: boolean) => Promise<T>,
): Promise<T> {
  let result: Promise<T> | undefined;
  try {
    await locks?.request(name, options, (lock) => (result = work(lock !== null)));
  } catch {
    // Reported below.
  }
  if (!result && options.signal?.aborted) throw aborted(options.signal, op);
  return result ?? work(true);
}

async function storageOf(disk: Disk | undefined, { cache, cacheDir }: CheckedModelOptions, { protocol }: URL): Promise<ModelStorage | undefined> {
  if (cache === 'none' || !/^https?:$/.test(protocol)) return undefined;
  if (cacheDir !== undefined && !disk) fail('ENVIRONMENT', op, 'cacheDir', describe(cacheDir), 'no cacheDir', 'A browser has its own cache');
  return (await disk?.storage(op, cacheDir)) ?? quiet(browserStorage);
}

export class UrlFolder implements Folder {
  readonly #base: URL;
  readonly gguf: FileName | undefined;
  readonly #weights: FileName;
  readonly #names: readonly FileName[];
  readonly #options: CheckedModelOptions;
  readonly #signal: AbortSignal;
  readonly #cache: ModelCache | undefined;
  /** Only one of several concurrent loads writes to the cache. */
  readonly #keeps: boolean;
  /** Load that cached the whole model; if set, files come from the cache. */
  #kept: string | undefined;
  /** Files of that load; missing if an older version stored it. */
  #stored: readonly string[] | undefined;
  /** Undefined by default: engines without an HTTP cache may refuse the member. */
  #httpCache: RequestCache | undefined;
  #parts: PartialDownload | undefined;
  readonly #headers = new Map<FileName, Headers>();
  readonly #status = new Map<FileName, number>();

  private constructor(
    base: URL,
    gguf: FileName | undefined,
    options: CheckedModelOptions,
    signal: AbortSignal,
    cache: ModelCache | undefined,
    keeps: boolean,
  ) {
    this.#base = base;
    this.gguf = gguf;
    this.#weights = gguf ?? 'model.safetensors';
    this.#names = gguf === undefined ? fileNames : [gguf];
    this.#options = options;
    this.#signal = signal;
    this.#cache = cache;
    this.#keeps = keeps;
    this.#httpCache = options.cache === 'reload' ? 'reload' : undefined;
  }

  /** No other load changes the folder in the cache meanwhile. */
  static async use<T>(
    disk: Disk | undefined,
    location: string,
    options: CheckedModelOptions,
    signal: AbortSignal,
    work: (folder: Folder) => Promise<T>,
  ): Promise<T> {
    if (!options.fetch) assertFetch(op, 'Pass the files themselves, or a fetch');
    let base: URL;
    try {
      base = new URL(location, pageUrl());
    } catch {
      fail('ARGUMENT', op, 'source', describe(location), 'the URL of a folder');
    }
    base.hash = '';
    const gguf = /[^/]*\.gguf$/.exec(base.pathname)?.[0];
    base.pathname = base.pathname.slice(0, -(gguf?.length ?? 0) || undefined).replace(/\/?$/, '/');
    if (!base.pathname.endsWith('/')) fail('ARGUMENT', op, 'source', describe(location), 'the URL of a folder');
    const storage = await storageOf(disk, options, base);
    const cache = storage && new ModelCache(storage, base);
    if (!cache) return work(new UrlFolder(base, gguf, options, signal, cache, false));
    const load = async (locked: boolean) => {
      const folder = new UrlFolder(base, gguf, options, signal, cache, locked);
      await folder.#look(cache);
      return work(folder);
    };
    const lock = `attn-model ${cache.key}${gguf ?? ''}`;
    let waits = false;
    const result = await withLock(cache.locks, lock, { ifAvailable: true }, async (locked) => {
      // Another load is downloading the model: wait for it.
      if (!locked && options.cache === 'default') {
        const kept = await cache.match(gguf ?? 'model.safetensors');
        if (kept) discard(kept);
        waits = !kept;
      }
      return waits ? undefined : load(locked);
    });
    return waits ? withLock(cache.locks, lock, { signal }, load) : result!;
  }

  async #look(cache: ModelCache): Promise<void> {
    if (this.#options.cache === 'reload') return;
    // The weights are cached last.
    const kept = await cache.match(this.#weights);
    if (!kept) return;
    discard(kept);
    if (await this.#isRenewed(cache)) this.#httpCache = 'no-cache';
    else this.#kept = kept.headers.get(keptWith) ?? '';
    this.#stored = kept.headers.get(storedFiles)?.split(' ');
  }

  /** Returns false without a timely answer. */
  async #isRenewed(cache: ModelCache): Promise<boolean> {
    const ending = new AbortController();
    const end = () => ending.abort();
    const timer = setTimeout(end, patience);
    this.#signal.addEventListener('abort', end);
    let renewed = false;
    const compare = async (file: FileName) => {
      const kept = await cache.match(file);
      if (!kept) return;
      discard(kept);
      const files = kept.headers.get(joinedFrom)?.split(' ') ?? [file];
      // Another origin would have to permit custom headers (CORS).
      const answers = await Promise.all(files.map((each) => this.#ask(each, { method: 'HEAD', cache: 'no-cache', signal: ending.signal })));
      answers.forEach(discard);
      if (answers.every(({ ok }) => ok) && isOther(kept.headers, joinedHeaders(answers.map(({ headers }) => headers)))) renewed = true;
    };
    const asked = this.#names.filter((file) => !this.#options.sha256.has(file));
    try {
      await abortable(ending.signal, () => Promise.allSettled(asked.map(compare)));
    } catch {
      // Timed out or aborted.
    } finally {
      clearTimeout(timer);
      this.#signal.removeEventListener('abort', end);
      end();
    }
    return renewed;
  }

  /** Adds the query of the folder's URL (a token, a version). */
  #url(file: string): string {
    const url = new URL(this.#base);
    url.pathname += file;
    return url.href;
  }

  nameOf(file: string): string {
    return `URL ${this.#url(file)}`;
  }

  async #ask(file: string, init: RequestInit & { headers?: Record<string, string> } = {}): Promise<Response> {
    const url = this.#url(file);
    let response: Response;
    try {
      const cache = this.#httpCache && { cache: this.#httpCache };
      const { headers } = this.#options.request;
      response = await (this.#options.fetch ?? globalThis.fetch).call(undefined, url, {
        credentials: 'same-origin',
        signal: this.#signal,
        ...this.#options.request,
        ...cache,
        ...init,
        ...(headers && { headers: { ...headers, ...init.headers } }),
      });
    } catch (error) {
      // Extensions fail instead of answering 404.
      if (/-extension:$/.test(this.#base.protocol) && !this.#signal.aborted) return new Response(null, { status: 404 });
      throw network(`URL ${url} could not be fetched (${reason(error)})`, { url }, error);
    }
    if (typeof response?.ok !== 'boolean' || typeof response.headers?.get !== 'function')
      fail('ARGUMENT', op, 'fetch', `has returned a value that ${describe(response)}`, 'a Response');
    if (response.bodyUsed) fail('ARGUMENT', op, 'fetch', 'has returned a Response whose body is used', 'a fresh Response');
    return response;
  }

  /** `before`: bytes of the file before the response. */
  #opened(file: FileName, response: Response, before = 0): ModelFile | undefined {
    const url = this.#url(file);
    const name = `URL ${url}`;
    const { status } = response;
    if (!response.ok) {
      discard(response);
      this.#status.set(file, status);
      // Stores that do not list their files answer 403 for a missing one.
      if (status === 404 || status === 410 || status === 403) return undefined;
      throw network(`${name} answered ${status} ${response.statusText}`.trimEnd(), { url, status });
    }
    this.#headers.set(file, response.headers);
    const length = lengthOf(response);
    const total = length === undefined ? undefined : before + length;
    const kept = file === this.#weights ? this.#parts : undefined;
    async function* pieces(): AsyncGenerator<Uint8Array> {
      let came = 0;
      try {
        if (before > 0 && kept) yield* kept.pieces();
        for await (const chunk of bodyOf(response)) {
          assertBytes(chunk);
          came += chunk.length;
          await kept?.write(chunk);
          yield chunk;
        }
      } catch (error) {
        throw network(`${name} broke off after ${before + came} bytes (${reason(error)})`, { url, got: before + came, expected: total }, error);
      }
      // More bytes are no error: servers may announce the compressed length.
      if (length !== undefined && came < length)
        throw network(`${name} broke off after ${before + came} of ${total} bytes`, { url, got: before + came, expected: total });
    }
    return { name, phase: 'download', total, pieces };
  }

  /** `continues`: the bytes are of the version with this validator. */
  async #rest(file: FileName, from: number, validator: string, total: number | undefined, isWhole = false) {
    const ours = this.#base.origin === globalThis.location?.origin;
    // If-Range would need the permission of another origin; there the response's validator decides.
    const headers = { range: `bytes=${from}-`, ...(ours && { 'if-range': validator }) } as Record<string, string>;
    const response = await this.#ask(file, { headers }).catch((error: unknown) => {
      if (this.#signal.aborted || (error as AttnError).code !== 'NETWORK') throw error;
      return undefined;
    });
    if (!response) return undefined;
    const now = validatorOf(response);
    const [, start, all] = /^bytes (\d+)-\d+\/(?:(\d+)|\*)$/.exec(response.headers.get('content-range') ?? '') ?? [];
    const continues =
      response.status === 206 &&
      (now === validator || (ours && now === '')) &&
      response.headers.get('content-encoding') === null &&
      // Browsers hide Content-Range of other origins; for a whole file the validator suffices.
      (start === undefined ? isWhole : Number(start) === from) &&
      (all === undefined || total === undefined || Number(all) === total);
    return { response, continues };
  }

  /** Returns undefined if the download has to start again. */
  async #resume(parts: PartialDownload): Promise<ModelFile | undefined> {
    const { size, validator, total } = parts;
    if (size === 0) return undefined;
    const isWhole = size === total;
    // The last byte of a whole file shows whether the file has changed.
    const rest = await this.#rest(this.#weights, isWhole ? size - 1 : size, validator, total, isWhole);
    if (!rest) return undefined;
    const { response, continues } = rest;
    if (continues && !isWhole) return this.#opened(this.#weights, response, size);
    discard(response);
    this.#headers.set(this.#weights, response.headers);
    return continues ? { name: this.nameOf(this.#weights), phase: 'cache', total, pieces: () => parts.pieces() } : undefined;
  }

  /** Continues at `from`, or opens all of it if the server does not continue the version that has been seen. */
  async #restOfShard(file: FileName, from: number): Promise<ModelFile | undefined> {
    const headers = this.#headers.get(file);
    const validator = from > 0 && headers ? rangeValidatorOf({ headers }) : '';
    const rest = validator !== '' ? await this.#rest(file, from, validator, undefined) : undefined;
    if (rest?.continues) return { ...this.#opened(file, rest.response, from)!, from };
    const isWhole = rest?.response.status === 200;
    if (rest && !isWhole) discard(rest.response);
    const response = isWhole ? rest.response : await this.#ask(file);
    if (validator !== '' && response.ok && validatorOf(response) !== validator) {
      discard(response);
      fail('FORMAT', op, this.nameOf(file), 'has changed while it was read', 'the same file');
    }
    return this.#opened(file, response);
  }

  /** A caller's Response may throw in any member. */
  async open(file: FileName, from = 0): Promise<ModelFile | undefined> {
    try {
      return await this.#open(file, from);
    } catch (error) {
      if (isAttnError(error)) throw error;
      const url = this.#url(file);
      throw network(`the Response for URL ${url} could not be read (${reason(error)})`, { url }, error);
    }
  }

  async #open(file: FileName, from: number): Promise<ModelFile | undefined> {
    const url = this.#url(file);
    if (this.#kept !== undefined) {
      const response = await this.#cache!.match(file);
      const other = response?.headers.get(keptWith) ?? '';
      if (response && this.#kept !== '' && other !== '' && this.#kept !== other) {
        discard(response);
        throw new AttnError('FORMAT', `${op}: ${file} was cached again in the meantime`, { op, url });
      }
      // The folder would otherwise seem to lack an optional file.
      if (!response && this.#stored?.includes(file)) throw this.absent(file);
      return response && { name: `URL ${url} (cached)`, phase: 'cache', total: lengthOf(response), pieces: () => bodyOf(response) };
    }
    if (file !== this.#weights || !this.#keeps) return this.#restOfShard(file, from);
    const parts = (this.#parts = await this.#cache!.parts(file));
    const rest = this.#options.cache === 'reload' ? undefined : await this.#resume(parts);
    if (rest) return rest;
    const response = await this.#ask(file);
    // If the server fails now, the next load can still resume.
    if (response.ok) {
      await parts.restart();
      parts.describe(rangeValidatorOf(response), lengthOf(response));
    }
    return this.#opened(file, response);
  }

  /** Stores the joined file as the weights. An interrupted download resumes if the files' validators are the same. */
  async joined(file: JoinedFile, files: readonly FileName[]): Promise<ModelFile> {
    const known = files.map((each) => this.#headers.get(each));
    const headers = joinedHeaders(known);
    headers.set(joinedFrom, files.join(' '));
    this.#headers.set(this.#weights, headers);
    const kept = this.#parts;
    if (!kept) return file;
    const validators = known.map((each) => (each ? rangeValidatorOf({ headers: each }) : ''));
    const validator = validators.every(Boolean) ? validators.join() : '';
    if (this.#options.cache === 'reload' || kept.validator !== validator || kept.total !== file.total) {
      await kept.restart();
      kept.describe(validator, file.total);
    }
    const before = kept.size;
    async function* pieces(): AsyncGenerator<Uint8Array> {
      if (before > 0) yield* kept!.pieces();
      for await (const piece of file.pieces(before)) {
        await kept!.write(piece);
        yield piece;
      }
    }
    return { ...file, pieces };
  }

  /** The file may be large, so HEAD is tried first. */
  async #probe(file: string): Promise<Response> {
    if (!/^http/.test(this.#base.protocol)) return this.#ask(file);
    const response = await this.#ask(file, { method: 'HEAD' });
    return [405, 501].includes(response.status) ? this.#ask(file) : response;
  }

  async existing(files: readonly string[]): Promise<string[]> {
    if (this.#kept !== undefined) return [];
    const there = await Promise.all(
      files.map(async (file) => {
        const response = await this.#probe(file).catch(() => undefined);
        if (response) discard(response);
        return response?.ok === true && !isHtml(response);
      }),
    );
    return files.filter((_, i) => there[i]);
  }

  absent(file: FileName): AttnError {
    const url = this.#url(file);
    if (this.#kept !== undefined) return new AttnError('FORMAT', `${op}: ${file} is no longer in the cache`, { op, url });
    const status = this.#status.get(file);
    return network(`URL ${url} answered ${status}`, { file, url, status });
  }

  async settle(outcome: Outcome, small: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>): Promise<boolean> {
    const cache = this.#cache!;
    const parts = this.#parts;
    if (this.#kept !== undefined) {
      if (outcome !== 'bad') return false;
      if (this.#keeps) for (const file of [...this.#names, ...small.keys()]) await cache.delete(file);
      this.#kept = undefined;
      return true;
    }
    if (!parts) return false;
    const kept = outcome === 'complete' && (await this.#keep(cache, parts, small));
    // Without a validator the next load cannot tell whether the file has changed.
    const goesOn = !kept && (outcome !== 'bad' || this.#signal.aborted) && parts.validator !== '';
    await (goesOn ? parts.close() : parts.clear());
    return false;
  }

  async #keep(cache: ModelCache, parts: PartialDownload, small: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>): Promise<boolean> {
    const whole = await parts.whole(this.#signal);
    if (!whole) return false;
    const load = crypto.randomUUID();
    // Cached weights mean that all other files are cached.
    await cache.delete(this.#weights);
    for (const file of new Set([...this.#names, ...small.keys()])) {
      const bytes = small.get(file);
      // The new version of the folder may lack a file.
      if (!bytes) await cache.delete(file);
      else if (!(await cache.put(file, bytes, bytes.length, load, this.#headers.get(file)))) return false;
    }
    const said = new Headers(this.#headers.get(this.#weights));
    said.set(storedFiles, [...small.keys()].join(' '));
    return cache.put(this.#weights, whole.body, whole.size, load, said);
  }
}
