/// <reference lib="esnext.disposable" />
/**
 * Transformer attention on typed arrays. Tensors are row-major, batch first, float32.
 *
 * Dimension letters: `B` batch, `H` heads, `L` query length, `S` key length, `E` model width, `D` head width,
 * `Dv` value head width. Whatever fails, fails with an {@link AttnError} before anything is written, and the
 * instance stays usable.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
 * const { output, weights } = attn.scaledDotProductAttention(x, x, x, { needWeights: true });
 * console.log(output.dims, weights?.dims); // [3, 2] [3, 3]
 * attn.dispose();
 * ```
 * @packageDocumentation
 */

import type { BackwardResult, Gradients, ModelGradients } from './gradients.js';
import type { AbortSignal, Blob, Bytes, Fetch, Response, URL, WebAssemblyModule } from './host.js';
import type { BatchOptions, PromptOptions, TextTasks } from './tasks.js';

export type {
  BackwardResult,
  FineTuneExample,
  FineTuneOptions,
  FineTuneProgress,
  FineTuneResult,
  Loss,
  ModelGradients,
  Optimizer,
  ParameterGroup,
  TextAttribution,
  TextModelGradients,
} from './gradients.js';
export type {
  Answer,
  AnswerOptions,
  BatchOptions,
  Entity,
  FilledMask,
  FillMaskOptions,
  PromptOptions,
  RankedDocument,
  Task,
  TextTasks,
} from './tasks.js';

/** Sizes of a tensor, outermost first: whole numbers from 0 to 2³¹ − 1, at most 8 of them. */
export type Dims = readonly number[];

/**
 * A dense row-major array: `data.length` is the product of `dims`. Inputs are copied in and results are copied out, so
 * a result stays valid whatever the instance does later. `data` may come from another realm, be a view into a larger
 * buffer, or lie on a SharedArrayBuffer (it is copied first and checked after).
 */
export interface Tensor {
  readonly data: Float32Array;
  readonly dims: Dims;
}

/**
 * Which keys a query may see. A bare array is refused (`MASK`): its polarity would be a guess.
 *
 * @example
 * ```ts
 * // Two sentences padded to three tokens; the second one has a single token.
 * const keyPaddingMask = { kind: 'attend', data: new Uint8Array([1, 1, 1, 1, 0, 0]), dims: [2, 3] } as const;
 * ```
 */
export interface Mask {
  /**
   * `'attend'`: non-zero may attend (torch's `scaled_dot_product_attention`, ONNX, Hugging Face).
   * `'block'`: non-zero is blocked (torch's `nn.MultiheadAttention`).
   * `'additive'`: added to the scaled scores, −Infinity blocks; a Float32Array without NaN and +Infinity.
   */
  readonly kind: 'attend' | 'block' | 'additive';
  readonly data: Uint8Array | Float32Array;
  /** `[S]`, `[L,S]`, `[B,L,S]` or `[B,H,L,S]`; any of B, H, L may be 1. A key padding mask has `[B,S]`. */
  readonly dims: Dims;
}

/** How to load. Every value may be left out or `undefined`; an unknown name is an `ARGUMENT` error. */
export interface LoadOptions {
  /**
   * Where the .wasm is, or the thing itself. Default: beside the package's own module, never a CDN. In Node a string
   * without a scheme is a path. Given bytes say themselves which build they are; a `variant` that contradicts them is a
   * `CONFIG` error. Bytes of a threads build need what threads need, whatever `threads` says.
   */
  wasm?: string | URL | ArrayBuffer | Uint8Array | Response | WebAssemblyModule | undefined;
  /**
   * Default `'auto'`: relaxed SIMD where the engine accepts it, else fixed-width SIMD. A variant asked for that the
   * engine refuses is `ENVIRONMENT`. `'simd'` gives the same bits on every machine; `'relaxed'` uses fused
   * multiply-adds, is faster, and may differ in the last bits between machines.
   */
  variant?: 'auto' | 'simd' | 'relaxed' | undefined;
  /**
   * Threads that compute, the calling one included; 1 to 64, default 1. `'auto'` is min(4, cores / 2). More than one needs,
   * in a browser, cross-origin isolation and a worker (the main thread may not wait); where that is missing one thread
   * is used and `info.notes` says why. The number never changes a bit of a result.
   */
  threads?: number | 'auto' | undefined;
  /** Bytes that the WASM heap may grow to. Whatever would need more fails with `MEMORY` before it starts. Default: as much as the engine gives, 4 GiB at most. */
  maximumMemory?: number | undefined;
  /**
   * Whether to take the build that computes gradients: what trains, each `backward`, losses and optimisers. In Node that is the default; elsewhere
   * it is not, and `true` loads other files, so a page that does not train is not larger for it. Without it all of that throws `ENVIRONMENT`.
   * `attn/service-worker` is without it.
   */
  training?: boolean | undefined;
  /** Aborting, at any moment, rejects with `ABORTED`, named `AbortError`; `cause` is the signal's reason. */
  signal?: AbortSignal | undefined;
  /** Phases are `'download'`, `'compile'`, `'start'`. `loaded` and `total` are bytes; `total` is missing where the server does not tell. */
  onProgress?: ((p: { phase: string; loaded: number; total?: number }) => void) | undefined;
}

/** What is running. A snapshot: read `attn.info` again for new heap figures. */
export interface RuntimeInfo {
  readonly version: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  /** Whether it is the build that computes gradients. */
  readonly training: boolean;
  /**
   * In words: why the variant or thread count is not what `'auto'` would like best; and how products of int8 weights are made, such as
   * `'int8: 16-bit pairs'` or, where a look at the engine's relaxed dot product said that it is exact, `'int8: relaxed dot, unsigned'`.
   */
  readonly notes: readonly string[];
  /** Bytes of WASM heap in use now, and the most so far. */
  readonly heap: { readonly used: number; readonly peak: number };
}

/**
 * Starts one instance. Several loads give independent instances.
 *
 * @throws AttnError `ARGUMENT`, `CONFIG` for wrong options; `NETWORK` when the .wasm cannot be fetched; `FORMAT` when what
 * came is not attn's WebAssembly (HTML, a Git LFS pointer, truncated); `ENVIRONMENT` when the engine lacks WebAssembly
 * SIMD or refuses the variant asked for; `MEMORY` when the memory cannot be had; `ABORTED`.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * using attn = await load({ variant: 'simd', onProgress: ({ phase, loaded }) => console.log(phase, loaded) });
 * console.log(attn.info.variant, attn.info.notes);
 * ```
 */
export function load(options?: LoadOptions): Promise<Attn>;

/** Options of an attention call. Every value may be left out or `undefined`; an unknown name is an `ARGUMENT` error. */
export interface AttentionOptions {
  /** Combines with `keyPaddingMask` and `isCausal`: a key is seen when all allow it. Blocked keys are skipped, so NaN there does not leak. */
  mask?: Mask | undefined;
  /** dims `[B,S]`, or `[S]` for inputs without a batch. */
  keyPaddingMask?: Mask | undefined;
  /** Query i sees keys 0 … i + queryOffset: aligned at the top left where that is 0, also when L ≠ S. Default false. */
  isCausal?: boolean | undefined;
  /** Factor on the scores; a finite number, default 1/√D, for additive and general attention 1. 1 gives plain dot-product attention. */
  scale?: number | undefined;
  /**
   * Probability of a weight to become 0, from 0 up to, not including, 1; the others are divided by 1 − dropout (inverted dropout).
   * Default 0; a layer's own is used in training only. With `needWeights` the weights are those after it.
   */
  dropout?: number | undefined;
  /**
   * Of the dropout: a whole number from 0 to 2⁵³ − 1. Same seed, same result, everywhere. Default 0; a layer in training goes on with
   * that of `train()`, unless one is given here.
   */
  seed?: number | undefined;
  /** Return the attention weights too. Default false. */
  needWeights?: boolean | undefined;
  /** Default false: weights (B,H,L,S). true: their mean over the heads, (B,L,S); inputs without heads have none to average. */
  averageWeights?: boolean | undefined;
  /** Query heads may be a multiple of key/value heads, each of which is shared. Default false. */
  enableGqa?: boolean | undefined;
  /**
   * What a query gives that has no key left. `'zero'` (default): zero output and weights. `'nan'`: NaN.
   * `'uniform'`: 1/S on all S keys, masked ones included, as a fill with −1e9 would.
   */
  fullyMasked?: 'zero' | 'nan' | 'uniform' | undefined;
  /** Intermediates to return: `true` for every one but `weighted_values`, or the names wanted. Default none. */
  trace?: boolean | readonly TraceName[] | undefined;
  /**
   * c: scores become c · tanh(score / c), so that none is beyond ±c; after the scale and before masks (Gemma 2, Gemma Team 2024, section 2; ONNX's
   * Attention has the same order). 0, the default, is none; else a finite number above, `CONFIG` below 2⁻¹²⁶.
   */
  softcap?: number | undefined;
  /**
   * `[left, right]`: query i sees keys i + queryOffset − left … i + queryOffset + right; −1: no end on that side, the default. Whole numbers, `CONFIG`
   * below −1. Combines with masks and `isCausal`: a key is seen when all allow it. (FlashAttention's `window_size`; Beltagy et al. 2020.)
   */
  window?: readonly [number, number] | undefined;
  /**
   * Query i stands at position i + queryOffset, key j at j: for `isCausal`, `window` and a layer's rotary positions. S − L aligns the last query with
   * the last key, causality from the bottom right. A whole number, also below 0; default the past's length, else 0.
   */
  queryOffset?: number | undefined;
  /**
   * Keys and values of earlier calls (a KV cache), `key` (B,Hkv,P,D) and `value` (B,Hkv,P,Dv), without B or Hkv where the call has none: an earlier
   * result's `present`. In a layer they are projected, and turned by its rotary positions, already. They come before the new ones: masks, weights and
   * S count them (S = P + new), queries stand behind them, and causal rows one by one give what all of them at once give, bit for bit.
   * `SHAPE` where they do not fit; `UNSUPPORTED` in a layer with `addBiasKv` or `addZeroAttn`, whose own key comes last.
   */
  past?: { readonly key: Tensor; readonly value: Tensor } | undefined;
  /** Return past and new keys and values one after the other, as `present`. Default false; with a `past` they always are. */
  outputPresent?: boolean | undefined;
  /**
   * Of a layer: keep what its `backward` needs, copies of inputs and masks and what is inside, as forwards in train mode do. Default false.
   * `UNSUPPORTED` with a `past` and for an int8 layer. It takes the training build: `load({ training: true })`.
   */
  forBackward?: boolean | undefined;
}

