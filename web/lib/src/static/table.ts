/** The embedding matrix of a static model, in the file's own number format: rows are widened when they are added. */
import { allocate, fail } from '../args/error.js';

/** A tensor of a safetensors file. */
export interface TensorBytes {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly bytes: Uint8Array<ArrayBuffer>;
}

type Numbers = Float32Array | Float64Array | Int8Array | Uint16Array;

const formats = {
  F32: Float32Array,
  F64: Float64Array,
  F16: Uint16Array,
  BF16: Uint16Array,
  I8: Int8Array,
} as const;
export type Format = keyof typeof formats;
export const isFormat = (dtype: string): dtype is Format => Object.hasOwn(formats, dtype);
export const formatNames = Object.keys(formats).join(', ');

const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

function half(code: number): number {
  const [sign, exponent, fraction] = [code & 0x8000 ? -1 : 1, (code >> 10) & 31, code & 1023];
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

function brain(code: number): number {
  bits[0] = code << 16;
  return float[0]!;
}

/** By the 16 bits: 256 kB, made for the first matrix of its format. */
const widened: { F16?: Float32Array; BF16?: Float32Array } = {};

/** A view if the start is aligned, else a copy. */
function numbersOf(op: string, bytes: Uint8Array<ArrayBuffer>, dtype: Format): Numbers {
  const Type = formats[dtype];
  const aligned = bytes.byteOffset % Type.BYTES_PER_ELEMENT === 0 ? bytes : allocate(op, bytes.length, () => bytes.slice(), 'the embedding matrix');
  return new Type(aligned.buffer, aligned.byteOffset, aligned.length / Type.BYTES_PER_ELEMENT);
}

export class Table {
  readonly rows: number;
  readonly width: number;
  readonly #data: Numbers;
  readonly #widened: Float32Array | undefined;

  constructor(op: string, name: string, { bytes, dtype, shape }: TensorBytes) {
    if (!isFormat(dtype)) fail('UNSUPPORTED', op, name, `has the format ${dtype}`, `one of ${formatNames}`);
    if (shape.length !== 2 || shape.includes(0)) fail('FORMAT', op, name, `has the shape (${shape.join()})`, 'the shape (tokens, dimensions)');
    [this.rows, this.width] = shape as [number, number];
    this.#data = numbersOf(op, bytes, dtype);
    if (dtype === 'F16' || dtype === 'BF16') {
      const read = dtype === 'F16' ? half : brain;
      this.#widened = widened[dtype] ??= Float32Array.from({ length: 2 ** 16 }, (_, code) => read(code));
    }
  }

  /** sum[0 … E) += factor · row[0 … E); E may be less than the width. */
  add(row: number, factor: number, sum: Float64Array): void {
    const [data, wide, E, start] = [this.#data, this.#widened, sum.length, row * this.width];
    if (wide) for (let e = 0; e < E; ++e) sum[e]! += factor * wide[data[start + e]!]!;
    else for (let e = 0; e < E; ++e) sum[e]! += factor * data[start + e]!;
  }
}
