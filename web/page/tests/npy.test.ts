import { describe, expect, it } from 'vitest';
import { NpyError, parseNpy } from '../src/formats/npy.ts';

/** Mimics numpy.save: the data begins at a multiple of 64 bytes. */
function npy(header: string, body: ArrayBuffer, version = 1): Uint8Array {
  const start = version === 1 ? 10 : 12;
  const text = header.padEnd(Math.ceil((start + header.length + 1) / 64) * 64 - start - 1) + '\n';
  const bytes = new Uint8Array(start + text.length + body.byteLength);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, version, 0]);
  const view = new DataView(bytes.buffer);
  if (version === 1) view.setUint16(8, text.length, true);
  else view.setUint32(8, text.length, true);
  bytes.set(new TextEncoder().encode(text), start);
  bytes.set(new Uint8Array(body), start + text.length);
  return bytes;
}
const header = (type: string, shape: string, fortran = 'False') => `{'descr': '${type}', 'fortran_order': ${fortran}, 'shape': ${shape}, }`;

function bigEndian(values: readonly number[]): ArrayBuffer {
  const view = new DataView(new ArrayBuffer(8 * values.length));
  values.forEach((value, i) => view.setFloat64(8 * i, value));
  return view.buffer;
}

describe('parsing .npy files', () => {
  it.each([
    ['<f4', Float32Array.of(1, -2.5, 3, 4).buffer],
    ['<f8', Float64Array.of(1, -2.5, 3, 4).buffer],
    ['>f8', bigEndian([1, -2.5, 3, 4])],
  ])('reads %s', (type, body) => {
    for (const version of [1, 2, 3])
      expect(parseNpy(npy(header(type, '(2, 2)'), body, version))).toEqual({ data: Float32Array.of(1, -2.5, 3, 4), dims: [2, 2] });
  });

  it.each([
    ['<i8', BigInt64Array.of(1n, -2n).buffer],
    ['<i4', Int32Array.of(1, -2).buffer],
    ['<i2', Int16Array.of(1, -2).buffer],
    ['|i1', Int8Array.of(1, -2).buffer],
  ])('reads whole numbers of type %s', (type, body) => expect(parseNpy(npy(header(type, '(1, 2)'), body)).data).toEqual(Float32Array.of(1, -2)));

  it('reads half precision, including subnormals, infinities and NaN', () => {
    const bits = Uint16Array.of(0x3c00, 0xc100, 0x7bff, 1, 0x8000, 0x7c00, 0xfc00, 0x7e00);
    const { data } = parseNpy(npy(header('<f2', '(2, 4)'), bits.buffer));
    expect([...data]).toEqual([1, -2.5, 65504, 2 ** -24, -0, Infinity, -Infinity, NaN]);
  });

  it('reads booleans as 0 and 1', () =>
    expect(parseNpy(npy(header('|b1', '(3,)'), Uint8Array.of(1, 0, 1).buffer))).toEqual({ data: Float32Array.of(1, 0, 1), dims: [3] }));

  const four = Float32Array.of(1, 2, 3, 4).buffer;
  it.each<[string, Uint8Array, string]>([
    ['HTML', new TextEncoder().encode('<!doctype html><html></html>'), 'not a .npy file'],
    ['an empty file', new Uint8Array(0), 'not a .npy file'],
    ['an unknown version', npy(header('<f4', '(2, 2)'), four).with(6, 9), 'format version 9'],
    ['a truncated header', npy(header('<f4', '(2, 2)'), four).subarray(0, 40), 'ends inside its header'],
    ['truncated numbers', npy(header('<f4', '(2, 2)'), four).subarray(0, -1), 'needs 16 bytes of numbers, but the .npy file has 15'],
    ['bytes left over', npy(header('<f4', '(3,)'), four), 'needs 12 bytes'],
    ['Fortran order', npy(header('<f4', '(2, 2)', 'True'), four), 'ascontiguousarray'],
    ['complex numbers', npy(header('<c8', '(2,)'), four), 'c8'],
    ['truncated half precision', npy(header('<f2', '(8,)'), four).subarray(0, -1), 'needs 16 bytes'],
    ['a structure', npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (4,), }", four), 'a structure'],
    ['no rows', npy(header('<f4', '(0, 3)'), new ArrayBuffer(0)), 'Save an array with rows'],
    ['a scalar', npy(header('<f4', '()'), Float32Array.of(1).buffer), 'Save an array with rows'],
    ['an absurd shape', npy(header('<f4', '(99999999, 99999999)'), four), 'reads at most'],
    ['a number beyond float32', npy(header('<f8', '(1, 1)'), Float64Array.of(1e300).buffer), 'too large for float32'],
    ['a prototype name as type', npy(header('|constructor', '(1,)'), four), 'constructor'],
  ])('rejects %s', (_, bytes, message) => {
    expect(() => parseNpy(bytes)).toThrow(NpyError);
    expect(() => parseNpy(bytes)).toThrow(message);
  });
});