/**
 * Names of an attention's intermediates, in the order they come up. Those that an operation does not have (a function has no
 * projections) are refused by name and left out of `true`. `addBiasKv` and `addZeroAttn` each add one key: S + 1, S + 2.
 *
 * - `q_proj`, `k_proj`, `v_proj` (B,L|S,H·D): the input projections, bias included
 * - `q`, `k`, `v` (B,H,L|S,D): the same, by head
 * - `scores` (B,H,L,S): q kᵀ · scale, through `softcap`, and with what a model adds by position: all that comes before masks, so that `masked_scores`
 *   is this and −Infinity, or what an additive mask adds
 * - `masked_scores` (B,H,L,S): with additive masks; −Infinity where a mask, causality or the window blocks
 * - `probabilities` (B,H,L,S): after softmax
 * - `weights` (B,H,L,S): after dropout too, what multiplies the values
 * - `weighted_values` (B,H,L,S,Dv): weight times value, before the sum
 * - `context` (B,H,L,Dv): the sums
 * - `merged` (B,L,H·Dv): heads side by side
 * - `output` (B,L,E): after the output projection
 */
export type TraceName =
  | 'q_proj'
  | 'k_proj'
  | 'v_proj'
  | 'q'
  | 'k'
  | 'v'
  | 'scores'
  | 'masked_scores'
  | 'probabilities'
  | 'weights'
  | 'weighted_values'
  | 'context'
  | 'merged'
  | 'output';

/** Lists every {@link TraceName} in the order of computation. */
export const traceNames: readonly TraceName[];

export interface AttentionResult {
  output: Tensor;
  /** Only when `needWeights` is true. */
  weights?: Tensor;
  /** Only when `trace` asks for something; holds the names asked for that the operation has. */
  trace?: { readonly [name in TraceName]?: Tensor };
  /** With `outputPresent` or a `past`: past and new keys (B,Hkv,S,D) and values (B,Hkv,S,Dv), to be the next call's `past`. */
  present?: { readonly key: Tensor; readonly value: Tensor };
}

/**
 * - `relu`: max(x, 0)
 * - `gelu`: x Φ(x) = x/2 · (1 + erf(x/√2)), Hendrycks & Gimpel 2016, the erf form; error at most 1e-6
 * - `gelu_tanh`: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))
 * - `silu`: x / (1 + exp(−x)), also called swish
 * - `tanh`, `sigmoid`: as their names say
 * - `identity`: x
 * - `mish`: x tanh(log(1 + exp(x))), Misra 2019
 * - `quick_gelu`: x / (1 + exp(−1.702 x))
 */
export type Activation = 'relu' | 'gelu' | 'gelu_tanh' | 'silu' | 'tanh' | 'sigmoid' | 'identity' | 'mish' | 'quick_gelu';

/** One running instance. Its functions need no `this`. */
export interface Attn extends Gradients {
  /** Version, variant, threads and heap. A fresh snapshot at every read. */
  readonly info: RuntimeInfo;

  /**
   * Runs that many multiply-adds in registers alone, on one thread: timed, they give the peak that GFLOP/s can be compared with,
   * at two operations each.
   *
   * @param multiplyAdds 1 to 10⁹; some 10⁸ take a few milliseconds
   * @param options `weights` (default `'float32'`): what is multiplied; `'int8'` as products with int8 weights are
   * @returns how many were run, a few more than asked for
   * @throws AttnError `OUT_OF_RANGE`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const start = performance.now();
   * const done = attn.peak(1e8);
   * console.log(`${((2e-6 * done) / (performance.now() - start)).toFixed(0)} GFLOP/s`);
   * ```
   */
  peak(multiplyAdds: number, options?: { weights?: 'float32' | 'int8' | undefined }): number;

  /**
   * softmax(softcap(q kᵀ · scale) + masks) v, Vaswani et al. 2017 eq. 1, torch's `F.scaled_dot_product_attention`.
   *
   * Masked keys are skipped, whatever they hold. Others count as in IEEE arithmetic: a weight below 2⁻¹²⁶ of its row's largest is 0, and
   * 0 times an infinite value is NaN, as in torch (with more than 1024 keys the infinity may come out, as it does in float64).
   *
   * @param query (..,L,D) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,D)
   * @param value (..,S,Dv); L ≠ S and D ≠ Dv are fine
   * @returns output (..,L,Dv); weights (..,L,S) when asked for; `present` with a `past`
   * @throws AttnError `SHAPE` when B, H, S or D disagree; `MASK`; `CONFIG`; `MEMORY` when the scores would not fit
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const q = { data: new Float32Array([1, 0, 2, 2, 2, 2, 2, 1, 3]), dims: [3, 3] };
   * const k = { data: new Float32Array([0, 1, 1, 4, 4, 0, 2, 3, 1]), dims: [3, 3] };
   * const v = { data: new Float32Array([1, 2, 3, 2, 8, 0, 2, 6, 3]), dims: [3, 3] };
   * const { output } = attn.scaledDotProductAttention(q, k, v, { scale: 1 });
   * console.log(output.data[0].toFixed(6)); // 1.936621
   * ```
   */
  scaledDotProductAttention(query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): AttentionResult;

