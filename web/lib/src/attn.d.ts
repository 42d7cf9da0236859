/// <reference lib="esnext.disposable" />
/**
 * Transformer attention, layers and text models on typed arrays. Tensors are row-major, batch first and float32.
 *
 * Dimension letters: `B` batch, `H` heads, `Hkv` key and value heads, `L` query length, `S` key length, `E` model
 * width, `D` head width, `Dv` value head width, `F` feed-forward width, `C` classes, `V` vocabulary.
 *
 * Every function checks its arguments before it writes anything. If a check fails, it throws an {@link AttnError} and
 * the instance stays usable. {@link ErrorCode} lists the errors that every function can throw; the functions list only
 * their own. An option may be omitted or `undefined`; an unknown option is an `ARGUMENT` error.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
 * const { output, weights } = attn.scaledDotProductAttention(x, x, x, { needWeights: true });
 * console.log(output.dims, weights?.dims); // [ 3, 2 ] [ 3, 3 ]
 * attn.dispose();
 * ```
 * @packageDocumentation
 */

import type { BackwardResult, Gradients, ModelGradients } from './gradients.js';
import type { AbortSignal, Blob, Bytes, Fetch, Response, URL, WebAssemblyModule } from './host.js';
import type { Image, ImageClassifyOptions, ImageEmbedOptions, ImageInputs } from './images.js';
import type { ClassifyOptions, EmbedOptions, KeyValueCache, TextTasks } from './tasks.js';
import type {
  Activation,
  AttentionOptions,
  AttentionResult,
  Dims,
  EncoderTrace,
  EncoderTraceName,
  Encoding,
  Mask,
  Module,
  StateDict,
  Tensor,
  TokenizeOptions,
  TraceName,
} from './types.js';

export type { Image, ImageClassifyOptions, ImageCrop, ImageEmbedOptions, ImageInputs } from './images.js';
export type {
  BackwardResult,
  FineTuneExample,
  FineTuneOptions,
  FineTuneProgress,
  FineTuneResult,
  LanguageExample,
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
  ChatMessage,
  ChatTemplateOptions,
  ClassifyOptions,
  ClassifyTokensOptions,
  EmbedOptions,
  Entity,
  FilledMask,
  FillMaskOptions,
  GeneratedText,
  GenerateOptions,
  KeyValueCache,
  NextToken,
  PromptOptions,
  RankedDocument,
  RankOptions,
  ScoredText,
  Task,
  TextTasks,
  ZeroShotOptions,
} from './tasks.js';
export type {
  Activation,
  AttentionOptions,
  AttentionResult,
  Dims,
  EncoderTrace,
  EncoderTraceName,
  Encoding,
  Int8Tensor,
  Mask,
  Module,
  StateDict,
  Tensor,
  TokenizeOptions,
  TraceName,
} from './types.js';
export { encoderTraceNames, traceNames } from './types.js';

/** Options of {@link load}. */
export interface LoadOptions {
  /**
   * Location or contents of the .wasm file. The default is the file next to the package's own module, never a CDN. In
   * Node a string without a scheme is a path. `variant` must match the given build (`CONFIG`). A build with threads needs
   * shared memory, even for one thread.
   */
  wasm?: string | URL | ArrayBuffer | Uint8Array | Response | WebAssemblyModule | undefined;
  /**
   * Instruction set. `'simd'` gives the same bits on every machine. `'relaxed'` uses fused multiply-adds: it is faster
   * and the last bits may differ between machines. `'auto'`, the default, is `'relaxed'` if the engine accepts it, else
   * `'simd'`.
   */
  variant?: 'auto' | 'simd' | 'relaxed' | undefined;
  /**
   * Number of computing threads, 1 to 64, including the calling one; default 1. `'auto'` is min(4, cores / 2). In a
   * browser more than one thread needs cross-origin isolation and a worker, because the main thread must not wait;
   * otherwise attn uses one thread and `info.notes` gives the reason. The number never changes a bit of a result.
   */
  threads?: number | 'auto' | undefined;
  /**
   * Limit of the WebAssembly heap in bytes; default the limit of the engine, at most 4 GiB. A call that would need more
   * throws `MEMORY` before it starts.
   */
  maximumMemory?: number | undefined;
  /**
   * Accepted and ignored: the module always contains training.
   *
   * @deprecated It has no effect.
   */
  training?: boolean | undefined;
  /**
   * Rejects `load` with `ABORTED` when it aborts; the error's name is `AbortError` and its `cause` the signal's reason.
   */
  signal?: AbortSignal | undefined;
  /**
   * Receives the phases `'download'`, `'compile'` and `'start'`. `loaded` and `total` are bytes; `total` is missing if
   * the server does not send a length.
   */
  onProgress?: ((p: { phase: string; loaded: number; total?: number }) => void) | undefined;
}

/** Facts about a running instance. This is a snapshot: read `attn.info` again for new heap figures. */
export interface RuntimeInfo {
  readonly version: string;
  readonly variant: 'simd' | 'relaxed';
  readonly threads: number;
  /** Always true: every build computes gradients. */
  readonly training: boolean;
  /**
   * Sentences for people: why the variant or the thread count is not the best one for `'auto'`, and how the engine
   * multiplies int8 weights. `'int8: 16-bit pairs'` works everywhere; `'int8: relaxed dot, unsigned'` uses the relaxed
   * dot product of engines that compute it exactly.
   */
  readonly notes: readonly string[];
  /** Bytes of the WebAssembly heap in use now, and the largest number so far. */
  readonly heap: { readonly used: number; readonly peak: number };
}

/**
 * Loads the WebAssembly module and starts an instance. Several calls give independent instances.
 *
 * @param options see {@link LoadOptions}
 * @throws {AttnError} `CONFIG` if an option is out of range or contradicts the given `wasm`
 * @throws {AttnError} `NETWORK` if the .wasm file cannot be fetched
 * @throws {AttnError} `FORMAT` if the bytes are not attn's WebAssembly (HTML, a Git LFS pointer, a truncated file)
 * @throws {AttnError} `ENVIRONMENT` if the engine lacks WebAssembly SIMD or refuses the requested variant
 * @throws {AttnError} `MEMORY` if the memory cannot be allocated
 * @throws {AttnError} `ABORTED` if `signal` aborts
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * using attn = await load({ variant: 'simd', onProgress: ({ phase }) => console.log(phase) });
 * // download
 * // compile
 * // start
 *
 * console.log(attn.info.variant, attn.info.threads); // simd 1
 * ```
 */
export function load(options?: LoadOptions): Promise<Attn>;

/** A running instance, made by {@link load}. Its functions need no `this`. */
export interface Attn extends Gradients {
  /** Version, variant, threads and heap; a new snapshot at every read. */
  readonly info: RuntimeInfo;

  /**
   * Runs multiply-adds in registers on one thread. Time it to get the peak of the machine (2 operations each).
   *
   * @param multiplyAdds number of multiply-adds, 1 to 10⁹; 10⁸ take a few milliseconds
   * @param options `weights`: `'float32'` (default), or `'int8'` for the instructions that int8 weights use
   * @returns the number of multiply-adds that ran, slightly more than requested
   * @throws {AttnError} `OUT_OF_RANGE` if `multiplyAdds` is outside 1 to 10⁹
   * @throws {AttnError} `CONFIG` if `weights` is not one of the two names
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const start = performance.now();
   * const done = attn.peak(1e8);
   * console.log(`${((2e-6 * done) / (performance.now() - start)).toFixed(0)} GFLOP/s`); // … GFLOP/s
   * ```
   */
  peak(multiplyAdds: number, options?: { weights?: 'float32' | 'int8' | undefined }): number;

