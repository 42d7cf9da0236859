/**
 * Reads each property of a caller's object once: a getter could change it after the check. Detects arrays by internal
 * slots, because instanceof fails for other realms and subclasses.
 */
import type { Mask } from '../attn.js';
import { allocate, AttnError, describe, fail, shapeText } from './error.js';
import { refuseText } from './refuse_text.js';

function getter(object: object, name: PropertyKey): (this: unknown) => unknown {
  return Object.getOwnPropertyDescriptor(object, name)?.get ?? (() => undefined);
}

const typedArray = Object.getPrototypeOf(Uint8Array.prototype) as Uint8Array;
const tagGetter = getter(typedArray, Symbol.toStringTag);
const lengthGetter = getter(typedArray, 'length');
const bufferGetter = getter(typedArray, 'buffer');
const offsetGetter = getter(typedArray, 'byteOffset');
const { keys } = typedArray;
const { every } = Float32Array.prototype;
const resizableGetter = getter(ArrayBuffer.prototype, 'resizable');
const maximumGetter = getter(ArrayBuffer.prototype, 'maxByteLength');
const byteLengthGetter = getter(ArrayBuffer.prototype, 'byteLength');

/** Such as 'Float32Array'; undefined for other values. */
export function arrayTag(value: unknown): string | undefined {
  return tagGetter.call(value) as string | undefined;
}

/** 0 for a detached array. */
export function arrayLength(array: ArrayBufferView): number {
  return lengthGetter.call(array) as number;
}

export function arrayBuffer(array: ArrayBufferView): ArrayBufferLike {
  return bufferGetter.call(array) as ArrayBufferLike;
}

export function isArrayBuffer(value: unknown): value is ArrayBuffer {
  try {
    byteLengthGetter.call(value); // throws on everything else, SharedArrayBuffer included
    return true;
  } catch {
    return false;
  }
}

export function isShared(array: ArrayBufferView): boolean {
  return !isArrayBuffer(arrayBuffer(array));
}

/** Expects an array of length 0. */
export function isDetached(array: ArrayBufferView): boolean {
  try {
    keys.call(array as Uint8Array); // the cheapest method that throws without a usable buffer
    return false;
  } catch {
    return true;
  }
}

export function failDetached(op: string, argument: string, size: number): never {
  fail('DETACHED', op, argument, 'has a buffer that was transferred or has shrunk', `${size} elements`);
}

export type Data = Float32Array | Int32Array | Uint8Array;

export interface Checked<A extends Data = Data> {
  readonly op: string;
  readonly argument: string;
  readonly data: A;
  readonly dims: readonly number[];
  readonly size: number;
  /** The caller can shadow the properties of `data`. */
  readonly type: 'Float32Array' | 'Int32Array' | 'Uint8Array';
  readonly kind: number;
  readonly source: object;
  readonly copied: boolean;
}

export function ownList<A extends Int32Array | Uint8Array>(
  op: string,
  argument: string,
  data: A,
  type: Checked['type'],
  source: object = data,
): Checked<A> {
  return { op, argument, data, dims: [data.length], size: data.length, type, kind: 0, source, copied: true };
}

export interface State {
  readonly entries: readonly (readonly [name: string, tensor: Checked<Float32Array>])[];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Accepts other realms and classes; refuses a Set, Promise or URL. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]';
}

/** Size of descriptors in the heap (engine/native.ts). */
const maxRank = 8;

function readDims(op: string, argument: string, value: unknown, name = `${argument}.dims`): number[] {
  if (!Array.isArray(value)) fail('ARGUMENT', op, name, describe(value), 'an Array of whole numbers');
  const rank: unknown = value.length;
  if (typeof rank !== 'number' || rank > maxRank) fail('SHAPE', op, argument, `has rank ${String(rank)}`, `a rank of at most ${maxRank}`);
  const dims: number[] = [];
  for (let axis = 0; axis < rank; ++axis) {
    const dim: unknown = value[axis];
    if (typeof dim !== 'number' || !Number.isInteger(dim) || dim < 0 || dim > 0x7fffffff)
      fail('ARGUMENT', op, `${name}[${axis}]`, describe(dim), 'a whole number from 0 to 2147483647');
    dims.push(dim);
  }
  return dims;
}

function product(op: string, argument: string, dims: readonly number[]): number {
  let size = 1;
  for (const dim of dims) size *= dim;
  if (size > 2 ** 32) fail('MEMORY', op, argument, `has ${size} elements in shape ${shapeText(dims)}`, 'at most 2^32 elements');
  return size;
}

const constructors = { Float32Array, Int32Array, Uint8Array };

export const copyOf = (array: Data, type: Checked['type']): Data => new constructors[type](array);

export function isWhole(array: Data, type: Checked['type']): boolean {
  return arrayLength(array) * (type === 'Uint8Array' ? 1 : 4) === byteLengthGetter.call(arrayBuffer(array));
}

