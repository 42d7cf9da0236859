/** The counterpart of src/attn/io/safetensors_shards.cpp. */
import { isPlainObject } from '../args/arrays.js';
import { fail } from '../args/error.js';
import { refuseText } from '../args/refuse_text.js';
import type { FileName } from '../args/model_options.js';
import { encodeUtf8 } from '../platform/utf8.js';
import type { Folder, JoinedFile, ModelFile } from './model_files.js';
import { hasLostName, headerEnd, safetensorsPrefix as prefix } from './safetensors_header.js';

const op = 'loadModel';
/** safetensors_limits.hpp */
const mostHeader = 2 ** 24;
const mostShards = 10_000;

/** An argument, because an import would split a script that every model needs in two. */
export type Parse = (bytes: Uint8Array, name: string) => object;
export type Open = (file: FileName, from?: number) => Promise<ModelFile | undefined>;

const isShardName = (name: unknown): name is string => typeof name === 'string' && /^[\w-][\w.-]{0,99}$/.test(name);

/** Returns tensor names by file, which is in the folder of the index. */
function readIndex(parse: Parse, bytes: Uint8Array, file: string, name: string): ReadonlyMap<string, readonly string[]> {
  const json = parse(bytes, file) as Readonly<Record<string, unknown>>;
  const map = Object.hasOwn(json, 'weight_map') ? json['weight_map'] : undefined;
  if (!isPlainObject(map) || Object.keys(map as object).length === 0)
    fail('FORMAT', op, name, 'has no valid weight_map', 'an object with weight_map, the file of each tensor');
  if (hasLostName(bytes, json)) fail('FORMAT', op, name, 'has a name twice', 'different names');
  const shards = new Map<string, string[]>();
  for (const [tensor, shard] of Object.entries(map as object)) {
    if (!isShardName(shard))
      fail(
        'FORMAT',
        op,
        name,
        `is ${JSON.stringify(shard)} for ${JSON.stringify(tensor)}`,
        `the name of a file in the same folder for ${JSON.stringify(tensor)}`,
      );
    const tensors = shards.get(shard);
    if (tensors) tensors.push(tensor);
    else shards.set(shard, [tensor]);
  }
  if (shards.size > mostShards) fail('FORMAT', op, name, `names ${shards.size} files`, `at most ${mostShards}`);
  return new Map([...shards].sort(([a], [b]) => (a < b ? -1 : 1)));
}

interface Entry {
  readonly data_offsets: readonly [number, number];
}

interface Shard {
  readonly name: string;
  /** Length and header, to notice that the file has changed. */
  readonly start: Uint8Array;
  readonly tensors: Readonly<Record<string, Entry>>;
  readonly bytes: number;
}

const sameBytes = (a: Uint8Array, b: Uint8Array) => a.length === b.length && a.every((byte, i) => byte === b[i]);

function readTensors(parse: Parse, start: Uint8Array, name: string, most: number): Readonly<Record<string, Entry>> {
  const bytes = start.subarray(prefix);
  const header = parse(bytes, name) as Readonly<Record<string, unknown>>;
  if (hasLostName(bytes, header)) fail('FORMAT', op, name, 'has a name twice', 'different names');
  const { __metadata__: _, ...tensors } = header;
  const isOffset = (value: unknown) => Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= most;
  for (const [tensor, entry] of Object.entries(tensors)) {
    const offsets = isPlainObject(entry) ? (entry as Readonly<Record<string, unknown>>)['data_offsets'] : undefined;
    if (!(Array.isArray(offsets) && offsets.length === 2 && offsets.every(isOffset) && offsets[0] <= offsets[1]))
      fail('FORMAT', op, name, `has no valid data_offsets of ${JSON.stringify(tensor)}`, 'a start and an end in the file');
  }
  return tensors as Readonly<Record<string, Entry>>;
}

class Shards {
  readonly #open: Open;
  readonly #folder: Folder;
  readonly #parse: Parse;

  constructor(folder: Folder, open: Open, parse: Parse) {
    this.#parse = parse;
    this.#folder = folder;
    this.#open = open;
  }

