/** Writes safetensors files; C++ reads them. */
import { arrayLength, failDetached, isPlainObject, readStateDict } from '../args/arrays.js';
import { allocate, describe, fail, reading } from '../args/error.js';
import { encodeUtf8 } from '../platform/utf8.js';

const op = 'writeSafetensors';

/** UTF-8 cannot encode lone surrogates. */
function isWellFormed(text: string): boolean {
  return !/\p{Surrogate}/u.test(text);
}

function text(argument: string, value: unknown): string {
  if (typeof value !== 'string') fail('ARGUMENT', op, argument, describe(value), 'a string');
  if (!isWellFormed(value)) fail('ARGUMENT', op, argument, describe(value), 'well-formed Unicode');
  return value;
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; ++i) if (a[i] !== b[i]) return a[i]! - b[i]!;
  return a.length - b.length;
}

/** Keeps the given order: an object literal would move integer names to the front. */
const json = (entries: readonly (readonly [string, string])[]): string =>
  `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;

const sorted = <T>(entries: readonly (readonly [string, T])[]): (readonly [string, T])[] =>
  entries
    .map((entry) => ({ entry, bytes: encodeUtf8(entry[0]) }))
    .sort((a, b) => compareBytes(a.bytes, b.bytes))
    .map(({ entry }) => entry);

function readMetadata(metadata: unknown): (readonly [string, string])[] {
  if (!isPlainObject(metadata)) fail('ARGUMENT', op, 'metadata', describe(metadata), 'an object of strings');
  return Object.keys(metadata as object).map((name) => {
    const value = (metadata as Readonly<Record<string, unknown>>)[name];
    return [text('a name in metadata', name), JSON.stringify(text(`metadata.${name}`, value))] as const;
  });
}

export interface Item {
  readonly name: string;
  readonly dtype: 'F32' | 'I32' | 'F16' | 'I8' | 'U8';
  readonly dims: readonly number[];
  /** Writes the data. */
  fill(to: Uint8Array<ArrayBuffer>): void;
}

const widths = { F32: 4, I32: 4, F16: 2, I8: 1, U8: 1 } as const;
export const sizeOf = ({ dtype, dims }: Item): number => dims.reduce((size, dim) => size * dim, widths[dtype]);

/**
 * Layout: header length (8 bytes), header padded with spaces to a multiple of 8, data. Larger element types come first, so that
 * all tensors are aligned to their element size; then by name.
 */
export function safetensorsFile(operation: string, items: readonly Item[], words: readonly (readonly [string, string])[]): Uint8Array<ArrayBuffer> {
  const header: [string, string][] = [];
  if (words.length > 0) header.push(['__metadata__', json(sorted(words))]);
  const ordered = sorted(items.map((item) => [item.name, item] as const)).map(([, item]) => item);
  ordered.sort((a, b) => widths[b.dtype] - widths[a.dtype]);
  let end = 0;
  for (const item of ordered) {
    const start = end;
    end += sizeOf(item);
    header.push([item.name, JSON.stringify({ dtype: item.dtype, shape: item.dims, data_offsets: [start, end] })]);
  }
  const head = allocate(operation, 64 * header.length, () => encodeUtf8(json(header)), 'the header');
  const start = 8 + Math.ceil(head.length / 8) * 8;
  let file: Uint8Array<ArrayBuffer>;
  try {
    file = new Uint8Array(start + end);
  } catch {
    fail('MEMORY', operation, 'tensors', `are ${start + end} bytes in a file`, 'a size that the engine can allocate');
  }
  file.fill(0x20, 8, start);
  file.set(head, 8);
  new DataView(file.buffer).setBigUint64(0, BigInt(start - 8), true);
  let at = start;
  for (const item of ordered) item.fill(file.subarray(at, (at += sizeOf(item))));
  return file;
}

export function writeSafetensors(...[tensors, metadata]: readonly unknown[]): Uint8Array<ArrayBuffer> {
  const { entries } = reading(op, 'tensors', () => readStateDict(op, 'tensors', tensors));
  const words = metadata === undefined ? [] : reading(op, 'metadata', () => readMetadata(metadata));
  for (const [name] of entries) {
    text('a name in tensors', name);
    if (name === '__metadata__') fail('ARGUMENT', op, 'a name in tensors', 'is "__metadata__"', 'a name other than the reserved __metadata__');
  }
  for (const [, { argument, data, size }] of entries) if (arrayLength(data) !== size) failDetached(op, argument, size);
  const items = entries.map(([name, { dims, data }]): Item => ({
    name,
    dtype: 'F32',
    dims,
    fill: ({ buffer, byteOffset, length }) => new Float32Array(buffer, byteOffset, length / 4).set(data),
  }));
  return safetensorsFile(op, items, words);
}
