import type * as Contract from '../attn.js';
import { isPlainObject } from '../args/arrays.js';
import { fail } from '../args/error.js';
import { decodeStrictUtf8 } from '../platform/utf8.js';

const op = 'readSafetensorsHeader';
/** Limit of the safetensors library. */
const longest = 100_000_000;
const isList = (value: unknown, length?: number): value is number[] =>
  Array.isArray(value) && (length ?? value.length) === value.length && value.every((each) => Number.isSafeInteger(each) && each >= 0);

const isTensor = (value: unknown) =>
  isPlainObject(value) &&
  typeof value['dtype'] === 'string' &&
  isList(value['shape']) &&
  isList(value['data_offsets'], 2) &&
  value['data_offsets'][0]! <= value['data_offsets'][1]!;

function parsed(text: Uint8Array): unknown {
  try {
    return JSON.parse(decodeStrictUtf8(text));
  } catch {
    return undefined;
  }
}

// Escapes first: an expression with both runs out of stack at strings of 20 MB.
const countNames = (json: string) =>
  json
    .replace(/\\./g, '')
    .replace(/"[^"]*"/g, '')
    .split(':').length;
/** JSON.parse() keeps the last of equal names. Returns whether a name of any object in the text is lost. */
export function hasLostName(text: Uint8Array, value: unknown): boolean {
  try {
    return countNames(decodeStrictUtf8(text)) !== countNames(JSON.stringify(value));
  } catch {
    // Out of stack: nested as no valid file is.
    return true;
  }
}

/** Bytes of the length of the header, at the start of the file. */
export const safetensorsPrefix = 8;

/** Reads the first 8 bytes of the file; NaN if there are fewer. */
export const headerEnd = (bytes: Uint8Array): number =>
  bytes.length < safetensorsPrefix ? NaN : safetensorsPrefix + Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));

export const readSafetensorsHeader: typeof Contract.readSafetensorsHeader = (bytes) => {
  if (!(bytes instanceof Uint8Array)) fail('ARGUMENT', op, 'bytes', 'is of another type', 'a Uint8Array');
  const dataStart = headerEnd(bytes);
  const length = dataStart - safetensorsPrefix;
  if (length > longest) fail('FORMAT', op, 'the header', `has ${length} bytes`, `at most ${longest} bytes`);
  if (!(dataStart <= bytes.length)) fail('FORMAT', op, 'bytes', `has ${bytes.length} elements`, `at least ${dataStart || safetensorsPrefix}`);
  const text = bytes.subarray(safetensorsPrefix, dataStart);
  const header = parsed(text);
  if (!isPlainObject(header)) fail('FORMAT', op, 'the header', 'is not valid', 'a JSON object of tensors');
  const { __metadata__: given, ...tensors } = header;
  const metadata = given ?? {};
  if (!isPlainObject(metadata) || Object.values(metadata).some((value) => typeof value !== 'string'))
    fail('FORMAT', op, '__metadata__', 'is not valid', 'an object of strings');
  const wrong = Object.keys(tensors).find((name) => !isTensor(tensors[name]));
  if (wrong !== undefined) fail('FORMAT', op, JSON.stringify(wrong), 'is not valid', 'dtype, shape and data_offsets');
  if (hasLostName(text, header)) fail('FORMAT', op, 'the header', 'has a name twice', 'different names');
  return { tensors: tensors as Contract.SafetensorsHeader['tensors'], metadata: metadata as Record<string, string>, dataStart };
};
