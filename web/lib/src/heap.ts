/**
 * The way into the WASM heap and back. All inputs of a call lie in one allocation, descriptors first; results are
 * copied out, so no view of the heap ever leaves this file.
 */
import type { Dims, Tensor } from './attn.js';
import { arrayLength, type Checked, failDetached } from './arrays.js';
import { AttnError } from './error.js';
import { descriptorInts, entryInts, type NamedTensors, type Native, type Pointer } from './native.js';

const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
const align = 64;
const alignUp = (bytes: number) => Math.ceil(bytes / align) * align;

export class Heap {
  readonly #native: Native;
  readonly #memory: WebAssembly.Memory;
  #bytes: Uint8Array;
  #ints: Int32Array;
  #floats: Float32Array;

  constructor(native: Native) {
    this.#native = native;
    this.#memory = native.wasmMemory;
    const { buffer } = this.#memory;
    this.#bytes = new Uint8Array(buffer);
    this.#ints = new Int32Array(buffer);
    this.#floats = new Float32Array(buffer);
  }

  /** Growing detaches the views, and writes to a detached view are lost silently: to be called after whatever may allocate. */
  #retake(): void {
    const { buffer } = this.#memory;
    if (this.#bytes.buffer === buffer) return;
    this.#bytes = new Uint8Array(buffer);
    this.#ints = new Int32Array(buffer);
    this.#floats = new Float32Array(buffer);
  }

  #allocate(op: string, bytes: number): Pointer {
    // Embind would wrap what 32 bits do not hold.
    if (bytes > 0xffff_0000) throw new AttnError('MEMORY', `${op}: the inputs need ${bytes} bytes, expected less than 4 GiB`, { op, got: bytes });
    const base = this.#native.reserve(bytes) >>> 0;
    this.#retake();
    return base;
  }

  #write(base: Pointer, index: number, input: Checked<Float32Array | Uint8Array>, data: Pointer): Pointer {
    const at = base / 4 + index * descriptorInts;
    this.#ints[at] = data;
    this.#ints[at + 1] = input.dims.length;
    for (let axis = 0; axis < input.dims.length; ++axis) this.#ints[at + 2 + axis] = input.dims[axis]!;
    if (input.size > 0) {
      if (input.width === 4) this.#floats.set(input.data, data / 4);
      else this.#bytes.set(input.data, data);
    }
    return base + 4 * index * descriptorInts;
  }

  /** Calls body with the address of each input's descriptor, 0 for those that are undefined, and that of `words` free words. Freed afterwards. */
  withInputs<T>(
    op: string,
    inputs: readonly (Checked<Float32Array | Uint8Array> | undefined)[],
    body: (pointers: Pointer[], words: Pointer) => T,
    words = 0,
  ): T {
    const offsets: number[] = [];
    const descriptors = 4 * descriptorInts * inputs.length;
    let total = alignUp(descriptors + 4 * words);
    for (const input of inputs) {
      offsets.push(total);
      if (!input) continue;
      // A getter among later arguments may have taken the buffer away since it was checked.
      if (arrayLength(input.data) !== input.size) failDetached(op, input.argument, input.size);
      total += alignUp(input.size * input.width);
    }
    const base = this.#allocate(op, total);
    try {
      const pointers = inputs.map((input, i) => (input ? this.#write(base, i, input, base + offsets[i]!) : 0));
      return body(pointers, base + descriptors);
    } finally {
      this.#native.release(base);
    }
  }

  /** Options as words in the order of fields; `scale` is the one that is no integer. */
  writeOptions<Field extends string>(at: Pointer, fields: readonly Field[], options: Readonly<Record<Field, number | boolean>>): Pointer {
    fields.forEach((field, i) => {
      (field === 'scale' ? this.#floats : this.#ints)[at / 4 + i] = Number(options[field]);
    });
    return at;
  }

  withBytes<T>(op: string, bytes: Uint8Array, body: (pointer: Pointer) => T): T {
    const base = this.#allocate(op, Math.max(bytes.length, 1));
    try {
      this.#bytes.set(bytes, base);
      return body(base);
    } finally {
      this.#native.release(base);
    }
  }

  #dims(descriptor: number): number[] {
    const rank = this.#ints[descriptor + 1]!;
    const dims: number[] = [];
    for (let axis = 0; axis < rank; ++axis) dims.push(this.#ints[descriptor + 2 + axis]!);
    return dims;
  }

  /** A copy of the tensor whose descriptor is at this int. */
  #tensor(descriptor: number): Tensor {
    const dims = this.#dims(descriptor);
    let size = 1;
    for (const dim of dims) size *= dim;
    const data = (this.#ints[descriptor]! >>> 0) / 4;
    try {
      // slice, not subarray: a copy on a buffer of its own, which is not shared in threads builds either.
      return { data: this.#floats.slice(data, data + size), dims };
    } catch (cause) {
      throw new AttnError('MEMORY', `the engine has no ${4 * size} bytes for a result`, { got: 4 * size }, { cause });
    }
  }

  /** Copies a result's tensors out, by slot, and frees it. */
  takeResult(result: Pointer): Map<number, Tensor> {
    this.#retake();
    try {
      const start = (result >>> 0) / 4;
      const tensors = new Map<number, Tensor>();
      for (let i = 0; i < this.#ints[start]!; ++i) {
        const entry = start + 1 + i * entryInts;
        tensors.set(this.#ints[entry]!, this.#tensor(entry + 1));
      }
      return tensors;
    } finally {
      this.#native.freeResult(result);
    }
  }

  /** Copies all tensors out and deletes their holder. */
  takeTensors(named: NamedTensors): Map<string, Tensor> {
    this.#retake();
    return this.#take(named, (descriptor) => this.#tensor(descriptor));
  }

  takeShapes(named: NamedTensors): Map<string, Dims> {
    this.#retake();
    return this.#take(named, (descriptor) => this.#dims(descriptor));
  }

  #take<T>(named: NamedTensors, read: (descriptor: number) => T): Map<string, T> {
    try {
      const all = new Map<string, T>();
      for (let i = 0; i < named.size(); ++i) {
        // Not Embind's string, which loses a byte order mark at the start.
        const start = named.nameAddress(i) >>> 0;
        const name = decoder.decode(this.#bytes.slice(start, start + named.nameSize(i)));
        const descriptor = (named.tensor(i) >>> 0) / 4;
        this.#retake();
        all.set(name, read(descriptor));
      }
      return all;
    } finally {
      named.delete();
    }
  }
}