  /**
   * softmax(softcap(score · scale) + masks) v with score_ij = scoreWeight · tanh(queryWeight q_i + keyWeight k_j + bias): Bahdanau et al. 2015,
   * appendix A.1.2.
   *
   * @param query (..,L,Dq) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,Dk)
   * @param value (..,S,Dv)
   * @param params `queryWeight` (A,Dq), `keyWeight` (A,Dk), `scoreWeight` (A), `bias` (A), default none
   * @param options as of {@link Attn.scaledDotProductAttention}; `scale` defaults to 1
   * @returns output (..,L,Dv); weights (..,L,S) when asked for
   * @throws AttnError `SHAPE` when widths, heads, batches or lengths disagree; `MASK`; `CONFIG`; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const identity = { data: new Float32Array([1, 0, 0, 1]), dims: [2, 2] };
   * const scoreWeight = { data: new Float32Array([1, -1]), dims: [2] };
   * const { output } = attn.additiveAttention(x, x, x, { queryWeight: identity, keyWeight: identity, scoreWeight });
   * console.log(output.dims); // [3, 2]
   * ```
   */
  additiveAttention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    params: { queryWeight: Tensor; keyWeight: Tensor; scoreWeight: Tensor; bias?: Tensor | undefined },
    options?: AttentionOptions,
  ): AttentionResult;

  /**
   * softmax(softcap(q weight kᵀ · scale) + masks) v: Luong et al. 2015, section 3.1, "general". With the identity as weight it is their "dot".
   *
   * @param query (..,L,Dq) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,Dk)
   * @param value (..,S,Dv)
   * @param params `weight` (Dq,Dk)
   * @param options as of {@link Attn.scaledDotProductAttention}; `scale` defaults to 1
   * @returns output (..,L,Dv); weights (..,L,S) when asked for
   * @throws AttnError `SHAPE` when widths, heads, batches or lengths disagree; `MASK`; `CONFIG`; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const weight = { data: new Float32Array([2, 0, 0, 2]), dims: [2, 2] };
   * console.log(attn.generalAttention(x, x, x, { weight }, { needWeights: true }).weights?.dims); // [3, 3]
   * ```
   */
  generalAttention(query: Tensor, key: Tensor, value: Tensor, params: { weight: Tensor }, options?: AttentionOptions): AttentionResult;

  /**
   * x Wᵀ + b, torch's `F.linear`.
   *
   * @param x (..,in)
   * @param weight (out,in)
   * @param bias (out); default none
   * @returns (..,out)
   * @throws AttnError `SHAPE` when the widths disagree
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 2]), dims: [1, 2] };
   * const weight = { data: new Float32Array([1, 1, 0, 3]), dims: [2, 2] };
   * console.log(attn.linear(x, weight).data); // 3, 6
   * ```
   */
  linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;

  /**
   * (x − mean) / √(variance + eps) · weight + bias over the last dimension, biased variance: Ba et al. 2016, torch's `F.layer_norm`.
   *
   * @param x (..,width)
   * @param weight (width); default 1
   * @param bias (width); default 0
   * @param eps above 0; default 1e-5
   * @returns the shape of x
   * @throws AttnError `SHAPE` when the widths disagree or x has rank 0; `CONFIG` for eps
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 3]), dims: [2] };
   * console.log(attn.layerNorm(x).data[1].toFixed(4)); // 1.0000
   * ```
   */
  layerNorm(x: Tensor, weight?: Tensor, bias?: Tensor, eps?: number): Tensor;

  /**
   * x / √(mean of x² + eps) · weight over the last dimension: Zhang & Sennrich 2019, torch's `F.rms_norm`.
   *
   * @param x (..,width)
   * @param weight (width); default 1
   * @param eps above 0; default 2⁻²³, torch's
   * @returns the shape of x
   * @throws AttnError `SHAPE` when the widths disagree or x has rank 0; `CONFIG` for eps
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([3, 3]), dims: [2] };
   * console.log(attn.rmsNorm(x).data); // 1, 1
   * ```
   */
  rmsNorm(x: Tensor, weight?: Tensor, eps?: number): Tensor;

  /**
   * exp(x − max) / Σ exp(x − max) along one dimension, torch's `F.softmax`.
   *
   * @param x rank 1 to 8
   * @param dim which dimension, negative from the end; default −1
   * @returns the shape of x
   * @throws AttnError `OUT_OF_RANGE` when there is no such dimension
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(attn.softmax({ data: new Float32Array([0, 0]), dims: [2] }).data); // 0.5, 0.5
   * ```
   */
  softmax(x: Tensor, dim?: number): Tensor;

  /**
   * A function of each element by itself, torch's `F.relu`, `F.gelu` and so on.
   *
   * @param x any rank
   * @param name see {@link Activation}
   * @returns the shape of x; at ±Infinity and NaN as in torch
   * @throws AttnError `CONFIG` for another name
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(attn.activation({ data: new Float32Array([-1, 2]), dims: [2] }, 'relu').data); // 0, 2
   * ```
   */
  activation(x: Tensor, name: Activation): Tensor;

  /**
   * PE(pos, 2i) = sin(pos / 10000^(2i / width)), PE(pos, 2i + 1) = cos of the same: Vaswani et al. 2017 section 3.5. To be added to
   * embeddings. An odd width ends with a sine.
   *
   * @param length positions from 0
   * @param width columns
   * @returns (length,width)
   * @throws AttnError `ARGUMENT` for what is no whole number or negative; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(attn.sinusoidalPositions(2, 4).data); // 0, 1, 0, 1, 0.841…, 0.540…, 0.009…, 0.999…
   * ```
   */
  sinusoidalPositions(length: number, width: number): Tensor;

  /**
   * Turns each pair of columns of row l by the angle (offset + l) · theta^(−2i / D), i < D/2: RoFormer, Su et al. 2021. A product of a
   * query and a key then depends on the distance of their positions alone.
   *
   * @param x queries or keys by head (..,L,D), D even
   * @param options `theta`, the base of the wavelengths, default 10000; `offset`, the position of row 0, default 0; `interleaved`
   * false (default) pairs column i with i + D/2 (GPT-NeoX, Hugging Face), true 2i with 2i + 1 (the paper)
   * @returns the shape of x
   * @throws AttnError `SHAPE` for a rank below 2 or an odd D; `CONFIG` for theta or offset
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 1, 0]), dims: [1, 1, 2, 2] };
   * console.log(attn.applyRotary(x).data); // 1, 0, cos 1, sin 1
   * ```
   */
  applyRotary(x: Tensor, options?: { theta?: number | undefined; offset?: number | undefined; interleaved?: boolean | undefined }): Tensor;

  /**
   * −slope_h · |i − j|, data of an additive mask: ALiBi, Press et al. 2022, with their slopes also for head counts that are no
   * power of two.
   *
   * @param numHeads H, 1 or more
   * @param length L
   * @param keyLength S; default L
   * @returns (1,H,L,S)
   * @throws AttnError `CONFIG` for numHeads; `ARGUMENT` for a negative length; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array(2 * 3 * 4).fill(1), dims: [1, 2, 3, 4] };
   * const mask = { kind: 'additive', ...attn.alibiBias(2, 3) } as const;
   * console.log(attn.scaledDotProductAttention(x, x, x, { mask }).output.dims); // [1, 2, 3, 4]
   * ```
   */
  alibiBias(numHeads: number, length: number, keyLength?: number): Tensor;

  /** {@link MultiHeadAttention}, for this instance only: using it with another one is `WRONG_INSTANCE`. So are the other classes. */
  readonly MultiHeadAttention: new (options: MultiHeadAttentionOptions) => MultiHeadAttention;
  /**
   * One encoder layer: Vaswani et al. 2017, torch's `nn.TransformerEncoderLayer` with `batch_first`.
   * Post-norm: x = norm1(x + attention(x)), x = norm2(x + ff(x)). `normFirst`: x += attention(norm1(x)), x += ff(norm2(x)).
   * ff(x) = linear2(activation(linear1 x)); `gated`: linear2(activation(linear_gate x) · linear1 x), Shazeer 2020.
   *
   * State names are torch's: `self_attn.*` as of {@link MultiHeadAttention}; `linear1.weight` (F,E), `linear1.bias` (F);
   * `linear2.weight` (E,F), `linear2.bias` (E); `linear_gate.weight` (F,E), `linear_gate.bias` (F) where gated; `norm1.weight`,
   * `norm1.bias`, `norm2.weight`, `norm2.bias` (E), an RMS norm without bias.
   *
   * @throws AttnError `ARGUMENT`, `CONFIG` for options; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dimFeedforward: 16, normFirst: true });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
   * console.log(layer.forward(x).output.dims); // [1, 3, 8]
   * ```
   */
  readonly TransformerEncoderLayer: new (options: EncoderLayerOptions) => Encoder;
  /**
   * `numLayers` encoder layers one after the other, and a norm after the last where `finalNorm`: torch's `nn.TransformerEncoder`.
   *
   * State names are torch's: `layers.N.*` as of {@link Attn.TransformerEncoderLayer}, `norm.*` with `finalNorm`.
   *
   * @throws AttnError `ARGUMENT`, `CONFIG` for options; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const encoder = new attn.TransformerEncoder({ dModel: 8, nhead: 2, dimFeedforward: 16, numLayers: 3 });
   * const x = { data: new Float32Array(4 * 8).fill(1), dims: [1, 4, 8] };
   * const { attentions, trace } = encoder.forward(x, { outputAttentions: true, trace: { layers: [1], names: ['norm1'] } });
   * console.log(attentions?.[2].dims, trace?.get(1)?.norm1?.dims); // [1, 2, 4, 4] [1, 4, 8]
   * ```
   */
  readonly TransformerEncoder: new (options: EncoderOptions) => Encoder;
  /**
   * logits = pool(encoder(x)) Wᵀ + b.
   *
   * State names: `encoder.*` as of {@link Attn.TransformerEncoder}; `classifier.weight` (C,E), `classifier.bias` (C).
   *
   * @throws AttnError `ARGUMENT`, `CONFIG` for options; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const options = { dModel: 8, nhead: 2, dimFeedforward: 16, numLayers: 1, numClasses: 3, pooling: 'mean' } as const;
   * const classifier = new attn.TransformerClassifier(options);
   * const x = { data: new Float32Array(2 * 4 * 8).fill(1), dims: [2, 4, 8] };
   * console.log(classifier.forward(x).logits.dims); // [2, 3]
   * ```
   */
  readonly TransformerClassifier: new (options: ClassifierOptions) => Classifier;
  /**
   * A table of vectors by id, torch's `nn.Embedding`. `numEmbeddings` N rows of `embeddingDim` E; row `paddingIdx` (default none) is
   * zero whenever weights are drawn.
   *
   * State names are torch's: `weight` (N,E).
   *
   * @throws AttnError `ARGUMENT`, `CONFIG` for options; `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([1, 0, 1, 0.1, 0, 1]), dims: [3, 2] } });
   * console.log(words.forward([2, 0]).data); // 0, 1, 1, 0
   * console.log(words.nearest(0, 1)[0].id); // 1
   * ```
   */
  readonly Embedding: new (options: { numEmbeddings: number; embeddingDim: number; paddingIdx?: number | undefined }) => Embedding;

  /**
   * Reads a safetensors file. F32, F16, BF16 and F64 tensors become Float32Arrays; integer and bool tensors are checked and left out.
   *
   * @param bytes the whole file
   * @returns tensors by name
   * @throws AttnError `FORMAT` when the file is not what the format demands; `UNSUPPORTED` for other element types
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const header = '{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}';
   * const bytes = new Uint8Array(8 + header.length + 4);
   * new DataView(bytes.buffer).setUint32(0, header.length, true);
   * bytes.set(new TextEncoder().encode(header), 8);
   * console.log(attn.parseSafetensors(bytes).get('a')?.dims); // [1]
   * ```
   */
  parseSafetensors(bytes: Uint8Array | ArrayBuffer): Map<string, Tensor>;

  /**
   * Writes a safetensors file: F32, names sorted by their UTF-8 bytes, data aligned to 8 bytes. What `parseSafetensors` reads back bit for
   * bit, and the Python package reads too.
   *
   * @param tensors by name
   * @param metadata strings by name, under `__metadata__`; default none
   * @returns the whole file
   * @throws AttnError `ARGUMENT` for a name or string that is not well-formed Unicode, and for the name `__metadata__`; those of a tensor
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const file = attn.writeSafetensors({ a: { data: new Float32Array([1, 2]), dims: [2] } }, { made: 'by hand' });
   * console.log(attn.parseSafetensors(file).get('a')?.data); // 1, 2
   * ```
   */
  writeSafetensors(tensors: StateDict, metadata?: Readonly<Record<string, string>>): Bytes;

  /**
   * A text model from the files that its authors publish: BERT (so MiniLM, E5, BGE, GTE), DistilBERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec-text,
   * MPNet, ModernBERT, DeBERTa, ERNIE, ELECTRA, ALBERT, NomicBERT, Jina 2 and GTE, with or without a head ({@link TextTasks.task}), and what
   * sentence-transformers adds. The weights (F32, F16, BF16) go into the module piece by piece as they come: nothing holds the file.
   *
   * @param source a folder, or its files; see {@link ModelSource}
   * @throws AttnError `NETWORK` when a file cannot be had; `FORMAT` when it is not what it should be (HTML, a Git LFS pointer, cut off, another
   * SHA-256); `UNSUPPORTED` for another kind of model, tokenizer or file, with the conversion where there is one; `CONFIG` for sizes out of range;
   * `MISMATCH` when weights are missing, surplus or of another shape, all in one error; `MEMORY`; `ARGUMENT`; `ABORTED`. Nothing stays
   * allocated then
   *
   * @example
   * ```ts
   * import { load, AttnError } from 'attn';
   *
   * const attn = await load();
   * try {
   *   // A folder's URL; in Node a path too, or the files by name.
   *   const model = await attn.loadModel('models/all-MiniLM-L6-v2', { onProgress: (p) => console.log(p.file, p.loaded, p.total) });
   *   const { data, dims } = await model.embed(['A happy person', 'A glad man']);
   *   console.log(dims, data[0]); // [2, 384]
   *   model.dispose();
   * } catch (error) {
   *   if (error instanceof AttnError) console.log(error.code); // NETWORK where there is no such folder
   * }
   * ```
   */
  loadModel(source: ModelSource, options?: ModelOptions): Promise<TextModel>;

  /** Frees everything, the modules and models made from this instance too, and ends its threads. Idempotent; any later use throws `DISPOSED`. */
  dispose(): void;
  /** The same as {@link Attn.dispose}. On an engine without `Symbol.dispose` the key is `Symbol.for('Symbol.dispose')`, which compilers of `using` fall back to. */
  [Symbol.dispose](): void;
}

