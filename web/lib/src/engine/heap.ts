/** The inputs of a call share one allocation. No view of the heap leaves this file. */
import type { Tensor } from '../attn.js';
import { arrayLength, type Checked, failDetached } from '../args/arrays.js';
import { allocate, AttnError } from '../args/error.js';
import { descriptorInts, entryInts, fields, type Native, type Pointer } from './native.js';
import { decodeUtf8 } from '../platform/utf8.js';

const align = 64;
const alignUp = (bytes: number) => Math.ceil(bytes / align) * align;
const descriptorBytes = 4 * descriptorInts;
const heapBytes = ({ size, type }: Checked) => alignUp(type === 'Uint8Array' ? size : 4 * size);

/** One tensor of a result. Layer -1: there is only one. */
export interface Entry {
  readonly field: (typeof fields)[number];
  readonly layer: number;
  readonly name: number | string;
  readonly tensor: Tensor;
}

export interface Result {
  readonly entries: readonly Entry[];
  readonly traced: boolean;
  readonly number: number;
}

export class Heap {
  readonly #native: Native;
  readonly #memory: WebAssembly.Memory;
  #bytes!: Uint8Array;
  #ints!: Int32Array;
  #floats!: Float32Array;
  #doubles!: Float64Array;

  constructor(native: Native) {
    this.#native = native;
    this.#memory = native.wasmMemory;
    this.#take(this.#memory.buffer);
  }

  #take(buffer: ArrayBufferLike): void {
    this.#bytes = new Uint8Array(buffer);
    this.#ints = new Int32Array(buffer);
    this.#floats = new Float32Array(buffer);
    this.#doubles = new Float64Array(buffer);
  }

  /** Growing detaches views, and writes to them are silently lost: call this after any allocation. */
  #retake(): void {
    const { buffer } = this.#memory;
    if (this.#bytes.buffer !== buffer) this.#take(buffer);
  }

  #allocate(op: string, bytes: number): Pointer {
    // Embind would wrap larger numbers to 32 bits.
    if (bytes > 0xffff_0000) throw new AttnError('MEMORY', `${op}: the inputs are ${bytes} bytes, expected at most 4294901760`, { op, got: bytes });
    const base = this.#native.reserve(bytes) >>> 0;
    this.#retake();
    return base;
  }

  #write({ data, dims, size, type, kind }: Checked, descriptor: Pointer, address: Pointer): void {
    const at = descriptor / 4;
    this.#ints[at] = address;
    this.#ints[at + 1] = dims.length;
    for (let axis = 0; axis < dims.length; ++axis) this.#ints[at + 2 + axis] = dims[axis]!;
    this.#ints[at + 10] = kind;
    this.#ints[at + 11] = type === 'Uint8Array' ? 1 : 4;
    if (size === 0) return;
    if (type === 'Float32Array') this.#floats.set(data, address / 4);
    else if (type === 'Int32Array') this.#ints.set(data, address / 4);
    else this.#bytes.set(data, address);
  }

  /** Runs `body` with a frame of arguments; see frameOf. */
  withArguments<T>(op: string, leaves: readonly (number | Checked)[], body: (frame: Pointer) => T): T {
    const frame = this.frameOf(op, leaves);
    try {
      return body(frame);
    } finally {
      this.release(frame);
    }
  }

  release(frame: Pointer): void {
    this.#native.release(frame);
  }

  /** Passes numbers as they are and arrays as addresses of descriptors. The caller releases the frame. */
  frameOf(op: string, leaves: readonly (number | Checked)[]): Pointer {
    let descriptor = 8 * leaves.length;
    let total = descriptor;
    for (const leaf of leaves) if (typeof leaf !== 'number') total += descriptorBytes;
    const start = (total = alignUp(total));
    for (const leaf of leaves)
      if (typeof leaf !== 'number') {
        // A getter among later arguments may have detached the buffer.
        if (arrayLength(leaf.data) !== leaf.size) failDetached(leaf.op, leaf.argument, leaf.size);
        total += heapBytes(leaf);
      }
    const base = this.#allocate(op, total);
    let data = base + start;
    descriptor += base;
    for (let i = 0; i < leaves.length; ++i) {
      const leaf = leaves[i]!;
      if (typeof leaf === 'number') this.#doubles[base / 8 + i] = leaf;
      else {
        this.#write(leaf, descriptor, data);
        this.#doubles[base / 8 + i] = descriptor;
        descriptor += descriptorBytes;
        data += heapBytes(leaf);
      }
    }
    return base;
  }

  /** A shape has no data. */
  #tensor(op: string, descriptor: number): Tensor {
    const rank = this.#ints[descriptor + 1]!;
    const dims: number[] = [];
    let size = 1;
    for (let axis = 0; axis < rank; ++axis) {
      dims.push(this.#ints[descriptor + 2 + axis]!);
      size *= dims[axis]!;
    }
    const data = (this.#ints[descriptor]! >>> 0) / 4;
    if (data === 0) size = 0;
    const isInt8 = this.#ints[descriptor + 11] === 1;
    // slice() copies to a buffer that is never shared.
    return allocate(op, isInt8 ? size : 4 * size, () => {
      if (!isInt8) return { data: this.#floats.slice(data, data + size), dims };
      const copy = this.#bytes.slice(4 * data, 4 * data + size);
      return { data: new Int8Array(copy.buffer) as ArrayLike<number> as Float32Array, dims };
    });
  }

  /** Embind's strings lose a leading byte order mark. */
  #name(start: Pointer, size: number): string {
    return decodeUtf8(this.#bytes.slice(start >>> 0, (start >>> 0) + size));
  }

  takeResult(op: string, result: Pointer): Result {
    this.#retake();
    try {
      const start = (result >>> 0) / 4;
      const entries: Entry[] = [];
      let at = (this.#ints[start + 2]! >>> 0) / 4;
      for (let count = this.#ints[start]!; count > 0; --count, at += entryInts) {
        const field = fields[this.#ints[at]!]!;
        const name = this.#ints[at + 2]!;
        entries.push({
          field,
          layer: this.#ints[at + 1]!,
          name: field === 'named' ? this.#name(name, this.#ints[at + 3]!) : name,
          tensor: this.#tensor(op, at + 4),
        });
      }
      return { entries, traced: (this.#ints[start + 1]! & 1) !== 0, number: this.#doubles[start / 2 + 2]! };
    } finally {
      this.#native.freeResult(result);
    }
  }
}
