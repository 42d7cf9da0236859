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
  wasm?: string | URL | ArrayBuffer | Uint8Array | Response | WebAssembly.Module;
  /**
   * Default `'auto'`: relaxed SIMD where the engine accepts it, else fixed-width SIMD. A variant asked for that the
   * engine refuses is `ENVIRONMENT`. `'simd'` gives the same bits on every machine; `'relaxed'` uses fused
   * multiply-adds, is faster, and may differ in the last bits between machines.
   */
  variant?: 'auto' | 'simd' | 'relaxed';
  /**
   * Threads that compute, the calling one included; 1 to 64, default 1. `'auto'` is min(4, cores / 2). More than one needs,
   * in a browser, cross-origin isolation and a worker (the main thread may not wait); where that is missing one thread
   * is used and `info.notes` says why. The number never changes a bit of a result.
   */
  threads?: number | 'auto';
  /** Bytes that the WASM heap may grow to. Whatever would need more fails with `MEMORY` before it starts. Default: as much as the engine gives, 4 GiB at most. */
  maximumMemory?: number;
  /** Aborting, at any moment, rejects with `ABORTED`; `cause` is the signal's reason. */
  signal?: AbortSignal;
  /** Phases are `'download'`, `'compile'`, `'start'`. `loaded` and `total` are bytes; `total` is missing where the server does not tell. */
  onProgress?: (p: { phase: string; loaded: number; total?: number }) => void;
}

/** What is running. A snapshot: read `attn.info` again for new heap figures. */
export interface RuntimeInfo {
  readonly version: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  /** Why the variant or thread count is not what `'auto'` would like best, in words. */
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
  mask?: Mask;
  /** dims `[B,S]`, or `[S]` for inputs without a batch. */
  keyPaddingMask?: Mask;
  /** Query i sees keys 0..i (top-left aligned, also when L ≠ S). Default false. */
  isCausal?: boolean;
  /** Factor on q kᵀ; a finite number, default 1/√D. 1 gives plain dot-product attention. */
  scale?: number;
  /** Return the attention weights too. Default false. */
  needWeights?: boolean;
  /** Default false: weights (B,H,L,S). true: their mean over the heads, (B,L,S). */
  averageWeights?: boolean;
  /** Query heads may be a multiple of key/value heads, each of which is shared. Default false. */
  enableGqa?: boolean;
  /**
   * What a query gives that has no key left. `'zero'` (default): zero output and weights. `'nan'`: NaN.
   * `'uniform'`: 1/S on all S keys, masked ones included, as a fill with −1e9 would.
   */
  fullyMasked?: 'zero' | 'nan' | 'uniform';
  /** Intermediates to return: `true` for every one but `weighted_values`, or the names wanted. Default none. */
  trace?: boolean | readonly TraceName[];
}

/**
 * Names of the intermediates, in the order they come up.
 *
 * - `q_proj`, `k_proj`, `v_proj` (B,L|S,H·D): the input projections
 * - `q`, `k`, `v` (B,H,L|S,D): the same, by head
 * - `scores` (B,H,L,S): q kᵀ · scale, before masks
 * - `masked_scores` (B,H,L,S): −Infinity where blocked
 * - `probabilities` (B,H,L,S): after softmax
 * - `weights` (B,H,L,S): what multiplies the values
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

export interface AttentionResult {
  output: Tensor;
  /** Only when `needWeights` is true. */
  weights?: Tensor;
  /** Only when `trace` asks for something; holds the names asked for that the operation has. */
  trace?: { readonly [name in TraceName]?: Tensor };
}

/** One running instance. Its functions need no `this`. */
export interface Attn {
  /** Version, variant, threads and heap. A fresh snapshot at every read. */
  readonly info: RuntimeInfo;

  /**
   * softmax(q kᵀ · scale + masks) v, Vaswani et al. 2017 eq. 1, torch's `F.scaled_dot_product_attention`.
   *
   * @param query (..,L,D) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,D)
   * @param value (..,S,Dv); L ≠ S and D ≠ Dv are fine
   * @returns output (..,L,Dv); weights (..,L,S) when asked for
   * @throws AttnError `SHAPE` when B, H, S or D disagree; `MASK`; `MEMORY` when the scores would not fit
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
   * exp(x − max) / Σ exp(x − max) along one dimension, torch's `F.softmax`.
   *
   * @param x any rank
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

  /** The layer, for this instance only: using it with another one is `WRONG_INSTANCE`. */
  readonly MultiHeadAttention: new (options: MultiHeadAttentionOptions) => MultiHeadAttention;

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

  /** Frees everything, the modules made from this instance too, and ends its threads. Idempotent; any later use throws `DISPOSED`. */
  dispose(): void;
  /** The same as {@link Attn.dispose}. On an engine without `Symbol.dispose` the key is `Symbol.for('Symbol.dispose')`, which compilers of `using` fall back to. */
  [Symbol.dispose](): void;
}