  /**
   * Computes scaled dot-product attention and returns the output and, on request, the weights:
   * softmax(softcap(q kᵀ · scale) + masks) v
   * (Vaswani et al. 2017, equation 1; torch's `F.scaled_dot_product_attention`).
   *
   * Masked keys are skipped, so their contents never matter. For other keys the IEEE rules apply: a weight below 2⁻¹²⁶
   * of the row's largest weight is 0, and 0 times an infinite value is NaN, as in torch. With more than 1024 keys the
   * result may be the infinity instead, as in float64.
   *
   * @param query (..,L,D) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,D)
   * @param value (..,S,Dv)
   * @param options see {@link AttentionOptions}
   * @returns output (..,L,Dv); weights (..,L,S) with `needWeights`; `present` with a `past` or `outputPresent`
   * @throws {AttnError} `SHAPE` if B, H, S or D of the inputs differ, or `past` does not fit
   * @throws {AttnError} `MASK` if a mask has no kind, or the wrong dims or values
   * @throws {AttnError} `CONFIG` if an option is out of range
   * @throws {AttnError} `MEMORY` if the results do not fit into memory
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
   * Computes additive attention: softmax(softcap(score · scale) + masks) v with
   * score_ij = scoreWeight · tanh(queryWeight q_i + keyWeight k_j + bias) (Bahdanau et al. 2015, appendix A.1.2).
   *
   * @param query (..,L,Dq) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,Dk)
   * @param value (..,S,Dv)
   * @param params `queryWeight` (A,Dq), `keyWeight` (A,Dk), `scoreWeight` (A) and `bias` (A), default none
   * @param options see {@link AttentionOptions}; `scale` defaults to 1
   * @returns output (..,L,Dv); weights (..,L,S) with `needWeights`
   * @throws {AttnError} those of {@link Attn.scaledDotProductAttention}; `SHAPE` also if a parameter does not fit
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
   * console.log(output.dims); // [ 3, 2 ]
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
   * Computes general (bilinear) attention: softmax(softcap(q weight kᵀ · scale) + masks) v (Luong et al. 2015, section
   * 3.1, "general"). The identity as weight gives their "dot".
   *
   * @param query (..,L,Dq) of rank 2, 3 (B first) or 4 (B,H first)
   * @param key (..,S,Dk)
   * @param value (..,S,Dv)
   * @param params `weight` (Dq,Dk)
   * @param options see {@link AttentionOptions}; `scale` defaults to 1
   * @returns output (..,L,Dv); weights (..,L,S) with `needWeights`
   * @throws {AttnError} those of {@link Attn.scaledDotProductAttention}; `SHAPE` also if the weight does not fit
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const weight = { data: new Float32Array([2, 0, 0, 2]), dims: [2, 2] };
   * console.log(attn.generalAttention(x, x, x, { weight }, { needWeights: true }).weights?.dims); // [ 3, 3 ]
   * ```
   */
  generalAttention(query: Tensor, key: Tensor, value: Tensor, params: { weight: Tensor }, options?: AttentionOptions): AttentionResult;

  /**
   * Computes x Wᵀ + b (torch's `F.linear`).
   *
   * @param x (..,in)
   * @param weight W (out,in)
   * @param bias b (out); default none
   * @returns (..,out)
   * @throws {AttnError} `SHAPE` if the widths differ
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 2]), dims: [1, 2] };
   * const weight = { data: new Float32Array([1, 1, 0, 3]), dims: [2, 2] };
   * console.log(...attn.linear(x, weight).data); // 3 6
   * ```
   */
  linear(x: Tensor, weight: Tensor, bias?: Tensor): Tensor;

  /**
   * Normalises the last dimension: (x − mean) / √(variance + eps) · weight + bias, with the biased variance (Ba et al.
   * 2016; torch's `F.layer_norm`).
   *
   * @param x (..,width)
   * @param weight (width); default 1
   * @param bias (width); default 0
   * @param eps finite and above 0; default 1e-5
   * @returns a tensor with the shape of x
   * @throws {AttnError} `SHAPE` if the widths differ or x has rank 0
   * @throws {AttnError} `CONFIG` if `eps` is out of range
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
   * Divides the last dimension by its root mean square: x / √(mean of x² + eps) · weight (Zhang & Sennrich 2019;
   * torch's `F.rms_norm`).
   *
   * @param x (..,width)
   * @param weight (width); default 1
   * @param eps finite and above 0; default 2⁻²³, as in torch
   * @returns a tensor with the shape of x
   * @throws {AttnError} `SHAPE` if the widths differ or x has rank 0
   * @throws {AttnError} `CONFIG` if `eps` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([3, -3]), dims: [2] };
   * console.log(...attn.rmsNorm(x).data); // 1 -1
   * ```
   */
  rmsNorm(x: Tensor, weight?: Tensor, eps?: number): Tensor;

  /**
   * Computes exp(x − max) / Σ exp(x − max) along one dimension (torch's `F.softmax`).
   *
   * @param x any rank from 1
   * @param dim the dimension; negative values count from the end; default −1
   * @returns a tensor with the shape of x
   * @throws {AttnError} `OUT_OF_RANGE` if x has no such dimension
   * @throws {AttnError} `SHAPE` if x has rank 0
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(...attn.softmax({ data: new Float32Array([0, 0]), dims: [2] }).data); // 0.5 0.5
   * ```
   */
  softmax(x: Tensor, dim?: number): Tensor;

  /**
   * Applies an activation function to each element (torch's `F.relu`, `F.gelu` and so on). NaN and ±Infinity give the
   * same results as in torch.
   *
   * @param x any rank
   * @param name see {@link Activation}
   * @returns a tensor with the shape of x
   * @throws {AttnError} `CONFIG` if there is no such function
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(...attn.activation({ data: new Float32Array([-1, 2]), dims: [2] }, 'relu').data); // 0 2
   * ```
   */
  activation(x: Tensor, name: Activation): Tensor;

  /**
   * Computes the table of sinusoidal positions, which is added to embeddings:
   * PE(pos, 2i) = sin(pos / 10000^(2i / width)) and PE(pos, 2i + 1) = cos of the same angle (Vaswani et al. 2017,
   * section 3.5). An odd width ends with a sine.
   *
   * @param length number of positions, from 0
   * @param width number of columns, from 0
   * @returns (length,width)
   * @throws {AttnError} `ARGUMENT` if an argument is not a whole number from 0
   * @throws {AttnError} `MEMORY` if the table does not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(...attn.sinusoidalPositions(2, 4).data); // 0 1 0 1 0.841… 0.540… 0.009… 0.999…
   * ```
   */
  sinusoidalPositions(length: number, width: number): Tensor;

  /**
   * Rotates each pair of columns of row l by the angle (offset + l) · theta^(−2i / D), i < D/2 (RoPE, Su et al. 2021).
   * The product of a query and a key then depends only on the distance of their positions.
   *
   * @param x queries or keys by head (..,L,D), D even
   * @param options.theta base of the wavelengths, finite and above 0; default 10000
   * @param options.offset position of row 0, a whole number; default 0
   * @param options.interleaved false (default) pairs column i with i + D/2 (GPT-NeoX, Hugging Face); true pairs 2i with
   * 2i + 1 (the paper)
   * @returns a tensor with the shape of x
   * @throws {AttnError} `SHAPE` if x has a rank below 2 or D is odd
   * @throws {AttnError} `CONFIG` if `theta` or `offset` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 1, 0]), dims: [2, 2] };
   * console.log(...attn.applyRotary(x).data); // 1 0 0.540… 0.841…
   * ```
   */
  applyRotary(x: Tensor, options?: { theta?: number | undefined; offset?: number | undefined; interleaved?: boolean | undefined }): Tensor;

  /**
   * Computes −slope_h · |i − j|, the data of an additive mask (ALiBi, Press et al. 2022). The paper's slopes also cover
   * numbers of heads that are not a power of two.
   *
   * @param numHeads H, from 1
   * @param length L, from 0
   * @param keyLength S, from 0; default L
   * @returns (1,H,L,S)
   * @throws {AttnError} `CONFIG` if `numHeads` is below 1
   * @throws {AttnError} `ARGUMENT` if a length is not a whole number from 0
   * @throws {AttnError} `MEMORY` if the result does not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array(2 * 3 * 4).fill(1), dims: [1, 2, 3, 4] };
   * const mask = { kind: 'additive', ...attn.alibiBias(2, 3) } as const;
   * console.log(attn.scaledDotProductAttention(x, x, x, { mask }).output.dims); // [ 1, 2, 3, 4 ]
   * ```
   */
  alibiBias(numHeads: number, length: number, keyLength?: number): Tensor;

