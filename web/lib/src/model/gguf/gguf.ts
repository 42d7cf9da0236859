/**
 * The counterpart of src/attn/io/gguf/reader.cpp: presents a GGUF file as a Hugging Face folder. Imported with the
 * first such file.
 */
import { type AttnError, isAttnError } from '../../args/error.js';
import type { FileName } from '../../args/model_options.js';
import { refuseText } from '../../args/refuse_text.js';
import { encodeUtf8 } from '../../platform/utf8.js';
import type { Folder, ModelFile, Outcome } from '../model_files.js';
import { type Architecture, type NamedTensor, needsParts, readArchitecture } from './architecture.js';
import { checkEnd, type Header, Incomplete, readHeader, refuse } from './header.js';
import { isSentencePiece, readGenerationConfig, readTokenizerFiles } from './tokenizer_files.js';

const op = 'loadModel';

type Parts = typeof import('./gguf_parts.js');
/** Bytes of float32 numbers that are made at a time. */
const pieceBytes = 2 ** 20;

class Source {
  readonly #pieces: AsyncGenerator<Uint8Array>;
  #rest: Uint8Array = new Uint8Array(0);
  position = 0;
  ended = false;

  constructor(file: ModelFile) {
    this.#pieces = file.pieces();
  }

  /** Returns the next `count` bytes, or fewer at the end, valid until the next call. Only bytes that came take memory. */
  async take(count: number): Promise<Uint8Array> {
    const parts: Uint8Array[] = [];
    let size = 0;
    for (;;) {
      const part = this.#rest.subarray(0, count - size);
      this.#rest = this.#rest.subarray(part.length);
      size += part.length;
      if (size === count && parts.length === 0) {
        this.position += size;
        return part;
      }
      parts.push(part.slice());
      if (size === count) break;
      const next = await this.#pieces.next();
      this.ended = next.done === true;
      if (next.done) break;
      this.#rest = next.value;
    }
    this.position += size;
    const all = new Uint8Array(size);
    let at = 0;
    for (const part of parts) {
      all.set(part, at);
      at += part.length;
    }
    return all;
  }