/** Tensors by name: a Map or a plain object. */
export type StateDict = Map<string, Tensor> | Readonly<Record<string, Tensor>>;

/** What every layer has. */
export interface Module {
  /**
   * Copies weights in, by torch's names and layouts.
   *
   * @param options `strict` (default true): missing, extra or mis-shaped names are all listed in one error; false: extra and missing names are left alone
   * @throws AttnError `MISMATCH`; nothing has been changed then
   */
  loadStateDict(state: StateDict, options?: { strict?: boolean }): void;
  /** A copy of the weights, by torch's names and layouts. */
  stateDict(): Map<string, Tensor>;
  /**
   * Draws new weights. A new module is initialised already (`'torch'`, seed 0). The numbers follow from the seed alone, on every machine.
   *
   * `scheme` defaults to `'torch'`, the distributions of torch's constructors; the others take fans per projection and zero
   * biases (gain 1 for Xavier, √2 and fan-in for Kaiming). `seed` is a whole number from 0 to 2⁵³ − 1, default 0; `std` is
   * for `'normal'`, default 0.02.
   */
  initialize(options?: {
    scheme?: 'torch' | 'xavier_uniform' | 'xavier_normal' | 'kaiming_uniform' | 'kaiming_normal' | 'normal';
    seed?: number;
    std?: number;
  }): void;
  /** Number of parameters (floats). */
  readonly parameterCount: number;
  /** Each parameter's name and shape. */
  parameterShapes(): Map<string, Dims>;
  /** Frees the weights. Idempotent; any later use throws `DISPOSED`. A module that is forgotten is freed when it is collected. */
  dispose(): void;
  /** The same as {@link Module.dispose}. */
  [Symbol.dispose](): void;
}

/** Sizes of a MultiHeadAttention. An unknown name is an `ARGUMENT` error; sizes that cannot work together are `CONFIG`. */
export interface MultiHeadAttentionOptions {
  /** E, the width of query and output; a multiple of `numHeads`. */
  embedDim: number;
  /** H; each head is E/H wide. */
  numHeads: number;
  /** Width of the keys. Default `embedDim`. */
  kdim?: number;
  /** Width of the values. Default `embedDim`. */
  vdim?: number;
  /** Biases on all projections. Default true. */
  bias?: boolean;
  /** Factor on q kᵀ; default 1/√(E/H). A call's own `scale` goes first. */
  scale?: number;
  /** Default true. false: no output projection, output is `merged` (B,L,E). */
  outProj?: boolean;
}

/**
 * Concat(head₁ … head_H) W_O with head_i = attention(q W_qᵢ, k W_kᵢ, v W_vᵢ): Vaswani et al. 2017 section 3.2.2, torch's
 * `nn.MultiheadAttention` with `batch_first`.
 *
 * State names are torch's: `in_proj_weight` (3E,E), or `q_proj_weight` (E,E), `k_proj_weight` (E,kdim) and `v_proj_weight`
 * (E,vdim) where kdim or vdim differ; `in_proj_bias` (3E); `out_proj.weight` (E,E), `out_proj.bias` (E). Also accepted:
 * `q_proj.weight`, `k_proj.weight`, `v_proj.weight` and their `.bias`. `stateDict()` gives back the form that torch would have.
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
   * @returns output (B,L,E); weights (B,H,L,S) when asked for
   * @throws AttnError `SHAPE`, `MASK`, `MEMORY`, `DISPOSED`, `WRONG_INSTANCE`
   */
  forward(query: Tensor, key?: Tensor, value?: Tensor, options?: AttentionOptions): AttentionResult;
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
 * - `MEMORY`: not enough memory
 * - `DISPOSED`: use after dispose()
 * - `WRONG_INSTANCE`: an object of another instance
 * - `BUSY`: a call while another one runs
 * - `DETACHED`: the array's buffer was transferred or shrunk
 * - `NETWORK`: a fetch failed; `detail.status` where the server answered
 * - `ABORTED`: the signal was aborted, or the worker is gone
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

/**
 * Every failure is one of these, thrown before anything is written; the instance stays usable (except after `INTERNAL`).
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
 *   if (error instanceof AttnError) console.log(error.code, error.detail.argument); // SHAPE x
 * }
 * ```
 */
export class AttnError extends Error {
  constructor(code: ErrorCode, message: string, detail?: Readonly<Record<string, unknown>>, options?: { cause?: unknown });
  readonly code: ErrorCode;
  /** Facts for programs, frozen: `op`, `argument`, `expected`, `got`, and what else the error knows. */
  readonly detail: Readonly<Record<string, unknown>>;
}