  /**
   * Creates a {@link MultiHeadAttention} layer. Like every layer it belongs to this instance; another instance refuses
   * it (`WRONG_INSTANCE`).
   *
   * @throws {AttnError} `ARGUMENT` if an option is missing or unknown
   * @throws {AttnError} `CONFIG` if sizes are out of range or do not fit together
   * @throws {AttnError} `MEMORY` if the weights do not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 4, numKeyValueHeads: 2 });
   * console.log(layer.parameterShapes().get('k_proj.weight')); // [ 4, 8 ]
   * ```
   */
  readonly MultiHeadAttention: new (options: MultiHeadAttentionOptions) => MultiHeadAttention;
  /**
   * Creates one encoder layer (Vaswani et al. 2017; torch's `nn.TransformerEncoderLayer` with `batch_first`).
   *
   * - post-norm (default): x = norm1(x + attention(x)), then x = norm2(x + ff(x))
   * - pre-norm (`normFirst`): x += attention(norm1(x)), then x += ff(norm2(x))
   * - ff(x) = linear2(activation(linear1 x))
   * - ff(x) = linear2(activation(linear_gate x) · linear1 x) if `gated` (Shazeer 2020)
   *
   * State names are torch's: `self_attn.*` as in {@link MultiHeadAttention}; `linear1.weight` (F,E), `linear1.bias`
   * (F), `linear2.weight` (E,F), `linear2.bias` (E); `norm1.weight`, `norm1.bias`, `norm2.weight`, `norm2.bias` (E),
   * RMS norms without bias. A gated layer also has `linear_gate.weight` (F,E) and `linear_gate.bias` (F).
   *
   * @throws {AttnError} those of {@link Attn.MultiHeadAttention}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dimFeedforward: 16, normFirst: true });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
   * console.log(layer.forward(x).output.dims); // [ 1, 3, 8 ]
   * ```
   */
  readonly TransformerEncoderLayer: new (options: EncoderLayerOptions) => Encoder;
  /**
   * Creates a stack of `numLayers` encoder layers, with one more norm at the end if `finalNorm` is true (torch's
   * `nn.TransformerEncoder`).
   *
   * State names are torch's: `layers.N.*` as in {@link Attn.TransformerEncoderLayer}, and `norm.*` with `finalNorm`.
   *
   * @throws {AttnError} those of {@link Attn.MultiHeadAttention}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const encoder = new attn.TransformerEncoder({ dModel: 8, nhead: 2, dimFeedforward: 16, numLayers: 3 });
   * const x = { data: new Float32Array(4 * 8).fill(1), dims: [1, 4, 8] };
   * const trace = { layers: [1], names: ['norm1'] } as const;
   * const result = encoder.forward(x, { outputAttentions: true, trace });
   * console.log(result.attentions?.[2].dims, result.trace?.get(1)?.norm1?.dims); // [ 1, 2, 4, 4 ] [ 1, 4, 8 ]
   * ```
   */
  readonly TransformerEncoder: new (options: EncoderOptions) => Encoder;
  /**
   * Creates an encoder with a linear classifier: logits = pool(encoder(x)) Wᵀ + b.
   *
   * State names: `encoder.*` as in {@link Attn.TransformerEncoder}, `classifier.weight` (C,E), `classifier.bias` (C).
   *
   * @throws {AttnError} those of {@link Attn.MultiHeadAttention}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const sizes = { dModel: 8, nhead: 2, dimFeedforward: 16, numLayers: 1 };
   * const classifier = new attn.TransformerClassifier({ ...sizes, numClasses: 3, pooling: 'mean' });
   * const x = { data: new Float32Array(2 * 4 * 8).fill(1), dims: [2, 4, 8] };
   * console.log(classifier.forward(x).logits.dims); // [ 2, 3 ]
   * ```
   */
  readonly TransformerClassifier: new (options: ClassifierOptions) => Classifier;
  /**
   * Creates a table of vectors by id (torch's `nn.Embedding`): `numEmbeddings` N rows of `embeddingDim` E numbers. Row
   * `paddingIdx` (default none) is zero whenever weights are drawn.
   *
   * State name: `weight` (N,E).
   *
   * @throws {AttnError} those of {@link Attn.MultiHeadAttention}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([1, 0, 1, 0.1, 0, 1]), dims: [3, 2] } });
   * console.log(...words.forward([2, 0]).data); // 0 1 1 0
   * ```
   */
  readonly Embedding: new (options: { numEmbeddings: number; embeddingDim: number; paddingIdx?: number | undefined }) => Embedding;

  /**
   * Reads a safetensors file. F32, F16, BF16 and F64 tensors become Float32Arrays; integer and bool tensors are checked
   * and omitted.
   *
   * @param bytes the whole file
   * @returns tensors by name
   * @throws {AttnError} `FORMAT` if the bytes are not a valid safetensors file
   * @throws {AttnError} `UNSUPPORTED` if a tensor has another element type
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
   * console.log(attn.parseSafetensors(bytes).get('a')?.dims); // [ 1 ]
   * ```
   */
  parseSafetensors(bytes: Uint8Array | ArrayBuffer): Map<string, Tensor>;

  /**
   * Writes a safetensors file: F32, names sorted by their UTF-8 bytes, data aligned to 8 bytes. `parseSafetensors`
   * reads the same bits back.
   *
   * @param tensors tensors by name
   * @param metadata strings for `__metadata__`; default none
   * @returns the whole file
   * @throws {AttnError} `ARGUMENT` if a name or string is not well-formed Unicode, or a tensor is named `__metadata__`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const file = attn.writeSafetensors({ a: { data: new Float32Array([1, 2]), dims: [2] } }, { made: 'by hand' });
   * console.log(...attn.parseSafetensors(file).get('a')!.data); // 1 2
   * ```
   */
  writeSafetensors(tensors: StateDict, metadata?: Readonly<Record<string, string>>): Bytes;

  /**
   * Loads a model from a Hugging Face model folder, with the sentence-transformers files if there are any, or from a
   * GGUF file of a language model.
   *
   * Families: BERT, ModernBERT, GPT-2, Llama, Qwen and more, with or without a head ({@link TextTasks.task}); the guide
   * "Which model" lists them. A folder of ViT, DeiT or DINOv2 gives an {@link ImageModel}. Weights (F32, F16, BF16) are
   * copied into the module while they arrive; no copy of the file is kept.
   *
   * @typeParam Kind `'image'` if the folder has an image model; only TypeScript needs it
   * @param source a folder or its files, see {@link ModelSource}
   * @param options see {@link ModelOptions}
   * @throws {AttnError} `NETWORK` if a file cannot be fetched or read
   * @throws {AttnError} `FORMAT` if a file is invalid (HTML, a Git LFS pointer, truncated, another SHA-256)
   * @throws {AttnError} `UNSUPPORTED` if attn does not have this kind of model, tokenizer or file
   * @throws {AttnError} `CONFIG` if config.json has sizes out of range
   * @throws {AttnError} `MISMATCH` if weights are missing or have the wrong shape, or int8 files have unexpected ones;
   * one error lists all
   * @throws {AttnError} `MEMORY` if the model does not fit into memory
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment'); // a folder: its URL or, in Node, its path
   * const [[{ label }]] = await model.classify('What a wonderful film!');
   * console.log(label); // positive
   *
   * const vit = await attn.loadModel<'image'>('models/tiny-vit');
   * console.log(vit.task); // image-classification
   * ```
   */
  loadModel<Kind extends keyof ModelKinds = 'text'>(source: ModelSource, options?: ModelOptions): Promise<ModelKinds[Kind]>;

  /**
   * Frees the instance with all its modules and models, and ends its threads. Later calls of `dispose` do nothing; any
   * other use throws `DISPOSED`.
   *
   * @example
   * ```ts
   * import { AttnError, load } from 'attn';
   *
   * const attn = await load();
   * attn.dispose();
   * try {
   *   attn.softmax({ data: new Float32Array(2), dims: [2] }, 0);
   * } catch (error) {
   *   console.log((error as AttnError).code); // DISPOSED
   * }
   * ```
   */
  dispose(): void;
  /**
   * Calls {@link Attn.dispose}. If an engine has no `Symbol.dispose`, the key is `Symbol.for('Symbol.dispose')`, which
   * compilers of `using` fall back to.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * using attn = await load(); // freed at the end of the block
   * console.log(attn.info.threads); // 1
   * ```
   */
  [Symbol.dispose](): void;
}

/** Options of a {@link MultiHeadAttention}. Sizes that do not fit together are a `CONFIG` error. */
export interface MultiHeadAttentionOptions {
  /** E, width of query and output; a multiple of `numHeads` unless `headDim` is given. */
  embedDim: number;
  /** H, number of query heads. */
  numHeads: number;
  /** Hkv, a divisor of H: each key and value head serves H/Hkv query heads (Ainslie et al. 2023). Default H. */
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
  /** One more learned key and value (`bias_k`, `bias_v`) that every query sees. Default false. */
  addBiasKv?: boolean | undefined;
  /** One more key and value of zeros that every query sees. Default false. */
  addZeroAttn?: boolean | undefined;
  /** Dropout probability of the weights in train mode, in [0,1). Default 0. */
  dropout?: number | undefined;
  /** Factor of q kᵀ. Default 1/√D. The `scale` of a call has precedence. */
  scale?: number | undefined;
  /** Output projection. If false, the output is `merged` (B,L,H·Dv). Default true. */
  outProj?: boolean | undefined;
  /**
   * Rotates projected queries and keys as {@link Attn.applyRotary} does, with the same defaults. D must be even. The
   * first query is at position `offset` + `queryOffset`, the first new key at `offset` + the length of `past`;
   * `present` holds rotated keys. Default none.
   */
  rotary?: { theta?: number | undefined; interleaved?: boolean | undefined; offset?: number | undefined } | undefined;
}

/**
 * Multi-head attention: Concat(head₁ … head_H) W_O with head_i = attention(q W_qᵢ, k W_kᵢ, v W_vᵢ) (Vaswani et al.
 * 2017, section 3.2.2; torch's `nn.MultiheadAttention` with `batch_first`).
 *
 * State names are torch's: `in_proj_weight` (3E,E), or `q_proj_weight` (E,E), `k_proj_weight` (E,kdim) and
 * `v_proj_weight` (E,vdim) if kdim or vdim differ from E; `in_proj_bias` (3E); `bias_k` and `bias_v` (1,1,E) with
 * `addBiasKv`; `out_proj.weight` (E,E), `out_proj.bias` (E). `loadStateDict` also accepts `q_proj.weight` (H·D,E),
 * `k_proj.weight` (Hkv·D,kdim), `v_proj.weight` (Hkv·Dv,vdim) and their `.bias`; `headDim`, `valueHeadDim` and
 * `numKeyValueHeads` require this form. `stateDict` returns torch's form if there is one.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
 * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
 * const { output, weights } = mha.forward(x, undefined, undefined, { needWeights: true, isCausal: true });
 * console.log(output.dims, weights?.dims); // [ 1, 3, 8 ] [ 1, 2, 3, 3 ]
 * mha.dispose();
 * ```
 */
