/**
 * Tensors and masks at the door. Everything of the caller's is read once, into locals; only then is anything checked
 * that a getter or Proxy of the caller's could still change. Kinds of arrays are told by internal slots, not by
 * instanceof, so arrays of other realms and subclasses are fine.
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
// Engines without resizable buffers have no such getters.
const resizableGetter = getter(ArrayBuffer.prototype, 'resizable');
const maximumGetter = getter(ArrayBuffer.prototype, 'maxByteLength');
const byteLengthGetter = getter(ArrayBuffer.prototype, 'byteLength');

/** 'Float32Array' and so on; undefined for what is not a typed array. */
export function arrayTag(value: unknown): string | undefined {
  return tagGetter.call(value) as string | undefined;
}

/** The length now: 0 for a detached array. */
export function arrayLength(array: ArrayBufferView): number {
  return lengthGetter.call(array) as number;
}

export function arrayBuffer(array: ArrayBufferView): ArrayBufferLike {
  return bufferGetter.call(array) as ArrayBufferLike;
}

/** Whether the value is an ArrayBuffer, of any realm. */
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

/** Of an array with length 0: whether it has lost its elements. */
export function isDetached(array: ArrayBufferView): boolean {
  try {
    keys.call(array as Uint8Array); // the cheapest method that insists on a usable buffer
    return false;
  } catch {
    return true;
  }
}

export function failDetached(op: string, argument: string, size: number): never {
  fail('DETACHED', op, argument, 'lies on a buffer that was transferred or has shrunk', `${size} elements`);
}

export type Data = Float32Array | Int32Array | Uint8Array;

/** An array of the caller's, checked. */
export interface Checked<A extends Data = Data> {
  readonly op: string;
  readonly argument: string;
  readonly data: A;
  readonly dims: readonly number[];
  /** Elements: the product of dims. */
  readonly size: number;
  /** What data is, told by the tag: its properties are the caller's to shadow. */
  readonly type: 'Float32Array' | 'Int32Array' | 'Uint8Array';
  /** Of a mask: the number of its kind. */
  readonly kind: number;
  /** The caller's object. */
  readonly source: object;
  /** Whether data is of our own making, not the caller's. */
  readonly copied: boolean;
}

/** A list of our own making as an argument; `source` is what it was made of. */
export function ownList<A extends Int32Array | Uint8Array>(
  op: string,
  argument: string,
  data: A,
  type: Checked['type'],
  source: object = data,
): Checked<A> {
  return { op, argument, data, dims: [data.length], size: data.length, type, kind: 0, source, copied: true };
}

/** A state dictionary of the caller's, checked. */
export interface State {
  readonly entries: readonly (readonly [name: string, tensor: Checked<Float32Array>])[];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Told by the tag, so that objects of other realms and of classes are fine, and a Set, a Promise or a URL is not. */
export function isPlainObject(value: unknown): value is Record<string, unknown> {
  return Object.prototype.toString.call(value) === '[object Object]';
}

/** The most dimensions of a tensor: descriptors in the heap have room for so many (engine/native.ts). */
const maxRank = 8;

/** `argument` is what has the dims, `name` they themselves. */
function readDims(op: string, argument: string, value: unknown, name = `${argument}.dims`): number[] {
  if (!Array.isArray(value)) fail('ARGUMENT', op, name, describe(value), 'an Array of whole numbers');
  const rank: unknown = value.length;
  if (typeof rank !== 'number' || rank > maxRank) fail('SHAPE', op, argument, `has rank ${String(rank)}`, `rank ${maxRank} at most`);
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
  if (size > 2 ** 32) fail('MEMORY', op, argument, `of shape ${shapeText(dims)} has ${size} elements`, 'at most 2^32');
  return size;
}

const constructors = { Float32Array, Int32Array, Uint8Array };

/** A copy on a buffer of its own. */
export const copyOf = (array: Data, type: Checked['type']): Data => new constructors[type](array);

/** Whether the array is all of its buffer. */
export function isWhole(array: Data, type: Checked['type']): boolean {
  return arrayLength(array) * (type === 'Uint8Array' ? 1 : 4) === byteLengthGetter.call(arrayBuffer(array));
}

/** Checks the length, and copies what other threads could change. Runs no code of the caller's. */
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
    // A shared one never shrinks.
    if (length < size && isArrayBuffer(buffer) && resizableGetter.call(buffer) === true && couldHold()) failDetached(op, argument, size);
    fail('SHAPE', op, name, `has ${length} elements`, `${size} for dims ${shapeText(dims)}`);
  }
  if (size === 0 && isDetached(data)) failDetached(op, argument, size);
  const copied = isShared(data);
  // The copying constructor gives a private buffer, whatever the source's is.
  const own = copied ? (allocate(op, 4 * size, () => copyOf(data, type), `a copy of ${argument}`) as A) : data;
  return { op, argument, data: own, dims, size, type, kind, source, copied };
}

