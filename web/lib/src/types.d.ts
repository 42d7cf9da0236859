/** Types that the other files here share: tensors, masks, traces, modules, texts as tokens. 'attn' exports all of them. */

/** Sizes of a tensor, outermost first: at most 8 whole numbers from 0 to 2³¹ − 1. */
export type Dims = readonly number[];

/**
 * A dense row-major array; `data.length` is the product of `dims`.
 *
 * attn copies inputs in and results out, so a result stays valid after later calls. `data` may come from another realm,
 * be a view into a larger buffer, or use a SharedArrayBuffer (attn copies it first and checks the copy).
 */
export interface Tensor {
  readonly data: Float32Array;
  readonly dims: Dims;
}

/**
 * Selects the keys that each query can see. A bare array is a `MASK` error because its polarity would be a guess.
 *
 * @example
 * ```ts
 * import { load, type Mask } from 'attn';
 *
 * const attn = await load();
 * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1, 1, 0]), dims: [2, 2, 2] };
 * // Two sequences padded to two tokens; the second one has a single token.
 * const keyPaddingMask: Mask = { kind: 'attend', data: new Uint8Array([1, 1, 1, 0]), dims: [2, 2] };
 * const { weights } = attn.scaledDotProductAttention(x, x, x, { keyPaddingMask, needWeights: true });
 * console.log(...weights!.data.subarray(4)); // 1 0 1 0
 * ```
 */
export interface Mask {
  /**
   * The meaning of `data`:
   *
   * - `'attend'`: non-zero allows a key (torch's `scaled_dot_product_attention`, ONNX, Hugging Face).
   * - `'block'`: non-zero blocks a key (torch's `nn.MultiheadAttention`).
   * - `'additive'`: the value is added to the scaled score and −Infinity blocks; a Float32Array without NaN and
   *   +Infinity.
   */
  readonly kind: 'attend' | 'block' | 'additive';
  readonly data: Uint8Array | Float32Array;
  /** `[S]`, `[L,S]`, `[B,L,S]` or `[B,H,L,S]`; B, H and L may be 1. A key padding mask has `[B,S]`, without a batch `[S]`. */
  readonly dims: Dims;
}

/** Options of an attention call. */
export interface AttentionOptions {
  /**
   * Mask of the scores. A query sees a key if this mask, `keyPaddingMask`, `isCausal` and `window` all allow it.
   * Blocked keys are skipped, so NaN in them does not reach the output.
   */
  mask?: Mask | undefined;
  /** Mask of whole keys: dims `[B,S]`, or `[S]` if the inputs have no batch. */
  keyPaddingMask?: Mask | undefined;
  /**
   * Lets query i see keys 0 … i + queryOffset. Default false. If `queryOffset` is 0, the triangle starts at the top
   * left, even if L ≠ S.
   */
  isCausal?: boolean | undefined;
  /** Factor of the scores, a finite number. Default 1/√D; 1 for additive and general attention. */
  scale?: number | undefined;
  /**
   * Probability in [0,1) that a weight becomes 0; the remaining weights are divided by 1 − dropout. Default 0; a
   * layer's own value in train mode. `weights` are those after dropout.
   */
  dropout?: number | undefined;
  /**
   * Seed of the dropout, a whole number from 0 to 2⁵³ − 1. The same seed gives the same result on every machine.
   * Default 0; a layer in train mode continues with the seed of `train()`.
   */
  seed?: number | undefined;
  /** Returns the attention weights. Default false. */
  needWeights?: boolean | undefined;
  /** Returns the mean of the weights over the heads, (B,L,S), instead of (B,H,L,S). Default false. */
  averageWeights?: boolean | undefined;
  /** Allows H to be a multiple of Hkv: each key and value head then serves H/Hkv query heads. Default false. */
  enableGqa?: boolean | undefined;
  /**
   * Result for a query whose keys are all masked: `'zero'` (default) gives zero output and weights; `'nan'` gives NaN;
   * `'uniform'` gives the weight 1/S to all S keys, masked ones included, as a fill with −1e9 would.
   */
  fullyMasked?: 'zero' | 'nan' | 'uniform' | undefined;
  /** Intermediates to return: `true` for all except `weighted_values`, or their names. Default none. */
  trace?: boolean | readonly TraceName[] | undefined;
  /**
   * Limit c of the scores: they become c · tanh(score / c), after the scale and before the masks (Gemma 2, 2024,
   * section 2). 0, the default, sets no limit; otherwise at least 2⁻¹²⁶.
   */
  softcap?: number | undefined;
  /**
   * `[left, right]`: query i sees keys i + queryOffset − left … i + queryOffset + right. −1, the default, sets no limit
   * on that side (FlashAttention's `window_size`; Beltagy et al. 2020).
   */
  window?: readonly [number, number] | undefined;
  /**
   * Position of the first query; key j is at position j. It applies to `isCausal`, `window` and a layer's rotary
   * positions. S − L aligns the last query with the last key. Any whole number; default the length of `past`, else 0.
   */
  queryOffset?: number | undefined;
  /**
   * Keys and values of earlier calls (a KV cache), such as the `present` of an earlier result: `key` (B,Hkv,P,D) and
   * `value` (B,Hkv,P,Dv), without B or Hkv if the call has none. A layer's `past` is already projected and rotated.
   *
   * The past comes before the new keys: masks, weights and S count it (S = P + new). Causal rows computed one by one
   * have the same bits as all rows at once.
   */
  past?: { readonly key: Tensor; readonly value: Tensor } | undefined;
  /** Returns the past and the new keys and values as `present`. Default false; always true with a `past`. */
  outputPresent?: boolean | undefined;
  /**
   * Keeps copies of everything that the layer's `backward` needs, as forwards in train mode do. Default false. Not
   * possible with a `past` or for an int8 layer (`UNSUPPORTED`).
   */
  forBackward?: boolean | undefined;
}