export interface MultiHeadAttention extends Module {
  /**
   * Computes the attention of queries over keys and values.
   *
   * @param query (B,L,E), or (L,E) without a batch; then output and weights have no batch either
   * @param key (B,S,kdim); default query
   * @param value (B,S,vdim); default query
   * @param options see {@link AttentionOptions}
   * @returns output (B,L,E); weights (B,H,L,S) with `needWeights`; `present` with a `past` or `outputPresent`
   * @throws {AttnError} those of {@link Attn.scaledDotProductAttention}
   * @throws {AttnError} `UNSUPPORTED` for a `past` in a layer with `addBiasKv` or `addZeroAttn`, whose added key is
   * last
   *
   * @example
   * ```ts
   * // Row by row, as a decoder writes: each call gets the keys and values of the earlier calls.
   * import { load, type AttentionResult } from 'attn';
   *
   * const attn = await load();
   * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2, rotary: {} });
   * let past: AttentionResult['present'];
   * for (const token of [1, 2, 3]) {
   *   const row = { data: new Float32Array(8).fill(token), dims: [1, 1, 8] };
   *   past = mha.forward(row, undefined, undefined, { isCausal: true, past, outputPresent: true }).present;
   * }
   * console.log(past?.key.dims); // [ 1, 2, 3, 4 ]
   * ```
   */
  forward(query: Tensor, key?: Tensor, value?: Tensor, options?: AttentionOptions): AttentionResult;
  /**
   * Computes the gradients of the last forward with `forBackward` or in train mode, adds those of the parameters to
   * {@link Module.gradients}, and frees the saved values (torch.autograd of `nn.MultiheadAttention`). Probabilities
   * are recomputed: apart from a trace nothing as large as (B,H,L,S) is stored. Rows of zeros in `grad` contribute to no
   * gradient. The bits do not depend on the number of threads.
   *
   * @param grad gradient of the output, with its shape
   * @param options.trace intermediates whose gradients to return, as in {@link AttentionOptions}
   * @throws {AttnError} `ARGUMENT` without such a forward since the last `backward` or change of weights
   * @throws {AttnError} `SHAPE` if `grad` has another shape
   * @throws {AttnError} `UNSUPPORTED` for an int8 layer
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
   * const { output } = mha.forward(x, undefined, undefined, { forBackward: true });
   * console.log(mha.backward(output).gradQuery.dims, mha.gradients().size); // [ 1, 3, 8 ] 4
   * ```
   */
  backward(grad: Tensor, options?: { trace?: boolean | readonly TraceName[] | undefined }): BackwardResult;
}

/** Options of an encoder layer. Sizes that do not fit together are a `CONFIG` error. */
export interface EncoderLayerOptions {
  /** E, width of input and output; a multiple of `nhead`. */
  dModel: number;
  /** H, number of heads. */
  nhead: number;
  /** F, width of the feed-forward part. Default 2048. */
  dimFeedforward?: number | undefined;
  /** Dropout probability in train mode, in [0,1), at torch's four places. Default 0.1. */
  dropout?: number | undefined;
  /** Activation of the feed-forward part. Default `'relu'`. */
  activation?: Activation | undefined;
  /** eps of the norms, above 0. Default 1e-5. */
  layerNormEps?: number | undefined;
  /** Norms before attention and feed-forward instead of after the sums. Default false. */
  normFirst?: boolean | undefined;
  /** Biases on all linear maps and layer norms. Default true. */
  bias?: boolean | undefined;
  /** Kind of the norms. Default `'layer_norm'`. */
  norm?: 'layer_norm' | 'rms_norm' | undefined;
  /** Gated feed-forward part: linear2(activation(linear_gate x) · linear1 x). Default false. */
  gated?: boolean | undefined;
  /** See {@link MultiHeadAttentionOptions.numKeyValueHeads}; the state then has separate projections. */
  numKeyValueHeads?: number | undefined;
  /** See {@link MultiHeadAttentionOptions.headDim}; `dModel` may then be any number. */
  headDim?: number | undefined;
  /** See {@link MultiHeadAttentionOptions.rotary}. Default none. */
  rotary?: { theta?: number | undefined; interleaved?: boolean | undefined; offset?: number | undefined } | undefined;
  /** See {@link AttentionOptions.window}; applies to every call. Default no limit. */
  window?: readonly [number, number] | undefined;
  /** See {@link AttentionOptions.softcap}; applies to every call. Default 0. */
  softcap?: number | undefined;
}

/** Options of a stack of encoder layers. */
export interface EncoderOptions extends EncoderLayerOptions {
  /** Number of layers, 1 to 10 000. */
  numLayers: number;
  /** One more norm after the last layer. Default false. */
  finalNorm?: boolean | undefined;
}

/** Options of an encoder's forward. */
export interface EncoderForwardOptions {
  /** See {@link AttentionOptions.mask}, with S = L; applies to every layer. */
  mask?: Mask | undefined;
  /** Mask of padding: dims `[B,L]`, or `[L]` without a batch. A classifier's pooling also ignores padding. */
  keyPaddingMask?: Mask | undefined;
  /** See {@link AttentionOptions.isCausal}. Default false. */
  isCausal?: boolean | undefined;
  /** See {@link AttentionOptions.fullyMasked}. Default `'zero'`. */
  fullyMasked?: 'zero' | 'nan' | 'uniform' | undefined;
  /** Keeps what `backward` needs, as in train mode. Default false. */
  forBackward?: boolean | undefined;
  /** Returns the attention weights of every layer. Default false. */
  outputAttentions?: boolean | undefined;
  /** Returns the input of every layer and the output. Default false. */
  outputHiddenStates?: boolean | undefined;
  /**
   * Intermediates to return: `layers`, counted from 0 (default all), and `names` (default all except
   * `weighted_values`). A layer that does not exist is an `OUT_OF_RANGE` error.
   */
  trace?: { readonly layers?: readonly number[] | undefined; readonly names?: readonly EncoderTraceName[] | undefined } | undefined;
  /** See {@link AttentionOptions.queryOffset}; applies to every layer. Default 0. */
  queryOffset?: number | undefined;
}