export function readTensor(op: string, argument: string, value: unknown): Checked<Float32Array> {
  if (!isObject(value) || Array.isArray(value) || arrayTag(value) !== undefined)
    fail('ARGUMENT', op, argument, describe(value), 'a tensor { data: Float32Array, dims: number[] }');
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  if (data === undefined) fail('ARGUMENT', op, `${argument}.data`, 'is missing', 'a Float32Array');
  if (arrayTag(data) !== 'Float32Array') fail('DTYPE', op, `${argument}.data`, describe(data), 'a Float32Array');
  const dims = readDims(op, argument, dimsValue);
  return settle(op, argument, value, data as Float32Array, 'Float32Array', dims);
}

/** `kinds`: those of C++, by number. */
export function readMask(op: string, argument: string, value: unknown, kinds: readonly string[]): Checked<Float32Array | Uint8Array> {
  const expected = "{ kind: 'attend' | 'block' | 'additive', data, dims }";
  if (Array.isArray(value) || arrayTag(value) !== undefined)
    fail('MASK', op, argument, describe(value), expected, 'The polarity of a bare array would be a guess: specify its kind');
  if (!isObject(value)) fail('MASK', op, argument, describe(value), expected);
  const kind = value['kind'] as Mask['kind'];
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  const number = kinds.indexOf(kind);
  if (number < 0) fail('MASK', op, `${argument}.kind`, describe(kind), "'attend' or 'block' (what non-zero means) or 'additive'");
  const tag = arrayTag(data);
  if (tag !== 'Float32Array' && (tag !== 'Uint8Array' || kind === 'additive'))
    fail('DTYPE', op, `${argument}.data`, describe(data), kind === 'additive' ? 'a Float32Array' : 'a Uint8Array or a Float32Array');
  const dims = readDims(op, argument, dimsValue);
  const checked = settle(op, argument, value, data as Float32Array | Uint8Array, tag, dims, undefined, number);
  // As flags any number but 0 would do, but an infinity or NaN among them tells of an additive mask by the wrong name.
  if (tag === 'Float32Array' && kind !== 'additive' && !every.call(checked.data as Float32Array, Number.isFinite))
    fail(
      'MASK',
      op,
      argument,
      'holds NaN or an infinity',
      `finite numbers for kind '${kind}'`,
      "Use kind 'additive' for numbers to add to the scores",
    );
  return checked;
}

const leastId = -(2 ** 31);
const mostId = 2 ** 31 - 1;

/**
 * What `read` makes of each element of an Array of the caller's. Not by its iterator, which may be anything, nor all at once: a hole among many
 * is an error where it is come to.
 */
export function elements<T>(array: readonly unknown[], read: (element: unknown, index: number) => T): T[] {
  const { length } = array;
  const all: T[] = [];
  for (let i = 0; i < length; ++i) all.push(read(array[i], i));
  return all;
}

