/**
 * Vectors of length 1, and the cosine of each with a query. The vectors are the value projection W (N,E) of attention
 * layers, and a query x is a sequence of one token, whose only weight is 1: the output is W x, computed by the kernels
 * of linear maps.
 */
import type { Int8Tensor, StateDict, Tensor } from '../attn.js';
import { fail } from '../args/error.js';

type Awaitable<T> = T | PromiseLike<T>;

interface Layer {
  loadStateDict(state: StateDict, options: { strict: boolean }): Awaitable<void>;
  stateDict(): Awaitable<ReadonlyMap<string, Tensor>>;
  int8StateDict(): Awaitable<ReadonlyMap<string, Int8Tensor | Tensor>>;
  quantize(): Awaitable<void>;
  forward(query: Tensor, key: Tensor, value: Tensor): Awaitable<{ output: Tensor }>;
  dispose(): Awaitable<void>;
}

/** Common to an instance of attn and its counterpart in attn/worker. */
export interface Instance {
  readonly MultiHeadAttention: new (options: object) => Awaitable<Layer>;
}

export type Kind = 'int8' | 'float32';

/** Rows (count,E). int8: row i is scales[i] · data[i]. */
export interface Rows {
  readonly data: Int8Array | Float32Array;
  readonly scales: Float32Array;
}

interface Segment {
  count: number;
  /** Undefined once the segment is full and its layer has the rows. */
  rows: Rows | undefined;
  layer: Layer | undefined;
}

/** Bytes of float32 that the conversion of a segment takes, a few times. */
const segmentBytes = 12 * 2 ** 20;
const name = 'v_proj.weight';

/** Scales in place. A zero vector stays zero. */
export function normalize(op: string, argument: string, row: Float32Array): void {
  let square = 0;
  for (const value of row) square += value * value;
  if (!Number.isFinite(square)) fail('OUT_OF_RANGE', op, argument, 'has a vector with NaN or infinity', 'finite numbers');
  const factor = square === 0 ? 0 : 1 / Math.sqrt(square);
  for (let e = 0; e < row.length; ++e) row[e]! *= factor;
}

/** Rounds as the module does, which gets the same numbers from scale · data: scale = max|w| / 127. */
export function quantized(rows: Float32Array, width: number): Rows {
  const count = rows.length / width;
  const [data, scales] = [new Int8Array(rows.length), new Float32Array(count)];
  for (let i = 0; i < count; ++i) {
    const row = rows.subarray(i * width, (i + 1) * width);
    let most = 0;
    for (const value of row) most = Math.max(most, Math.abs(value));
    const scale = Math.fround(most / 127);
    scales[i] = scale;
    if (scale > 0) for (let e = 0; e < width; ++e) data[i * width + e] = Math.max(-127, Math.min(127, Math.round(row[e]! / scale)));
  }
  return { data, scales };
}

/** Finds the first row that is neither of length 1 nor zero, or −1. */
export function oddRow({ data, scales }: Rows, width: number): number {
  for (let i = 0; i * width < data.length; ++i) {
    let square = 0;
    for (let e = i * width; e < (i + 1) * width; ++e) square += data[e]! * data[e]!;
    if (data instanceof Int8Array) square *= scales[i]! ** 2;
    if (!(Math.abs(square - 1) < 0.05) && square !== 0) return i;
  }
  return -1;
}

export function dequantized({ data, scales }: Rows, width: number): Float32Array {
  if (data instanceof Float32Array) return data;
  const values = new Float32Array(data.length);
  for (let i = 0; i < scales.length; ++i) for (let e = i * width; e < (i + 1) * width; ++e) values[e] = data[e]! * scales[i]!;
  return values;
}

const emptyRows = (kind: Kind, count: number, width: number): Rows => ({
  data: kind === 'int8' ? new Int8Array(count * width) : new Float32Array(count * width),
  scales: new Float32Array(kind === 'int8' ? count : 0),
});

export class Vectors {
  readonly width: number;
  readonly kind: Kind;
  /** Without one, the rows are multiplied here. */
  readonly #instance: Instance | undefined;
  readonly #capacity: number;
  #segments: Segment[] = [];

  constructor(instance: Instance | undefined, width: number, kind: Kind) {
    this.#instance = instance;
    this.width = width;
    this.kind = kind;
    this.#capacity = Math.max(256, Math.floor(segmentBytes / (4 * width)));
  }

  get hasInstance(): boolean {
    return this.#instance !== undefined;
  }