  async #file(name: FileName, from?: number): Promise<ModelFile> {
    const file = await this.#open(name, from);
    if (!file) throw this.#folder.absent(name);
    return file;
  }

  /** Over HTTP the rest of the answer is discarded: the data are read when their turn comes. */
  async header(shard: FileName, expected: readonly string[], index: string): Promise<Shard & Pick<ModelFile, 'phase'>> {
    const file = await this.#file(shard);
    const { name, phase, total } = file;
    let start = new Uint8Array(0);
    let length = prefix;
    for await (const piece of file.pieces()) {
      const more = piece.subarray(0, prefix + mostHeader - start.length);
      const all = new Uint8Array(start.length + more.length);
      all.set(start);
      all.set(more, start.length);
      start = all;
      if (start.length >= prefix) length = headerEnd(start);
      if (length > Math.min(prefix + mostHeader, total ?? Infinity) || (start.length >= prefix && start.length >= length)) break;
    }
    refuseText(op, shard, start, 'safetensors', `${name} holds`);
    if (length > prefix + mostHeader) fail('FORMAT', op, name, `has a header of ${length - prefix} bytes`, `at most ${mostHeader} bytes`);
    if (start.length < length || length === prefix) fail('FORMAT', op, name, `is ${total ?? start.length} bytes`, 'a safetensors file');
    start = start.slice(0, length);
    const tensors = readTensors(this.#parse, start, name, total === undefined ? Number.MAX_SAFE_INTEGER : total - length);
    const bytes = Object.values(tensors).reduce((most, { data_offsets: [, end] }) => Math.max(most, end), 0);
    if (total !== undefined && total !== length + bytes)
      fail('FORMAT', op, name, `is ${total} bytes`, `${length + bytes} bytes, the end of its tensors`);
    for (const tensor of expected)
      if (!Object.hasOwn(tensors, tensor)) fail('FORMAT', op, name, `has no ${JSON.stringify(tensor)}`, `each tensor that ${index} names`);
    return { name: shard, start, tensors, bytes, phase };
  }

  /** The data from the offset `skipped` on. */
  async *data({ name: shard, start, bytes }: Shard, skipped: number): AsyncGenerator<Uint8Array> {
    const size = start.length + bytes;
    const from = start.length + skipped;
    if (from === size) return;
    const file = await this.#file(shard, from);
    const { name } = file;
    let at = file.from ?? 0;
    for await (const piece of file.pieces()) {
      const ofStart = piece.subarray(0, Math.max(0, start.length - at));
      if (!sameBytes(ofStart, start.subarray(at, at + ofStart.length))) fail('FORMAT', op, name, 'has changed while it was read', 'the same file');
      at += piece.length;
      if (at > size) fail('FORMAT', op, name, 'is longer', `${size} bytes, the end of its tensors`);
      if (at > from) yield piece.subarray(Math.max(0, piece.length - (at - from)));
    }
    if (at < size) fail('FORMAT', op, name, `is ${at} bytes`, `${size} bytes, the end of its tensors`);
  }
}

/** Joins the files to one safetensors file. */
export async function joinShards(folder: Folder, open: Open, index: FileName, bytes: Uint8Array, parse: Parse): Promise<ModelFile> {
  const base = index.slice(0, index.lastIndexOf('/') + 1);
  const names = readIndex(parse, bytes, index, folder.nameOf(index));
  const shards = new Shards(folder, open, parse);
  const all: Shard[] = [];
  const places = new Map<string, string>();
  const entries: string[] = [];
  let end = 0;
  let phase: ModelFile['phase'] = 'read';
  for (const [name, expected] of names) {
    const shard = await shards.header(base + name, expected, index);
    for (const [tensor, entry] of Object.entries(shard.tensors)) {
      const before = places.get(tensor);
      if (before !== undefined)
        fail('FORMAT', op, folder.nameOf(base + name), `has ${JSON.stringify(tensor)}, which ${before} has too`, 'each tensor in one file');
      places.set(tensor, name);
      const data_offsets = entry.data_offsets.map((offset) => end + offset);
      entries.push(`${JSON.stringify(tensor)}:${JSON.stringify({ ...entry, data_offsets })}`);
    }
    end += shard.bytes;
    phase = shard.phase;
    all.push(shard);
  }
  const header = encodeUtf8(`{${entries.join(',')}}`);
  const size = new Uint8Array(prefix);
  new DataView(size.buffer).setBigUint64(0, BigInt(header.length), true);
  const head = [size, header];
  async function* pieces(from = 0): AsyncGenerator<Uint8Array> {
    let skipped = from;
    for (const part of head) {
      if (skipped < part.length) yield part.subarray(skipped);
      skipped = Math.max(0, skipped - part.length);
    }
    for (const shard of all) {
      const ofShard = Math.min(skipped, shard.bytes);
      skipped -= ofShard;
      yield* shards.data(shard, ofShard);
    }
  }
  const file: JoinedFile = { name: folder.nameOf(index), phase, total: prefix + header.length + end, pieces };
  return folder.joined
    ? folder.joined(
        file,
        all.map(({ name }) => name),
      )
    : file;
}