/**
 * Names of an attention's intermediates, in order of computation. Asking for a name that an operation does not have is
 * an `ARGUMENT` error; `true` omits such names. `addBiasKv` and `addZeroAttn` each add one key to S.
 *
 * - `q_proj`, `k_proj`, `v_proj` (B,L|S,H·D): input projections, including the bias; layers only
 * - `q`, `k`, `v` (B,H,L|S,D): inputs split into heads
 * - `scores` (B,H,L,S): q kᵀ · scale, after `softcap` and a model's position terms, before masks
 * - `masked_scores` (B,H,L,S): scores plus additive masks; −Infinity for every key that the query cannot see
 * - `probabilities` (B,H,L,S): softmax of the masked scores
 * - `weights` (B,H,L,S): probabilities after dropout, which multiply the values
 * - `weighted_values` (B,H,L,S,Dv): weight times value, before the sum
 * - `context` (B,H,L,Dv): sum of the weighted values
 * - `merged` (B,L,H·Dv): context with the heads concatenated; layers only
 * - `output`: the attention's output; of a layer (B,L,E), after the output projection
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

/** Result of an attention call. */
export interface AttentionResult {
  output: Tensor;
  /** Attention weights; only with `needWeights`. */
  weights?: Tensor;
  /** Requested intermediates by name; only with `trace`. */
  trace?: { readonly [name in TraceName]?: Tensor };
  /** Keys (B,Hkv,S,D) and values (B,Hkv,S,Dv) for the next call's `past`; only with `outputPresent` or a `past`. */
  present?: { readonly key: Tensor; readonly value: Tensor };
}

/**
 * Activation functions by torch's names.
 *
 * - `relu`: max(x, 0)
 * - `gelu`: x Φ(x) = x/2 · (1 + erf(x/√2)), Hendrycks & Gimpel 2016; error at most 1e-6
 * - `gelu_tanh`: x/2 · (1 + tanh(√(2/π) (x + 0.044715 x³)))
 * - `silu`: x / (1 + exp(−x)), also called swish
 * - `tanh`: tanh(x)
 * - `sigmoid`: 1 / (1 + exp(−x))
 * - `identity`: x
 * - `mish`: x tanh(log(1 + exp(x))), Misra 2019
 * - `quick_gelu`: x / (1 + exp(−1.702 x))
 */
export type Activation = 'relu' | 'gelu' | 'gelu_tanh' | 'silu' | 'tanh' | 'sigmoid' | 'identity' | 'mish' | 'quick_gelu';

/** Tensors by name: a Map or a plain object. */
export type StateDict = Map<string, Tensor> | Readonly<Record<string, Tensor>>;

/**
 * An int8 weight (out,in) of {@link Module.quantize}: `weight[i][j] = scale[i] · data[i][j]`, with `data` from −127 to
 * 127, row-major, and one scale per row.
 */
export type Int8Tensor = { data: Int8Array; scale: Float32Array; dims: Dims };