/** Tensors by name: a Map or a plain object. */
export type StateDict = Map<string, Tensor> | Readonly<Record<string, Tensor>>;

/**
 * A weight `(out,in)` as {@link Module.quantize} keeps it: `weight[i][j] = scale[i] · data[i][j]`, `data` from −127 to 127, row-major, and a scale
 * for each row.
 */
export type Int8Tensor = { data: Int8Array; scale: Float32Array; dims: Dims };

/** What every layer has. */
export interface Module {
  /**
   * Copies weights in, by torch's names and layouts.
   *
   * @param options `strict` (default true): missing, extra or mis-shaped names are all listed in one error; false: extra and missing names are left alone
   * @throws AttnError `MISMATCH`; nothing has been changed then
   */
  loadStateDict(state: StateDict, options?: { strict?: boolean | undefined }): void;
  /** A copy of the weights, by torch's names and layouts. */
  stateDict(): Map<string, Tensor>;
  /**
   * The weights of linear maps, and an embedding's table, become int8 in place: `weight[i][j] = scale[i] · data[i][j]` with
   * `scale[i] = max|weight[i]| / 127` and `data` the nearest whole number; their float32 is gone, and {@link Module.stateDict} gives the product.
   * Rows of x are quantized when they meet them (a scale and a zero point each), the sums of products are exact, and all else stays
   * float32: a quantized module's results have the same bits in every engine and natively, whatever the build, threads and batch.
   * A row x that meets them has `s = max(0, max x) / 255 − min(0, min x) / 255`, `z = round(−min(0, min x) / s)` and `q = round(x / s) + z`, both from
   * 0 to 255; the product is `(Σ (q − z) · data) · s · scale + bias`, the sum exact, each step behind it rounded.
   * Idempotent; {@link Module.loadStateDict} and {@link Module.initialize} make it float32 again.
   *
   * @throws AttnError `FORMAT` where a weight has NaN or infinity, `UNSUPPORTED` for rows of more than 65536 numbers; nothing has been changed then
   */
  quantize(): void;
  /** What {@link Module.stateDict} has, the weights that are int8 in the form in which they are kept; `loadStateDict` takes float32 only. */
  int8StateDict(): Map<string, Int8Tensor | Tensor>;
  /**
   * Draws new weights. A new module is initialised already (`'torch'`, seed 0). The numbers follow from the seed alone, on every machine.
   *
   * `scheme` defaults to `'torch'`, the distributions of torch's constructors; the others take fans per projection and zero
   * biases (gain 1 for Xavier, √2 and fan-in for Kaiming). `seed` is a whole number from 0 to 2⁵³ − 1, default 0; `std` is
   * for `'normal'`, default 0.02.
   */
  initialize(options?: {
    scheme?: 'torch' | 'xavier_uniform' | 'xavier_normal' | 'kaiming_uniform' | 'kaiming_normal' | 'normal' | undefined;
    seed?: number | undefined;
    std?: number | undefined;
  }): void;
  /** Number of parameters (floats). */
  readonly parameterCount: number;
  /** Each parameter's name and shape. */
  parameterShapes(): Map<string, Dims>;
  /**
   * Dropout on. `seed`, a whole number from 0 to 2⁵³ − 1, default 0, decides about all forwards from here: each draws other numbers, and
   * the same ones again after the next `train()` with that seed, on every machine and with any number of threads. In the training build forwards keep
   * what `backward` needs.
   */
  train(options?: { seed?: number | undefined }): void;
  /** Dropout off, as in a new module. */
  eval(): void;
  /**
   * Copies of the gradients that `backward` has added up since {@link Module.zeroGrad}, by the names of {@link Module.stateDict}: of those parameters
   * alone that have one. Whatever replaces weights as a whole (`loadStateDict`, `initialize`, `quantize`) ends them; an optimiser's step does not.
   *
   * @throws AttnError `ENVIRONMENT` without the training build
   */
  gradients(): Map<string, Tensor>;
  /** No parameter has a gradient any more, as in torch. */
  zeroGrad(): void;
  /** Frees the weights. Idempotent; any later use throws `DISPOSED`. A module that is forgotten is freed when it is collected. */
  dispose(): void;
  /** The same as {@link Module.dispose}. */
  [Symbol.dispose](): void;
}

/** Sizes of a {@link MultiHeadAttention}. An unknown name is an `ARGUMENT` error; sizes that cannot work together are `CONFIG`. */
export interface MultiHeadAttentionOptions {
  /** E, the width of query and output; a multiple of `numHeads` unless `headDim` is given. */
  embedDim: number;
  /** H. */
  numHeads: number;
  /** Hkv, a divisor of H: each key and value head serves H/Hkv query heads (grouped heads, Ainslie et al. 2023). Default H. */
  numKeyValueHeads?: number | undefined;
  /** Width of the keys. Default `embedDim`. */
  kdim?: number | undefined;
  /** Width of the values. Default `embedDim`. */
  vdim?: number | undefined;
  /** D, width of a query and key head. Default E/H. */
  headDim?: number | undefined;
  /** Dv, width of a value head. Default `headDim`. */
  valueHeadDim?: number | undefined;
  /** Biases on all projections. Default true. */
  bias?: boolean | undefined;
  /** One more key and value, learned (`bias_k`, `bias_v`), that every query sees. Default false. */
  addBiasKv?: boolean | undefined;
  /** One more key and value, zero, that every query sees. Default false. */
  addZeroAttn?: boolean | undefined;
  /** On the weights, in training only: from 0 up to, not including, 1. Default 0. */
  dropout?: number | undefined;
  /** Factor on q kᵀ; default 1/√D. A call's own `scale` goes first. */
  scale?: number | undefined;
  /** Default true. false: no output projection, output is `merged` (B,L,H·Dv). */
  outProj?: boolean | undefined;
  /**
   * Turns queries and keys, once projected, as {@link Attn.applyRotary} does, with its defaults; D has to be even (`CONFIG`). Queries stand at
   * `offset` + `queryOffset` and on, keys at `offset` + the past's length and on; `present` holds turned ones. Default none.
   */
  rotary?: { theta?: number | undefined; interleaved?: boolean | undefined; offset?: number | undefined } | undefined;
}

