/**
 * Tensors and masks at the door. Everything of the caller's is read once, into locals; only then is anything checked
 * that a getter or Proxy of the caller's could still change. Kinds of arrays are told by internal slots, not by
 * instanceof, so arrays of other realms and subclasses are fine.
 */
import type { Mask } from './attn.js';
import { AttnError, describe, fail, shapeText } from './error.js';
import { maxRank } from './native.js';

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

/** An array of the caller's, checked. */
export interface Checked<A extends Float32Array | Uint8Array = Float32Array> {
  readonly op: string;
  readonly argument: string;
  readonly data: A;
  readonly dims: readonly number[];
  /** Elements: the product of dims. */
  readonly size: number;
  /** Bytes of an element, told by the tag: the property of that name is the caller's to shadow. */
  readonly width: 1 | 4;
  /** The caller's object. */
  readonly source: object;
  /** Whether data is a copy of ours, since the caller's is shared with other threads. */
  readonly copied: boolean;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

/** Told by the tag, so that objects of other realms and of classes are fine, and a Set, a Promise or a URL is not. */
export function isPlainObject(value: unknown): boolean {
  return Object.prototype.toString.call(value) === '[object Object]';
}

function readDims(op: string, argument: string, value: unknown): number[] {
  if (!Array.isArray(value)) fail('ARGUMENT', op, `${argument}.dims`, describe(value), 'an Array of whole numbers');
  const rank: unknown = value.length;
  if (typeof rank !== 'number' || rank > maxRank) fail('SHAPE', op, argument, `has rank ${String(rank)}`, `rank ${maxRank} at most`);
  const dims: number[] = [];
  for (let axis = 0; axis < rank; ++axis) {
    const dim: unknown = value[axis];
    if (typeof dim !== 'number' || !Number.isInteger(dim) || dim < 0 || dim > 0x7fffffff)
      fail('ARGUMENT', op, `${argument}.dims[${axis}]`, describe(dim), 'a whole number from 0 to 2147483647');
    dims.push(dim);
  }
  return dims;
}

function product(op: string, argument: string, dims: readonly number[]): number {
  let size = 1;
  for (const dim of dims) size *= dim;
  if (Number.isNaN(size)) size = 0; // Infinity times 0
  if (size > 2 ** 32) fail('MEMORY', op, argument, `of shape ${shapeText(dims)} has ${size} elements`, 'at most 2^32');
  return size;
}

/** Checks the length, and copies what other threads could change. Runs no code of the caller's. */
function settle<A extends Float32Array | Uint8Array>(op: string, argument: string, source: object, data: A, dims: number[]): Checked<A> {
  const size = product(op, argument, dims);
  const width = arrayTag(data) === 'Float32Array' ? 4 : 1;
  const length = arrayLength(data);
  if (length !== size) {
    if (length === 0 && isDetached(data)) failDetached(op, argument, size);
    const buffer = arrayBuffer(data);
    const bytes = size * width;
    const couldHold = (maximumGetter.call(buffer) as number) - (offsetGetter.call(data) as number) >= bytes;
    if (length < size && isArrayBuffer(buffer) && resizableGetter.call(buffer) === true && couldHold) failDetached(op, argument, size);
    fail('SHAPE', op, `${argument}.data`, `has ${length} elements`, `${size} for dims ${shapeText(dims)}`);
  }
  if (size === 0 && isDetached(data)) failDetached(op, argument, size);
  const copied = isShared(data);
  // The copying constructor gives a private buffer, whatever the source's is.
  const own = copied ? ((width === 4 ? new Float32Array(data) : new Uint8Array(data)) as A) : data;
  return { op, argument, data: own, dims, size, width, source, copied };
}

export function readTensor(op: string, argument: string, value: unknown): Checked {
  if (!isObject(value) || Array.isArray(value) || arrayTag(value) !== undefined)
    fail('ARGUMENT', op, argument, describe(value), 'a tensor { data: Float32Array, dims: number[] }');
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  if (data === undefined) fail('ARGUMENT', op, `${argument}.data`, 'is missing', 'a Float32Array');
  if (arrayTag(data) !== 'Float32Array') fail('DTYPE', op, `${argument}.data`, describe(data), 'a Float32Array');
  const dims = readDims(op, argument, dimsValue);
  return settle(op, argument, value, data as Float32Array, dims);
}

export const maskKinds = ['attend', 'block', 'additive'] as const satisfies readonly Mask['kind'][];

export interface CheckedMask extends Checked<Float32Array | Uint8Array> {
  readonly kind: Mask['kind'];
}

export function readMask(op: string, argument: string, value: unknown): CheckedMask {
  const expected = "{ kind: 'attend' | 'block' | 'additive', data, dims }";
  if (Array.isArray(value) || arrayTag(value) !== undefined)
    fail('MASK', op, argument, `${describe(value)}, whose polarity would be a guess`, expected);
  if (!isObject(value)) fail('MASK', op, argument, describe(value), expected);
  const kind = value['kind'] as Mask['kind'];
  const data: unknown = value['data'];
  const dimsValue: unknown = value['dims'];
  if (!maskKinds.includes(kind)) fail('MASK', op, `${argument}.kind`, describe(kind), "'attend' or 'block' (what non-zero means) or 'additive'");
  const tag = arrayTag(data);
  if (tag !== 'Float32Array' && (tag !== 'Uint8Array' || kind === 'additive'))
    fail('DTYPE', op, `${argument}.data`, describe(data), kind === 'additive' ? 'a Float32Array' : 'a Uint8Array or a Float32Array');
  const dims = readDims(op, argument, dimsValue);
  const checked = settle(op, argument, value, data as Float32Array | Uint8Array, dims);
  // As flags any number but 0 would do, but an infinity or NaN among them tells of an additive mask by the wrong name.
  if (tag === 'Float32Array' && kind !== 'additive' && !every.call(checked.data as Float32Array, Number.isFinite))
    fail('MASK', op, argument, 'holds NaN or an infinity', `finite numbers for kind '${kind}'; numbers to be added are kind 'additive'`);
  return { ...checked, kind };
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
  if (isShared(array)) return new Uint8Array(array);
  // A view of our own: length and methods of the caller's object may be anything.
  return new Uint8Array(arrayBuffer(array) as ArrayBuffer, offsetGetter.call(array) as number, length);
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
export function readStateDict(op: string, value: unknown): [name: string, tensor: Checked][] {
  if (!isObject(value) || Array.isArray(value) || arrayTag(value) !== undefined)
    fail('ARGUMENT', op, 'state', describe(value), 'a Map or an object of tensors by name');
  const entries: [unknown, unknown][] = [];
  const map = intrinsicMap(value);
  if (!map && !isPlainObject(value)) fail('ARGUMENT', op, 'state', describe(value), 'a Map or an object of tensors by name');
  if (map) Map.prototype.forEach.call(map, (tensor, name) => entries.push([name, tensor]));
  else for (const name of Object.keys(value)) entries.push([name, value[name]]);
  return entries.map(([name, tensor]) => {
    if (typeof name !== 'string') fail('ARGUMENT', op, 'a name in state', describe(name), 'a string');
    return [name, readTensor(op, name, tensor)];
  });
}