/** Members of every layer. */
export interface Module {
  /**
   * Copies weights into the layer, by torch's names and layouts.
   *
   * @param state weights by name
   * @param options.strict true (default) requires exactly the layer's names; false ignores unknown names and keeps the
   * weights of missing ones
   * @param options.prefix takes only weights whose names begin with it, by their names without it, such as
   * `'encoder.layers.0.'` for one layer of a file
   * @throws {AttnError} `MISMATCH` if names or shapes do not fit; one error lists all, and nothing has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const [a, b] = [1, 2].map((rows) => new attn.Embedding({ numEmbeddings: 2, embeddingDim: 1 }));
   * b.loadStateDict({ weight: { data: new Float32Array([3, 4]), dims: [2, 1] } });
   * a.loadStateDict(b.stateDict());
   * console.log(...a.stateDict().get('weight')!.data); // 3 4
   * ```
   */
  loadStateDict(state: StateDict, options?: { strict?: boolean | undefined; prefix?: string | undefined }): void;
  /**
   * Returns a copy of the weights, by torch's names and layouts.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const attention = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2 });
   * console.log(...attention.stateDict().keys()); // in_proj_bias in_proj_weight out_proj.bias out_proj.weight
   * ```
   */
  stateDict(): Map<string, Tensor>;
  /**
   * Converts the weights of linear maps, and an embedding's table, to int8 in place, with
   * `scale[i] = max|weight[i]| / 127`; the float32 numbers are discarded. {@link Module.loadStateDict} and
   * {@link Module.initialize} make the layer float32 again.
   *
   * Each row x of the activations is quantized when it is used: `s = max(0, max x) / 255 − min(0, min x) / 255`,
   * `z = round(−min(0, min x) / s)`, `q = round(x / s) + z`, both from 0 to 255. The result is
   * `(Σ (q − z) · data) · s · scale + bias` with an exact sum, each later step rounded; everything else is float32. The
   * bits are the same in every engine, build, batch and number of threads.
   *
   * @throws {AttnError} `FORMAT` if a weight is NaN or infinite; nothing has changed
   * @throws {AttnError} `UNSUPPORTED` if a row has more than 65536 numbers; nothing has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([127, 63.6]), dims: [1, 2] } });
   * words.quantize();
   * console.log(...words.forward([0]).data); // 127 64
   * ```
   */
  quantize(): void;
  /**
   * Returns a copy of the weights with int8 weights in their stored form. `loadStateDict` takes only float32.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([127, 63.6]), dims: [1, 2] } });
   * words.quantize();
   * console.log(...words.int8StateDict().get('weight')!.data); // 127 64
   * ```
   */
  int8StateDict(): Map<string, Int8Tensor | Tensor>;
  /**
   * Draws new weights. A new module is already initialised with scheme `'torch'` and seed 0. The numbers depend only on
   * the options, on every machine.
   *
   * @param options.scheme `'torch'` (default) for the distributions of torch's constructors; the other schemes use the
   * fans of each projection and zero biases, with gain 1 for Xavier and √2 for Kaiming (fan-in)
   * @param options.seed a whole number from 0 to 2⁵³ − 1; default 0
   * @param options.std standard deviation of `'normal'`, from 0; default 0.02
   * @throws {AttnError} `CONFIG` if an option is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2 });
   * layer.initialize({ scheme: 'xavier_uniform', seed: 1 });
   * console.log(...layer.stateDict().get('linear1.bias')!.data.subarray(0, 3)); // 0 0 0
   * ```
   */
  initialize(options?: {
    scheme?: 'torch' | 'xavier_uniform' | 'xavier_normal' | 'kaiming_uniform' | 'kaiming_normal' | 'normal' | undefined;
    seed?: number | undefined;
    std?: number | undefined;
  }): void;
  /** Number of parameters (floats). */
  readonly parameterCount: number;
  /**
   * Returns the name and shape of each parameter.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const attention = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2, bias: false });
   * for (const [name, dims] of attention.parameterShapes()) console.log(name, dims);
   * // in_proj_weight [ 12, 4 ]
   * // out_proj.weight [ 4, 4 ]
   * ```
   */
  parameterShapes(): Map<string, Dims>;
  /**
   * Switches to train mode: dropout is active and forwards keep what `backward` needs. Each forward draws new random
   * numbers; another `train()` with the same seed repeats them, on every machine and with any number of threads.
   *
   * @param options.seed a whole number from 0 to 2⁵³ − 1; default 0
   * @throws {AttnError} `CONFIG` if the seed is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dropout: 0.5 });
   * const x = { data: new Float32Array(8).fill(1), dims: [1, 8] };
   * const first = () => layer.forward(x).output.data[0];
   * layer.train({ seed: 1 });
   * const [a, b] = [first(), first()];
   * layer.train({ seed: 1 });
   * console.log(a === b, a === first()); // false true
   * ```
   */
  train(options?: { seed?: number | undefined }): void;
  /**
   * Switches to evaluation mode, the mode of a new module: no dropout.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const layer = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dropout: 0.5 });
   * const x = { data: new Float32Array(8).fill(1), dims: [1, 8] };
   * const first = () => layer.forward(x).output.data[0];
   * layer.train();
   * layer.eval();
   * console.log(first() === first()); // true
   * ```
   */
  eval(): void;
  /**
   * Returns copies of the gradients that `backward` has added up since {@link Module.zeroGrad}, by the names of
   * {@link Module.stateDict}. Parameters without a gradient are missing. `loadStateDict`, `initialize` and `quantize`
   * discard gradients; an optimiser's step keeps them.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 2, embeddingDim: 1 });
   * words.forward([1, 1], [2], { forBackward: true });
   * words.backward({ data: new Float32Array([1, 2]), dims: [2, 1] });
   * console.log(...words.gradients().get('weight')!.data); // 0 3
   * ```
   */
  gradients(): Map<string, Tensor>;
  /**
   * Removes the gradients of all parameters.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 2, embeddingDim: 1 });
   * words.forward([1], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([3]), dims: [1, 1] });
   * words.zeroGrad();
   * console.log(words.gradients().size); // 0
   * ```
   */
  zeroGrad(): void;
  /**
   * Frees the weights. Later calls of `dispose` do nothing; any other use throws `DISPOSED`. A module that you do not
   * dispose of is freed when it is garbage-collected.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const before = attn.info.heap.used;
   * const words = new attn.Embedding({ numEmbeddings: 1000, embeddingDim: 64 });
   * words.dispose();
   * console.log(attn.info.heap.used === before); // true
   * ```
   */
  dispose(): void;
  /** Calls {@link Module.dispose}. */
  [Symbol.dispose](): void;
}