/**
 * Concat(head₁ … head_H) W_O with head_i = attention(q W_qᵢ, k W_kᵢ, v W_vᵢ): Vaswani et al. 2017 section 3.2.2, torch's
 * `nn.MultiheadAttention` with `batch_first`.
 *
 * State names are torch's: `in_proj_weight` (3E,E), or `q_proj_weight` (E,E), `k_proj_weight` (E,kdim) and `v_proj_weight`
 * (E,vdim) where kdim or vdim differ; `in_proj_bias` (3E); `bias_k` and `bias_v` (1,1,E) with `addBiasKv`; `out_proj.weight` (E,E),
 * `out_proj.bias` (E). Also accepted: `q_proj.weight` (H·D,E), `k_proj.weight` (Hkv·D,kdim), `v_proj.weight` (Hkv·Dv,vdim) and their
 * `.bias`, the form that `headDim`, `valueHeadDim` and `numKeyValueHeads` need. `stateDict()` gives back the form that torch would have.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
 * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
 * const { output, weights } = mha.forward(x, undefined, undefined, { needWeights: true, isCausal: true });
 * console.log(output.dims, weights?.dims); // [1, 3, 8] [1, 2, 3, 3]
 * mha.dispose();
 * ```
 */
export interface MultiHeadAttention extends Module {
  /**
   * @param query (B,L,E); rank 2 means no batch: output and weights then have none either
   * @param key (B,S,kdim); default query
   * @param value (B,S,vdim); default query
   * @returns output (B,L,E); weights (B,H,L,S) when asked for; `present` with a `past` or `outputPresent`
   * @throws AttnError `SHAPE`, `MASK`, `CONFIG`, `UNSUPPORTED`, `MEMORY`, `DISPOSED`, `WRONG_INSTANCE`
   *
   * @example
   * ```ts
   * // Row by row, as a decoder writes: each call has the keys and values of those before it.
   * import { load, type AttentionResult } from 'attn';
   *
   * const attn = await load();
   * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, rotary: {} });
   * let past: AttentionResult['present'];
   * for (const token of [1, 2, 3]) {
   *   const row = { data: new Float32Array(8).fill(token), dims: [1, 1, 8] };
   *   past = mha.forward(row, undefined, undefined, { isCausal: true, past, outputPresent: true }).present;
   * }
   * console.log(past?.key.dims); // [1, 2, 3, 4]
   * ```
   */
  forward(query: Tensor, key?: Tensor, value?: Tensor, options?: AttentionOptions): AttentionResult;
  /**
   * Gradients of the last forward with `forBackward` or in train mode; those of the parameters are added to {@link Module.gradients}. What was kept is
   * used up. Probabilities are computed again: besides a trace nothing is as large as (B,H,L,S). Same bits for any number of threads
   * (torch.autograd of nn.MultiheadAttention).
   *
   * @param grad that of the output, of its shape; rows of it that are 0 have no part in any gradient
   * @param options `trace`: gradients of intermediates
   * @throws AttnError `ARGUMENT` where no such forward was since the last `backward` or change of weights, `SHAPE`, `UNSUPPORTED` for an int8 layer,
   * `MEMORY`, `ENVIRONMENT` without the training build; nothing has changed then
   */
  backward(grad: Tensor, options?: { trace?: boolean | readonly TraceName[] | undefined }): BackwardResult;
}

/** Sizes of an encoder layer. An unknown name is an `ARGUMENT` error; sizes that cannot work together are `CONFIG`. */
export interface EncoderLayerOptions {
  /** E, the width of input and output; a multiple of `nhead`. */
  dModel: number;
  /** H, heads of the attention. */
  nhead: number;
  /** F, width of the feed-forward part. Default 2048. */
  dimFeedforward?: number | undefined;
  /** At torch's four places, in training only: from 0 up to, not including, 1. Default 0.1. */
  dropout?: number | undefined;
  /** Of the feed-forward part. Default `'relu'`. */
  activation?: Activation | undefined;
  /** eps of the norms, above 0. Default 1e-5. */
  layerNormEps?: number | undefined;
  /** Norms before attention and feed-forward, instead of after the sums. Default false. */
  normFirst?: boolean | undefined;
  /** Biases on all linear maps and layer norms. Default true. */
  bias?: boolean | undefined;
  /** Default `'layer_norm'`. */
  norm?: 'layer_norm' | 'rms_norm' | undefined;
  /** Feed-forward is linear2(activation(linear_gate x) · linear1 x). Default false. */
  gated?: boolean | undefined;
  /** As of {@link MultiHeadAttentionOptions}; the state has the separate form then. */
  numKeyValueHeads?: number | undefined;
  /** Positions of queries and keys, as of {@link MultiHeadAttentionOptions}. Default none. */
  rotary?: { theta?: number | undefined; interleaved?: boolean | undefined; offset?: number | undefined } | undefined;
  /** As of {@link AttentionOptions}, in every call. Default all positions. */
  window?: readonly [number, number] | undefined;
  /** As of {@link AttentionOptions}, in every call. Default 0, none. */
  softcap?: number | undefined;
}

/** Those of a layer, and: */
export interface EncoderOptions extends EncoderLayerOptions {
  /** How many layers, 1 to 10 000. */
  numLayers: number;
  /** One more norm after the last layer. Default false. */
  finalNorm?: boolean | undefined;
}

/** Options of an encoder's forward. Every value may be left out or `undefined`; an unknown name is an `ARGUMENT` error. */
export interface EncoderForwardOptions {
  /** As of {@link AttentionOptions}, with S = L; in every layer. */
  mask?: Mask | undefined;
  /** dims `[B,L]`, or `[L]` for an input without a batch. A classifier's pooling leaves padding out too. */
  keyPaddingMask?: Mask | undefined;
  /** Position i sees positions 0 … i + queryOffset. Default false. */
  isCausal?: boolean | undefined;
  /** As of {@link AttentionOptions}. Default `'zero'`. */
  fullyMasked?: 'zero' | 'nan' | 'uniform' | undefined;
  /** Keep what `backward` needs, as forwards in train mode do. It takes the training build: `load({ training: true })`. Default false. */
  forBackward?: boolean | undefined;
  /** Return the attention weights of every layer. Default false. */
  outputAttentions?: boolean | undefined;
  /** Return the input of every layer, and the output. Default false. */
  outputHiddenStates?: boolean | undefined;
  /**
   * What is inside the layers: `layers`, counted from 0, default all of them; `names`, default every one but `weighted_values`. A layer
   * that is not there is `OUT_OF_RANGE`.
   */
  trace?: { readonly layers?: readonly number[] | undefined; readonly names?: readonly EncoderTraceName[] | undefined } | undefined;
  /** As of {@link AttentionOptions}, in every layer. Default 0. */
  queryOffset?: number | undefined;
}

/**
 * Names of an encoder layer's intermediates: the attention's own, where `output` is the attention's output, and
 *
 * - `attn_residual` (B,L,E): x + attention
 * - `norm1`, `norm2` (B,L,E): what those norms give, wherever they sit
 * - `ff_hidden` (B,L,F): after the activation, and the gate
 * - `ff_output` (B,L,E): linear2 of it
 * - `ff_residual` (B,L,E): the second sum
 * - `c2c`, `c2p`, `p2c` (B,H,L,L): of DeBERTa's disentangled attention only, the parts of `scores`, scaled: content to content, which is q kᵀ,
 *   content to position and position to content (He et al. 2020). Where scores have no such part it is refused by name and left out of all.
 */
export type EncoderTraceName = TraceName | 'attn_residual' | 'norm1' | 'ff_hidden' | 'ff_output' | 'ff_residual' | 'norm2' | 'c2c' | 'c2p' | 'p2c';

/** Lists every {@link EncoderTraceName}: `traceNames`, followed by the names that only encoder layers have. */
export const encoderTraceNames: readonly EncoderTraceName[];

/** Intermediates of one layer. */
export type EncoderTrace = { readonly [name in EncoderTraceName]?: Tensor };

