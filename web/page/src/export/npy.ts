/** float32 in C order as written by numpy.save: version 1.0, data aligned to 64 bytes. */
export function toNpy(data: Float32Array, dims: readonly number[]): Uint8Array<ArrayBuffer> {
  const shape = dims.length === 1 ? `(${dims[0]},)` : `(${dims.join(', ')})`;
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
  const start = Math.ceil((10 + header.length + 1) / 64) * 64;
  const bytes = new Uint8Array(start + 4 * data.length);
  bytes.set([0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59, 1, 0]); // "\x93NUMPY"
  const view = new DataView(bytes.buffer);
  view.setUint16(8, start - 10, true);
  bytes.set(new TextEncoder().encode(header.padEnd(start - 11) + '\n'), 10);
  data.forEach((value, i) => view.setFloat32(start + 4 * i, value, true));
  return bytes;
}