/** Result of an encoder's forward. */
export interface EncoderResult {
  /** (B,L,E). */
  output: Tensor;
  /** Attention weights (B,H,L,L) of each layer; only with `outputAttentions`. */
  attentions?: Tensor[];
  /** Input (B,L,E) of each layer, then `output`; only with `outputHiddenStates`. */
  hiddenStates?: Tensor[];
  /** Intermediates by layer; only with `trace`. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/**
 * An encoder layer or a stack of them, made by {@link Attn.TransformerEncoderLayer} or {@link Attn.TransformerEncoder}.
 */
export interface Encoder extends Module {
  /**
   * Computes the layers.
   *
   * @param x (B,L,E), or (L,E) without a batch; then no result has one
   * @param options see {@link EncoderForwardOptions}
   * @returns output (B,L,E), and the results that the options request
   * @throws {AttnError} `SHAPE` if x has another rank or width
   * @throws {AttnError} `MASK` if a mask has no kind, or the wrong dims or values
   * @throws {AttnError} `OUT_OF_RANGE` if `trace` names a layer that does not exist
   * @throws {AttnError} `MEMORY` if the results do not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const encoder = new attn.TransformerEncoder({ dModel: 8, nhead: 2, numLayers: 2 });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [3, 8] };
   * console.log(encoder.forward(x, { outputHiddenStates: true }).hiddenStates?.length); // 3
   * ```
   */
  forward(x: Tensor, options?: EncoderForwardOptions): EncoderResult;
  /**
   * Computes the gradients of the last forward, as {@link MultiHeadAttention.backward} (torch.autograd of
   * `nn.TransformerEncoder`). Norms, the activated hidden layer, probabilities and dropout are recomputed: apart from a
   * trace no memory grows with L².
   *
   * @param grad gradient of the output, with its shape
   * @param options see {@link EncoderBackwardOptions}
   * @returns `gradX` with the shape of x, and the trace by layer
   * @throws {AttnError} those of {@link MultiHeadAttention.backward}; `OUT_OF_RANGE` if `trace` names a layer that does
   * not exist
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2 });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
   * const { output } = layer.forward(x, { forBackward: true });
   * console.log(layer.backward(output).gradX.dims); // [ 1, 3, 8 ]
   * ```
   */
  backward(grad: Tensor, options?: EncoderBackwardOptions): EncoderBackwardResult;
}

/** Options of a classifier. */
export interface ClassifierOptions extends EncoderOptions {
  /** C, number of classes. */
  numClasses: number;
  /**
   * Pooling over positions: `'none'` (default) gives logits (B,L,C). `'mean'` and `'max'`, both without padding, and
   * `'cls'`, the first position, give (B,C). A sequence that is all padding pools to the value of `fullyMasked`.
   */
  pooling?: 'none' | 'mean' | 'cls' | 'max' | undefined;
}

/** Options of the `backward` of an encoder or classifier. */
export interface EncoderBackwardOptions {
  /** Intermediates whose gradients to return, see {@link EncoderForwardOptions.trace}. */
  trace?: EncoderForwardOptions['trace'];
}

/** Result of the `backward` of an encoder or classifier. */
export interface EncoderBackwardResult {
  /** Gradient of the input x, with its shape. */
  gradX: Tensor;
  /** Gradients of intermediates by layer; only with `trace`. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/** An encoder with a linear classifier, made by {@link Attn.TransformerClassifier}. */
export interface Classifier extends Module {
  /**
   * Computes the encoder and the logits.
   *
   * @param x (B,L,E), or (L,E) without a batch; then no result has one
   * @param options see {@link EncoderForwardOptions}
   * @returns the encoder's results and logits (B,C), or (B,L,C) without pooling
   * @throws {AttnError} those of {@link Encoder.forward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const classifier = new attn.TransformerClassifier({ dModel: 8, nhead: 2, numLayers: 1, numClasses: 3 });
   * const x = { data: new Float32Array(4 * 8).fill(1), dims: [4, 8] };
   * console.log(classifier.forward(x).logits.dims); // [ 4, 3 ]
   * ```
   */
  forward(x: Tensor, options?: EncoderForwardOptions): EncoderResult & { logits: Tensor };
  /**
   * Computes the gradients of the last forward; see {@link Encoder.backward}.
   *
   * @param gradLogits gradient of the logits, with their shape
   * @param options see {@link EncoderBackwardOptions}
   * @returns `gradX` with the shape of x, and the trace by layer
   * @throws {AttnError} those of {@link Encoder.backward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const sizes = { dModel: 8, nhead: 2, numLayers: 1, dropout: 0 };
   * const classifier = new attn.TransformerClassifier({ ...sizes, numClasses: 2, pooling: 'cls' });
   * const x = { data: new Float32Array(3 * 8).fill(1), dims: [1, 3, 8] };
   * const { logits } = classifier.forward(x, { forBackward: true });
   * const { gradient } = attn.crossEntropy(logits, [1]);
   * console.log(classifier.backward(gradient).gradX.dims); // [ 1, 3, 8 ]
   * ```
   */
  backward(gradLogits: Tensor, options?: EncoderBackwardOptions): EncoderBackwardResult;
}

/** A table of vectors by id, made by {@link Attn.Embedding}. */
export interface Embedding extends Module {
  /**
   * Looks up the rows of ids (torch's `F.embedding`).
   *
   * @param ids whole numbers from 0 to N − 1
   * @param dims shape of the ids, rank 7 at most; default [number of ids]
   * @param options.forBackward keeps the ids for {@link Embedding.backward}, as in train mode; default false
   * @returns (..dims,E)
   * @throws {AttnError} `OUT_OF_RANGE` if the table does not have an id
   * @throws {AttnError} `SHAPE` if `dims` does not fit the number of ids
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
   * console.log(words.forward([2, 0, 1, 1], [2, 2]).dims); // [ 2, 2, 2 ]
   * ```
   */
  forward(ids: Int32Array | BigInt64Array | readonly number[], dims?: Dims, options?: { forBackward?: boolean | undefined }): Tensor;
  /**
   * Adds the rows of `grad` to the gradient of the table, each to the row of its id in the last forward; the row of
   * `paddingIdx` gets no gradient (torch.autograd of `F.embedding`).
   *
   * @param grad (..dims,E), gradient of the result of the last forward with `forBackward` or in train mode
   * @throws {AttnError} those of {@link MultiHeadAttention.backward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 1 });
   * words.forward([2], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([5]), dims: [1, 1] });
   * console.log(...words.gradients().get('weight')!.data); // 0 0 5
   * ```
   */
  backward(grad: Tensor): void;
  /**
   * Finds the rows with the largest cosine similarity. A row of zeros has cosine 0; of equal rows the lower id is
   * first.
   *
   * @param target an id, which is excluded itself, or a vector (E)
   * @param k maximal number of results, from 0
   * @returns ids by descending similarity
   * @throws {AttnError} `OUT_OF_RANGE` if the table does not have the id
   * @throws {AttnError} `SHAPE` if the vector has another width
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([1, 0, 1, 1, 0, 1]), dims: [3, 2] } });
   * console.log(words.nearest(0, 2).map(({ id }) => id)); // [ 1, 2 ]
   * ```
   */
  nearest(target: number | Float32Array, k: number): { id: number; similarity: number }[];
  /**
   * Computes the cosine of the angle between the rows of two ids; 0 if a row is zero.
   *
   * @param a id of a row
   * @param b id of another row
   * @throws {AttnError} `OUT_OF_RANGE` if the table does not have an id
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 2, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([1, 0, 1, 1]), dims: [2, 2] } });
   * console.log(words.similarity(0, 1).toFixed(4)); // 0.7071
   * ```
   */
  similarity(a: number, b: number): number;
  /**
   * Solves "a is to b as c is to ?": finds the rows nearest to b − a + c, without a, b and c (Mikolov et al. 2013).
   *
   * @param a id of "man" in "man is to king as woman is to ?"
   * @param b id of "king"
   * @param c id of "woman"
   * @param k maximal number of results, from 0
   * @returns ids by descending similarity
   * @throws {AttnError} `OUT_OF_RANGE` if the table does not have an id
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
 * The source of a model: the URL of a folder or GGUF file (in Node also a path), or its files by name.
 *
 * - The folder has config.json, tokenizer.json and model.safetensors (or model.safetensors.index.json and the files
 *   that it names), and optionally tokenizer_config.json and modules.json with the files that it names
 *   (1_Pooling/config.json, 2_Dense …, sentence_bert_config.json, config_sentence_transformers.json; config.json and the
 *   like may be in 0_Transformer).
 * - A URL, not an id of the Hub: {@link hub} returns the URL of a Hub model. A relative URL is relative to the page,
 *   and its query is appended to each file.
 * - A GGUF file of a decoder (its URL, its path, or `{ 'model.gguf': blob }`) instead of a folder.
 * - Files by name: bytes, a Blob, or a string with the text of a JSON file. The names may share a folder, as those of
 *   `<input type="file" webkitdirectory>` do; other files are ignored.
 *
 * @example
 * ```ts
 * import { readFile } from 'node:fs/promises';
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const names = ['config.json', 'tokenizer.json', 'model.safetensors'];
 * const read = async (name: string) => [name, await readFile(`models/sentiment/${name}`)] as const;
 * const model = await attn.loadModel(Object.fromEntries(await Promise.all(names.map(read))));
 * console.log(model.task); // text-classification
 * ```
 */
export type ModelSource = string | URL | Readonly<Record<string, Uint8Array | ArrayBuffer | Blob | string>>;

/** Options of {@link Attn.loadModel}. */
export interface ModelOptions {
  /**
   * Storage and arithmetic of the linear maps and the embedding matrix. `'int8'` quantizes weights and activations row
   * by row as {@link Module.quantize} does. `'float32'` also accepts int8 files and dequantizes them. `'auto'`, the
   * default, is int8 if the files are int8 (compressed-tensors), else float32.
   */
  weights?: 'auto' | 'float32' | 'int8' | undefined;
  /** Function to use instead of the global `fetch`. `attn/worker` cannot send a function: use `request` there. */
  fetch?: Fetch | undefined;
  /**
   * Settings of each request, for models that are not public: `headers` such as `{ authorization: 'Bearer …' }`, and
   * `credentials` as in `fetch` (default `'same-origin'`). Such files are cached like all others unless `cache` is
   * `'none'`.
   */
  request?: { headers?: Readonly<Record<string, string>> | undefined; credentials?: 'omit' | 'same-origin' | 'include' | undefined } | undefined;
  /**
   * Use of the Cache API, or in Node of `cacheDir`:
   *
   * - `'default'` stores the files in the cache `attn-models` under their URL once the model has loaded; `attn/cache`
   *   lists and deletes them. The query, which may be a signature or a token, is not part of the key. The next load
   *   sends a HEAD request per file to check whether the ETag, or else Last-Modified, has changed, and then downloads
   *   all files again. Without an answer within 3 seconds it uses the cached files. Files with a `sha256` are not
   *   checked.
   * - `'reload'` downloads all files, bypassing the browser's own cache, and replaces the cached ones.
   * - `'none'` neither reads nor writes the cache. Use it if a server chooses the model by the query.
   *
   * An interrupted download is stored in `attn-models-parts`; the next load continues it with a Range request if the
   * file is unchanged and the answer has a Content-Range, which a server of another origin must expose. Of several
   * simultaneous loads of one folder, in any tab or process, one downloads and the others wait for it. Weights in
   * several files are cached and resumed as one.
   */
  cache?: 'default' | 'none' | 'reload' | undefined;
  /**
   * In Node, the folder for downloaded files, which is created if necessary. Default the environment variable
   * `ATTN_CACHE_DIR`; without either nothing is stored. In a browser it is an `ENVIRONMENT` error.
   */
  cacheDir?: string | undefined;
  /**
   * Hex SHA-256 digests by file name. A missing file or another digest is a `FORMAT` error, and nothing is cached; a
   * file that attn never reads is an `ARGUMENT` error.
   */
  sha256?: Readonly<Record<string, string>> | undefined;
  /** Rejects with `ABORTED` and frees everything when it aborts. */
  signal?: AbortSignal | undefined;
  /**
   * Receives the phases `'download'`, `'cache'` and `'read'` (files that are not fetched). `loaded` and `total` are
   * bytes of `file`, from 0 to all; `total` is missing if the server does not send a length. An error that it throws
   * ends the load with `ARGUMENT`.
   *
   * `progress` is the loaded share of all files, from 0 to 1, for one progress bar. It never decreases, and the last
   * report has 1; the weights count for 95 %. If the server does not send their length, it grows ever more slowly until
   * the end. It returns to 0 only if the cached files are damaged and are downloaded again.
   */
  onProgress?: ((p: { phase: string; file?: string; loaded: number; total?: number; progress: number }) => void) | undefined;
}

/** Result of {@link TextModel.forward}. */
export interface TextModelOutput {
  /** (B,L,E). */
  lastHiddenState: Tensor;
  /**
   * Logits of the head, if there is one: (B,C) for text classification, (B,L,C) for token classification, (B,L,V) for
   * fill-mask and text generation, (B,1,V) with `outputLogits: 'last'`, (B,L,2) with start and end for question
   * answering, (B,1) with one row per choice for multiple choice.
   */
  logits?: Tensor;
  /** Attention weights (B,H,L,L) of each layer; only with `outputAttentions`. */
  attentions?: Tensor[];
  /** The layers' inputs (B,L,E) and the output, as in transformers; only with `outputHiddenStates`. */
  hiddenStates?: Tensor[];
  /** Intermediates by layer; only with `trace`. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/**
 * Replaces values of one layer in a forward (activation patching, Vig et al. 2020). {@link TextForwardOptions.headMask}
 * is applied afterwards.
 */
export interface LayerPatch {
  /** Index of the layer, from 0. */
  readonly layer: number;
  /** (B,L,E), its input. */
  readonly hiddenState?: Tensor | undefined;
  /** (B,L,E), its concatenated heads before W_O. */
  readonly merged?: Tensor | undefined;
}

/** Options of {@link TextModel.forward}. */
export interface TextForwardOptions {
  /** Returns the attention weights of every layer. Default false. */
  outputAttentions?: boolean | undefined;
  /** Returns the input of every layer and the output. Default false. */
  outputHiddenStates?: boolean | undefined;
  /**
   * Computes the logits. Default true. Set it to false to save the (B,L,V) logits of a vocabulary, or to `'last'` for
   * those of the last token of each text.
   */
  outputLogits?: boolean | 'last' | undefined;
  /** Intermediates to return: `layers` (default all) and `names` (default all except `weighted_values`). */
  trace?: { readonly layers?: readonly number[] | undefined; readonly names?: readonly EncoderTraceName[] | undefined } | undefined;
  /**
   * See {@link AttentionOptions.mask}; applies to every layer, in addition to padding and the model's own masks. A
   * query whose keys are all masked attends to all keys equally, as in transformers.
   */
  mask?: Mask | undefined;
  /** Hides later tokens in every layer. Default false. */
  isCausal?: boolean | undefined;
  /**
   * Factors (layers,H) of the heads' results before W_O; 0 removes a head (Michel et al. 2019). `attentions` and the
   * trace `context` are unaffected; the trace `merged` is multiplied.
   */
  headMask?: Tensor | undefined;
  /** Replaces values inside layers. Several patches are of different layers, or of different values of one. */
  patch?: LayerPatch | readonly LayerPatch[] | undefined;
  /**
   * Continues after the tokens in a cache of {@link TextModel.createCache}, and adds the inputs to it. Results are those
   * of the inputs' tokens, with the same bits as without a cache; the S of attentions counts all tokens.
   */
  cache?: KeyValueCache | undefined;
}

/**
 * A model with its tokenizer, made by {@link Attn.loadModel}. It is freed with its instance.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/sentiment');
 * // The attention from the first token to all tokens, in head 0 of the last layer.
 * const inputs = model.tokenize('not bad');
 * const last = model.forward(inputs, { outputAttentions: true }).attentions!.at(-1)!;
 * inputs.tokens[0].forEach((token, i) => console.log(token, last.data[i].toFixed(2)));
 * // [CLS] 0.…
 * // not 0.…
 * // bad 0.…
 * // [SEP] 0.…
 * ```
 */
export interface TextModel extends ModelGradients, TextTasks {
  /** Contents of config.json, frozen. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Labels in the order of the logits; `undefined` if the head has no labels. */
  readonly labels?: readonly string[];
  /** Parts of the files that the model does not use, such as the tensors of another head, in sentences. */
  readonly notes: readonly string[];
  /** Storage of the linear maps, see {@link ModelOptions.weights}. */
  readonly weights: 'float32' | 'int8';

