/**
 * `attn/lens`: analyses of what a model computes, as functions over a model of `attn` or `attn/worker`. It is a separate
 * file, which a page loads only if it imports it.
 *
 * A text may also be given as token ids. A token may be given by its id, by its spelling in the vocabulary, or as a text
 * that is a single token, such as `' Paris'`. All functions are asynchronous. With a model of `attn`, events are
 * handled between two forwards; with one of `attn/worker`, the page stays responsive. If its `signal` aborts, a call
 * ends with `ABORTED` before the next forward.
 *
 * Decoders of the types `gpt2`, `llama`, `mistral`, `qwen2` and `qwen3` are supported; other models are an `UNSUPPORTED`
 * error unless the function's documentation names them.
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { logitLens } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { layers, predictions } = await logitLens(model, 'The old man', { topK: 1 });
 * layers.forEach((layer, i) => console.log(layer, predictions[i].at(-1)![0].token));
 * // 0 …
 * // 1 …
 * // 2 …
 * ```
 * @packageDocumentation
 */
import type { Tensor, TextModel } from './attn.js';
import type { AbortSignal } from './host.js';
import type { TextModel as WorkerTextModel } from './worker.js';

export { AttnError } from './attn.js';
export type { Dims, ErrorCode, Tensor, TextModel } from './attn.js';

/** A model of `attn` or of `attn/worker`. */
export type LensModel = TextModel | WorkerTextModel;
/** A text, or the ids of its tokens. */
export type LensText = string | ArrayLike<number>;
/** A token: its id, its spelling in the vocabulary, or a text that is a single token. */
export type LensToken = number | string;