  /** Puts back bytes that were taken last. */
  unread(bytes: Uint8Array): void {
    const rest = new Uint8Array(bytes.length + this.#rest.length);
    rest.set(bytes);
    rest.set(this.#rest, bytes.length);
    this.#rest = rest;
    this.position -= bytes.length;
  }

  close(): void {
    this.#pieces.return(undefined).catch(() => {});
  }
}

/** Rows of a head in the file are (D/2,2): the two halves of (2,D/2) interleaved. */
function undoInterleaving(values: Float32Array, width: number, D: number): Float32Array<ArrayBuffer> {
  const to = new Float32Array(values.length);
  for (let row = 0; row < values.length / width; ++row) {
    const at = row % D;
    const from = row - at + 2 * (at % (D / 2)) + Math.floor(at / (D / 2));
    to.set(values.subarray(from * width, (from + 1) * width), row * width);
  }
  return to;
}

function transpose(values: Float32Array, width: number): Float32Array<ArrayBuffer> {
  const to = new Float32Array(values.length);
  const rows = values.length / width;
  for (let row = 0; row < rows; ++row) for (let column = 0; column < width; ++column) to[column * rows + row] = values[row * width + column]!;
  return to;
}

async function* valuesOf(source: Source, { tensor, order, headRows }: NamedTensor, parts: Parts | undefined): AsyncGenerator<Uint8Array> {
  const { type, dims, bytes, first, name } = tensor;
  // If the order stays, rows are blocks, so that a piece is small. A bias is a column, so that its heads have rows.
  const isFlat = order === 'same' || order === 'lessOne' || (dims.length === 1 && type.values === 1);
  const width = isFlat ? type.values : dims[0]!;
  const rowBytes = isFlat ? type.bytes : (width / type.values) * type.bytes;
  const rows = bytes / rowBytes;
  const unit = order === 'transposed' || order === 'parts' ? rows : headRows;
  const step = Math.max(1, Math.floor(pieceBytes / (unit * width * 4))) * unit;
  await source.take(first - source.position);
  for (let row = 0; row < rows; row += step) {
    const count = Math.min(step, rows - row);
    const blocks = await source.take(count * rowBytes);
    if (blocks.length < count * rowBytes) refuse('the file', `at least ${first + bytes} bytes, for ${name}`, `${source.position} bytes`);
    let values = new Float32Array(count * width);
    type.expand(blocks, values);
    if (order === 'rotary') values = undoInterleaving(values, width, headRows);
    if (order === 'parts') values = parts!.joinParts(values, width, headRows);
    if (order === 'transposed') values = transpose(values, width);
    if (order === 'lessOne') values = values.map((value) => value - 1);
    yield new Uint8Array(values.buffer);
  }
}

interface Opened {
  readonly file: ModelFile;
  readonly source: Source;
  readonly header: Header;
  readonly architecture: Architecture;
  readonly parts: Parts | undefined;
  readonly small: ReadonlyMap<FileName, Uint8Array>;
  readonly noTokenizer: AttnError | undefined;
}

async function openFile(name: FileName, file: ModelFile, partsOf: () => Promise<Parts>): Promise<Opened> {
  const source = new Source(file);
  try {
    const header = await readStart(source, name, file);
    const isSpm = isSentencePiece(header.metadata);
    const parts = isSpm || needsParts(header) ? await partsOf() : undefined;
    const architecture = readArchitecture(header, parts, await parts?.readDivisors(source, header, refuse));
    const small = new Map<FileName, Uint8Array>([
      ['config.json', encodeUtf8(JSON.stringify(architecture.config))],
      ['generation_config.json', encodeUtf8(JSON.stringify(readGenerationConfig(header.metadata)))],
    ]);
    let noTokenizer: AttnError | undefined;
    try {
      const { tokenizer, tokenizerConfig } = readTokenizerFiles(header.metadata, isSpm ? parts : undefined);
      small.set('tokenizer.json', encodeUtf8(tokenizer)).set('tokenizer_config.json', encodeUtf8(tokenizerConfig));
    } catch (error) {
      if (!isAttnError(error) || error.code !== 'UNSUPPORTED') throw error;
      noTokenizer = error;
    }
    return { file, source, header, architecture, parts, small, noTokenizer };
  } catch (error) {
    source.close();
    throw error;
  }
}

/** Parses the first bytes, and twice as many if the header is longer. */
async function readStart(source: Source, name: FileName, file: ModelFile): Promise<Header> {
  for (let most = 2 ** 16; ; most *= 2) {
    const bytes = (await source.take(most)).slice();
    refuseText(op, name, bytes, 'GGUF', `${file.name} ${file.phase === 'download' ? 'returned' : 'holds'}`);
    try {
      const size = source.ended ? bytes.length : (file.total ?? Infinity);
      const header = readHeader(bytes, size);
      source.unread(bytes);
      return header;
    } catch (error) {
      if (!(error instanceof Incomplete)) throw error;
      source.unread(bytes);
    }
  }
}

/** Reads a header, also of an architecture that attn does not support. */
export async function readGgufHeader(name: FileName, file: ModelFile): Promise<Header> {
  const source = new Source(file);
  try {
    return await readStart(source, name, file);
  } finally {
    source.close();
  }
}

/** model.safetensors with all numbers as float32, and then the end of the file. */
async function* weightsOf({ source, header, parts, architecture: { tensors } }: Opened, start: Uint8Array): AsyncGenerator<Uint8Array> {
  const prefix = new Uint8Array(8);
  new DataView(prefix.buffer).setBigUint64(0, BigInt(start.length), true);
  yield prefix;
  yield start;
  for (const tensor of tensors) yield* valuesOf(source, tensor, parts);
  await source.take(header.paddedEnd - source.position + 1);
  checkEnd(source.position, header.paddedEnd);
}

/** `file`: its name in a folder. */
export class GgufFolder implements Folder {
  readonly #base: Folder;
  readonly #name: FileName;
  readonly #open: (file: FileName) => Promise<ModelFile | undefined>;
  readonly #partsOf: () => Promise<Parts>;
  #opened: Promise<Opened> | undefined;

  constructor(base: Folder, name: FileName, open: (file: FileName) => Promise<ModelFile | undefined>, partsOf: () => Promise<Parts>) {
    this.#partsOf = partsOf;
    this.#base = base;
    this.#name = name;
    this.#open = open;
  }

  async #read(): Promise<Opened> {
    const file = await this.#open(this.#name);
    if (!file) throw this.#base.absent(this.#name);
    return openFile(this.#name, file, this.#partsOf);
  }

  nameOf(file: string): string {
    return `${this.#base.nameOf(this.#name)}: ${file}`;
  }

  async open(file: FileName): Promise<ModelFile | undefined> {
    const opened = await (this.#opened ??= this.#read());
    const { phase, total } = opened.file;
    if (file === 'model.safetensors') return this.#weights(opened, total);
    if (file === 'tokenizer.json' && opened.noTokenizer) throw opened.noTokenizer;
    const bytes = opened.small.get(file);
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield bytes!;
    }
    return bytes && { name: this.nameOf(file), phase, total: bytes.length, pieces };
  }

  #weights(opened: Opened, total: number | undefined): ModelFile {
    const { file, source, architecture } = opened;
    let end = 0;
    const entries = architecture.tensors.map(({ name, shape }): [string, object] => {
      const start = end;
      end += shape.reduce((size, dim) => size * dim, 4);
      return [name, { dtype: 'F32', shape, data_offsets: [start, end] }];
    });
    const start = encodeUtf8(JSON.stringify(Object.fromEntries(entries)));
    const { phase, name } = file;
    return { name, phase, total, source: { file: this.#name, loaded: () => source.position }, pieces: () => weightsOf(opened, start) };
  }

  existing(): Promise<string[]> {
    return Promise.resolve([]);
  }
  absent(): AttnError {
    return this.#base.absent(this.#name);
  }

  async settle(outcome: Outcome): Promise<boolean> {
    this.#opened?.then(({ source }) => source.close()).catch(() => {});
    return (await this.#base.settle?.(outcome, new Map())) ?? false;
  }
}
