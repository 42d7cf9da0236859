/**
 * Model files in the Cache API, or in Node in a folder, each under its URL. A large file is stored in parts, so that an
 * interrupted download can resume. Without a cache, or without space, nothing is stored, and nothing throws.
 */
import { keyOf, type ModelStorage, type Store } from '../platform/model_storage.js';

/** Id of the load that stored a file. */
export const keptWith = 'x-attn-load';
/** Of the weights: names of all files of the model. */
export const storedFiles = 'x-attn-stored';
/** Files that were joined into one. */
export const joinedFrom = 'x-attn-files';

/** The most that closing a page loses of a download. */
const partBytes = 4 * 2 ** 20;

export async function quiet<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}

export function discard(response: Response): void {
  response.body?.cancel().catch(() => {});
}

export async function* bodyOf(response: Response): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = response.body?.getReader();
  if (!reader) return;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export class PartialDownload {
  readonly #cache: Store;
  readonly #url: string;
  readonly #offsets: number[] = [];
  #size = 0;
  #validator = '';
  #total: number | undefined;
  #buffer: Uint8Array<ArrayBuffer> | undefined;
  #filled = 0;
  #writes = true;
  #flushed = Promise.resolve();

  private constructor(cache: Store, url: string) {
    this.#cache = cache;
    this.#url = url;
  }

  /** Finds parts without gaps, of one version of the file. */
  static async find(cache: Store, url: string): Promise<PartialDownload> {
    const parts = new PartialDownload(cache, url);
    await quiet(async () => {
      for (;;) {
        const part = await cache.match(parts.#key(parts.#size));
        const length = Number(part?.headers.get('content-length'));
        const validator = part?.headers.get('x-attn-validator');
        if (part) discard(part);
        if (!part || !(length > 0) || !validator || (parts.#size > 0 && validator !== parts.#validator)) return;
        parts.#validator = validator;
        parts.#total = Number(part.headers.get('x-attn-total')) || undefined;
        parts.#offsets.push(parts.#size);
        parts.#size += length;
      }
    });
    return parts;
  }

  get size(): number {
    return this.#size;
  }
  /** ETag or date. */
  get validator(): string {
    return this.#validator;
  }
  /** Bytes of the whole file, if known. */
  get total(): number | undefined {
    return this.#total;
  }

  #key(offset: number): string {
    const url = new URL(this.#url);
    url.searchParams.set('attn-part', String(offset));
    return url.href;
  }

  describe(validator: string, total: number | undefined): void {
    this.#validator = validator;
    this.#total = total;
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let at = 0; this.#writes && at < piece.length;) {
      this.#buffer ??= new Uint8Array(partBytes);
      const taken = Math.min(partBytes - this.#filled, piece.length - at);
      this.#buffer.set(piece.subarray(at, at + taken), this.#filled);
      this.#filled += taken;
      at += taken;
      if (this.#filled === partBytes) await this.flush();
    }
  }

  flush(): Promise<void> {
    return (this.#flushed = this.#flushed.then(() => this.#flush()));
  }

  async #flush(): Promise<void> {
    const length = this.#filled;
    if (length === 0) return;
    const headers = {
      'content-length': String(length),
      'x-attn-validator': this.#validator,
      date: new Date().toUTCString(),
      ...(this.#total !== undefined && { 'x-attn-total': String(this.#total) }),
    };
    const offset = this.#size;
    this.#filled = 0;
    // The Response copies the bytes.
    const kept = await quiet(async () => {
      await this.#cache.put(this.#key(offset), new Response(this.#buffer!.subarray(0, length), { headers }));
      return true;
    });
    // The next load can use the stored parts.
    if (!kept) return void (this.#writes = false);
    this.#offsets.push(offset);
    this.#size += length;
  }

  async *pieces(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    for (const offset of [...this.#offsets]) {
      const part = await this.#cache.match(this.#key(offset));
      if (part?.headers.get('x-attn-validator') !== this.#validator) throw new Error('a part of it is no longer in the cache');
      yield* bodyOf(part);
    }
  }

  /** Joins the parts, if all were stored. Reading fails once the signal is aborted. */
  async whole(signal: AbortSignal): Promise<{ body: BodyInit; size: number } | undefined> {
    if (this.#offsets.length === 0 && this.#filled > 0) return { body: this.#buffer!.subarray(0, this.#filled), size: this.#filled };
    await this.flush();
    if (!this.#writes || this.#size === 0) return undefined;
    const pieces = this.pieces();
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const next = await pieces.next();
          if (signal.aborted) throw signal.reason;
          if (next.done) controller.close();
          else controller.enqueue(next.value);
        },
        async cancel() {
          await pieces.return(undefined);
        },
      },
      { highWaterMark: 0 },
    );
    return { body, size: this.#size };
  }

  async restart(): Promise<void> {
    await quiet(async () => {
      const start = new URL(this.#key(0));
      for (const request of await this.#cache.keys()) {
        const url = new URL(request.url);
        if (!url.searchParams.has('attn-part')) continue;
        url.searchParams.set('attn-part', '0');
        if (url.href === start.href) await this.#cache.delete(request);
      }
    });
    this.#offsets.length = 0;
    this.#size = this.#filled = 0;
  }

  /** Stores the last bytes, for the next load. */
  async close(): Promise<void> {
    this.#writes = false;
    await this.flush();
  }

  async clear(): Promise<void> {
    this.#writes = false;
    this.#buffer = undefined;
    await this.restart();
  }
}

export class ModelCache {
  /** The folder's URL. */
  readonly key: string;
  readonly #storage: ModelStorage;

  constructor(storage: ModelStorage, folder: URL) {
    this.#storage = storage;
    this.key = keyOf(folder).href;
  }

  get locks(): ModelStorage['locks'] {
    return this.#storage.locks;
  }

  #url(file: string): string {
    const url = new URL(this.key);
    url.pathname += file;
    return url.href;
  }

  async match(file: string): Promise<Response | undefined> {
    return quiet(() => this.#storage.files.match(this.#url(file)));
  }

  /** Files of one model have the same `load`. */
  async put(file: string, body: BodyInit, size: number, load: string, said: Headers | undefined): Promise<boolean> {
    const headers = new Headers({ 'content-length': String(size), date: new Date().toUTCString(), [keptWith]: load });
    headers.set('content-type', file.endsWith('.json') ? 'application/json' : 'application/octet-stream');
    for (const name of ['etag', 'last-modified', joinedFrom, storedFiles]) {
      const value = said?.get(name);
      if (value) headers.set(name, value);
    }
    const kept = await quiet(async () => {
      await this.#storage.files.put(this.#url(file), new Response(body, { headers }));
      return true;
    });
    return kept ?? false;
  }

  async delete(file: string): Promise<void> {
    await quiet(() => this.#storage.files.delete(this.#url(file)));
  }

  parts(file: string): Promise<PartialDownload> {
    return PartialDownload.find(this.#storage.parts, this.#url(file));
  }
}
