/** Hostile values, and functions that insert them in every position of a call's arguments. */
import { assert } from 'chai';
import { assertIsError } from './errors.ts';

const mostMessage = 2100;
const mostDetail = 10_000;

const thrower = (thrown: unknown) => (): never => {
  throw thrown;
};
const allTraps = (thrown: unknown): ProxyHandler<object> =>
  Object.fromEntries(
    [
      ...['get', 'set', 'has', 'ownKeys', 'getPrototypeOf', 'getOwnPropertyDescriptor', 'defineProperty', 'deleteProperty'],
      ...['isExtensible', 'preventExtensions', 'setPrototypeOf', 'apply', 'construct'],
    ].map((trap) => [trap, thrower(thrown)]),
  );
function revoked(target: object): object {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
}
const unconvertible = { toString: thrower(new Error('toString')), valueOf: thrower(1), [Symbol.toPrimitive]: thrower(undefined) };
const unreadableError = Object.defineProperty(new Error(), 'message', { get: thrower(new Error('message')) });

class Vector extends Float32Array {
  static get [Symbol.species](): never {
    throw new Error('species');
  }
  override get length(): never {
    throw new Error('length');
  }
  override get byteOffset(): never {
    throw new Error('byteOffset');
  }
  override get buffer(): never {
    throw new Error('buffer');
  }
}
const wider = (array: Float32Array) => [...array, 7];
const own = (array: Float32Array): Vector => Reflect.construct(Float32Array, [array], Vector) as Vector;

/** Pages without isolation do not expose SharedArrayBuffer, but a shared WebAssembly memory provides one. */
function shared(array: Float32Array): Float32Array {
  const pages = Math.ceil((array.length * 4 + 4) / 65536);
  const copy = new Float32Array(new WebAssembly.Memory({ initial: pages, maximum: pages, shared: true }).buffer, 4, array.length);
  copy.set(array);
  return copy;
}
function detachedCopy(array: Float32Array): Float32Array {
  const copy = array.slice();
  structuredClone(copy.buffer, { transfer: [copy.buffer] });
  return copy;
}
function resized(array: Float32Array, from: number, to: number): Float32Array {
  const buffer = Reflect.construct(ArrayBuffer, [from, { maxByteLength: 2 * from + to }]) as ArrayBuffer & { resize?(bytes: number): void };
  const view = new Float32Array(buffer);
  view.set(array.subarray(0, view.length));
  buffer.resize?.(to);
  return view;
}
const isFloats = (value: unknown): value is Float32Array => Object.prototype.toString.call(value) === '[object Float32Array]';
const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !ArrayBuffer.isView(value);

export interface Hostile {
  readonly name: string;
  /** Creates the value that replaces a good one, or `skip` if there is none. */
  readonly of: (good: unknown) => unknown;
  readonly isGood?: boolean;
}
export const skip = Symbol('skip');

const always = (name: string, value: unknown): Hostile => ({ name, of: () => value });
const ofFloats = (name: string, make: (array: Float32Array) => unknown, isGood = false): Hostile => ({
  name,
  of: (good) => (isFloats(good) ? make(good) : skip),
  isGood,
});
const ofObjects = (name: string, make: (object: object) => unknown, isGood = false): Hostile => ({
  name,
  of: (good) => (isObject(good) ? make(good) : skip),
  isGood,
});

const long = 'x'.repeat(2 ** 20);