  /**
   * Tokenizes texts exactly as the Hugging Face tokenizers do, with special tokens.
   *
   * @param texts one text, several texts or several pairs; a lone surrogate counts as U+FFFD
   * @param options see {@link TokenizeOptions}
   * @throws {AttnError} `OUT_OF_RANGE` if a text is too long and `truncation` is false, or `maxLength` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { tokens, dims } = model.tokenize(['not bad', 'a film']);
   * console.log(tokens[0].join(' '), dims); // [CLS] not bad [SEP] [ 2, 4 ]
   * ```
   */
  tokenize(texts: string | readonly string[] | readonly (readonly [string, string])[], options?: TokenizeOptions): Encoding;

  /**
   * Runs the whole model. Padding does not change a bit of the other positions.
   *
   * @param inputs from {@link TextModel.tokenize}, or built by hand
   * @param options see {@link TextForwardOptions}
   * @throws {AttnError} `OUT_OF_RANGE` if an id, a position or a layer does not exist
   * @throws {AttnError} `SHAPE` or `MASK` if a tensor or mask does not fit
   * @throws {AttnError} `UNSUPPORTED` if padding is between tokens of a language model that are within one sliding
   * window, where transformers counts the padding
   * @throws {AttnError} `MEMORY` if the results do not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const inputs = model.tokenize('not bad');
   * const { lastHiddenState, logits } = model.forward(inputs);
   * console.log(lastHiddenState.dims, logits?.dims); // [ 1, 4, 64 ] [ 1, 2 ]
   *
   * // The same without head 0 of layer 0.
   * const headMask = { data: new Float32Array([0, 1, 1, 1, 1, 1, 1, 1]), dims: [2, 4] };
   * console.log(model.forward(inputs, { headMask }).logits!.data[0] === logits!.data[0]); // false
   * ```
   */
  forward(inputs: Encoding, options?: TextForwardOptions): TextModelOutput;

  /**
   * Returns the intermediates of one layer.
   *
   * @param inputs from {@link TextModel.tokenize}, or built by hand
   * @param layer counted from 0
   * @param names see {@link EncoderTraceName}; default all except `weighted_values`
   * @throws {AttnError} those of {@link TextModel.forward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { scores } = model.traceLayer(model.tokenize('not bad'), 0, ['scores']);
   * console.log(scores?.dims); // [ 1, 4, 4, 4 ]
   * ```
   */
  traceLayer(inputs: Encoding, layer: number, names?: readonly EncoderTraceName[]): EncoderTrace;

  /**
   * Applies the head of a language model to hidden states, and returns the logits (…,V) of (…,E). For the
   * `lastHiddenState` of a forward they are the forward's logits, to the bit.
   *
   * @param hiddenStates (…,E), after the model's last norm
   * @throws {AttnError} `UNSUPPORTED` unless the model's task is `'text-generation'` or `'fill-mask'`
   * @throws {AttnError} `SHAPE` if the last dimension is not E
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
   * const { lastHiddenState, logits } = model.forward(model.tokenize('The old man'));
   * console.log(model.unembed(lastHiddenState).data[0] === logits!.data[0]); // true
   * ```
   */
  unembed(hiddenStates: Tensor): Tensor;

