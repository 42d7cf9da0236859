/** The files of a model, wherever they are, piece by piece. */
import { arrayLength, failDetached } from '../args/arrays.js';
import { yieldToEventLoop } from '../platform/event_loop.js';
import { AttnError, isAttnError, networkErrors, reason } from '../args/error.js';
import { fileNames, type FileName, type Given, type Source } from '../args/model_options.js';
import { encodeUtf8 } from '../platform/utf8.js';

const op = 'loadModel';

/** The most that is held of a large file at a time. */
export const pieceBytes = 2 ** 20;

/** Files that are not fetched: those of Node. */
export interface Disk {
  /** The path that a location names; undefined for what fetch is for. */
  pathOf(location: string): string | undefined;
  join(folder: string, file: string): string;
  /** Bytes; undefined where there is no such file. */
  size(path: string): Promise<number | undefined>;
  /** A piece is good until the next one is asked for. */
  read(path: string, pieceBytes: number): AsyncGenerator<Uint8Array>;
}

/** A file that is there. */
export interface ModelFile {
  /** What it is called in messages. */
  readonly name: string;
  readonly phase: 'download' | 'cache' | 'read';
  /** Bytes, where that is known beforehand. */
  readonly total: number | undefined;
  /** A piece is good until the next one is asked for. */
  pieces(): AsyncGenerator<Uint8Array>;
}

/** What became of a model: all of it was good; it broke off, but what came is good; or it was not. */
export type Outcome = 'complete' | 'broken' | 'bad';

export interface Folder {
  /** What one of its files is called in messages. */
  nameOf(file: string): string;
  open(file: FileName): Promise<ModelFile | undefined>;
  /** Which of these there are. */
  existing(files: readonly string[]): Promise<string[]>;
  /** The error of a file that is not there, and must be. */
  absent(file: FileName): AttnError;
  /** Called at the end, with the small files that were read. Whether another attempt may go better: what was bad came from a cache. */
  settle?(outcome: Outcome, small: ReadonlyMap<FileName, Uint8Array<ArrayBuffer>>): Promise<boolean>;
}

export const network = networkErrors(op);

/** Bytes, where that is known beforehand. */
const sizeOf = (content: Given) => (typeof content === 'string' ? undefined : 'buffer' in content ? content.length : content.size);

/** `size` is what it was when the caller gave it. */
async function* piecesOf(content: Given, name: string, size = 0): AsyncGenerator<Uint8Array> {
  if (typeof content === 'string') {
    yield encodeUtf8(content);
    return;
  }
  if ('buffer' in content) {
    for (let at = 0; at < size; at += pieceBytes) {
      // The caller may have given the buffer away in the meantime.
      if (arrayLength(content) !== size) failDetached(op, name, size);
      yield content.subarray(at, at + pieceBytes);
      await yieldToEventLoop();
    }
    return;
  }
  const read = (at: number) => {
    const piece = content.slice(at, at + pieceBytes).arrayBuffer();
    piece.catch(() => {}); // reported where it is awaited, if it ever is
    return piece;
  };
  // Browsers read in another process: a piece comes while the one before is taken.
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

/** Files that the caller has, by name. A folder that all of them are in is left out: dropped files are named with it. */
export class GivenFolder implements Folder {
  readonly #files = new Map<string, { name: string; content: Given; size: number | undefined }>();

  constructor(files: Extract<Source, { files: unknown }>['files']) {
    const paths = files.map(([name]) => name.replaceAll('\\', '/').replace(/^(\.?\/)+/, ''));
    let common = paths[0]!.lastIndexOf('/') + 1;
    while (common > 0 && !paths.every((path) => path.startsWith(paths[0]!.slice(0, common)))) common = paths[0]!.lastIndexOf('/', common - 2) + 1;
    files.forEach(([name, content], i) => this.#files.set(paths[i]!.slice(common), { name, content, size: sizeOf(content) }));
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

  /** All names: files are told by their pattern too. */
  existing(): Promise<string[]> {
    return Promise.resolve([...this.#files.keys()]);
  }

  absent(file: FileName): AttnError {
    const got = [...this.#files.keys()].slice(0, 10).join(', ');
    return new AttnError('ARGUMENT', `${op}: source has no ${file}; it has ${got}, expected ${fileNames.slice(0, 3).join(', ')}`, {
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

  constructor(disk: Disk, path: string) {
    this.#disk = disk;
    this.#path = path;
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