/** Copies shared arrays, which other threads could change; runs no code of the caller. */
function settle<A extends Data>(
  op: string,
  argument: string,
  source: object,
  data: A,
  type: Checked['type'],
  dims: number[],
  name = `${argument}.data`,
  kind = 0,
): Checked<A> {
  const size = product(op, argument, dims);
  const length = arrayLength(data);
  if (length !== size) {
    if (length === 0 && isDetached(data)) failDetached(op, argument, size);
    const buffer = arrayBuffer(data);
    const bytes = size * (type === 'Uint8Array' ? 1 : 4);
    const couldHold = () => (maximumGetter.call(buffer) as number) - (offsetGetter.call(data) as number) >= bytes;
    // Shared buffers never shrink.
    if (length < size && isArrayBuffer(buffer) && resizableGetter.call(buffer) === true && couldHold()) failDetached(op, argument, size);
    fail('SHAPE', op, name, `has ${length} elements`, `${size} elements for dims ${shapeText(dims)}`);
  }
  if (size === 0 && isDetached(data)) failDetached(op, argument, size);
  const copied = isShared(data);
  const own = copied ? (allocate(op, 4 * size, () => copyOf(data, type), `a copy of ${argument}`) as A) : data;
  return { op, argument, data: own, dims, size, type, kind, source, copied };
}

export function readTensor(op: string, argument: string, value: unknown): Checked<Float32Array> {
  const help = 'tensor([[1, 0], [0, 1]]) makes one';
  if (!isObject(value) || Array.isArray(value) || arrayTag(value) !== undefined)
    fail('ARGUMENT', op, argument, describe(value), 'a tensor { data: Float32Array, dims: number[] }', value === undefined ? undefined : help);
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  if (data === undefined) fail('ARGUMENT', op, `${argument}.data`, 'is missing', 'a Float32Array');
  if (arrayTag(data) !== 'Float32Array') fail('DTYPE', op, `${argument}.data`, describe(data), 'a Float32Array', help);
  const dims = readDims(op, argument, dimsValue);
  return settle(op, argument, value, data as Float32Array, 'Float32Array', dims);
}

/** `kinds`: the kinds of C++, by number. */
export function readMask(op: string, argument: string, value: unknown, kinds: readonly string[]): Checked<Float32Array | Uint8Array> {
  const expected = "a mask { kind: 'attend' | 'block' | 'additive', data, dims }";
  if (Array.isArray(value) || arrayTag(value) !== undefined)
    fail('MASK', op, argument, describe(value), expected, 'The polarity of a bare array would be a guess: specify its kind');
  if (!isObject(value)) fail('MASK', op, argument, describe(value), expected);
  const kind = value['kind'] as Mask['kind'];
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  const number = kinds.indexOf(kind);
  if (number < 0)
    fail(
      'MASK',
      op,
      `${argument}.kind`,
      describe(kind),
      "one of 'attend', 'block', 'additive'",
      "'attend' and 'block' specify what non-zero values mean",
    );
  const tag = arrayTag(data);
  if (tag !== 'Float32Array' && (tag !== 'Uint8Array' || kind === 'additive'))
    fail('DTYPE', op, `${argument}.data`, describe(data), kind === 'additive' ? 'a Float32Array' : 'a Uint8Array or a Float32Array');
  const dims = readDims(op, argument, dimsValue);
  const checked = settle(op, argument, value, data as Float32Array | Uint8Array, tag, dims, undefined, number);
  // Infinity or NaN indicates an additive mask.
  if (tag === 'Float32Array' && kind !== 'additive' && !every.call(checked.data as Float32Array, Number.isFinite))
    fail('MASK', op, argument, 'has NaN or an infinity', `finite numbers for kind '${kind}'`, "Use kind 'additive' for numbers to add to the scores");
  return checked;
}

const leastId = -(2 ** 31);
const mostId = 2 ** 31 - 1;

/** By index, because iterators can be anything. Stops at the first refused element. */
export function elements<T>(array: ArrayLike<unknown>, read: (element: unknown, index: number) => T): T[] {
  const length = ArrayBuffer.isView(array) ? arrayLength(array) : array.length;
  const all: T[] = [];
  for (let i = 0; i < length; ++i) all.push(read(array[i], i));
  return all;
}

/** Other tokenizers return whole numbers of any type. */
export function readTokenMask(op: string, argument: string, data: unknown, dims: unknown): unknown {
  const tag = arrayTag(data);
  if (!Array.isArray(data) && tag !== 'Int32Array' && tag !== 'BigInt64Array') return data;
  return Uint8Array.from(readIds(op, argument, data, dims).data, (flag) => flag && 1);
}

function toInts(op: string, argument: string, values: readonly unknown[]): Int32Array {
  const all = elements(values, (value, i) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', op, `${argument}[${i}]`, describe(value), 'a whole number');
    if (value < leastId || value > mostId) failRange(op, argument, i, value);
    return value;
  });
  return new Int32Array(all);
}

function failRange(op: string, argument: string, index: number, value: number | bigint): never {
  const [name, expected] = [`${argument}[${index}]`, `a whole number from ${leastId} to ${mostId}`];
  throw new AttnError('OUT_OF_RANGE', `${op}: ${name} is ${value}, expected ${expected}`, {
    op,
    argument: name,
    expected,
    got: String(value),
    index,
  });
}

