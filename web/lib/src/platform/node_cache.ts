/**
 * The Cache API in a folder, for Node. A file in it is named after the SHA-256 of its URL, so that no URL leads out of
 * the folder; its first line is JSON with the URL and the headers, and the body follows. Writing ends with a rename, so
 * that readers and a crash see the old file or the new one.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, readdir, readFile, rename, rm, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { AttnError, reason } from '../args/error.js';
import type { ModelStorage, Store } from './model_storage.js';

const pieceBytes = 2 ** 20;
/** Longer first lines are not attn's. */
const mostHeadBytes = 2 ** 16;
/** Milliseconds after which a temporary file or a lock belongs to a process that has ended. Both are touched more often. */
const abandoned = { temporary: 3_600_000, lock: 30_000 };
const heartbeat = 5_000;
const retryAfter = 100;

const nameOf = (key: string) => createHash('sha256').update(key).digest('hex');
const urlOf = (request: RequestInfo | URL) => (request instanceof Request ? request.url : String(request));
const isMissing = (error: unknown) => (error as NodeJS.ErrnoException).code === 'ENOENT';
const isOld = async (path: string, age: number) => Date.now() - (await stat(path)).mtimeMs > age;

interface Head {
  readonly url: string;
  readonly headers: [string, string][];
}

function isWhole({ headers }: Head, bytes: number): boolean {
  const expected = new Headers(headers).get('content-length');
  return expected === null || Number(expected) === bytes;
}

/** Undefined if the file is not attn's, or not whole. `at` is the offset of the body. */
async function headOf(file: FileHandle): Promise<{ head: Head; at: number } | undefined> {
  try {
    const bytes = Buffer.alloc(mostHeadBytes);
    const { bytesRead } = await file.read(bytes, 0, bytes.length, 0);
    const end = bytes.subarray(0, bytesRead).indexOf('\n');
    if (end < 0) return undefined;
    const head = JSON.parse(bytes.toString('utf8', 0, end)) as Head;
    const at = end + 1;
    // A power cut may leave a file without its last bytes.
    return isWhole(head, (await file.stat()).size - at) ? { head, at } : undefined;
  } catch {
    return undefined;
  }
}

/** Closes the file at the end, on an error, or if it is cancelled. */
function bodyOf(file: FileHandle, at: number): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = new Uint8Array(pieceBytes);
          const { bytesRead } = await file.read(piece, 0, piece.length, at);
          at += bytesRead;
          if (bytesRead > 0) {
            controller.enqueue(piece.subarray(0, bytesRead));
            return;
          }
          await file.close();
          controller.close();
        } catch (error) {
          await file.close().catch(() => {});
          throw error;
        }
      },
      cancel: () => file.close(),
    },
    { highWaterMark: 0 },
  );
}

async function write(path: string, head: Head, body: ReadableStream<Uint8Array> | null): Promise<void> {
  const file = await open(path, 'wx');
  try {
    await file.writeFile(`${JSON.stringify(head)}\n`);
    let size = 0;
    const reader = body?.getReader();
    for (let next = await reader?.read(); next && !next.done; next = await reader!.read()) {
      for (let at = 0; at < next.value.length;) at += (await file.write(next.value, at, next.value.length - at)).bytesWritten;
      size += next.value.length;
    }
    if (!isWhole(head, size)) throw new Error('length differs from content-length');
    await file.sync(); // otherwise a power cut may leave the new name with old blocks
  } finally {
    await file.close();
  }
}

class FolderStore implements Store {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  #path(request: RequestInfo | URL): string {
    return join(this.#folder, nameOf(urlOf(request)));
  }

  async match(request: RequestInfo | URL): Promise<Response | undefined> {
    const path = this.#path(request);
    const file = await open(path).catch((error: unknown) => {
      if (isMissing(error)) return undefined;
      throw error;
    });
    if (!file) return undefined;
    const found = await headOf(file);
    if (found?.head.url === urlOf(request)) return new Response(bodyOf(file, found.at), { headers: found.head.headers });
    await file.close();
    return undefined;
  }

