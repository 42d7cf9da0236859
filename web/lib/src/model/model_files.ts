import { arrayLength, failDetached } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { AttnError, isAttnError, networkErrors, reason } from '../args/error.js';
import { fileNames, type FileName, type Given, type Source } from '../args/model_options.js';
import type { ModelStorage } from '../platform/model_storage.js';
import { encodeUtf8 } from '../platform/utf8.js';

const op = 'loadModel';

/** Bounds the memory for reading a large file. */
export const pieceBytes = 2 ** 20;

export interface Disk {
  /** Undefined if the location has to be fetched. */
  pathOf(location: string): string | undefined;
  join(folder: string, file: string): string;
  /** Undefined if the file does not exist. */
  size(path: string): Promise<number | undefined>;
  /** Each piece is valid until the next one is requested. */
  read(path: string, pieceBytes: number): AsyncGenerator<Uint8Array>;
  /** The folder that caches downloads; undefined if none is named. */
  storage(op: string, cacheDir: string | undefined): Promise<ModelStorage | undefined>;
}

export interface ModelFile {
  readonly name: string;
  readonly phase: 'download' | 'cache' | 'read';
  readonly total: number | undefined;
  /** The file that `total` counts, if `pieces` are made from another. */
  readonly source?: { readonly file: FileName; loaded(): number };
  /** Offset of the first piece in the file; default 0. */
  readonly from?: number;
  /** Each piece is valid until the next one is requested. */
  pieces(): AsyncGenerator<Uint8Array>;
}

export interface JoinedFile extends ModelFile {
  pieces(from?: number): AsyncGenerator<Uint8Array>;
}

/** 'broken': interrupted, but the bytes so far are good. */
export type Outcome = 'complete' | 'broken' | 'bad';

export interface Folder {
  /** The GGUF file that is loaded instead of a folder. */
  readonly gguf?: FileName | undefined;
  nameOf(file: string): string;
  /** `from` saves a download of the bytes before it if possible; see {@link ModelFile.from}. */
  open(file: FileName, from?: number): Promise<ModelFile | undefined>;
  existing(files: readonly string[]): Promise<string[]>;
  absent(file: FileName): AttnError;
  /** Prepares to store the weights, joined from these files. */
  joined?(file: JoinedFile, files: readonly FileName[]): Promise<ModelFile>;
  /** True if a second attempt may succeed, because the cache was bad. */
  settle?(outcome: Outcome, small: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>): Promise<boolean>;
}

export const network = networkErrors(op);

const sizeOf = (content: Given) => (typeof content === 'string' ? undefined : 'buffer' in content ? content.length : content.size);

/** `size` was measured when the caller passed the content. */
async function* piecesOf(content: Given, name: string, size = 0): AsyncGenerator<Uint8Array> {
  if (typeof content === 'string') {
    yield encodeUtf8(content);
    return;
  }
  if ('buffer' in content) {
    for (let at = 0; at < size; at += pieceBytes) {
      // The caller may have transferred the buffer.
      if (arrayLength(content) !== size) failDetached(op, name, size);
      yield content.subarray(at, at + pieceBytes);
      await yieldToEventLoop();
    }
    return;
  }
  const read = (at: number) => {
    const piece = content.slice(at, at + pieceBytes).arrayBuffer();
    piece.catch(() => {}); // an error is reported when the piece is awaited
    return piece;
  };
  // Read ahead: browsers read Blobs in another process.
  let next = read(0);
  for (let at = pieceBytes; at - pieceBytes < content.size; at += pieceBytes) {
    try {
      const piece = await next;
      if (at < content.size) next = read(at);
      yield new Uint8Array(piece);
    } catch (error) {
      throw network(`${name} could not be read (${reason(error)})`, {}, error);
    }
  }
}

/** A folder that all names share is removed: dropped files have one. */
export class GivenFolder implements Folder {
  readonly #files = new Map<string, { name: string; content: Given; size: number | undefined }>();

  constructor(files: Extract<Source, { files: unknown }>['files']) {
    const paths = files.map(([name]) => name.replaceAll('\\', '/').replace(/^(\.?\/)+/, ''));
    let common = paths[0]!.lastIndexOf('/') + 1;
    while (common > 0 && !paths.every((path) => path.startsWith(paths[0]!.slice(0, common)))) common = paths[0]!.lastIndexOf('/', common - 2) + 1;
    files.forEach(([name, content], i) => this.#files.set(paths[i]!.slice(common), { name, content, size: sizeOf(content) }));
  }

  get gguf(): FileName | undefined {
    const names = [...this.#files.keys()];
    const [file, ...others] = names.filter((name) => name.endsWith('.gguf'));
    return others.length > 0 || names.some((name) => /(^|\/)config\.json$/.test(name)) ? undefined : file;
  }

  nameOf(file: string): string {
    return `source[${JSON.stringify(this.#files.get(file)?.name ?? file)}]`;
  }

  open(file: FileName): Promise<ModelFile | undefined> {
    const found = this.#files.get(file);
    if (!found) return Promise.resolve(undefined);
    const { content, size } = found;
    const name = this.nameOf(file);
    return Promise.resolve({ name, phase: 'read', total: size, pieces: () => piecesOf(content, name, size) });
  }

  /** missing() matches patterns. */
  existing(): Promise<string[]> {
    return Promise.resolve([...this.#files.keys()]);
  }

  absent(file: FileName): AttnError {
    const got = [...this.#files.keys()].slice(0, 10).join(', ');
    return new AttnError('ARGUMENT', `${op}: source has no ${file}, only ${got}, expected ${fileNames.slice(0, 3).join(', ')}`, {
      op,
      argument: 'source',
      expected: file,
      got,
    });
  }
}

export class DiskFolder implements Folder {
  readonly #disk: Disk;
  readonly #path: string;
  readonly gguf: FileName | undefined;

  constructor(disk: Disk, path: string, gguf?: FileName) {
    this.#disk = disk;
    this.#path = path;
    this.gguf = gguf;
  }

  static async at(disk: Disk, path: string): Promise<DiskFolder> {
    const [, folder = '', file] = /^(.*[\\/])?([^\\/]*\.gguf)$/s.exec(path) ?? [];
    const isFile = file !== undefined && (await disk.size(disk.join(path, 'config.json')).catch(() => undefined)) === undefined;
    return isFile ? new DiskFolder(disk, folder, file) : new DiskFolder(disk, path);
  }

  nameOf(file: string): string {
    return this.#disk.join(this.#path, file);
  }

  async #size(path: string): Promise<number | undefined> {
    try {
      return await this.#disk.size(path);
    } catch (error) {
      throw isAttnError(error) ? error : network(`${path} could not be read (${reason(error)})`, { path }, error);
    }
  }

  async open(file: FileName): Promise<ModelFile | undefined> {
    const path = this.nameOf(file);
    const total = await this.#size(path);
    if (total === undefined) return undefined;
    const disk = this.#disk;
    async function* pieces(): AsyncGenerator<Uint8Array> {
      try {
        yield* disk.read(path, pieceBytes);
      } catch (error) {
        throw network(`${path} could not be read (${reason(error)})`, { path }, error);
      }
    }
    return { name: path, phase: 'read', total, pieces };
  }

  async existing(files: readonly string[]): Promise<string[]> {
    const sizes = await Promise.all(files.map((file) => this.#size(this.nameOf(file)).catch(() => undefined)));
    return files.filter((_, i) => sizes[i] !== undefined);
  }

  absent(file: FileName): AttnError {
    return network(`${this.nameOf(file)} is not there`, { file, path: this.nameOf(file) });
  }
}