/**
 * Names of an encoder layer's intermediates: those of its attention ({@link TraceName}), whose `output` is the
 * attention's output, and:
 *
 * - `attn_residual` (B,L,E): x + attention
 * - `norm1`, `norm2` (B,L,E): outputs of the norms
 * - `ff_hidden` (B,L,F): hidden layer after activation and gate
 * - `ff_output` (B,L,E): output of linear2
 * - `ff_residual` (B,L,E): second sum
 * - `c2c`, `c2p`, `p2c` (B,H,L,L): scaled parts of the `scores` of DeBERTa's disentangled attention: content to content
 *   (q kᵀ), content to position, position to content (He et al. 2020). Other layers do not have them.
 */
export type EncoderTraceName = TraceName | 'attn_residual' | 'norm1' | 'ff_hidden' | 'ff_output' | 'ff_residual' | 'norm2' | 'c2c' | 'c2p' | 'p2c';

/** Lists every {@link EncoderTraceName}: `traceNames`, followed by the names that only encoder layers have. */
export const encoderTraceNames: readonly EncoderTraceName[];

/** Intermediates of one layer. */
export type EncoderTrace = { readonly [name in EncoderTraceName]?: Tensor };

/** Options of tokenization. */
export interface TokenizeOptions {
  /**
   * Maximal number of tokens of a text, including special tokens. Default: `max_seq_length` of
   * sentence_bert_config.json, else a realistic `model_max_length` of tokenizer_config.json, else the number of
   * positions of the model, which is also the upper bound (`OUT_OF_RANGE`).
   */
  maxLength?: number | undefined;
  /** Truncates overlong texts. If false, they are an `OUT_OF_RANGE` error with their `index`. Default true. */
  truncation?: boolean | undefined;
  /** Adds `[CLS]` and the like. Default true. */
  addSpecialTokens?: boolean | undefined;
  /**
   * The side where an overlong text is truncated. Default `truncation_side` of tokenizer_config.json, else `'right'`.
   */
  truncationSide?: 'left' | 'right' | undefined;
}

/** Tokens of B texts, padded to the longest, L. {@link TextModel.forward} also accepts hand-built encodings. */
export interface Encoding {
  /** Token ids (B,L). */
  readonly inputIds: Int32Array;
  /** (B,L): 1 for a token, 0 for padding. `forward` also accepts a BigInt64Array or an Array, as for ids. */
  readonly attentionMask: Uint8Array;
  /** (B,L): 1 for the second text of a pair, else 0. */
  readonly tokenTypeIds: Int32Array;
  /** [B, L]. */
  readonly dims: Dims;
  /** Per text: whether it was truncated. */
  readonly truncated: readonly boolean[];
  /** Per text: one token per id, including padding. */
  readonly tokens: readonly (readonly string[])[];
  /**
   * Per text: one pair per id, start and end in UTF-16 units, so that `text.slice(start, end)` is the token's part of
   * the text (in a pair, of the first or second text); null for special tokens and padding.
   */
  readonly offsets: readonly (readonly ([number, number] | null)[])[];
}
