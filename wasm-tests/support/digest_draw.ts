/**
 * Draws and records the random forwards of suites/bits.ts, like native-tests/digest/draw.hpp. Change both together.
 * Each draw is a separate statement, so the order of lines is the order of draws. A draw is skipped only if the whole
 * tensor, mask or list is absent.
 */
import { type AttentionOptions, type Mask, type Tensor, traceNames } from 'attn';
import type { Generator } from './generator.ts';
import { product, slice } from './tensors.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };
type Dims = readonly number[];

export interface Masks {
  readonly mask?: Mask;
  readonly keyPaddingMask?: Mask;
}

/** A random call. Inputs, masks and results begin with the batch unless that is 0, so one row can be run alone. */
export interface Call {
  batch: number;
  /**
   * With dropout only the first row equals a batch of one, because random numbers depend on the position in the batch.
   */
  dropping: boolean;
  /** Weights: hashed, but without a batch dimension. */
  constants: readonly Tensor[];
  inputs: readonly Tensor[];
  masks: Masks;
  run(inputs: readonly Tensor[], masks: Masks): Tensor[];
  /** Converts a layer's weights to int8. */
  quantize?(): void;
  dispose?(): void;
}

const wordsOf = (t: Tensor): Uint32Array => new Uint32Array(t.data.buffer, t.data.byteOffset, t.data.length);

/** All NaNs count as equal, because signs and payloads differ between engines. */
const canonical = (word: number): number => ((word & 0x7fffffff) > 0x7f800000 ? 0x7fc00000 : word);

