/** Versions 2 and 3, with the checks and limits of src/attn/io/gguf/header.cpp. */
import { errorWithHelp } from '../../args/error.js';
import type { ErrorCode } from '../../attn.js';
import { decodeStrictUtf8 } from '../../platform/utf8.js';
import { type BlockType, blockTypeNames, blockTypeOf } from './block_types.js';

// Published files have at most some hundred keys, two thousand tensors, and 300 000 tokens and merges of a few bytes.
const most = {
  keys: 2 ** 16,
  tensors: 100_000,
  items: 2 ** 21,
  name: 255,
  text: 2 ** 24,
  texts: 2 ** 26,
  alignment: 2 ** 16,
  dims: 4,
  values: 2 ** 48,
};

/** Throws "loadModel: gguf: <argument> is <got>, expected <expected>". */
export function refuse(argument: string, expected: string, got: string, code: ErrorCode = 'FORMAT', help?: string): never {
  const detail = { op: 'loadModel', file: 'gguf', argument, expected, got };
  throw errorWithHelp(code, `loadModel: gguf: ${argument} is ${got}, expected ${expected}`, help, detail);
}

/** Thrown if the header goes on after the bytes so far. */
export class Incomplete extends Error {}

/** All whole and real numbers are numbers; arrays hold strings or numbers. */
interface Values {
  'true or false': boolean;
  'a whole number': number;
  'a real number': number;
  'a string': string;
  'an array of strings': readonly string[];
  'an array of numbers': readonly number[];
}
type Value = { [K in keyof Values]: { readonly kind: K; readonly value: Values[K] } }[keyof Values];

export class Metadata {
  readonly #values = new Map<string, Value>();

  find(key: string): Value | undefined {
    return this.#values.get(key);
  }

  add(key: string, value: Value): void {
    if (this.#values.has(key)) refuse(key, 'one value', 'given twice');
    this.#values.set(key, value);
  }

  #get<K extends keyof Values>(key: string, kind: K, expected: string = kind): Values[K] | undefined {
    const found = this.#values.get(key);
    if (found && found.kind !== kind) refuse(key, expected, found.kind);
    return found?.value as unknown as Values[K] | undefined;
  }

  flag(key: string): boolean | undefined {
    return this.#get(key, 'true or false');
  }
  whole(key: string): number | undefined {
    return this.#get(key, 'a whole number');
  }
  /** Also accepts whole numbers. */
  number(key: string): number | undefined {
    const found = this.#values.get(key);
    const value = found?.kind === 'a whole number' ? found.value : this.#get(key, 'a real number', 'a number');
    if (value !== undefined && !Number.isFinite(Math.fround(value))) refuse(key, 'a finite number', String(value));
    return value;
  }
  string(key: string): string | undefined {
    return this.#get(key, 'a string');
  }
  strings(key: string): readonly string[] | undefined {
    return this.#get(key, 'an array of strings');
  }
  numbers(key: string): readonly number[] | undefined {
    return this.#get(key, 'an array of numbers');
  }
}

export interface Tensor {
  readonly name: string;
  readonly type: BlockType;
  /** 1 to 4, all at least 1; the first is the length of a row. */
  readonly dims: readonly number[];
  readonly first: number;
  readonly bytes: number;
}

export interface Header {
  readonly metadata: Metadata;
  /** In the order of their data, which do not overlap. */
  readonly tensors: readonly Tensor[];
  /** The end of the file with and without padding. */
  readonly end: number;
  readonly paddedEnd: number;
}

const notUtf8 = '\ud800';

/** Other bytes than UTF-8 become a string that checkUtf8() refuses. */
function textOf(bytes: Uint8Array): string {
  try {
    return decodeStrictUtf8(bytes);
  } catch {
    return notUtf8 + Array.from(bytes, (byte) => String.fromCharCode(byte)).join('');
  }
}

/** Refuses strings of other bytes. */
export function checkUtf8(what: string, texts: readonly string[]): void {
  if (texts.some((text) => text.startsWith(notUtf8))) refuse(what, 'valid UTF-8', 'invalid UTF-8');
}

/** Bytes of each type, of strings and arrays the least; from 0: u8, i8, u16, i16, u32, i32, f32, bool, string, array, u64, i64, f64. */
const typeSizes = [1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8];
const [boolean, string, array] = [7, 8, 9];