export interface EncoderResult {
  /** (B,L,E). */
  output: Tensor;
  /** By layer (B,H,L,L); only with `outputAttentions`. */
  attentions?: Tensor[];
  /** One more than there are layers, each (B,L,E), the last equals `output`; only with `outputHiddenStates`. */
  hiddenStates?: Tensor[];
  /** By layer; only when `trace` is given. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/** An encoder layer, or a stack of them: {@link Attn.TransformerEncoderLayer}, {@link Attn.TransformerEncoder}. */
export interface Encoder extends Module {
  /**
   * @param x (B,L,E); rank 2 means no batch: no result has one then
   * @returns output (B,L,E), and what the options ask for
   * @throws AttnError `SHAPE`, `MASK`, `OUT_OF_RANGE`, `MEMORY`, `DISPOSED`, `WRONG_INSTANCE`
   */
  forward(x: Tensor, options?: EncoderForwardOptions): EncoderResult;
  /**
   * Gradients of the last forward with `forBackward` or in train mode; those of the parameters are added to {@link Module.gradients}. What was kept is
   * used up. Norms, the activated hidden layer, probabilities and dropout are computed again: besides a trace nothing grows with L². Same bits for any
   * number of threads (torch.autograd of nn.TransformerEncoder).
   *
   * @param grad that of the output, of its shape; rows of it that are 0 have no part in any gradient
   * @param options `trace`: gradients of what is inside the layers, by the names of the forward's trace
   * @returns `gradX`, of the shape of x, and the trace by layer
   * @throws AttnError `ARGUMENT` where no such forward was since the last `backward` or change of weights, `SHAPE`, `UNSUPPORTED` for an int8 layer,
   * `OUT_OF_RANGE`, `MEMORY`, `ENVIRONMENT` without the training build; nothing has changed then
   */
  backward(grad: Tensor, options?: EncoderBackwardOptions): EncoderBackwardResult;
}

/** Those of an encoder, and: */
export interface ClassifierOptions extends EncoderOptions {
  /** C. */
  numClasses: number;
  /**
   * What is made of the positions. `'none'` (default): logits for each, (B,L,C). `'mean'` and `'max'`, which leave out what
   * `keyPaddingMask` says is padding, and `'cls'`, the first position: (B,C). A sequence that is all padding pools to what
   * `fullyMasked` says.
   */
  pooling?: 'none' | 'mean' | 'cls' | 'max' | undefined;
}

/** Of an encoder's or a classifier's `backward`. */
export interface EncoderBackwardOptions {
  /** As {@link EncoderForwardOptions.trace}. */
  trace?: EncoderForwardOptions['trace'];
}

/** What it gives. */
export interface EncoderBackwardResult {
  /** (B,L,E). */
  gradX: Tensor;
  /** By layer, when asked for. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/** {@link Attn.TransformerClassifier}. */
export interface Classifier extends Module {
  /**
   * @param x (B,L,E); rank 2 means no batch: no result has one then
   * @returns what an encoder gives, and logits (B,C), without pooling (B,L,C)
   * @throws AttnError `SHAPE`, `MASK`, `OUT_OF_RANGE`, `MEMORY`, `DISPOSED`, `WRONG_INSTANCE`
   */
  forward(x: Tensor, options?: EncoderForwardOptions): EncoderResult & { logits: Tensor };
  /**
   * Gradients of the last forward with `forBackward` or in train mode; those of the parameters are added to {@link Module.gradients}. What was kept is
   * used up. Norms, the activated hidden layer, probabilities and dropout are computed again: besides a trace nothing grows with L². Same bits for any
   * number of threads (torch.autograd of nn.TransformerEncoder and nn.Linear).
   *
   * @param gradLogits that of the logits, of their shape; rows of it that are 0 have no part in any gradient
   * @param options `trace`: gradients of what is inside the layers, by the names of the forward's trace
   * @returns `gradX`, of the shape of x, and the trace by layer
   * @throws AttnError `ARGUMENT` where no such forward was since the last `backward` or change of weights, `SHAPE`, `UNSUPPORTED` for an int8 layer,
   * `OUT_OF_RANGE`, `MEMORY`, `ENVIRONMENT` without the training build; nothing has changed then
   */
  backward(gradLogits: Tensor, options?: EncoderBackwardOptions): EncoderBackwardResult;
}

/** {@link Attn.Embedding}. */
export interface Embedding extends Module {
  /**
   * The rows of these ids.
   *
   * @param ids whole numbers from 0 to N − 1
   * @param dims of the ids, up to 7; default their number
   * @param options `forBackward`: keep the ids for {@link Embedding.backward}, as forwards in train mode do
   * @returns (..dims,E)
   * @throws AttnError `OUT_OF_RANGE` with the first id that the table does not have; `SHAPE` when dims do not fit; `DTYPE`, `ARGUMENT`
   */
  forward(ids: Int32Array | BigInt64Array | readonly number[], dims?: Dims, options?: { forBackward?: boolean | undefined }): Tensor;
  /**
   * Adds to the gradient of the table: of each row the sum over the places of its id in the last forward, in their order; `paddingIdx` gets none
   * (torch.autograd of F.embedding).
   *
   * @param grad (..dims,E), that of what the last forward in train mode or with `forBackward` gave
   * @throws AttnError `ARGUMENT` without such a forward since the last `backward` or change of weights, `SHAPE`, `UNSUPPORTED` for an int8 table,
   * `ENVIRONMENT` without the training build
   */
  backward(grad: Tensor): void;
  /**
   * The rows most similar by cosine, falling; all that there are when k is more. A row of zeros has cosine 0; of equal ones the lower
   * id comes first.
   *
   * @param target an id, itself excluded, or a vector (E)
   * @param k how many, 0 or more
   * @throws AttnError `OUT_OF_RANGE` for an id that the table does not have; `SHAPE` for a vector of another width; `ARGUMENT`
   */
  nearest(target: number | Float32Array, k: number): { id: number; similarity: number }[];
  /**
   * Cosine of the angle between two rows, by id.
   *
   * @throws AttnError `OUT_OF_RANGE`
   */
  similarity(a: number, b: number): number;
  /**
   * a is to b as c is to the result: the rows nearest to b − a + c, the three excluded (Mikolov et al. 2013).
   *
   * @throws AttnError `OUT_OF_RANGE`, `ARGUMENT`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 4, embeddingDim: 2 });
   * const [man, king, woman, queen] = [0, 1, 2, 3];
   * words.loadStateDict({ weight: { data: new Float32Array([1, 0, 1, 1, -1, 0.1, -1, 1]), dims: [4, 2] } });
   * console.log(words.analogy(man, king, woman, 1)[0].id === queen); // true
   * ```
   */
  analogy(a: number, b: number, c: number, k: number): { id: number; similarity: number }[];
}

/**
 * Where a model is: the URL of a folder (in Node a path too; not an id of the Hub, whose files have a URL of the form HOST/ID/resolve/main) that
 * holds config.json, tokenizer.json and model.safetensors, and where they are published tokenizer_config.json, modules.json and what that names
 * (1_Pooling/config.json, 2_Dense, sentence_bert_config.json, config_sentence_transformers.json; config.json and its like in 0_Transformer); or
 * those files themselves by name, a string
 * being the text of a JSON file. A relative URL is relative to the page; its query goes with each file. Names may have a folder in front that all
 * of them are in, as dropped files do; files that are not needed are left alone.
 *
 * @example
 * ```ts
 * // Of <input type="file" webkitdirectory>:
 * const sourceOf = (input: HTMLInputElement) => Object.fromEntries(Array.from(input.files ?? [], (file) => [file.webkitRelativePath, file]));
 * ```
 */
export type ModelSource = string | URL | Readonly<Record<string, Uint8Array | ArrayBuffer | Blob | string>>;

/** How to load a model. Every value may be left out or `undefined`; an unknown name is an `ARGUMENT` error. */
export interface ModelOptions {
  /**
   * How the weights of linear maps and the word table are kept and multiplied: `int8` quantizes them while they are loaded, a row at a time by its own
   * scale, and what meets them row by row, too; sums are exact, so that results have the same bits on every machine. Default `auto`: int8 where the
   * files are int8 (compressed-tensors), else `float32`, which also takes int8 files, dequantized.
   */
  weights?: 'auto' | 'float32' | 'int8' | undefined;
  /** What is called instead of the global `fetch`. Not with `attn/worker`, which cannot send a function: see `request`. */
  fetch?: Fetch | undefined;
  /**
   * What each request for a file carries, for models that are not public: `headers`, such as `{ authorization: 'Bearer …' }`, and `credentials` as
   * `fetch` has them (default `'same-origin'`). The files are kept like all others; with `cache: 'none'` they are not.
   */
  request?: { headers?: Readonly<Record<string, string>> | undefined; credentials?: 'omit' | 'same-origin' | 'include' | undefined } | undefined;
  /**
   * `'default'` keeps the files in the Cache API, where there is one, under their URL, once all of the model was found good: in the cache
   * `attn-models`, which a page may open, list and delete by itself. A query, which may hold a token, is replaced by `attn-query=` and its SHA-256.
   * The next load asks the server with a HEAD for each kept file whether its ETag, or else its date (Last-Modified), is another by now, and then
   * loads all anew. Offline, or where the server does not tell within 3 seconds, what is kept is used; files whose `sha256` is given are not asked
   * for. What a download that broke off has brought is kept in `attn-models-parts`, and the next one goes on from there (by Range) if the server
   * says that the file is still the same, and with which byte it goes on: a server of another origin has to expose Content-Range. Of several loads
   * of one folder at once, in whatever tab, one downloads; the others wait for it.
   *
   * `'reload'` asks the server for all files, past the browser's own cache too, and replaces what is kept once they were found good. `'none'` reads
   * and keeps nothing.
   */
  cache?: 'default' | 'none' | 'reload' | undefined;
  /** File name -> hex digest. A mismatch, or such a file that is missing, is `FORMAT`, and nothing is kept; a name that is never read is `ARGUMENT`. */
  sha256?: Readonly<Record<string, string>> | undefined;
  /** Aborting, at any moment, rejects with `ABORTED` and frees what was loaded. */
  signal?: AbortSignal | undefined;
  /**
   * Phases are `'download'`, `'cache'` and `'read'` (of files that are not fetched). `loaded` and `total` are bytes of `file`; `total` is missing
   * where the server does not tell. The first report of a file has 0 bytes loaded, the last one all. If it throws, loading ends with `ARGUMENT`.
   */
  onProgress?: ((p: { phase: string; file?: string; loaded: number; total?: number }) => void) | undefined;
}

/** How texts become tokens. An unknown name is an `ARGUMENT` error. */
export interface TokenizeOptions {
  /**
   * Tokens of a text, special ones included. Default: sentence_bert_config's `max_seq_length`, else tokenizer_config's `model_max_length` where it
   * is a real limit, else the model's positions; more than those is `OUT_OF_RANGE`.
   */
  maxLength?: number | undefined;
  /** Default true: what is too long is cut. false: it is `OUT_OF_RANGE`, with its `index`. */
  truncation?: boolean | undefined;
  /** Whether `[CLS]` and the like are put around a text. Default true. */
  addSpecialTokens?: boolean | undefined;
  /** Where what is too long is cut. Default: tokenizer_config.json's `truncation_side`, else `'right'`: its end goes. */
  truncationSide?: 'left' | 'right' | undefined;
}

/** Tokens of B texts, padded to the longest, L. One made by hand will do for `forward`. */
export interface Encoding {
  /** (B,L). */
  readonly inputIds: Int32Array;
  /** (B,L): 1 for a token, 0 for padding. `forward` also takes a BigInt64Array or an Array, as for ids. */
  readonly attentionMask: Uint8Array;
  /** (B,L): 1 for the second text of a pair, else 0. */
  readonly tokenTypeIds: Int32Array;
  /** [B, L]. */
  readonly dims: Dims;
  /** Which texts were cut. */
  readonly truncated: readonly boolean[];
  /** Per text, in line with its ids, padding included. */
  readonly tokens: readonly (readonly string[])[];
  /**
   * Per text, in line with its ids: where in the text (of a pair: in its own one) the token is, as start and end in UTF-16 units, so that
   * `text.slice(start, end)` is it; null for special tokens and padding.
   */
  readonly offsets: readonly (readonly ([number, number] | null)[])[];
}

export interface TextModelOutput {
  /** (B,L,E). */
  lastHiddenState: Tensor;
  /**
   * Where the checkpoint has a head: (B,C); of token-classification and fill-mask (B,L,C), C the labels or the vocabulary; of question-answering
   * (B,L,2), the start and the end of an answer; of multiple-choice (B,1), a row for each choice.
   */
  logits?: Tensor;
  /** By layer (B,H,L,L); only with `outputAttentions`. */
  attentions?: Tensor[];
  /** One more than there are layers, each (B,L,E), as transformers gives them; only with `outputHiddenStates`. */
  hiddenStates?: Tensor[];
  /** By layer; only with `trace`. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/** What {@link TextModel.forward} shall return besides the last hidden state, and what it shall do otherwise. */
export interface TextForwardOptions {
  /** The weights of every layer. Default false. */
  outputAttentions?: boolean | undefined;
  /** The input of every layer, and the output. Default false. */
  outputHiddenStates?: boolean | undefined;
  /** Those of the head; default true. Of `'fill-mask'` they are (B,L,V) numbers and take as long as some layers: `false` where nobody looks at them. */
  outputLogits?: boolean | undefined;
  /** Everything inside the layers named (all of them when `layers` is left out). */
  trace?: { readonly layers?: readonly number[] | undefined; readonly names?: readonly EncoderTraceName[] | undefined } | undefined;
  /**
   * Of every layer, as in {@link AttentionOptions}, beside what the padding and the model itself mask. A query that they leave nothing attends
   * to every key alike, as in transformers.
   */
  mask?: Mask | undefined;
  /** No token attends to later ones, in every layer. Default false. */
  isCausal?: boolean | undefined;
  /**
   * (layers,H): what the result of each head is multiplied by before W_O; 0 switches a head off, 1 changes nothing (Michel et al. 2019).
   * Attentions and the trace `context` are those of before, `merged` is what goes into W_O.
   */
  headMask?: Tensor | undefined;
  /**
   * What one layer, counted from 0, works with instead of what it would have computed, to see what follows from it (activation patching, Vig et
   * al. 2020): its input `hiddenState` (B,L,E), or `merged` (B,L,E), the results of its heads side by side before W_O. Any numbers will do.
   * `headMask` comes after it.
   */
  patch?: { readonly layer: number; readonly hiddenState?: Tensor | undefined; readonly merged?: Tensor | undefined } | undefined;
}

/**
 * A model with its tokenizer, made by {@link Attn.loadModel}. It belongs to its instance and goes with it.
 *
 * @example
 * ```ts
 * import { load, type TextModel } from 'attn';
 *
 * // The attention of each head of the last layer from the first token to all, by name.
 * function lookAt(model: TextModel, text: string) {
 *   const inputs = model.tokenize(text);
 *   const last = model.forward(inputs, { outputAttentions: true }).attentions!.at(-1)!;
 *   const [, heads, length] = last.dims;
 *   return Array.from({ length: heads }, (_, h) => inputs.tokens[0].map((token, i) => [token, last.data[h * length * length + i]] as const));
 * }
 * ```
 */
export interface TextModel extends ModelGradients, TextTasks {
  /** config.json, frozen. */
  readonly config: Readonly<Record<string, unknown>>;
  /** What the head tells apart, of texts or of tokens, in the order of its logits; `undefined` without such a head. */
  readonly labels?: readonly string[];
  /** What the files have that the model does not use, in words: tensors of another head, say. transformers warns of it. */
  readonly notes: readonly string[];
  /** How weights of linear maps, and mostly the word table, are kept and multiplied. */
  readonly weights: 'float32' | 'int8';