export function readNumbers(op: string, argument: string, value: unknown): Checked<Int32Array> {
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), 'an Array of whole numbers');
  const data = toInts(op, argument, value as unknown[]);
  return ownList(op, argument, data, 'Int32Array', value);
}

export function readIds(op: string, argument: string, value: unknown, dimsValue: unknown): Checked<Int32Array> {
  const tag = arrayTag(value);
  const expected = 'an Int32Array, a BigInt64Array or an Array of whole numbers';
  if (!Array.isArray(value) && tag !== 'Int32Array' && tag !== 'BigInt64Array')
    fail(tag === undefined ? 'ARGUMENT' : 'DTYPE', op, argument, describe(value), expected);
  const plain = Array.isArray(value) ? toInts(op, argument, value as unknown[]) : undefined;
  const givenDims = dimsValue === undefined ? undefined : readDims(op, argument, dimsValue, 'dims');
  let data: Int32Array;
  if (plain) data = plain;
  else if (tag === 'Int32Array') data = value as Int32Array;
  else {
    const wide = value as BigInt64Array;
    if (arrayLength(wide) === 0 && isDetached(wide)) failDetached(op, argument, 0);
    // Other threads may change a shared array.
    const own = allocate(op, 8 * arrayLength(wide), () => new BigInt64Array(wide), `a copy of ${argument}`);
    const index = own.findIndex((id) => id < leastId || id > mostId);
    if (index >= 0) failRange(op, argument, index, own[index]!);
    data = allocate(op, 4 * own.length, () => Int32Array.from(own, Number), `a copy of ${argument}`);
  }
  const checked = settle(op, argument, value as object, data, 'Int32Array', givenDims ?? [arrayLength(data)], argument);
  return data === value ? checked : { ...checked, copied: true };
}

export function readVector(op: string, argument: string, value: unknown): Checked<Float32Array> {
  const tag = arrayTag(value);
  if (tag !== 'Float32Array') fail(tag === undefined ? 'ARGUMENT' : 'DTYPE', op, argument, describe(value), 'an id or a Float32Array');
  const data = value as Float32Array;
  return settle(op, argument, data, data, 'Float32Array', [arrayLength(data)], argument);
}

/** Copies shared bytes. */
export function readBytes(op: string, argument: string, value: unknown): Uint8Array<ArrayBuffer> {
  if (isArrayBuffer(value)) {
    try {
      return new Uint8Array(value);
    } catch (cause) {
      throw new AttnError('DETACHED', `${op}: ${argument} was transferred away`, { op, argument }, { cause });
    }
  }
  if (arrayTag(value) !== 'Uint8Array') fail('DTYPE', op, argument, describe(value), 'a Uint8Array or an ArrayBuffer');
  const array = value as Uint8Array;
  const length = arrayLength(array);
  if (length === 0 && isDetached(array)) failDetached(op, argument, 0);
  if (isShared(array)) return allocate(op, length, () => new Uint8Array(array), `a copy of ${argument}`);
  // The caller can override the object's length and methods.
  return new Uint8Array(arrayBuffer(array) as ArrayBuffer, offsetGetter.call(array) as number, length);
}

export function readFile(op: string, argument: string, value: unknown, expected: string): Checked<Uint8Array> {
  const data = readBytes(op, argument, value);
  refuseText(op, argument, data, expected);
  return { ...ownList(op, argument, data, 'Uint8Array', value as object), copied: false };
}

function intrinsicMap(value: unknown): Map<unknown, unknown> | undefined {
  try {
    Map.prototype.has.call(value, undefined); // throws on everything that is not a Map, of any realm
    return value as Map<unknown, unknown>;
  } catch {
    return undefined;
  }
}

function namedEntries(op: string, argument: string, value: unknown): [unknown, unknown][] {
  const entries: [unknown, unknown][] = [];
  const map = intrinsicMap(value);
  if (map) Map.prototype.forEach.call(map, (tensor, name) => entries.push([name, tensor]));
  else if (isPlainObject(value)) for (const name of Object.keys(value)) entries.push([name, value[name]]);
  else fail('ARGUMENT', op, argument, describe(value), 'a Map or an object of tensors by name');
  return entries;
}

/** Entries whose names begin with the prefix, without it. */
export function underPrefix(op: string, argument: string, value: unknown, prefix: string): Map<unknown, unknown> {
  const entries = namedEntries(op, argument, value);
  const found = entries.filter(([name]) => typeof name !== 'string' || name.startsWith(prefix));
  return new Map(found.map(([name, tensor]) => [typeof name === 'string' ? name.slice(prefix.length) : name, tensor]));
}

export function readStateDict(op: string, argument: string, value: unknown): State {
  return {
    entries: namedEntries(op, argument, value).map(([name, tensor]) => {
      if (typeof name !== 'string') fail('ARGUMENT', op, `a name in ${argument}`, describe(name), 'a string');
      return [name, readTensor(op, name, tensor)] as const;
    }),
  };
}