/** Reads never past the end of the file. */
class Cursor {
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #size: number;
  #texts = 0;
  #items = 0;
  position = 0;

  /** `bytes`: the first ones of a file of `size`, infinite if unknown. */
  constructor(bytes: Uint8Array, size: number) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#size = size;
  }

  #take(what: string, count: number): number {
    const at = this.position;
    if (count > this.#size - at) refuse('the file', `at least ${at + count} bytes, for ${what}`, `${this.#size} bytes`);
    if (at + count > this.#bytes.length) throw new Incomplete();
    this.position += count;
    return at;
  }
  u8(what: string): number {
    return this.#view.getUint8(this.#take(what, 1));
  }
  u32(what: string): number {
    return this.#view.getUint32(this.#take(what, 4), true);
  }
  u64(what: string): bigint {
    return this.#view.getBigUint64(this.#take(what, 8), true);
  }
  /** A whole or real number of this type. */
  number(type: number, what: string): number {
    const at = this.#take(what, typeSizes[type]!);
    const view = this.#view;
    switch (type) {
      case 0:
        return view.getUint8(at);
      case 1:
        return view.getInt8(at);
      case 2:
        return view.getUint16(at, true);
      case 3:
        return view.getInt16(at, true);
      case 4:
        return view.getUint32(at, true);
      case 5:
        return view.getInt32(at, true);
      case 6:
        return view.getFloat32(at, true);
      case 11:
        return Number(view.getBigInt64(at, true));
      case 12:
        return view.getFloat64(at, true);
    }
    const value = view.getBigUint64(at, true);
    if (value >= 2n ** 63n) refuse(what, 'a number below 2^63', String(value));
    return Number(value);
  }
  flag(what: string): boolean {
    const value = this.u8(what);
    if (value > 1) refuse(what, '0 or 1', String(value));
    return value === 1;
  }
  /** A count of items that take at least `each` bytes. */
  count(what: string, each: number, limit: number): number {
    const value = this.u64(what);
    const fitting = Math.floor((this.#size - this.position) / each);
    if (Number(value) > fitting) refuse(what, `at most ${fitting}, as many as the file has bytes for`, String(value));
    if (Number(value) > limit) refuse(what, `at most ${limit}`, String(value), 'UNSUPPORTED');
    return Number(value);
  }
  string(what: string, limit: number): string {
    const length = this.count(`the length of ${what}`, 1, limit);
    this.#texts += length;
    if (this.#texts > most.texts) refuse('the length of all strings', `at most ${most.texts} bytes`, `${this.#texts} bytes`, 'UNSUPPORTED');
    const at = this.#take(what, length);
    return textOf(this.#bytes.subarray(at, at + length));
  }
  addItems(count: number): void {
    this.#items += count;
    if (this.#items > most.items) refuse('the length of all arrays', `at most ${most.items} values`, `${this.#items} values`, 'UNSUPPORTED');
  }
}

function takeType(from: Cursor, key: string): number {
  const type = from.u32(`the type of ${key}`);
  if (type >= typeSizes.length) refuse(`the type of ${key}`, `a number below ${typeSizes.length}`, String(type));
  return type;
}

function takeArray(from: Cursor, key: string): Value {
  const type = takeType(from, key);
  if (type === array) refuse(key, 'an array of strings or numbers', 'an array of arrays', 'UNSUPPORTED');
  const count = from.count(`the length of ${key}`, typeSizes[type]!, most.items);
  from.addItems(count);
  // Grows with what is in the file, whose size may be unknown.
  const texts: string[] = [];
  const numbers: number[] = [];
  for (let i = 0; i < count; ++i)
    if (type === string) texts.push(from.string(key, most.text));
    else numbers.push(type === boolean ? Number(from.flag(key)) : from.number(type, key));
  return type === string ? { kind: 'an array of strings', value: texts } : { kind: 'an array of numbers', value: numbers };
}

function takeValue(from: Cursor, key: string): Value {
  const type = takeType(from, key);
  if (type === array) return takeArray(from, key);
  if (type === string) return { kind: 'a string', value: from.string(key, most.text) };
  if (type === boolean) return { kind: 'true or false', value: from.flag(key) };
  return { kind: type === 6 || type === 12 ? 'a real number' : 'a whole number', value: from.number(type, key) };
}

type Unplaced = Omit<Tensor, 'first'> & { readonly offset: bigint };

function takeTensor(from: Cursor): Unplaced {
  const name = from.string('the name of a tensor', most.name);
  const what = (field: string) => `the ${field} of ${name}`;
  const rank = from.u32(what('rank'));
  if (rank < 1 || rank > most.dims) refuse(what('rank'), `a number from 1 to ${most.dims}`, String(rank));
  const given = Array.from({ length: rank }, () => from.u64(what('shape')));
  const id = from.u32(what('type'));
  const type = blockTypeOf(id);
  if (!type) refuse(what('type'), `one of ${blockTypeNames}`, `ggml type ${id}`, 'UNSUPPORTED');
  const offset = from.u64(what('offset'));
  const width = BigInt(type.values);
  if (given[0]! % width !== 0n) refuse(what('row length'), `a multiple of ${type.values}, the block size of ${type.name}`, String(given[0]));
  let blocks = given[0]! / width;
  for (const [i, dim] of given.entries()) {
    if (dim === 0n) refuse(what('shape'), 'numbers of at least 1', '0');
    if (i > 0) blocks *= dim;
    if (blocks > BigInt(most.values)) refuse(what('shape'), 'at most 2^48 values', 'too large');
  }
  return { name, type, dims: given.map(Number), offset, bytes: Number(blocks) * type.bytes };
}

/**
 * Offsets become positions in the file. Throws FORMAT unless the data lie one after the other, each at the next
 * multiple of the alignment, and end with the file.
 */
function place(given: readonly Unplaced[], header: number, alignment: number, size: number): Omit<Header, 'metadata'> {
  const aligned = (position: number) => Math.ceil(position / alignment) * alignment;
  const start = aligned(header);
  const sorted = [...given].sort((a, b) => (a.offset < b.offset ? -1 : Number(a.offset > b.offset)));
  let expected = 0;
  let end = header;
  const tensors = sorted.map(({ name, type, dims, bytes, offset }): Tensor => {
    if (Number(offset) !== expected) refuse(`the offset of ${name}`, `${expected}, after the previous tensor`, String(offset));
    const first = start + expected;
    end = first + bytes;
    if (end > size) refuse('the file', `at least ${end} bytes, for ${name}`, `${size} bytes`);
    expected = aligned(end - start);
    return { name, type, dims, bytes, first };
  });
  const paddedEnd = aligned(end);
  if (size !== Infinity) checkEnd(size, paddedEnd);
  return { tensors, end, paddedEnd };
}

export function checkEnd(size: number, paddedEnd: number): void {
  if (size > paddedEnd) refuse('the file', `at most ${paddedEnd} bytes, the end of the last tensor`, `${size} bytes`);
}

function alignmentOf(metadata: Metadata): number {
  const alignment = metadata.whole('general.alignment') ?? 32;
  if (!(alignment >= 8 && alignment <= most.alignment && Number.isInteger(Math.log2(alignment))))
    refuse('general.alignment', `a power of two from 8 to ${most.alignment}`, String(alignment));
  return alignment;
}

/**
 * `size` is infinite if unknown. Every count, length, type and offset is checked against it and fixed limits before
 * memory is allocated. Throws Incomplete if more bytes are needed.
 */
export function readHeader(bytes: Uint8Array, size: number): Header {
  const from = new Cursor(bytes, size);
  if (from.u32('the magic') !== 0x46554747) refuse('the magic', '"GGUF"', 'other bytes');
  const version = from.u32('the version');
  if (version % 2 ** 16 === 0 && version !== 0) refuse('the file', 'little-endian numbers', 'big-endian', 'UNSUPPORTED');
  if (version !== 2 && version !== 3) refuse('the version', '2 or 3', String(version), 'UNSUPPORTED');
  const tensors = from.count('the number of tensors', 24, most.tensors);
  const keys = from.count('the number of metadata keys', 13, most.keys);
  const metadata = new Metadata();
  for (let i = 0; i < keys; ++i) {
    const key = from.string('a metadata key', most.name);
    metadata.add(key, takeValue(from, key));
  }
  const all = new Map<string, Unplaced>();
  for (let i = 0; i < tensors; ++i) {
    const tensor = takeTensor(from);
    if (all.has(tensor.name)) refuse(tensor.name, 'one tensor', 'given twice');
    all.set(tensor.name, tensor);
  }
  return { metadata, ...place([...all.values()], from.position, alignmentOf(metadata), size) };
}