/** A mask of tokens as flags: other tokenizers give it as whole numbers of any kind, which are read as ids are. */
export function readTokenMask(op: string, argument: string, data: unknown, dims: unknown): unknown {
  const tag = arrayTag(data);
  if (!Array.isArray(data) && tag !== 'Int32Array' && tag !== 'BigInt64Array') return data;
  return Uint8Array.from(readIds(op, argument, data, dims).data, (flag) => flag && 1);
}

/** Whole numbers of an Array as int32. */
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

/** An Array of whole numbers. */
export function readNumbers(op: string, argument: string, value: unknown): Checked<Int32Array> {
  if (!Array.isArray(value)) fail('ARGUMENT', op, argument, describe(value), 'an Array of whole numbers');
  const data = toInts(op, argument, value as unknown[]);
  return ownList(op, argument, data, 'Int32Array', value);
}

/** Ids, and their dims where they are given. */
export function readIds(op: string, argument: string, value: unknown, dimsValue: unknown): Checked<Int32Array> {
  const tag = arrayTag(value);
  const expected = 'an Int32Array, a BigInt64Array or an Array of whole numbers';
  if (!Array.isArray(value) && tag !== 'Int32Array' && tag !== 'BigInt64Array')
    fail(tag === undefined ? 'ARGUMENT' : 'DTYPE', op, argument, describe(value), expected);
  const plain = Array.isArray(value) ? toInts(op, argument, value as unknown[]) : undefined;
  const givenDims = dimsValue === undefined ? undefined : readDims(op, argument, dimsValue, 'dims');
  // From here on nothing of the caller's runs.
  let data: Int32Array;
  if (plain) data = plain;
  else if (tag === 'Int32Array') data = value as Int32Array;
  else {
    const wide = value as BigInt64Array;
    if (arrayLength(wide) === 0 && isDetached(wide)) failDetached(op, argument, 0);
    // A copy first: other threads may change a shared one.
    const own = allocate(op, 8 * arrayLength(wide), () => new BigInt64Array(wide), `a copy of ${argument}`);
    const index = own.findIndex((id) => id < leastId || id > mostId);
    if (index >= 0) failRange(op, argument, index, own[index]!);
    data = allocate(op, 4 * own.length, () => Int32Array.from(own, Number), `a copy of ${argument}`);
  }
  const checked = settle(op, argument, value as object, data, 'Int32Array', givenDims ?? [arrayLength(data)], argument);
  return data === value ? checked : { ...checked, copied: true };
}

/** A Float32Array as it stands, without dims. */
export function readVector(op: string, argument: string, value: unknown): Checked<Float32Array> {
  const tag = arrayTag(value);
  if (tag !== 'Float32Array') fail(tag === undefined ? 'ARGUMENT' : 'DTYPE', op, argument, describe(value), 'an id or a Float32Array');
  const data = value as Float32Array;
  return settle(op, argument, data, data, 'Float32Array', [arrayLength(data)], argument);
}

/** A whole file's bytes: Uint8Array (Node's Buffer too) or ArrayBuffer; a private copy where they are shared. */
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
  // A view of our own: length and methods of the caller's object may be anything.
  return new Uint8Array(arrayBuffer(array) as ArrayBuffer, offsetGetter.call(array) as number, length);
}

/** A whole file as an argument; `expected` is what it should be, in words. */
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

/** A state dictionary: a Map or a plain object. */
export function readStateDict(op: string, argument: string, value: unknown): State {
  const entries: [unknown, unknown][] = [];
  const map = intrinsicMap(value);
  if (map) Map.prototype.forEach.call(map, (tensor, name) => entries.push([name, tensor]));
  else if (isPlainObject(value)) for (const name of Object.keys(value)) entries.push([name, value[name]]);
  else fail('ARGUMENT', op, argument, describe(value), 'a Map or an object of tensors by name');
  return {
    entries: entries.map(([name, tensor]) => {
      if (typeof name !== 'string') fail('ARGUMENT', op, `a name in ${argument}`, describe(name), 'a string');
      return [name, readTensor(op, name, tensor)] as const;
    }),
  };
}