  get count(): number {
    return this.#segments.reduce((sum, { count }) => sum + count, 0);
  }

  /** Adds rows of length 1 or zero. Their layers are made by the next scan. */
  append({ data, scales }: Rows): void {
    const [E, all] = [this.width, data.length / this.width];
    for (let from = 0; from < all;) {
      let last = this.#segments.at(-1);
      if (!last || last.count === this.#capacity) this.#segments.push((last = { count: 0, rows: emptyRows(this.kind, 0, E), layer: undefined }));
      const added = Math.min(this.#capacity - last.count, all - from);
      const rows = emptyRows(this.kind, last.count + added, E);
      rows.data.set(last.rows!.data);
      rows.data.set(data.subarray(from * E, (from + added) * E), last.count * E);
      rows.scales.set(last.rows!.scales);
      if (this.kind === 'int8') rows.scales.set(scales.subarray(from, from + added), last.count);
      this.#free(last);
      last.rows = rows;
      last.count += added;
      from += added;
    }
  }

  /** Returns the cosine of each row with a query of length 1. */
  async scan(query: Float32Array): Promise<Float32Array> {
    if (!this.#instance) return this.#scanHere(query);
    const one: Tensor = { data: new Float32Array(1), dims: [1, 1] };
    const value: Tensor = { data: query, dims: [1, this.width] };
    const cosines = new Float32Array(this.count);
    const layers: Layer[] = [];
    for (const segment of this.#segments) layers.push(await this.#layerOf(segment));
    // In a worker the calls follow each other without a pause.
    const outputs = await Promise.all(layers.map(async (layer) => (await layer.forward(one, one, value)).output));
    let at = 0;
    for (const output of outputs) {
      cosines.set(output.data, at);
      at += output.data.length;
    }
    return cosines;
  }

  #scanHere(query: Float32Array): Float32Array {
    const cosines = new Float32Array(this.count);
    let at = 0;
    for (const { count, rows } of this.#segments) {
      const { data, scales } = rows!;
      for (let i = 0; i < count; ++i) {
        let sum = 0;
        for (let e = 0, from = i * this.width; e < this.width; ++e) sum += data[from + e]! * query[e]!;
        cosines[at++] = this.kind === 'int8' ? sum * scales[i]! : sum;
      }
    }
    return cosines;
  }

  /** `wanted` has to ascend. */
  async rows(wanted: ArrayLike<number>): Promise<Rows> {
    const E = this.width;
    const result = emptyRows(this.kind, wanted.length, E);
    let [first, i] = [0, 0];
    for (const segment of this.#segments) {
      const end = first + segment.count;
      if (i < wanted.length && wanted[i]! < end) {
        const { data, scales } = segment.rows ?? (await this.#read(segment.layer!));
        for (; i < wanted.length && wanted[i]! < end; ++i) {
          const row = wanted[i]! - first;
          result.data.set(data.subarray(row * E, (row + 1) * E), i * E);
          if (this.kind === 'int8') result.scales[i] = scales[row]!;
        }
      }
      first = end;
    }
    return result;
  }

  /** `wanted`: the rows to keep. */
  async retain(wanted: ArrayLike<number>): Promise<void> {
    const rows = await this.rows(wanted);
    this.dispose();
    this.append(rows);
  }

  dispose(): void {
    for (const segment of this.#segments) this.#free(segment);
    this.#segments = [];
  }

  #free(segment: Segment): void {
    void segment.layer?.dispose();
    segment.layer = undefined;
  }

  async #layerOf(segment: Segment): Promise<Layer> {
    if (segment.layer) return segment.layer;
    const { count, rows } = segment;
    const sizes = { embedDim: 1, numHeads: 1, headDim: 1, valueHeadDim: count, vdim: this.width, bias: false, outProj: false };
    const layer = await new this.#instance!.MultiHeadAttention(sizes);
    try {
      await layer.loadStateDict({ [name]: { data: dequantized(rows!, this.width), dims: [count, this.width] } }, { strict: false });
      if (this.kind === 'int8') await layer.quantize();
    } catch (error) {
      void layer.dispose();
      throw error;
    }
    segment.layer = layer;
    if (count === this.#capacity) segment.rows = undefined;
    return layer;
  }

  async #read(layer: Layer): Promise<Rows> {
    if (this.kind === 'float32') return { data: (await layer.stateDict()).get(name)!.data, scales: new Float32Array(0) };
    const { data, scale } = (await layer.int8StateDict()).get(name) as Int8Tensor;
    return { data, scales: scale };
  }
}