/** Options of {@link logitLens}. */
export interface LogitLensOptions {
  /** Layers whose inputs are turned into predictions, from 0; the number of layers means the model's output. Default all. */
  layers?: readonly number[] | undefined;
  /** Positions in the text. Default all. */
  positions?: readonly number[] | undefined;
  /** Number of tokens per prediction, from 1. Default 5. */
  topK?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** A token that a layer predicts. */
export interface LogitLensPrediction {
  id: number;
  token: string;
  logit: number;
  /** Softmax of the logits over the vocabulary. */
  probability: number;
}

/** Result of {@link logitLens}. */
export interface LogitLens {
  tokens: readonly string[];
  layers: number[];
  positions: number[];
  /** By layer and position: the likeliest tokens, the likeliest first. */
  predictions: LogitLensPrediction[][][];
}

/**
 * Shows what each layer would predict at each position, by giving its input to the final norm and the head:
 * logits = W_U · norm(h) (nostalgebraist, "interpreting GPT: the logit lens", 2020). The predictions of the last layer
 * are those of the model, to the bit. It also takes masked language models whose norms are after the blocks, such as
 * BERT; their head takes h as it is.
 *
 * @param model a decoder, or a model for fill-mask
 * @param text a text or its token ids
 * @param options see {@link LogitLensOptions}
 * @throws {AttnError} `UNSUPPORTED` for another kind of model
 * @throws {AttnError} `OUT_OF_RANGE` if a layer or position does not exist, the text is too long, or a logit is NaN or infinity
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { logitLens } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { predictions } = await logitLens(model, 'The old man', { layers: [2], topK: 3 });
 * const [{ id }] = await model.nextToken('The old man');
 * console.log(predictions[0].at(-1)![0].id === id); // true
 * ```
 */
export function logitLens(model: LensModel, text: LensText, options?: LogitLensOptions): Promise<LogitLens>;

/** Options of {@link logitAttribution}. */
export interface LogitAttributionOptions {
  /** The token whose logit is taken apart. */
  target: LensToken;
  /** A token whose logit is subtracted. Default none. */
  contrast?: LensToken | undefined;
  /** Position of the prediction. Default the last token. */
  position?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Result of {@link logitAttribution}: numbers that add up to `value`. */
export interface LogitAttribution {
  tokens: readonly string[];
  position: number;
  /** The logit, minus that of `contrast`. */
  value: number;
  /** Contribution of the embeddings (word and position). */
  embedding: number;
  /** (layers,H): contribution of each head. */
  heads: Tensor;
  /** (layers): contribution of each MLP, without its output bias. */
  mlps: Tensor;
  /** Contribution of the output biases of attentions and MLPs, and of the final norm's bias. */
  biases: number;
}

/**
 * Splits a logit, or the difference of two, exactly into the contributions of the embedding, of each head, of each MLP
 * and of the biases (direct logit attribution; Elhage et al. 2021, "A Mathematical Framework for Transformer
 * Circuits"). The residual stream is the sum r = Σ p of these parts, and the final norm is held fixed, so that a part
 * adds p · v with v = (γ ∘ w − mean) / √(var(r) + ε), or for RMSNorm γ ∘ w / √(mean(r²) + ε); w is the target's row of
 * the unembedding. The parts add up to the logit within 1e-4 of its size.
 *
 * @param model a decoder with float32 weights
 * @param text a text or its token ids
 * @param options see {@link LogitAttributionOptions}
 * @throws {AttnError} `UNSUPPORTED` for another kind of model, or for int8 weights
 * @throws {AttnError} `OUT_OF_RANGE` if a token or the position does not exist, the text is too long, or a logit is NaN
 * or infinity
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { logitAttribution } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const parts = await logitAttribution(model, 'The old man', { target: 'a', contrast: 'e' });
 * const { value, embedding, heads, mlps, biases } = parts;
 * const sum = [...heads.data, ...mlps.data].reduce((all, part) => all + part, embedding + biases);
 * console.log(heads.dims, Math.abs(sum - value) < 1e-4 * Math.abs(value)); // [ 2, 4 ] true
 * ```
 */
export function logitAttribution(model: LensModel, text: LensText, options: LogitAttributionOptions): Promise<LogitAttribution>;

/**
 * What a patch replaces by its value in the clean text, for a layer and a position, or for a layer and a head at all
 * positions:
 *
 * - `'residual'`: the layer's input
 * - `'attention'`: the attention's output
 * - `'mlp'`: the MLP's output
 * - `'head'`: the result of one head
 */
export type PatchSite = 'residual' | 'head' | 'attention' | 'mlp';

/** Options of {@link patchActivations} and {@link attributionPatching}. */
export interface PatchOptions {
  /** The token that the clean text suggests. */
  answer: LensToken;
  /** A token whose logit is subtracted, such as the one that the corrupted text suggests. Default none. */
  contrast?: LensToken | undefined;
  /** See {@link PatchSite}. Default `'residual'`. */
  site?: PatchSite | undefined;
  /** Position of the answer's logit. Default the last token. */
  position?: number | undefined;
  /** Positions to patch; not for heads. Default all. */
  positions?: readonly number[] | undefined;
  signal?: AbortSignal | undefined;
}

/** Result of {@link patchActivations} and {@link attributionPatching}. */
export interface PatchResult {
  tokens: { clean: readonly string[]; corrupted: readonly string[] };
  /** Columns of `recovered`; not for heads. */
  positions?: readonly number[];
  /** The logit (difference) of each text. */
  clean: number;
  corrupted: number;
  /**
   * (layers,positions), or (layers,H) for heads: (value − corrupted) / (clean − corrupted). 0: as in the corrupted text,
   * 1: as in the clean text.
   */
  recovered: Tensor;
}

/**
 * Runs the corrupted text many times, each time with one activation of the clean text in its place, and returns how much
 * of the clean answer each of them brings back: (value − corrupted) / (clean − corrupted) (Meng et al. 2022, section 2;
 * Wang et al. 2022, section 3).
 *
 * @param model a decoder
 * @param clean a text or its token ids
 * @param corrupted another text with the same number of tokens
 * @param options see {@link PatchOptions}
 * @throws {AttnError} `ARGUMENT` if the texts differ in length, or if the answer has the same logit in both
 * @throws {AttnError} `UNSUPPORTED` for another kind of model
 * @throws {AttnError} `OUT_OF_RANGE` if a token or a position does not exist, a text is too long, or a logit is NaN or
 * infinity
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { patchActivations } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { recovered } = await patchActivations(model, [20, 21, 22], [20, 40, 22], { answer: 30 });
 * console.log(recovered.dims, [...recovered.data.slice(0, 2)]); // [ 2, 3 ] [ 0, 1 ]
 * ```
 */
export function patchActivations(model: LensModel, clean: LensText, corrupted: LensText, options: PatchOptions): Promise<PatchResult>;

/**
 * Estimates what {@link patchActivations} measures, by one backward for all activations: the change of the activation
 * times the gradient at the corrupted text, (a_clean − a_corrupted) · ∂value/∂a / (clean − corrupted) (Nanda 2023,
 * "Attribution Patching"; Syed et al. 2023). It is exact for small changes, and poor for the residual of early layers.
 *
 * @param model a decoder with float32 weights
 * @param clean a text or its token ids
 * @param corrupted another text with the same number of tokens
 * @param options see {@link PatchOptions}
 * @throws {AttnError} `UNSUPPORTED` for int8 weights, which have no gradients
 * @throws {AttnError} those of {@link patchActivations}
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { attributionPatching } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const options = { answer: 30, site: 'head' } as const;
 * const { recovered } = await attributionPatching(model, [20, 21, 22], [20, 40, 22], options);
 * console.log(recovered.dims); // [ 2, 4 ]
 * ```
 */
export function attributionPatching(model: LensModel, clean: LensText, corrupted: LensText, options: PatchOptions): Promise<PatchResult>;

/**
 * Kinds of heads, by the key that gets their attention:
 *
 * - `'previousToken'`: the token before
 * - `'duplicateToken'`: earlier occurrences of the same token
 * - `'induction'`: the token after an earlier occurrence
 * - `'firstToken'`: the first token
 */
export type HeadKind = 'previousToken' | 'duplicateToken' | 'induction' | 'firstToken';

/** Options of {@link headScores}. */
export interface HeadScoresOptions {
  /** Default all. */
  kinds?: readonly HeadKind[] | undefined;
  /** A text or its token ids. Default up to 50 random tokens, twice, after the tokenizer's special tokens. */
  text?: LensText | undefined;
  /** Seed of the random tokens, from 0 to 2³² − 1. Default 0. */
  seed?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** Result of {@link headScores}. */
export interface HeadScores {
  tokens: readonly string[];
  ids: number[];
  /** By kind: (layers,H), from 0 to 1. */
  scores: { [kind in HeadKind]?: Tensor };
}

/**
 * Scores each head by the mean attention that it gives to the keys of a kind, over all positions that have such keys
 * (Olsson et al. 2022, "In-context Learning and Induction Heads"). Takes every kind of model.
 *
 * @param model any text model
 * @param options see {@link HeadScoresOptions}
 * @throws {AttnError} `ARGUMENT` if the text has no position with keys of a kind
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { headScores } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { scores } = await headScores(model, { kinds: ['induction'] });
 * console.log(scores.induction!.dims); // [ 2, 4 ]
 * ```
 */
export function headScores(model: LensModel, options?: HeadScoresOptions): Promise<HeadScores>;

/** Options of {@link attribute}, and except `method` of {@link attentionGradient}. */
export interface AttributeOptions {
  /** Default `'gradient_x_input'`. */
  method?: 'gradient_x_input' | 'integrated_gradients' | 'attention_rollout' | 'attention_gradient' | 'leave_one_out' | undefined;
  /** The token whose logit is explained, or a label, see {@link TextModel.attribute}. Default the likeliest. */
  target?: LensToken | undefined;
  /** A token whose logit is subtracted. Default none. */
  contrast?: LensToken | undefined;
  /** Position of the prediction. Default the last token of a decoder. */
  position?: number | undefined;
  signal?: AbortSignal | undefined;
}

/** One score per token. */
export interface TokenScores {
  tokens: readonly string[];
  scores: Float32Array;
}

/**
 * Computes how much each token contributes to the logit of a token that a decoder predicts, or to another result of the
 * model: {@link TextModel.attribute} with another default method.
 *
 * @param model any text model
 * @param text a text; for a decoder also its token ids
 * @param options see {@link AttributeOptions}
 * @throws {AttnError} `OUT_OF_RANGE` if a token or the position does not exist, or the text is too long
 * @throws {AttnError} `UNSUPPORTED` for gradients of int8 weights
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { attribute } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { tokens, scores } = await attribute(model, 'The old man', { target: 'a' });
 * console.log(tokens.length === scores.length); // true
 * ```
 */
export function attribute(model: LensModel, text: LensText, options?: AttributeOptions): Promise<TokenScores>;

/**
 * Multiplies attention through the layers, and returns the row of `position`: Π (0.5 A + 0.5 I), with A the mean over
 * the heads (Abnar & Zuidema 2020). For models other than decoders it is `model.attribute`.
 *
 * @param model any text model
 * @param text a text; for a decoder also its token ids
 * @param options.position of a decoder; default the last token
 * @throws {AttnError} those of {@link attribute}
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { rollout } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { scores } = await rollout(model, 'The old man');
 * console.log(scores.reduce((sum, score) => sum + score, 0).toFixed(3)); // 1.000
 * ```
 */
export function rollout(model: LensModel, text: LensText, options?: Pick<AttributeOptions, 'position' | 'signal'>): Promise<TokenScores>;

/**
 * Multiplies the positive part of attention times its gradient through the layers, and returns the row of `position`:
 * Π (I + Ā), with Ā the mean over the heads of max(A · ∂f/∂A, 0) (Chefer, Gur & Wolf 2021). For models other than
 * decoders it is `model.attribute`.
 *
 * @param model any text model with float32 weights
 * @param text a text; for a decoder also its token ids
 * @param options see {@link AttributeOptions}
 * @throws {AttnError} those of {@link attribute}
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { attentionGradient } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const { scores } = await attentionGradient(model, 'The old man', { target: 'a' });
 * console.log(scores.every((score) => score >= 0)); // true
 * ```
 */
export function attentionGradient(model: LensModel, text: LensText, options?: Omit<AttributeOptions, 'method'>): Promise<TokenScores>;

/**
 * Returns intermediates under TransformerLens' hook names, with its shapes (Nanda & Bloom 2022):
 *
 * | hook, after `blocks.N.` | shape | attn's name in `forward` |
 * |---|---|---|
 * | `hook_resid_pre` | (B,L,E) | `hiddenStates[N]` |
 * | `attn.hook_q` | (B,L,H,D), before RoPE | trace `q_proj` |
 * | `attn.hook_k`, `attn.hook_v` | (B,L,Hkv,D) | trace `k_proj`, `v_proj` |
 * | `attn.hook_rot_q`, `attn.hook_rot_k` | (B,L,H,D) and (B,L,Hkv,D), after RoPE | trace `q`, `k`, transposed |
 * | `attn.hook_attn_scores` | (B,H,L,L) | trace `masked_scores` |
 * | `attn.hook_pattern` | (B,H,L,L) | trace `weights` |
 * | `attn.hook_z` | (B,L,H,D) | trace `merged` |
 * | `hook_attn_out` | (B,L,E) | trace `output` |
 * | `hook_resid_mid` | (B,L,E) | trace `attn_residual` |
 * | `mlp.hook_post` | (B,L,F), after the gate | trace `ff_hidden` |
 * | `hook_mlp_out` | (B,L,E) | trace `ff_output` |
 * | `hook_resid_post` | (B,L,E) | trace `ff_residual` |
 *
 * @param model a decoder
 * @param text a text or its token ids
 * @param names hook names; without `blocks.N.` of all layers
 * @returns the tensors by their full names
 * @throws {AttnError} `ARGUMENT` for an unknown name
 * @throws {AttnError} `OUT_OF_RANGE` if a layer does not exist, or the text is too long
 * @throws {AttnError} `UNSUPPORTED` for another kind of model
 *
 * @example
 * ```ts
 * import { load } from 'attn';
 * import { trace } from 'attn/lens';
 *
 * const attn = await load();
 * const model = await attn.loadModel('models/tiny-gpt2'); // untrained weights
 * const cache = await trace(model, [20, 21, 22], ['blocks.1.attn.hook_pattern', 'hook_resid_post']);
 * for (const [name, { dims }] of cache) console.log(name, dims);
 * // blocks.1.attn.hook_pattern [ 1, 4, 3, 3 ]
 * // blocks.0.hook_resid_post [ 1, 3, 24 ]
 * // blocks.1.hook_resid_post [ 1, 3, 24 ]
 * ```
 */
export function trace(model: LensModel, text: LensText, names: readonly string[]): Promise<Map<string, Tensor>>;