  /**
   * Tokens as Hugging Face's own tokenizers give them, special tokens included.
   *
   * @param texts one text, several, or several pairs; half a surrogate pair counts as U+FFFD
   * @throws AttnError `OUT_OF_RANGE` for a text that is too long where `truncation` is false, and for `maxLength`; `ARGUMENT`
   */
  tokenize(texts: string | readonly string[] | readonly (readonly [string, string])[], options?: TokenizeOptions): Encoding;

  /**
   * The whole model. Padding has no influence on what is not padding, not on one bit.
   *
   * @example
   * ```ts
   * import type { Encoding, TextModel } from 'attn';
   *
   * // How much each head of a layer matters to the first label: the logit without it, less the logit with it.
   * function ablate(model: TextModel, inputs: Encoding, layer: number, layers: number, heads: number) {
   *   const logit = (off?: number) => {
   *     const data = new Float32Array(layers * heads).fill(1);
   *     if (off !== undefined) data[layer * heads + off] = 0;
   *     return model.forward(inputs, { headMask: { data, dims: [layers, heads] } }).logits!.data[0];
   *   };
   *   return Array.from({ length: heads }, (_, head) => logit(head) - logit());
   * }
   * ```
   * @throws AttnError `OUT_OF_RANGE` for an id that the table does not have, for more tokens than positions and for a layer that is not there;
   *   `SHAPE`, `DTYPE`, `MASK`, `MEMORY`
   */
  forward(inputs: Encoding, options?: TextForwardOptions): TextModelOutput;

  /**
   * Everything inside one layer.
   *
   * @param layer counted from 0
   * @param names default every one but `weighted_values`
   * @throws AttnError `OUT_OF_RANGE` for a layer that is not there; those of `forward`
   */
  traceLayer(inputs: Encoding, layer: number, names?: readonly EncoderTraceName[]): EncoderTrace;

  /**
   * Shapes of the weights that the model works with, by the names that its file has for them, such as
   * `bert.encoder.layer.0.attention.self.query.weight`. What the file has beside them (`position_ids`, a pooler without a head) is not there.
   */
  parameterShapes(): Map<string, Dims>;
  /** Copies of all of these weights, float32 whatever they are in the file: of int8 the scale of a row times its numbers. */
  stateDict(): Map<string, Tensor>;
  /**
   * A copy of one weight.
   *
   * @throws AttnError `OUT_OF_RANGE` for a name that is not there
   */
  getParameter(name: string): Tensor;
  /**
   * Copies weights in; `wordEmbeddings` has the new ones at once. With `strict` (default) every one must be there and nothing else; without it
   * the others keep their numbers. A model of int8 stays one: its weights are rounded again, each row by a scale of its own, as when they are loaded.
   *
   * @example
   * ```ts
   * import type { TextModel } from 'attn';
   *
   * // One number of one weight, edited in place.
   * function edit(model: TextModel, name: string, index: number, value: number) {
   *   const weight = model.getParameter(name);
   *   weight.data[index] = value;
   *   model.loadStateDict({ [name]: weight }, { strict: false });
   * }
   * ```
   * @throws AttnError `MISMATCH`, one that lists all names that do not fit; `FORMAT` for NaN and infinity that would become int8; nothing is changed then
   */
  loadStateDict(state: StateDict, options?: { strict?: boolean | undefined }): void;