  async put(request: RequestInfo | URL, response: Response): Promise<void> {
    const path = this.#path(request);
    const temporary = `${path}.${randomUUID()}.tmp`;
    await mkdir(this.#folder, { recursive: true });
    try {
      await write(temporary, { url: urlOf(request), headers: [...response.headers] }, response.body);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async delete(request: RequestInfo | URL): Promise<boolean> {
    try {
      await unlink(this.#path(request));
      return true;
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  }

  async keys(): Promise<Request[]> {
    const keys: Request[] = [];
    for (const name of await this.#names()) {
      if (!/^[0-9a-f]{64}$/.test(name)) continue;
      const file = await open(join(this.#folder, name)).catch(() => undefined); // deleted in the meantime
      const found = file && (await headOf(file).finally(() => file.close()));
      if (found && nameOf(found.head.url) === name) keys.push(new Request(found.head.url));
    }
    return keys;
  }

  async #names(): Promise<string[]> {
    try {
      return await readdir(this.#folder);
    } catch (error) {
      if (isMissing(error)) return [];
      throw error;
    }
  }

  /** Removes temporary files of processes that have ended. */
  async clean(): Promise<void> {
    for (const name of await this.#names()) {
      const path = join(this.#folder, name);
      if (name.endsWith('.tmp') && (await isOld(path, abandoned.temporary).catch(() => false))) await rm(path, { force: true });
    }
  }
}

/** True of a lock whose process has ended: the one in the file on this host, or on any host one that does not touch it. */
async function isAbandoned(path: string): Promise<boolean> {
  try {
    if (await isOld(path, abandoned.lock)) return true;
    const [host, pid] = (await readFile(path, 'utf8')).split(' ');
    if (host !== hostname()) return false;
    process.kill(Number(pid), 0); // no signal, only whether there is such a process
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

/** Undefined if the folder cannot be written. */
async function take(path: string, mine: string): Promise<boolean | undefined> {
  for (;;) {
    try {
      await writeFile(path, mine, { flag: 'wx' });
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return undefined;
      if (!(await isAbandoned(path))) return false;
      await rm(path, { force: true });
    }
  }
}

/** Web Locks by files, so that they also hold between processes. */
const locksIn = (folder: string): NonNullable<ModelStorage['locks']> => ({
  async request(name, { ifAvailable, signal }, work) {
    const path = join(folder, nameOf(name));
    const mine = `${hostname()} ${process.pid} ${randomUUID()}`;
    await mkdir(folder, { recursive: true }).catch(() => {});
    for (;;) {
      const taken = await take(path, mine);
      if (taken) break;
      if (taken === undefined || ifAvailable) return work(null);
      await sleep(retryAfter, undefined, { signal });
    }
    const touch = () => utimes(path, new Date(), new Date()).catch(() => {});
    const timer = setInterval(() => void touch(), heartbeat).unref();
    try {
      return await work({ name });
    } finally {
      clearInterval(timer);
      // Another process may have taken it while this one was stopped.
      if ((await readFile(path, 'utf8').catch(() => '')) === mine) await rm(path, { force: true });
    }
  },
});

/** Deno may forbid reading the environment. */
function folderOfEnvironment(): string | undefined {
  try {
    return process.env['ATTN_CACHE_DIR'] || undefined;
  } catch {
    return undefined;
  }
}

/** Undefined if neither the option nor the environment names a folder. Throws if the folder cannot be read. */
export async function folderStorage(op: string, given: string | undefined, creates: boolean): Promise<ModelStorage | undefined> {
  const named = given ?? folderOfEnvironment();
  if (named === undefined) return undefined;
  const folder = resolve(named);
  const files = new FolderStore(join(folder, 'attn-models'));
  const parts = new FolderStore(join(folder, 'attn-models-parts'));
  try {
    if (creates) await mkdir(folder, { recursive: true });
    await readdir(folder);
  } catch (cause) {
    if (creates || !isMissing(cause)) {
      const detail = { op, argument: 'cacheDir', expected: 'a folder', got: JSON.stringify(named) };
      throw new AttnError('ARGUMENT', `${op}: cacheDir is ${detail.got}, expected a folder (${reason(cause)})`, detail, { cause });
    }
  }
  await Promise.allSettled([files.clean(), parts.clean()]);
  return { files, parts, locks: locksIn(join(folder, 'attn-models-locks')) };
}