  /**
   * Returns the shapes of the weights that the model uses, by their names in the file, such as
   * `bert.encoder.layer.0.attention.self.query.weight`. Unused tensors of the file, such as `position_ids`, are
   * missing.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * console.log(model.parameterShapes().get('classifier.weight')); // [ 2, 64 ]
   * ```
   */
  parameterShapes(): Map<string, Dims>;
  /**
   * Returns copies of all of these weights as float32; int8 weights are dequantized.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const state = model.stateDict();
   * const shapes = model.parameterShapes();
   * console.log(state.get('classifier.bias')!.data.length, state.size === shapes.size); // 2 true
   * ```
   */
  stateDict(): Map<string, Tensor>;
  /**
   * Returns a copy of one weight.
   *
   * @param name a name of {@link TextModel.stateDict}
   * @throws {AttnError} `OUT_OF_RANGE` if there is no such name
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { data, dims } = model.getParameter('classifier.bias');
   * console.log(data.constructor.name, dims); // Float32Array [ 2 ]
   * ```
   */
  getParameter(name: string): Tensor;
  /**
   * Copies weights into the model; `wordEmbeddings` shows them at once. An int8 model quantizes them again, row by row.
   *
   * @param state weights by name
   * @param options.strict true (default) requires exactly the model's names; false keeps the weights of missing names
   * @throws {AttnError} `MISMATCH` if names or shapes do not fit; one error lists all, and nothing has changed
   * @throws {AttnError} `FORMAT` if a weight that becomes int8 is NaN or infinite; nothing has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const [name] = model.parameterShapes().keys();
   * const weight = model.getParameter(name);
   * weight.data[0] = 0.5;
   * model.loadStateDict({ [name]: weight }, { strict: false });
   * console.log(model.getParameter(name).data[0]); // 0.5
   * ```
   */
  loadStateDict(state: StateDict, options?: { strict?: boolean | undefined; prefix?: string | undefined }): void;

  /**
   * Exports the model as files by name, which `loadModel` and transformers read. They contain the current weights that
   * the model uses, a matching config.json, and the other files that were read. An int8 export has the same bits when
   * it is loaded again.
   *
   * @param options.weights `'float32'`; `'float16'`, rounded to nearest even; or `'int8'` in the compressed-tensors
   * format. Default the storage of the model
   * @throws {AttnError} `OUT_OF_RANGE` if a number is too large for float16
   * @throws {AttnError} `FORMAT` if a number that becomes int8 is NaN or infinite
   * @throws {AttnError} `MEMORY` if the files do not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const files = await model.export({ weights: 'int8' });
   * console.log((await attn.loadModel(files)).weights); // int8
   * ```
   */
  export(options?: { weights?: 'float32' | 'float16' | 'int8' | undefined }): Promise<Record<string, Bytes>>;

  /**
   * Creates memory for keys and values, so that a forward of further tokens computes only those
   * ({@link TextForwardOptions.cache}).
   *
   * @param options.maxLength room for tokens; default all positions of the model
   * @param options.batchSize number of sequences; default 1
   * @throws {AttnError} `UNSUPPORTED` if tokens see later tokens, as in encoders
   * @throws {AttnError} `OUT_OF_RANGE` if `maxLength` exceeds the positions of the model
   * @throws {AttnError} `MEMORY` if it does not fit into memory
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/tiny-gpt2');
   * const cache = model.createCache({ maxLength: 32 });
   * model.forward(model.tokenize('The old'), { cache });
   * const { logits } = model.forward(model.tokenize(' man'), { cache, outputLogits: 'last' });
   * console.log(cache.length, logits!.dims[1]); // 6 1
   * ```
   */
  createCache(options?: { maxLength?: number | undefined; batchSize?: number | undefined }): KeyValueCache;

  /**
   * Texts that the model expects in front of its inputs, by name, as in config_sentence_transformers.json: the values of
   * `promptName` in `embed` and `rank`. Without such a file `query` and `document` are empty.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * console.log(model.prompts); // { query: '', document: '' }
   * ```
   */
  readonly prompts: Readonly<Record<string, string>>;
  /** The mask token of `fillMask`, such as `[MASK]` or `<mask>`; `undefined` if the tokenizer has none. */
  readonly maskToken: string | undefined;
  /**
   * The embedding matrix, by token id: an Embedding on the model's own memory, freed with the model.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const nearest = model.wordEmbeddings.nearest(model.tokenToId('good')!, 3);
   * console.log(nearest.map(({ id }) => model.idToToken(id)).length); // 3
   * ```
   */
  readonly wordEmbeddings: Embedding;
  /**
   * Returns the id of a token in the vocabulary's spelling (`##ing`, `Ġthe`), or `undefined`.
   *
   * @param token one entry of the vocabulary, not a text
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * console.log(model.tokenToId('good'), model.tokenToId('no such token')); // 283 undefined
   * ```
   */
  tokenToId(token: string): number | undefined;
  /**
   * Returns the token of an id, or `undefined`.
   *
   * @param id a whole number
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { inputIds } = model.tokenize('not good');
   * console.log(Array.from(inputIds, (id) => model.idToToken(id)).join(' ')); // [CLS] not good [SEP]
   * ```
   */
  idToToken(id: number): string | undefined;

  /**
   * Computes one vector per text, as sentence-transformers' `encode()`, with the modules of modules.json including
   * Dense after the pooling.
   *
   * Texts are sorted by length into batches; the batch size does not change a bit. Events are handled between batches.
   * Changed weights apply from the next batch on, and `dispose()` ends the call with `DISPOSED` (in attn/worker, both
   * wait for the end of the call).
   *
   * @param texts one text or several
   * @param options see {@link EmbedOptions}
   * @returns (N,E) in the order of the texts, and `truncated` per text. E is the hidden size, times the number of
   * poolings, or the width of the last Dense
   * @throws {AttnError} those of {@link TextModel.tokenize}
   * @throws {AttnError} `CONFIG` if there is no prompt `promptName`, or Dense does not fit the pooling
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { dims, truncated } = await model.embed(['a good film', 'a bad film'], { normalize: true });
   * console.log(dims, truncated); // [ 2, 64 ] [ false, false ]
   * ```
   */
  embed(texts: string | readonly string[], options?: EmbedOptions): Promise<Tensor & { readonly truncated: readonly boolean[] }>;

  /**
   * Classifies each text, as transformers' TextClassificationPipeline: the softmax of the logits; the sigmoid of each
   * if `problem_type` is `multi_label_classification` or there is one label; the logits if it is `regression`.
   *
   * A cross-encoder's files may name another function (`activation_fn`, such as `Identity` for logits, which may be
   * negative). It applies to pairs, as in sentence-transformers' CrossEncoder.predict, and to single texts if there is
   * one label.
   *
   * @param texts one text, several texts or several pairs
   * @param options see {@link ClassifyOptions}
   * @returns per text, the labels by descending score
   * @throws {AttnError} `UNSUPPORTED` if the model has no head for text classification
   * @throws {AttnError} those of {@link TextModel.embed}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const [[best]] = await model.classify('a wonderful film', { topK: 1 });
   * console.log(best.label, best.score > 0.5); // positive true
   * ```
   */
  classify(
    texts: string | readonly string[] | readonly (readonly [string, string])[],
    options?: ClassifyOptions,
  ): Promise<{ label: string; score: number }[][]>;

  /**
   * Frees the weights and `wordEmbeddings`; see {@link Module.dispose}.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const before = attn.info.heap.used;
   * const model = await attn.loadModel('models/sentiment');
   * model.dispose();
   * console.log(attn.info.heap.used === before); // true
   * ```
   */
  dispose(): void;
  /** Calls {@link TextModel.dispose}. */
  [Symbol.dispose](): void;
}

/** Models by the type argument of {@link Attn.loadModel}. */
export interface ModelKinds {
  text: TextModel;
  image: ImageModel;
}

/** Options of {@link ImageModel.forward}. */
export type ImageForwardOptions = Pick<TextForwardOptions, 'outputAttentions' | 'outputHiddenStates' | 'headMask' | 'patch' | 'trace'> & {
  /** Computes the logits. Default true. */
  outputLogits?: boolean | undefined;
};

/**
 * A Vision Transformer (ViT, DeiT, DINOv2), made by {@link Attn.loadModel} from a folder with config.json,
 * preprocessor_config.json and model.safetensors. It is freed with its instance.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 *
 * const attn = await load();
 * const model = await attn.loadModel<'image'>('models/tiny-vit'); // untrained weights
 * const image = { data: new Uint8Array(40 * 30 * 3).fill(128), width: 40, height: 30 };
 * const inputs = await model.preprocess(image);
 * const { attentions } = model.forward(inputs, { outputAttentions: true });
 * console.log(inputs.grid, attentions![0].dims); // [ 4, 4 ] [ 1, 4, 17, 17 ]
 * ```
 */
export interface ImageModel {
  /** Contents of config.json, frozen. */
  readonly config: Readonly<Record<string, unknown>>;
  /** Labels in the order of the logits; `undefined` if there is no head. */
  readonly labels: readonly string[];
  /** `'embedding'` if there is no head. */
  readonly task: 'embedding' | 'image-classification';
  /** Settings in the files that have no effect. */
  readonly notes: readonly string[];
  /** `'int8'` after loading with these weights. The patch embedding stays float32. */
  readonly weights: 'float32' | 'int8';

