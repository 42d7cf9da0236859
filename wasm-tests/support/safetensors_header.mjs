/** Reads the header of a safetensors file: tensors by name, metadata, and the offset of the data. */
export function readSafetensorsHeader(file) {
  const length = Number(new DataView(file.buffer, file.byteOffset, file.byteLength).getBigUint64(0, true));
  const dataStart = 8 + length;
  const { __metadata__: metadata = {}, ...tensors } = JSON.parse(new TextDecoder().decode(file.subarray(8, dataStart)));
  return { tensors, metadata, dataStart };
}
