/** safetensors, written. Reading is the module's. */
import { arrayLength, type Checked, failDetached, isPlainObject, readStateDict } from './arrays.js';
import { allocate, describe, fail, reading } from './error.js';
import { encodeUtf8 } from './utf8.js';

const op = 'writeSafetensors';

/** Whether UTF-8 can say it: no half of a surrogate pair. */
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

/** JSON of an object's entries, in their order whatever the names are: an object literal would put whole numbers first. */
const json = (entries: readonly (readonly [string, string])[]): string =>
  `{${entries.map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(',')}}`;

const sorted = <T>(entries: readonly (readonly [string, T])[]): (readonly [string, T])[] =>
  entries
    .map((entry) => ({ entry, bytes: encodeUtf8(entry[0]) }))
    .sort((a, b) => compareBytes(a.bytes, b.bytes))
    .map(({ entry }) => entry);

/** Names, and JSON of their texts. */
function readMetadata(metadata: unknown): (readonly [string, string])[] {
  if (!isPlainObject(metadata)) fail('ARGUMENT', op, 'metadata', describe(metadata), 'an object of strings');
  return Object.keys(metadata as object).map((name) => {
    const value = (metadata as Readonly<Record<string, unknown>>)[name];
    return [text('a name in metadata', name), JSON.stringify(text(`metadata.${name}`, value))] as const;
  });
}

/** The file: length of the header in 8 bytes, the header padded with spaces to a multiple of 8, the numbers by sorted name. */
export function writeSafetensors(...[tensors, metadata]: readonly unknown[]): Uint8Array<ArrayBuffer> {
  const { entries } = reading(op, 'tensors', () => readStateDict(op, 'tensors', tensors));
  const words = metadata === undefined ? [] : reading(op, 'metadata', () => readMetadata(metadata));
  const header: [string, string][] = [];
  if (words.length > 0) header.push(['__metadata__', json(sorted(words))]);
  let end = 0;
  const placed: [start: number, tensor: Checked<Float32Array>][] = [];
  for (const [name, tensor] of sorted(entries)) {
    text('a name in tensors', name);
    if (name === '__metadata__') fail('ARGUMENT', op, 'a name in tensors', 'is "__metadata__"', 'another: the format keeps this one');
    placed.push([end, tensor]);
    const start = end;
    end += 4 * tensor.size;
    header.push([name, JSON.stringify({ dtype: 'F32', shape: tensor.dims, data_offsets: [start, end] })]);
  }
  const head = allocate(op, 64 * header.length, () => encodeUtf8(json(header)), 'the header');
  const start = 8 + Math.ceil(head.length / 8) * 8;
  for (const [, { argument, data, size }] of placed) if (arrayLength(data) !== size) failDetached(op, argument, size);
  let file: Uint8Array<ArrayBuffer>;
  try {
    file = new Uint8Array(start + end);
  } catch {
    fail('MEMORY', op, 'tensors', `need a file of ${start + end} bytes`, 'what the engine can allocate');
  }
  file.fill(0x20, 8, start);
  file.set(head, 8);
  new DataView(file.buffer).setBigUint64(0, BigInt(start - 8), true);
  const floats = new Float32Array(file.buffer, start);
  for (const [at, { data }] of placed) floats.set(data, at / 4);
  return file;
}