  /**
   * Resizes as PIL does, crops the centre, rescales and normalizes, all as preprocessor_config.json specifies. All
   * images must have the same size afterwards.
   *
   * @param images one image or an Array of images
   * @param options `signal` rejects with `ABORTED`
   * @returns pixel values (B,3,height,width), the grid of patches, and the part of each image that was kept
   * @throws {AttnError} `SHAPE` if an image has no pixels, or its data another number of bytes
   * @throws {AttnError} `FORMAT` if the folder has no preprocessor_config.json
   * @throws {AttnError} `ENVIRONMENT` for a Blob or an ImageBitmap if the host cannot decode it, as in Node
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * const white = { data: new Uint8Array(3).fill(255), dims: [1, 1, 3] as const };
   * const { pixelValues } = await model.preprocess(white);
   * console.log(pixelValues.dims, pixelValues.data[0]); // [ 1, 3, 32, 32 ] 1
   * ```
   */
  preprocess(images: Image | readonly Image[], options?: { signal?: AbortSignal | undefined }): Promise<ImageInputs>;

  /**
   * Computes the model. Tokens are [CLS], DeiT's distillation token, the registers of DINOv2, and the patches row by
   * row. For images of another size than the model was trained with, the positions are interpolated (bicubic), as
   * transformers does.
   *
   * @param inputs result of {@link ImageModel.preprocess}, or any pixel values (B,channels,height,width)
   * @param options see {@link ImageForwardOptions}
   * @throws {AttnError} `SHAPE` if pixelValues have another rank or number of channels, or less than a patch
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * const pixelValues = { data: new Float32Array(3 * 40 * 48), dims: [1, 3, 40, 48] };
   * const { lastHiddenState, logits } = model.forward({ pixelValues });
   * console.log(lastHiddenState.dims, logits?.dims); // [ 1, 31, 32 ] [ 1, 5 ]
   * ```
   */
  forward(inputs: Pick<ImageInputs, 'pixelValues'>, options?: ImageForwardOptions): TextModelOutput;

  /**
   * Computes a vector for each image.
   *
   * @param images one image or an Array of images
   * @param options see {@link ImageEmbedOptions}
   * @returns (B,E), or (B,pooler_output_size) with the pooler
   * @throws {AttnError} those of {@link ImageModel.preprocess}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * const image = { data: new Uint8Array(40 * 30 * 3), width: 40, height: 30 };
   * console.log((await model.embed([image, image], { normalize: true })).dims); // [ 2, 32 ]
   * ```
   */
  embed(images: Image | readonly Image[], options?: ImageEmbedOptions): Promise<Tensor>;

  /**
   * Returns the labels of each image with their probabilities, most probable first.
   *
   * @param images one image or an Array of images
   * @param options see {@link ImageClassifyOptions}
   * @throws {AttnError} `UNSUPPORTED` if the model has no head
   * @throws {AttnError} those of {@link ImageModel.preprocess}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * const image = { data: new Uint8Array(40 * 30 * 3), width: 40, height: 30 };
   * const [best] = await model.classify(image, { topK: 1 });
   * console.log(best.length, model.labels); // 1 [ 'ant', 'bee', 'cat', 'dog', 'emu' ]
   * ```
   */
  classify(images: Image | readonly Image[], options?: ImageClassifyOptions): Promise<{ label: string; score: number }[][]>;

  /**
   * Returns the shapes of the weights by their names in the checkpoint.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * console.log(model.parameterShapes().get('vit.embeddings.cls_token')); // [ 1, 1, 32 ]
   * ```
   */
  parameterShapes(): ReadonlyMap<string, readonly number[]>;
  /**
   * Returns the weights by their names in the checkpoint, as float32.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * console.log(model.stateDict().get('classifier.bias')?.data.length); // 5
   * ```
   */
  stateDict(): Map<string, Tensor>;

  /**
   * Frees the model. Later calls of `dispose` do nothing; any other use throws `DISPOSED`.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel<'image'>('models/tiny-vit');
   * model.dispose();
   * try {
   *   model.parameterShapes();
   * } catch (error) {
   *   console.log((error as Error).message); // parameterShapes: this model was disposed of
   * }
   * ```
   */
  dispose(): void;
  /** Calls {@link ImageModel.dispose}. */
  [Symbol.dispose](): void;
}

/**
 * Codes of {@link AttnError}. Every function can throw `ARGUMENT`, `DTYPE`, `SHAPE`, `CONFIG`, `DETACHED`, `MEMORY`,
 * `DISPOSED`, `WRONG_INSTANCE`, `BUSY` and `INTERNAL`. The reference of each function lists further conditions.
 *
 * - `ARGUMENT`: an argument is missing, has an unknown name or is not of the expected kind
 * - `DTYPE`: an array has the wrong element type
 * - `SHAPE`: ranks, widths, lengths or batches do not fit together, or `data.length` is not the product of `dims`
 * - `MASK`: a mask has no kind, or the wrong dims or values
 * - `CONFIG`: an option is out of range, or options contradict each other
 * - `OUT_OF_RANGE`: an index does not exist
 * - `FORMAT`: bytes do not have the expected format
 * - `MISMATCH`: a state dictionary has missing, unexpected or mis-shaped names
 * - `UNSUPPORTED`: valid input that attn does not implement
 * - `MEMORY`: not enough memory; the message mentions layers that were not disposed of
 * - `DISPOSED`: use after `dispose()`
 * - `WRONG_INSTANCE`: an object of another instance
 * - `BUSY`: a call during another call
 * - `DETACHED`: the buffer of an array was transferred or shrunk
 * - `NETWORK`: a fetch failed; `detail.status` is the server's status, if it answered
 * - `ABORTED`: the signal aborted, or the worker ended. If the caller requested it (by signal or `terminate()`), the
 *   error's `name` is `AbortError`, as with fetch
 * - `ENVIRONMENT`: the host lacks a feature
 * - `INTERNAL`: a bug in attn; load a new instance
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
  /** Offset of the tensors' bytes in the file. */
  readonly dataStart: number;
}

/**
 * Reads the header of a safetensors file: names, types, shapes and metadata of its tensors. It needs no instance. To
 * inspect a large file, read its first 8 bytes (the length N of the header, little-endian), then 8 + N bytes.
 *
 * @param bytes the file, or its first 8 + N bytes. `parseSafetensors` and `loadModel` check that the tensors fit into
 * the file
 * @throws {AttnError} `ARGUMENT` if `bytes` is not a Uint8Array
 * @throws {AttnError} `FORMAT` if `bytes` is shorter than the header, or the header is not a JSON object of tensors with different names
 *
 * @example
 * ```ts
 * import { load, readSafetensorsHeader } from 'attn';
 *
 * const attn = await load();
 * const file = attn.writeSafetensors({ bias: { data: new Float32Array(3), dims: [3] } }, { author: 'me' });
 * const { tensors, metadata } = readSafetensorsHeader(file);
 * console.log(tensors.bias.shape, metadata.author); // [ 3 ] me
 * ```
 */
export function readSafetensorsHeader(bytes: Uint8Array): SafetensorsHeader;

/** A number, or an Array (or typed array) of such values of equal shape. */
export type NestedNumbers = number | Float32Array | Float64Array | Int32Array | Uint8Array | readonly NestedNumbers[];

/**
 * Makes a tensor of nested arrays. Numbers are rounded to float32.
 *
 * @param values up to 8 levels; a number alone makes a tensor without dimensions
 * @throws {AttnError} `SHAPE` if the arrays of a level have different lengths, or there are more than 8 levels
 * @throws {AttnError} `ARGUMENT` if an element is not a number
 *
 * @example
 * ```ts
 * import { tensor } from 'attn';
 *
 * const { data, dims } = tensor([[1, 0], [0, 1], [2, 3]]);
 * console.log(...data, dims); // 1 0 0 1 2 3 [ 3, 2 ]
 * ```
 */
export function tensor(values: NestedNumbers): Tensor;

/**
 * Returns the URL of a model's folder on the Hugging Face Hub, for `loadModel` of `attn` and of `attn/worker`. Nothing
 * is loaded before that. For a private model add the header `authorization` by the option `request`.
 *
 * @param id `owner/name` as on the Hub; a few old models have a name only
 * @param options.revision a branch, a tag or a commit, which always gives the same files; default `'main'`
 * @throws {AttnError} `ARGUMENT` if an argument is not a string, `CONFIG` if it is not an id or a revision
 *
 * @example
 * ```ts
 * import { hub } from 'attn';
 *
 * const source = hub('sentence-transformers/all-MiniLM-L6-v2', { revision: 'v1' });
 * console.log(source.pathname); // /sentence-transformers/all-MiniLM-L6-v2/resolve/v1
 * ```
 */
export function hub(id: string, options?: { revision?: string | undefined }): URL;

/**
 * The error that every failed call throws, before anything is written; the instance stays usable, except after
 * `INTERNAL`.
 *
 * `message` names the operation, the argument, the actual value and the expected value. Compare `code` rather than the
 * class if two copies of the package may be bundled. Overlong texts of `message` and `detail` are truncated. An error
 * of your own code that runs while an argument is read (a getter, a Proxy) is the `cause`.
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
  /** Facts for programs, frozen: `op`, `argument`, `expected`, `got`, `help` and others that depend on the error. */
  readonly detail: Readonly<Record<string, unknown>>;
  /**
   * The remedy, if attn knows one: the last sentence of `message` without its final period, such as "Did you mean
   * isCausal?".
   */
  readonly help: string | undefined;
}