  /**
   * The model as files by name, as transformers reads them, ready to be stored, served or zipped; `loadModel` reads the object back, int8 to the same
   * bits. It has the weights that the model works with, as they are now, config.json with what it says of them, and the other files that were read;
   * a pooler or another head in the file that the model was loaded from is not there.
   *
   * @param options `weights`: `float32`; `float16`, to the nearest number, of two the even one; `int8`, the weights of linear maps and the word table,
   * as the package compressed-tensors has them. Default what the model has
   * @example
   * ```ts
   * import type { Attn, TextModel } from 'attn';
   *
   * // The same model in a quarter of the bytes.
   * async function shrink(attn: Attn, model: TextModel) {
   *   const files = await model.export({ weights: 'int8' });
   *   return { model: await attn.loadModel(files), bytes: Object.values(files).reduce((sum, { length }) => sum + length, 0) };
   * }
   * ```
   * @throws AttnError `OUT_OF_RANGE` for a number that float16 has not; `FORMAT` for NaN and infinity that would become int8, both with the tensor's
   *   name; `MEMORY`
   */
  export(options?: { weights?: 'float32' | 'float16' | 'int8' | undefined }): Promise<Record<string, Bytes>>;

  /** What stands for a word that `fillMask` shall predict: `[MASK]` or `<mask>`; `undefined` if the tokenizer has no such token. */
  readonly maskToken: string | undefined;
  /** The word table as an Embedding (nearest, analogy, similarity) on the model's own memory, by the ids of its vocabulary. It goes with the model. */
  readonly wordEmbeddings: Embedding;
  /** The id of a token as the vocabulary has it (`##ing`, `Ġthe`); `undefined` when it does not. */
  tokenToId(token: string): number | undefined;
  /** The token of an id; `undefined` when there is none. */
  idToToken(id: number): string | undefined;

  /**
   * One vector a text. Texts are sorted by length into batches; the batch size changes no bit of a result. Between batches events are
   * handled, so a page stays alive and `signal` is heard; weights that are changed meanwhile count from the next batch on, and `dispose()` ends it
   * with `DISPOSED` (in attn/worker both wait until it is done).
   *
   * As sentence-transformers' `encode()`: what modules.json lists is done, one Dense after the pooling included.
   *
   * @param options besides {@link TokenizeOptions}: `pooling` and `normalize` (to length 1), defaults as the checkpoint's own files say (mean, not
   * normalised, without them), which may put several poolings side by side; all but `'cls'` leave padding out, `'weightedmean'` counts a token by
   * its place from 1 on, `'mean_sqrt_len'` is the sum divided by the root of the number of tokens. `prompt` is put before each text; without it the
   * one called `promptName` in config_sentence_transformers.json (`'query'` and `'document'` are always there), and without that its
   * `default_prompt_name`; `''` is none. And {@link BatchOptions}
   * @returns (N,E), in the order of the texts; E is the hidden size, times the poolings, or what Dense makes of it. `truncated` tells for each text
   *   whether its end (or start, see `truncationSide`) was cut off, so that its vector is not that of the whole text
   * @throws AttnError those of `tokenize` and `forward`; `CONFIG` for a prompt that is not there and a pooling that Dense does not take; `ABORTED`
   */
  embed(
    texts: string | readonly string[],
    options?: TokenizeOptions & {
      pooling?: 'mean' | 'cls' | 'max' | 'lasttoken' | 'weightedmean' | 'mean_sqrt_len' | undefined;
      normalize?: boolean | undefined;
    } & PromptOptions &
      BatchOptions,
  ): Promise<Tensor & { readonly truncated: readonly boolean[] }>;

  /**
   * Per text all labels by falling score, as transformers' TextClassificationPipeline: softmax of the logits; the sigmoid of each where the config's
   * `problem_type` is `multi_label_classification` or there is one label; the logits themselves where it is `regression`.
   *
   * The files of a cross-encoder may name another function (`activation_fn`). Pairs are then scored by it, as by sentence-transformers'
   * CrossEncoder.predict: `Identity` gives logits, which may be negative. A text alone is scored by it if there is one label.
   *
   * @param options besides {@link TokenizeOptions} and {@link BatchOptions}: `topK`, how many labels of each text, default all
   * @throws AttnError `UNSUPPORTED` for a checkpoint without such a head; those of `embed`
   */
  classify(
    texts: string | readonly string[] | readonly (readonly [string, string])[],
    options?: TokenizeOptions & BatchOptions & { topK?: number | undefined },
  ): Promise<{ label: string; score: number }[][]>;

  /** Frees the weights, and ends `wordEmbeddings`. Idempotent; any later use throws `DISPOSED`. A model that is forgotten is freed when it is collected. */
  dispose(): void;
  /** The same as {@link TextModel.dispose}. */
  [Symbol.dispose](): void;
}

/**
 * - `ARGUMENT`: an argument is missing, misnamed or not of its kind
 * - `DTYPE`: an array has the wrong element type
 * - `SHAPE`: ranks, widths, lengths or batches disagree
 * - `MASK`: a mask without kind, with wrong dims or values
 * - `CONFIG`: options out of their range, or that cannot work together
 * - `OUT_OF_RANGE`: an index outside its table
 * - `FORMAT`: bytes are not what they should be
 * - `MISMATCH`: a state dictionary has missing, extra or mis-shaped names
 * - `UNSUPPORTED`: valid, but not something attn does
 * - `MEMORY`: not enough memory; where layers have it that were not disposed of, the message says so
 * - `DISPOSED`: use after dispose()
 * - `WRONG_INSTANCE`: an object of another instance
 * - `BUSY`: a call while another one runs
 * - `DETACHED`: the array's buffer was transferred or shrunk
 * - `NETWORK`: a fetch failed; `detail.status` where the server answered
 * - `ABORTED`: the signal was aborted, or the worker is gone. Where the caller wanted it (by signal or `terminate()`) the error's `name` is
 *   `AbortError`, as that of fetch
 * - `ENVIRONMENT`: the engine lacks something
 * - `INTERNAL`: a fault of attn itself; load a new instance
 */
export type ErrorCode =
  | 'ARGUMENT'
  | 'DTYPE'
  | 'SHAPE'
  | 'MASK'
  | 'CONFIG'
  | 'OUT_OF_RANGE'
  | 'FORMAT'
  | 'MISMATCH'
  | 'UNSUPPORTED'
  | 'MEMORY'
  | 'DISPOSED'
  | 'WRONG_INSTANCE'
  | 'BUSY'
  | 'DETACHED'
  | 'NETWORK'
  | 'ABORTED'
  | 'ENVIRONMENT'
  | 'INTERNAL';

/** Header of a safetensors file, with the field names of the format. */
export interface SafetensorsHeader {
  /** Tensors by name; `data_offsets` are bytes after `dataStart`. */
  readonly tensors: {
    readonly [name: string]: {
      readonly dtype: string;
      readonly shape: readonly number[];
      readonly data_offsets: readonly [start: number, end: number];
    };
  };
  /** Strings of `__metadata__`; empty if the file has none. */
  readonly metadata: { readonly [name: string]: string };
  /** Where the tensors' bytes begin in the file. */
  readonly dataStart: number;
}

/**
 * Reads the header of a safetensors file without its tensors: names, types, shapes and metadata. It needs no instance and no download. Use it to look
 * at a large file: read the first 8 bytes (the length N of the header, little-endian), then 8 + N bytes.
 *
 * @param bytes the file, or its first 8 + N bytes
 * @throws {AttnError} `ARGUMENT` if `bytes` is no Uint8Array; `FORMAT` if it is shorter than the header, or the header is no JSON object of tensors.
 * Whether the tensors fit into the file is checked by `parseSafetensors` and `loadModel`.
 *
 * @example
 * ```ts
 * import { load, readSafetensorsHeader } from 'attn';
 *
 * const attn = await load();
 * const file = attn.writeSafetensors({ bias: { data: new Float32Array(3), dims: [3] } }, { author: 'me' });
 * const { tensors, metadata } = readSafetensorsHeader(file);
 * console.log(tensors.bias.shape, metadata.author); // [3] me
 * ```
 */
export function readSafetensorsHeader(bytes: Uint8Array): SafetensorsHeader;

/**
 * Every failure is one of these, thrown before anything is written; the instance stays usable (except after `INTERNAL`). What code of yours throws
 * while an argument is read (a getter, a Proxy) is its `cause`. `message` and the texts of `detail` are cut when they are long, as names in files may be.
 * `message` names the operation, the argument, what was expected and what came. Tell errors apart by `code`, which also
 * survives bundles that hold two copies of the package.
 *
 * @example
 * ```ts
 * import { load, AttnError } from 'attn';
 *
 * const attn = await load();
 * try {
 *   attn.softmax({ data: new Float32Array(3), dims: [2] });
 * } catch (error) {
 *   if (error instanceof AttnError) console.log(error.code, error.detail.argument); // SHAPE x.data
 * }
 * ```
 */
export class AttnError extends Error {
  constructor(code: ErrorCode, message: string, detail?: Readonly<Record<string, unknown>>, options?: { cause?: unknown });
  readonly code: ErrorCode;
  /** Facts for programs, frozen: `op`, `argument`, `expected`, `got`, and what else the error knows. */
  readonly detail: Readonly<Record<string, unknown>>;
}
