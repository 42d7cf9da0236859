/**
 * Rows are blocks of numbers that share scales. The order of operations is that of ggml's dequantize_row functions and
 * of src/attn/io/gguf/block_types.cpp, so that values are equal bit for bit.
 */
export interface BlockType {
  readonly name: string;
  readonly values: number;
  readonly bytes: number;
  /** Converts whole blocks to as many numbers as `y` has. */
  readonly expand: (blocks: Uint8Array, y: Float32Array<ArrayBuffer>) => void;
}

const { fround } = Math;
const bits = new Uint32Array(1);
const float = new Float32Array(bits.buffer);

const word = (bytes: Uint8Array, at: number) => bytes[at]! | (bytes[at + 1]! << 8);

/** binary16 to the bits of binary32. */
function halfBits(half: number): number {
  const sign = (half & 0x8000) << 16;
  const exponent = (half >> 10) & 0x1f;
  const fraction = half & 0x3ff;
  if (exponent === 0) {
    float[0] = fraction * 2 ** -24;
    return (sign | bits[0]!) >>> 0;
  }
  return (sign | ((exponent === 0x1f ? 0xff : exponent + 112) << 23) | (fraction << 13)) >>> 0;
}

function half(bytes: Uint8Array, at: number): number {
  bits[0] = halfBits(word(bytes, at));
  return float[0]!;
}

const signed = (byte: number) => (byte << 24) >> 24;

function expandF32(blocks: Uint8Array, y: Float32Array<ArrayBuffer>): void {
  new Uint8Array(y.buffer, y.byteOffset, y.byteLength).set(blocks);
}

/** Bits, because a number that is NaN may lose its payload. */
const expandWords = (bitsOf: (word: number) => number) => (blocks: Uint8Array, y: Float32Array<ArrayBuffer>) => {
  const all = new Uint32Array(y.buffer, y.byteOffset, y.length);
  for (let i = 0; i < all.length; ++i) all[i] = bitsOf(word(blocks, 2 * i));
};

/** y = d (q - 8) */
function expandQ40(blocks: Uint8Array, y: Float32Array): void {
  for (let at = 0, to = 0; to < y.length; at += 18, to += 32) {
    const d = half(blocks, at);
    for (let i = 0; i < 16; ++i) {
      const pair = blocks[at + 2 + i]!;
      y[to + i] = d * ((pair & 15) - 8);
      y[to + i + 16] = d * ((pair >> 4) - 8);
    }
  }
}

/** y = d q + m */
function expandQ41(blocks: Uint8Array, y: Float32Array): void {
  for (let at = 0, to = 0; to < y.length; at += 20, to += 32) {
    const d = half(blocks, at);
    const m = half(blocks, at + 2);
    for (let i = 0; i < 16; ++i) {
      const pair = blocks[at + 4 + i]!;
      y[to + i] = fround(d * (pair & 15)) + m;
      y[to + i + 16] = fround(d * (pair >> 4)) + m;
    }
  }
}

/** y = d q */
function expandQ80(blocks: Uint8Array, y: Float32Array): void {
  for (let at = 0, to = 0; to < y.length; at += 34, to += 32) {
    const d = half(blocks, at);
    for (let i = 0; i < 32; ++i) y[to + i] = d * signed(blocks[at + 2 + i]!);
  }
}

/** y = (d scale) q - (dmin min), with a 6-bit scale and minimum per 32 values in 12 packed bytes */
function expandQ4K(blocks: Uint8Array, y: Float32Array): void {
  for (let at = 0, to = 0; to < y.length; at += 144) {
    const d = half(blocks, at);
    const dmin = half(blocks, at + 2);
    const packed = at + 4;
    for (let j = 0; j < 8; ++j, to += 32) {
      const [a, b] = [blocks[packed + j]!, blocks[packed + j + 4]!];
      const scale = fround(d * (j < 4 ? a & 63 : (b & 15) | ((blocks[packed + j - 4]! >> 6) << 4)));
      const min = fround(dmin * (j < 4 ? b & 63 : (b >> 4) | ((a >> 6) << 4)));
      const q = at + 16 + (j >> 1) * 32;
      const shift = (j & 1) * 4;
      for (let i = 0; i < 32; ++i) y[to + i] = fround(scale * ((blocks[q + i]! >> shift) & 15)) - min;
    }
  }
}

/** y = (d scale) (q - 32), with a scale per 16 values; q has 4 bits in the first 128 bytes and 2 in the next 64 */
function expandQ6K(blocks: Uint8Array, y: Float32Array): void {
  for (let block = 0, to = 0; to < y.length; block += 210) {
    const d = half(blocks, block + 208);
    for (let i = 0; i < 256; ++i, ++to) {
      const part = i >> 7;
      const quarter = (i >> 5) & 3;
      const at = i & 31;
      const lower = blocks[block + 64 * part + 32 * (quarter & 1) + at]!;
      const upper = blocks[block + 128 + 32 * part + at]!;
      const q = (quarter < 2 ? lower & 15 : lower >> 4) | (((upper >> (2 * quarter)) & 3) << 4);
      y[to] = fround(d * signed(blocks[block + 192 + (i >> 4)]!)) * (q - 32);
    }
  }
}

/** By ggml_type. */
const types = new Map<number, BlockType>([
  [0, { name: 'F32', values: 1, bytes: 4, expand: expandF32 }],
  [1, { name: 'F16', values: 1, bytes: 2, expand: expandWords(halfBits) }],
  [30, { name: 'BF16', values: 1, bytes: 2, expand: expandWords((bfloat) => bfloat * 2 ** 16) }],
  [2, { name: 'Q4_0', values: 32, bytes: 18, expand: expandQ40 }],
  [3, { name: 'Q4_1', values: 32, bytes: 20, expand: expandQ41 }],
  [8, { name: 'Q8_0', values: 32, bytes: 34, expand: expandQ80 }],
  [12, { name: 'Q4_K', values: 256, bytes: 144, expand: expandQ4K }],
  [14, { name: 'Q6_K', values: 256, bytes: 210, expand: expandQ6K }],
]);

export const blockTypeOf = (id: number): BlockType | undefined => types.get(id);
export const blockTypeNames = /* @__PURE__ */ [...types.values()].map(({ name }) => name).join(', ');
