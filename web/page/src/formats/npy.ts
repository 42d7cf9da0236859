/** Versions 1, 2 and 3; real numbers in C order become float32. */
import type { Tensor } from 'attn';
import { truncate, longestName } from './truncate.ts';

export class NpyError extends Error {}

type Reader = (view: DataView, at: number, little: boolean) => number;
/** float16 */
function half(bits: number): number {
  const [sign, exponent, fraction] = [bits & 0x8000 ? -1 : 1, (bits >> 10) & 31, bits & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -14 * (fraction / 1024));
}

const readers: Readonly<Record<string, readonly [bytes: number, read: Reader]>> = {
  f2: [2, (v, at, little) => half(v.getUint16(at, little))],
  f4: [4, (v, at, little) => v.getFloat32(at, little)],
  f8: [8, (v, at, little) => v.getFloat64(at, little)],
  i1: [1, (v, at) => v.getInt8(at)],
  i2: [2, (v, at, little) => v.getInt16(at, little)],
  i4: [4, (v, at, little) => v.getInt32(at, little)],
  i8: [8, (v, at, little) => Number(v.getBigInt64(at, little))],
  u1: [1, (v, at) => v.getUint8(at)],
  u2: [2, (v, at, little) => v.getUint16(at, little)],
  u4: [4, (v, at, little) => v.getUint32(at, little)],
  u8: [8, (v, at, little) => Number(v.getBigUint64(at, little))],
  b1: [1, (v, at) => (v.getUint8(at) ? 1 : 0)],
};

/** Far more than a page can show, far less than a tab can hold. */
const maximumElements = 2 ** 26;

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59]; // "\x93NUMPY"
export const isNpy = (bytes: Uint8Array): boolean => magic.every((byte, i) => bytes[i] === byte);

export function parseNpy(bytes: Uint8Array): Tensor {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || !isNpy(bytes)) throw new NpyError('This is not a .npy file. Save one array with numpy.save.');
  const version = bytes[6]!;
  if (version < 1 || version > 3) throw new NpyError(`This .npy file has format version ${version}, expected version 1, 2 or 3.`);
  const start = version === 1 ? 10 : 12;
  const headerLength = version === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (start + headerLength > bytes.length) throw new NpyError('The .npy file ends inside its header. It is incomplete.');
  const header = new TextDecoder(version === 3 ? 'utf-8' : 'latin1').decode(bytes.subarray(start, start + headerLength));

  const type = /'descr'\s*:\s*'([<>|=])(\w+)'/.exec(header);
  const order = /'fortran_order'\s*:\s*(True|False)/.exec(header);
  const shape = /'shape'\s*:\s*\(([\d\s,]*)\)/.exec(header);
  if (!order || !shape) throw new NpyError('The header of this .npy file lacks fortran_order or shape.');
  const reader = type && Object.hasOwn(readers, type[2]!) ? readers[type[2]!] : undefined;
  if (!type || !reader) {
    throw new NpyError(
      `The numbers in this .npy file have an unsupported type (${type ? truncate(type[2]!, longestName) : 'a structure'}). Save a.astype('float32').`,
    );
  }
  if (order[1] === 'True') throw new NpyError('This .npy file is in Fortran order. Save numpy.ascontiguousarray(a).');

  const dims = shape[1]!
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean)
    .map(Number);
  const count = dims.reduce((a, b) => a * b, 1);
  if (!dims.length || !count)
    throw new NpyError(`The array in this .npy file has shape (${truncate(dims.join(', '), longestName)}). Save an array with rows.`);
  if (!(count <= maximumElements))
    throw new NpyError(`The array in this .npy file has ${count} numbers, but this page reads at most ${maximumElements}.`);
  const [width, read] = reader;
  const offset = start + headerLength;
  if (bytes.length - offset !== count * width) {
    throw new NpyError(
      `Shape (${truncate(dims.join(', '), longestName)}) needs ${count * width} bytes of numbers, but the .npy file has ${bytes.length - offset}.`,
    );
  }
  const little = type[1] !== '>';
  const data = new Float32Array(count);
  for (let i = 0; i < count; ++i) {
    const value = read(view, offset + i * width, little);
    data[i] = value;
    if (Number.isFinite(value) && !Number.isFinite(data[i])) throw new NpyError(`Number ${i + 1} (${value}) is too large for float32.`);
  }
  return { data, dims };
}