/** FNV-1a over 32-bit words; each tensor is preceded by its number of elements. */
export class Hash {
  #h = 0x811c9dc5;
  add(t: Tensor): void {
    const words = wordsOf(t);
    let h = Math.imul(this.#h ^ words.length, 0x01000193);
    for (let i = 0; i < words.length; i++) h = Math.imul(h ^ canonical(words[i]), 0x01000193);
    this.#h = h;
  }
  text(): string {
    return ((this.#h ^ (this.#h >>> 15)) >>> 0).toString(16).padStart(8, '0');
  }
}

const rowOf = (t: Tensor, at: number): Tensor => slice(t, 0, at, at + 1);

/** A mask has a row per batch entry only if its rank is high enough and the dimension is not 1. */
function rowOfMask(mask: Mask | undefined, leastRank: number, at: number): Mask | undefined {
  if (!mask || mask.dims.length < leastRank || mask.dims[0] === 1) return mask;
  const size = product(mask.dims.slice(1));
  return { kind: mask.kind, data: mask.data.slice(at * size, (at + 1) * size), dims: [1, ...mask.dims.slice(1)] };
}

/** Checks that x, a batch of one, equals row `at` of y bit for bit. */
function isRow(x: Tensor, y: Tensor, at: number): boolean {
  const [a, b] = [wordsOf(x), wordsOf(y)];
  const start = at * a.length;
  if (a.length * y.dims[0] !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (canonical(a[i]) !== canonical(b[start + i])) return false;
  return true;
}

/** Draws whether a call is large enough for several threads; rare because of the time. */
export const large = (g: Generator): boolean => g.oneIn(6);

/** 1 to `most`, or rarely 0. */
export function length(g: Generator, most: number): number {
  const none = g.oneIn(32);
  const n = g.below(most);
  return none ? 0 : n + 1;
}

export const rows = (g: Generator, isLarge: boolean): number => (isLarge ? 16 + length(g, 48) : length(g, 14));

export const batch = (g: Generator): number => length(g, 3);

export function sizes(g: Generator, rank: number, most: number): number[] {
  const out: number[] = [];
  for (let i = 0; i < rank; i++) out.push(1 + g.below(most));
  return out;
}

export function seed(g: Generator): number {
  const low = g.next();
  const high = g.below(2 ** 20);
  const wide = g.oneIn(4);
  return wide ? high * 2 ** 32 + low : low;
}

export const probability = (g: Generator): number => g.below(10) / 10;

const specials = [NaN, Infinity, -Infinity, -0, 2 ** -149, 3e38];

/** Draws numbers in ±factor, ±2·factor or ±4·factor; one tensor in 16 has a special value. */
export function values(g: Generator, dims: Dims, factor: number): Tensor {
  const data = new Float32Array(product(dims));
  const scale = factor * 2 ** g.below(3);
  for (let i = 0; i < data.length; i++) data[i] = g.unit() * scale;
  const special = g.oneIn(16);
  if (special && data.length > 0) {
    const at = g.below(data.length);
    data[at] = g.pick(specials);
  }
  return { data, dims };
}

/** Draws a mask that blocks one in `often`. */
function maskValues(g: Generator, kind: Mask['kind'], dims: Dims, often: number): Mask {
  const data = kind === 'additive' ? new Float32Array(product(dims)) : new Uint8Array(product(dims));
  for (let i = 0; i < data.length; i++) {
    const blocked = g.oneIn(often);
    const added = g.unit() * 2;
    if (kind === 'additive') data[i] = blocked ? -Infinity : added;
    else data[i] = blocked === (kind === 'block') ? 1 : 0;
  }
  return { kind, data, dims };
}

const maskKinds = ['attend', 'block', 'additive'] as const;

/** Draws an optional mask and key padding mask for scores (B,H,L,S); for unbatched inputs the latter has dims (S). */
export function masks(g: Generator, B: number, H: number, L: number, S: number, batched: boolean): Masks {
  const out: Writable<Masks> = {};
  const kind = g.below(5);
  const form = g.below(4);
  const b = g.oneIn(2) ? B : 1;
  const h = g.oneIn(2) ? H : 1;
  const l = g.oneIn(2) ? L : 1;
  const often = 2 + g.below(8);
  if (kind < 3) {
    const forms = [[S], [l, S], [b, l, S], [b, h, l, S]];
    out.mask = maskValues(g, maskKinds[kind], forms[form], often);
  }
  const paddingKind = g.below(9);
  const padded = g.oneIn(4) ? 1 : B;
  if (paddingKind < 3) out.keyPaddingMask = maskValues(g, maskKinds[paddingKind], batched ? [padded, S] : [S], 5);
  return out;
}

/** Draws names to trace, or all except weighted_values. */
export function trace<Name extends string>(g: Generator, everything: boolean, names: readonly Name[]): Name[] | undefined {
  return everything ? undefined : names.filter(() => g.oneIn(4));
}

export const policies = ['zero', 'nan', 'uniform'] as const;

/** Draws all options of attention except masks. */
export function attentionOptions(g: Generator, names: readonly Exclude<AttentionOptions['trace'], boolean | undefined>[number][]): AttentionOptions {
  const out: Writable<AttentionOptions> = {};
  out.isCausal = g.oneIn(3);
  out.fullyMasked = g.pick(policies);
  const hasScale = g.oneIn(4);
  const scale = g.unit();
  if (hasScale) out.scale = scale;
  const hasDropout = g.oneIn(6);
  const dropout = probability(g);
  if (hasDropout) out.dropout = dropout;
  const hasSeed = g.oneIn(4);
  const drawn = seed(g);
  if (hasSeed) out.seed = drawn;
  out.needWeights = g.oneIn(2);
  out.averageWeights = g.oneIn(2);
  const traced = g.below(10);
  if (traced < 2) out.trace = trace(g, traced === 0, names) ?? true;
  return out;
}

/** Records the call; returns false if one batch row run alone differs. */
export function record(g: Generator, hash: Hash, call: Call): boolean {
  for (const t of call.constants) hash.add(t);
  const results = call.run(call.inputs, call.masks);
  for (const t of results) hash.add(t);

  const drawn = g.below(call.batch);
  if (call.batch < 2) return true;
  const at = call.dropping ? 0 : drawn;
  const alone = call.run(
    call.inputs.map((t) => rowOf(t, at)),
    { mask: rowOfMask(call.masks.mask, 3, at), keyPaddingMask: rowOfMask(call.masks.keyPaddingMask, 2, at) },
  );
  return alone.length === results.length && alone.every((t, i) => isRow(t, results[i], at));
}

export const functionTraces = traceNames.filter((name) => name !== 'merged' && !name.endsWith('_proj'));

export const activations = ['relu', 'gelu', 'gelu_tanh', 'silu', 'tanh', 'sigmoid', 'identity', 'mish', 'quick_gelu'] as const;

export const newCall = (): Call => ({ batch: 0, dropping: false, constants: [], inputs: [], masks: {}, run: () => [] });

/** Dims of (B,H,rows,width) for rank 4, 3 (without H) or 2. */
export function inputDims(rank: number, B: number, H: number, rows: number, width: number): number[] {
  if (rank === 4) return [B, H, rows, width];
  return rank === 3 ? [B, rows, width] : [rows, width];
}