export const hostiles: readonly Hostile[] = [
  ...[undefined, null, true, NaN, -1, 0.5, Infinity, 2 ** 31, 2 ** 53, '', 'x', '\ud800', 10n, -(2n ** 70n)].map((value) =>
    always(`${typeof value} ${String(value)}`, value),
  ),
  always('a text of 1 MB', long),
  always('a symbol', Symbol('s')),
  always('a function', () => 1),
  always('a throwing function', thrower(new Error('called'))),
  always('a Date', new Date(NaN)),
  always('a Set', new Set([1])),
  always('a promise', Promise.resolve(1)),
  always('an empty Array', []),
  always('an Array of 4e9 holes', new Array(4e9)),
  always('an Array whose iterator has no end', Object.assign([1, 2], { *[Symbol.iterator]() { for (;;) yield 1; } })), // prettier-ignore
  always('an Array whose iterator throws', Object.assign([1, 2], { [Symbol.iterator]: thrower(new Error('iterator')) })),
  always('an Array with a throwing element', Object.defineProperty([1, 2], 1, { get: thrower(null) })),
  always('an object by a long name', { [long]: 1 }),
  always('an object of throwing getters', Object.defineProperty({}, 'data', { get: thrower(new RangeError('mine')), enumerable: true })),
  always(
    'an object that throws an error whose message throws',
    Object.defineProperty({}, 'data', { get: thrower(unreadableError), enumerable: true }),
  ),
  always('an object that throws a revoked Proxy', Object.defineProperty({}, 'data', { get: thrower(revoked({})), enumerable: true })),
  always('an object whose tag throws', Object.defineProperty({}, Symbol.toStringTag, { get: thrower(Symbol('tag')) })),
  always('an object with the tag of a URL', { ...unconvertible, [Symbol.toStringTag]: 'URL' }),
  always('an object with the tag of a Response', { [Symbol.toStringTag]: 'Response' }),
  always('an object with the tag of a Blob', { [Symbol.toStringTag]: 'Blob', size: 4, slice: thrower(1) }),
  always('an object that cannot be converted', unconvertible),
  always('an object without a prototype', Object.create(null)),
  always('a revoked Proxy', revoked({})),
  always('a revoked Proxy of an Array', revoked([])),
  always(
    'a revoked Proxy of a function',
    revoked(() => 1),
  ),
  always('a Proxy that throws', new Proxy({}, allTraps(new Error('trap')))),
  always('a Proxy of an Array that throws a value other than an error', new Proxy([], allTraps(null))),
  always('a Proxy of a function that throws', new Proxy(() => 1, allTraps(revoked({})))),
  always('an ArrayBuffer', new ArrayBuffer(12)),
  always('a DataView', new DataView(new ArrayBuffer(12))),
  always('a BigInt64Array', new BigInt64Array(3)),
  ofFloats('a shared array', shared, true),
  ofFloats('a shared array, too short', (array) => shared(array).subarray(1)),
  ofFloats('a shared array, too long', (array) => shared(new Float32Array(wider(array)))),
  ofFloats('a detached array', detachedCopy),
  ofFloats('an array that grew', (array) => resized(array, array.byteLength, array.byteLength + 8)),
  ofFloats('an array that shrank', (array) => resized(array, array.byteLength, Math.max(0, array.byteLength - 8))),
  ofFloats('an array of a misleading class', own, true),
  ofFloats('a frozen view', (array) => Object.defineProperty(array.slice(), 'constructor', { get: thrower(new Error('constructor')) }), true),
  ofFloats('a Proxy of an array', (array) => new Proxy(array, {})),
  ofFloats('an array with the prototype of another', (array) => Object.setPrototypeOf(array.slice(), Int8Array.prototype) as unknown, true),
  ofObjects('frozen, without a prototype', (object) => Array.isArray(object) || object instanceof Map ? skip : Object.freeze(Object.assign(Object.create(null), object)), true), // prettier-ignore
  ofObjects('a Proxy of itself', (object) => (object instanceof Map ? skip : new Proxy(object, {})), true),
  ofObjects('a Proxy that is revoked after some reads', (object) => {
    let left = 2;
    const { proxy, revoke } = Proxy.revocable(object, {
      get(target, key) {
        if (--left === 0) revoke();
        return Reflect.get(target, key) as unknown;
      },
    });
    return proxy;
  }),
];

export type Path = readonly (string | number)[];

export function pathsOf(value: unknown, path: Path = []): Path[] {
  const below =
    isObject(value) && (Array.isArray(value) || Object.getPrototypeOf(value) === Object.prototype)
      ? // the first of several numbers or names represents all
        Object.keys(value).slice(0, path.length > 0 && Array.isArray(value) ? 1 : undefined)
      : [];
  const all = below.flatMap((key) => pathsOf((value as Record<string, unknown>)[key], [...path, Array.isArray(value) ? Number(key) : key]));
  return path.length > 0 ? [path, ...all] : all;
}

export const at = (value: unknown, path: Path): unknown =>
  path.reduce((inner, key) => (inner as Record<string | number, unknown> | undefined)?.[key], value);

export function replaced<T>(value: T, [key, ...rest]: Path, other: unknown): T {
  if (key === undefined) return other as T;
  if (!isObject(value)) return value;
  const copy = (Array.isArray(value) ? [...(value as unknown[])] : { ...value }) as Record<string | number, unknown>;
  copy[key] = replaced(copy[key], rest, other);
  return copy as T;
}

/** Expects the error of a bad argument, of a bounded length. */
export function assertGoodError(error: unknown, what: string): void {
  try {
    assertIsError(error, ['ARGUMENT', 'DTYPE', 'SHAPE', 'MASK', 'CONFIG', 'OUT_OF_RANGE', 'FORMAT', 'MISMATCH', 'MEMORY', 'DETACHED', 'UNSUPPORTED', 'NETWORK', 'WRONG_INSTANCE']); // prettier-ignore
    const { message, detail } = error as { message: string; detail: object };
    assert.isAtMost(message.length, mostMessage, 'length of the message');
    assert.isAtMost(JSON.stringify(detail).length, mostDetail, 'length of the detail');
  } catch (failed) {
    throw new Error(`${what}: ${failed instanceof Error ? failed.message : String(failed)}`, { cause: failed });
  }
}
