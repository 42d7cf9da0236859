/** Types of training: gradients, losses, optimisers and fine-tuning. 'attn' exports all of them. */
import type { Activation, AttentionOptions, EncoderTrace, EncoderTraceName, Encoding, Module, StateDict, Tensor, TraceName } from './types.js';
import type { AbortSignal } from './host.js';

/** Gradients of an attention's inputs, each with the shape of its input. */
export interface BackwardResult {
  /** Gradient of the query. If a layer's key and value default to the query, this is the sum of all three gradients. */
  gradQuery: Tensor;
  gradKey?: Tensor;
  gradValue?: Tensor;
  /** Gradients of the requested intermediates, with the names and shapes of the forward's trace; only with `trace`. */
  trace?: { readonly [name in TraceName]?: Tensor };
}

/** A loss and its gradient with respect to the first argument, which the preceding layer's `backward` takes. */
export interface Loss {
  readonly loss: number;
  readonly gradient: Tensor;
}

/** Options for the parameters whose names match, instead of the optimiser's own. The first matching group applies. */
export interface ParameterGroup {
  /** Pattern for the names of {@link Module.stateDict} in each module; evaluated once, by the constructor. */
  readonly names: RegExp;
  /** Above 0. Default that of the optimiser. */
  readonly learningRate?: number | undefined;
  /** From 0. Default that of the optimiser. */
  readonly weightDecay?: number | undefined;
}

/**
 * Members of every optimiser. All arithmetic is float32 by torch's formulas in torch's order without fused operations:
 * the bits are the same on every machine and with any number of threads. Parameters without a gradient do not change.
 * NaN in a gradient makes its parameter NaN, as in torch.
 */
export interface Optimizer {
  /**
   * Updates all parameters that have a gradient.
   *
   * @throws {AttnError} `DISPOSED` if a module was disposed of; no weight has changed
   * @throws {AttnError} `UNSUPPORTED` if a module has become int8; no weight has changed
   * @throws {AttnError} `MEMORY` if the optimiser's state does not fit into memory; no weight has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * words.loadStateDict({ weight: { data: new Float32Array([2]), dims: [1, 1] } });
   * const optimizer = new attn.SGD([words], { learningRate: 0.5 });
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([1]), dims: [1, 1] });
   * optimizer.step();
   * console.log(...words.stateDict().get('weight')!.data); // 1.5
   * ```
   */
  step(): void;
  /**
   * Removes the gradients of all parameters of the modules.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * const optimizer = new attn.SGD([words]);
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([1]), dims: [1, 1] });
   * optimizer.zeroGrad();
   * console.log(words.gradients().size); // 0
   * ```
   */
  zeroGrad(): void;
  /**
   * Learning rate, from 0 (`CONFIG`). Setting it scales the learning rates of groups by the same factor, as torch's
   * schedulers do. In attn/worker use {@link Optimizer.setLearningRate}: a property cannot be assigned there.
   */
  learningRate: number;
  /**
   * Sets {@link Optimizer.learningRate}.
   *
   * @param learningRate from 0
   * @throws {AttnError} `CONFIG` if the learning rate is negative or not finite
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
   * const optimizer = new attn.SGD([words], { learningRate: 0.1 });
   * optimizer.setLearningRate(attn.linearSchedule(1, { learningRate: 0.1, steps: 2 }));
   * console.log(optimizer.learningRate); // 0.05
   * ```
   */
  setLearningRate(learningRate: number): void;
  /**
   * Returns the state of each parameter that has been updated, by the module's index, the parameter's name and torch's
   * name, such as `0.linear1.weight.exp_avg`. Options are not included.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * const optimizer = new attn.AdamW([words]);
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([1]), dims: [1, 1] });
   * optimizer.step();
   * console.log(...optimizer.stateDict().keys()); // 0.weight.exp_avg 0.weight.exp_avg_sq 0.weight.step
   * ```
   */
  stateDict(): Map<string, Tensor>;
  /**
   * Copies a state into the optimiser. Parameters that it does not name count as not yet updated.
   *
   * @param state tensors by the names of {@link Optimizer.stateDict}
   * @throws {AttnError} `MISMATCH` if names or shapes do not fit; one error lists all, and nothing has changed
   * @throws {AttnError} `ARGUMENT` if a step is not a whole number; nothing has changed
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * const [first, second] = [1, 2].map(() => new attn.SGD([words], { momentum: 0.9 }));
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([3]), dims: [1, 1] });
   * first.step();
   * second.loadStateDict(first.stateDict()); // resumes from the state of the first
   * console.log(...second.stateDict().get('0.weight.momentum_buffer')!.data); // 3
   * ```
   */
  loadStateDict(state: StateDict): void;
  /**
   * Frees the state, not the modules; see {@link Module.dispose}.
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * const optimizer = new attn.SGD([words]);
   * optimizer.dispose();
   * console.log(words.forward([0]).dims); // [ 1, 1 ]
   * ```
   */
  dispose(): void;
  /** Calls {@link Optimizer.dispose}. */
  [Symbol.dispose](): void;
}

/** Gradients of one number of a text model. */
export interface TextModelGradients {
  /** The number that was differentiated. */
  value: number;
  /** Gradient (B,L,E) of the word embedding at each position. */
  embeddings?: Tensor;
  /** Gradients (B,H,L,L) of each layer's attention weights; 0 for masked keys. */
  attentions?: Tensor[];
  /** Gradients of the parameters by the names of the model's `stateDict`. */
  parameters?: Map<string, Tensor>;
  /** Gradients of intermediates by layer, with the shapes of the forward's trace. */
  trace?: ReadonlyMap<number, EncoderTrace>;
}

/** Contribution of each token of a text to a result. */
export interface TextAttribution {
  /** Tokens, including special tokens. */
  tokens: readonly string[];
  /** Start and end in the text per token; `null` for special tokens. */
  offsets: readonly ([number, number] | null)[];
  /** One score per token. */
  scores: Float32Array;
  /** |Σ scores − (f(text) − f(baseline))| / |f(text) − f(baseline)|; only for `'integrated_gradients'`. */
  delta?: number;
}

/** Gradients, attribution and fine-tuning of a text model. */
export interface ModelGradients {
  /**
   * Computes the gradients of one number of the model's result, without dropout (torch's `autograd.grad`).
   *
   * @param inputs from {@link TextModel.tokenize}
   * @param options.target the number: `{ label, row, token }` is the logit of a label before softmax, by number or name
   * (for fill-mask and text-generation the id or text of a token, for question answering `'start'` or `'end'`), at position `token` if the
   * head has one logit per token; `contrast` is another label, whose logit is subtracted. `{ component, row }` is a
   * component of the pooled vector, before Dense and scaling. `row` is the sequence, default 0
   * @param options.wrt the gradients to return
   * @param options.trace intermediates whose gradients to return, as for {@link TextForwardOptions.trace}; DeBERTa's
   * `c2c`, `c2p` and `p2c` have none
   * @throws {AttnError} `UNSUPPORTED` for int8 weights (load the model with `weights: 'float32'`), or for a label if
   * the model has no head
   * @throws {AttnError} `OUT_OF_RANGE` if the label, component, row or token does not exist
   * @throws {AttnError} those of {@link TextModel.forward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const target = { label: 'positive' };
   * const { value, embeddings } = model.gradients(model.tokenize('not bad'), { target, wrt: ['embeddings'] });
   * console.log(value.toFixed(2), embeddings?.dims); // … [ 1, 4, 64 ]
   * ```
   */
  gradients(
    inputs: Encoding,
    options: {
      target:
        | { label: number | string; contrast?: number | string | undefined; row?: number | undefined; token?: number | undefined }
        | { component: number; row?: number | undefined };
      wrt?: readonly ('embeddings' | 'parameters' | 'attentions')[] | undefined;
      trace?: { readonly layers?: readonly number[] | undefined; readonly names?: readonly EncoderTraceName[] | undefined } | undefined;
    },
  ): TextModelGradients;
  /**
   * Computes how much each token of a text contributes to f.
   *
   * | model | f |
   * |---|---|
   * | text-classification, multiple-choice | the logit of the label `target`, before softmax |
   * | text-generation | the logit of the token `target` that may follow the token at `position`, by default the last |
   * | fill-mask, token-classification, question-answering, with `position` | the logit of the token or label `target` at that token |
   * | any other, or without `position` | component `target` of the pooled vector |
   *
   * With `contrast`, its logit is subtracted.
   *
   * | method | score |
   * |---|---|
   * | `'integrated_gradients'` | Σ over E of (x − b) · ∫ ∂f/∂x from b to x, by `steps` points of Gauss-Legendre. x are the word embeddings; b is PAD for ordinary tokens and x for special tokens and the mask at `position` (Sundararajan, Taly & Yan 2017) |
   * | `'gradient_x_input'` | Σ over E of x · ∂f/∂x |
   * | `'attention_rollout'` | the pooled rows, or row `position`, of the product of 0.5 A + 0.5 I over the layers, with A the mean over the heads (Abnar & Zuidema 2020) |
   * | `'attention_gradient'` | the same rows of the product of I + Ā, with Ā the mean over the heads of max(A · ∂f/∂A, 0) (Chefer, Gur & Wolf 2021) |
   * | `'leave_one_out'` | f of the text minus f of the text without the token; 0 for special tokens and the one at `position` |
   *
   * An overlong text is truncated as in `classify`, but of a text-generation model it is an error. int8 models support `'attention_rollout'` and `'leave_one_out'`.
   *
   * @param text the text; for a text-generation model also its token ids, whose `offsets` are null
   * @param options.method default `'integrated_gradients'`
   * @param options.target number or name of a label, id or text of a token; default the one with the largest logit
   * @param options.contrast a second label or token, whose logit is subtracted; default none
   * @param options.position position of the token whose logits these are, if the model has logits for each token
   * @param options.steps points of integrated gradients, 1 to 10 000; default 50
   * @param options.signal rejects with `ABORTED` between two steps
   * @throws {AttnError} `ARGUMENT` without a `target` if f is a component of the pooled vector, except for rollout
   * @throws {AttnError} `OUT_OF_RANGE` if the target, the contrast or the position does not exist
   * @throws {AttnError} `UNSUPPORTED` for gradients of int8 weights; for `position` and `contrast` without such logits
   * @throws {AttnError} `ABORTED` if `signal` aborts
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const { tokens, scores, delta } = await model.attribute('a wonderful film', { target: 'positive' });
   * console.log(tokens[scores.indexOf(Math.max(...scores))], delta! < 0.01); // wonderful true
   * ```
   */
  attribute(
    text: string | Int32Array | readonly number[],
    options?: {
      method?: 'gradient_x_input' | 'integrated_gradients' | 'attention_rollout' | 'attention_gradient' | 'leave_one_out' | undefined;
      target?: number | string | undefined;
      contrast?: number | string | undefined;
      position?: number | undefined;
      steps?: number | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<TextAttribution>;
  /**
   * Fine-tunes the model as a text classifier, as transformers' Trainer does: AdamW with β 0.9 and 0.999, gradients
   * clipped to norm 1, a learning rate that falls linearly to 0, no decay of biases and norms.
   *
   * - Loss: cross entropy; binary cross entropy for one label; the squared error for a regression (`problem_type`, or a
   *   cross-encoder whose files name `Identity`).
   * - Dropout: in transformers' places with the probabilities of config.json (`hidden_dropout_prob` and so on, else
   *   transformers' defaults). With `layers: 'head'` only in the head. Validation runs without dropout.
   * - Head: a model without a head, or with other labels than requested, gets a new one with weights N(0, 0.02²).
   *   `labels`, `config` and `stateDict` are then those of transformers' …ForSequenceClassification, and `export`
   *   writes them.
   *
   * A language model (`task` `'text-generation'`) learns the next token at each position, as transformers'
   * …ForCausalLM with `labels`: the loss is the mean cross entropy over the tokens of the batch, except those of
   * prompts and the first token. Its examples are texts, with or without a prompt. End a text with the end-of-sequence
   * token, written out, if the model should learn to stop there.
   *
   * Weights and result depend only on the seed, not on the number of threads. The model can be used between two steps,
   * with the weights of that moment.
   *
   * @param examples at least one; for a language model strings or {@link LanguageExample}
   * @param options see {@link FineTuneOptions}
   * @throws {AttnError} `CONFIG` if an option, or a dropout probability of config.json, is out of range
   * @throws {AttnError} `ARGUMENT` if there is no example, or a text has no token to predict
   * @throws {AttnError} `OUT_OF_RANGE` if a label or layer does not exist, or a loss or gradient is not finite (with
   * the step's number)
   * @throws {AttnError} `UNSUPPORTED` for int8 weights, and for heads with several answers per text
   * @throws {AttnError} `BUSY` if another call is training this model
   * @throws {AttnError} `ABORTED` if `signal` aborts; like `MEMORY` and a loss that is not finite, it leaves the
   * weights of the last complete step
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const model = await attn.loadModel('models/sentiment');
   * const examples = [
   *   { text: 'a wonderful film', label: 'praise' },
   *   { text: 'a terrible film', label: 'complaint' },
   * ];
   * await model.fineTune(examples, { labels: ['praise', 'complaint'], layers: 'head', epochs: 50, learningRate: 0.01 });
   * console.log((await model.classify('a terrible book'))[0][0].label); // complaint
   *
   * const gpt2 = await attn.loadModel('models/tiny-gpt2');
   * const question = { prompt: 'Question: how many legs has a cat? Answer:', text: ' four<|endoftext|>' };
   * await gpt2.fineTune(['Once upon a time there was a cat.', question], { epochs: 2, learningRate: 1e-3 });
   * ```
   */
  fineTune(examples: readonly (FineTuneExample | LanguageExample | string)[], options?: FineTuneOptions): Promise<FineTuneResult>;
}

/** A text or a pair of texts with its label. */
export interface FineTuneExample {
  text: string | readonly [string, string];
  /** Name or number of the label; a number from 0 to 1 if there is one label, any number for a regression. */
  label: number | string;
}

/** A text that a language model should learn. */
export interface LanguageExample {
  text: string;
  /** Text before it, whose tokens have no loss, such as a question whose answer is learned. Default none. */
  prompt?: string | undefined;
}

/** Progress of {@link ModelGradients.fineTune} after each step. */
export interface FineTuneProgress {
  /** Counted from 1. */
  epoch: number;
  /** Counted from 1, over the whole run. */
  step: number;
  /** Number of steps of the whole run. */
  steps: number;
  /** Loss of the step's batch before the update. */
  loss: number;
  /** Loss of the validation examples; only after an epoch. */
  validationLoss?: number;
  /**
   * Accuracy on the validation examples; only after an epoch and not for a regression. For a language model the share
   * of tokens that it would have predicted.
   */
  validationAccuracy?: number;
}

/** Options of {@link ModelGradients.fineTune}. */
export interface FineTuneOptions {
  /** Passes over the examples. Default 3. */
  epochs?: number | undefined;
  /** Examples per step. Default 16. */
  batchSize?: number | undefined;
  /** Learning rate of the first step, above 0. Default 5e-5; 1e-3 with `layers: 'head'`. */
  learningRate?: number | undefined;
  /** Weight decay, except for biases and norms. Default 0.01. */
  weightDecay?: number | undefined;
  /**
   * Parts to train: `'all'` (default), a number of last layers and the head, or `'head'`, which runs each text through
   * the encoder only once (not for a language model whose head shares the word embeddings).
   */
  layers?: 'head' | 'all' | number | undefined;
  /**
   * Labels of the head. Default those of the model, else those of the examples: names in order, or `LABEL_0` and so on.
   */
  labels?: readonly string[] | undefined;
  /** Seed of the order of the examples, of dropout and of a new head: 0 to 2⁵³ − 1. Default 0. */
  seed?: number | undefined;
  /** Share of the examples that is used for validation instead, in [0,1). Default 0. */
  validation?: number | undefined;
  /** Rejects with `ABORTED` between two steps. */
  signal?: AbortSignal | undefined;
  /** Receives the progress after each step. */
  onProgress?: ((progress: FineTuneProgress) => void) | undefined;
}

/** Result of {@link ModelGradients.fineTune}. */
export interface FineTuneResult {
  /** Mean loss over the steps of the last epoch. */
  loss: number;
  /** Accuracy on the validation examples after the last epoch. */
  validationAccuracy?: number;
}

/** Gradients of the functions, losses, optimisers and schedules. */
export interface Gradients {
  /**
   * Computes the gradients of {@link Attn.scaledDotProductAttention} (torch.autograd; Dao et al. 2022). With P the
   * probabilities, dP = grad vᵀ and dS = P ∘ (dP − Σ P ∘ dP): gradQuery = scale · dS k, gradKey = scale · dSᵀ q,
   * gradValue = Pᵀ grad.
   *
   * P is recomputed: apart from a trace nothing as large as (B,H,L,S) is stored. Masked keys are skipped: their
   * contents, including NaN, reach no gradient.
   *
   * @param grad gradient of the output (..,L,Dv)
   * @param query as in the forward
   * @param key as in the forward
   * @param value as in the forward
   * @param options as in the forward; `trace` names the intermediates whose gradients to return
   * @throws {AttnError} `SHAPE` if `grad` does not have the output's shape
   * @throws {AttnError} `UNSUPPORTED` for a `past`
   * @throws {AttnError} those of the forward
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const grad = { data: new Float32Array(6).fill(1), dims: [3, 2] };
   * const { gradQuery, trace } = attn.scaledDotProductAttentionBackward(grad, x, x, x, { trace: ['scores'] });
   * console.log(gradQuery.dims, trace?.scores?.dims); // [ 3, 2 ] [ 3, 3 ]
   * ```
   */
  scaledDotProductAttentionBackward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): BackwardResult;
  /**
   * Computes the gradients of {@link Attn.generalAttention} and its weight; see
   * {@link Gradients.scaledDotProductAttentionBackward}.
   *
   * @param grad gradient of the output (..,L,Dv)
   * @param query as in the forward
   * @param key as in the forward
   * @param value as in the forward
   * @param params as in the forward
   * @param options as in the forward
   * @returns also `gradWeight` (Dq,Dk)
   * @throws {AttnError} those of {@link Gradients.scaledDotProductAttentionBackward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const weight = { data: new Float32Array([2, 0, 0, 2]), dims: [2, 2] };
   * console.log(attn.generalAttentionBackward(x, x, x, x, { weight }).gradWeight.dims); // [ 2, 2 ]
   * ```
   */
  generalAttentionBackward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    params: { weight: Tensor },
    options?: AttentionOptions,
  ): BackwardResult & { gradWeight: Tensor };
  /**
   * Computes the gradients of {@link Attn.additiveAttention} and its parameters; see
   * {@link Gradients.scaledDotProductAttentionBackward}.
   *
   * @param grad gradient of the output (..,L,Dv)
   * @param query as in the forward
   * @param key as in the forward
   * @param value as in the forward
   * @param params as in the forward
   * @param options as in the forward
   * @returns also one gradient per parameter, with its shape
   * @throws {AttnError} those of {@link Gradients.scaledDotProductAttentionBackward}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const identity = { data: new Float32Array([1, 0, 0, 1]), dims: [2, 2] };
   * const scoreWeight = { data: new Float32Array([1, -1]), dims: [2] };
   * const params = { queryWeight: identity, keyWeight: identity, scoreWeight };
   * console.log(attn.additiveAttentionBackward(x, x, x, x, params).gradScoreWeight.dims); // [ 2 ]
   * ```
   */
  additiveAttentionBackward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    params: { queryWeight: Tensor; keyWeight: Tensor; scoreWeight: Tensor; bias?: Tensor | undefined },
    options?: AttentionOptions,
  ): BackwardResult & { gradQueryWeight: Tensor; gradKeyWeight: Tensor; gradScoreWeight: Tensor; gradBias?: Tensor };
  /**
   * Computes the gradients of {@link Attn.linear}: gradX = grad W, gradWeight = gradᵀ x, gradBias = Σ grad
   * (torch.autograd of `F.linear`).
   *
   * @param grad gradient of the result (..,out)
   * @param x (..,in)
   * @param weight (out,in)
   * @throws {AttnError} `SHAPE` if the shapes do not fit
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 2]), dims: [1, 2] };
   * const weight = { data: new Float32Array([3, 4]), dims: [1, 2] };
   * const { gradX, gradWeight } = attn.linearBackward({ data: new Float32Array([1]), dims: [1, 1] }, x, weight);
   * console.log(...gradX.data, ...gradWeight.data); // 3 4 1 2
   * ```
   */
  linearBackward(grad: Tensor, x: Tensor, weight: Tensor): { gradX: Tensor; gradWeight: Tensor; gradBias: Tensor };
  /**
   * Computes the gradients of {@link Attn.layerNorm}. With f = 1 / √(variance + eps), n = (x − mean) · f, g = grad ·
   * weight: gradX = f · (g − mean(g) − n · mean(g n)), gradWeight = Σ grad · n, gradBias = Σ grad.
   *
   * @param grad gradient of the result, with the shape of x
   * @param x (..,width)
   * @param weight (width); default 1
   * @param eps finite and above 0; default 1e-5
   * @returns `gradX`; `gradWeight` and `gradBias` only with a `weight`
   * @throws {AttnError} `SHAPE` if the shapes do not fit
   * @throws {AttnError} `CONFIG` if `eps` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 3]), dims: [2] };
   * const ones = { data: new Float32Array([1, 1]), dims: [2] };
   * console.log(...attn.layerNormBackward(ones, x, ones).gradBias!.data); // 1 1
   * ```
   */
  layerNormBackward(grad: Tensor, x: Tensor, weight?: Tensor, eps?: number): { gradX: Tensor; gradWeight?: Tensor; gradBias?: Tensor };
  /**
   * Computes the gradients of {@link Attn.rmsNorm}. With f = 1 / √(mean of x² + eps), n = x · f, g = grad · weight:
   * gradX = f · (g − n · mean(g n)), gradWeight = Σ grad · n.
   *
   * @param grad gradient of the result, with the shape of x
   * @param x (..,width)
   * @param weight (width); default 1
   * @param eps finite and above 0; default 2⁻²³
   * @returns `gradX`; `gradWeight` only with a `weight`
   * @throws {AttnError} `SHAPE` if the shapes do not fit
   * @throws {AttnError} `CONFIG` if `eps` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([3, -3]), dims: [2] };
   * const ones = { data: new Float32Array([1, 1]), dims: [2] };
   * console.log(...attn.rmsNormBackward(ones, x, ones).gradWeight!.data); // 1 -1
   * ```
   */
  rmsNormBackward(grad: Tensor, x: Tensor, weight?: Tensor, eps?: number): { gradX: Tensor; gradWeight?: Tensor };
  /**
   * Computes the gradient of {@link Attn.softmax}: y · (grad − Σ grad · y).
   *
   * @param grad gradient of the result, with the shape of y
   * @param y the result of `softmax`, not its input
   * @param dim the dimension; default −1
   * @throws {AttnError} `SHAPE` if the shapes differ
   * @throws {AttnError} `OUT_OF_RANGE` if there is no such dimension
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const y = attn.softmax({ data: new Float32Array([0, 0]), dims: [2] });
   * console.log(...attn.softmaxBackward({ data: new Float32Array([1, 0]), dims: [2] }, y).data); // 0.25 -0.25
   * ```
   */
  softmaxBackward(grad: Tensor, y: Tensor, dim?: number): Tensor;
  /**
   * Computes the gradient of {@link Attn.activation}: grad · f′(x), at 0 with torch's value.
   *
   * @param grad gradient of the result, with the shape of x
   * @param x the input of the forward
   * @param name see {@link Activation}
   * @throws {AttnError} `SHAPE` if the shapes differ
   * @throws {AttnError} `CONFIG` if there is no such function
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const [x, grad] = [[-1, 2], [5, 5]].map((row) => ({ data: new Float32Array(row), dims: [2] }));
   * console.log(...attn.activationBackward(grad, x, 'relu').data); // 0 5
   * ```
   */
  activationBackward(grad: Tensor, x: Tensor, name: Activation): Tensor;
  /**
   * Computes the gradient of {@link Attn.applyRotary}: rotates by the opposite angles.
   *
   * @param grad gradient of the result (..,L,D)
   * @param options as in the forward
   * @throws {AttnError} those of {@link Attn.applyRotary}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const x = { data: new Float32Array([1, 0, 1, 0]), dims: [2, 2] };
   * console.log(...attn.applyRotaryBackward(attn.applyRotary(x)).data.map(Math.round)); // 1 0 1 0
   * ```
   */
  applyRotaryBackward(grad: Tensor, options?: { theta?: number | undefined; offset?: number | undefined; interleaved?: boolean | undefined }): Tensor;

  /**
   * Computes the cross entropy of class logits and its gradient (torch's `F.cross_entropy`, with the classes always in
   * the last dimension): Σᵢ (1 − ε) w[yᵢ] (−log pᵢ[yᵢ]) + ε/C Σ_c w[c] (−log pᵢ[c]) with pᵢ = softmax(logitsᵢ), divided
   * by Σᵢ w[yᵢ] for the mean. If all labels are ignored, the mean is NaN as in torch, the sum 0 and the gradient 0.
   *
   * @param logits (..,C)
   * @param labels y, one per row: a class from 0 to C − 1, or `ignoreIndex`
   * @param options.labelSmoothing ε in [0,1]; default 0
   * @param options.ignoreIndex label of rows that do not count; default −100
   * @param options.weight w (C); default 1
   * @param options.reduction `'mean'` (default) or `'sum'`
   * @throws {AttnError} `OUT_OF_RANGE` if a label is not a class, with its index
   * @throws {AttnError} `SHAPE` if the labels or the weights do not fit the logits
   * @throws {AttnError} `CONFIG` if `labelSmoothing` or `reduction` is out of range
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const { loss, gradient } = attn.crossEntropy({ data: new Float32Array([0, 0]), dims: [1, 2] }, [1]);
   * console.log(loss.toFixed(4), ...gradient.data); // 0.6931 0.5 -0.5
   * ```
   */
  crossEntropy(
    logits: Tensor,
    labels: Int32Array | readonly number[],
    options?: {
      labelSmoothing?: number | undefined;
      ignoreIndex?: number | undefined;
      weight?: Tensor | undefined;
      reduction?: 'mean' | 'sum' | undefined;
    },
  ): Loss;
  /**
   * Computes the squared error Σ (prediction − target)², divided by the number of elements for the mean, and its
   * gradient (torch's `F.mse_loss`, without broadcasting).
   *
   * @param prediction any shape
   * @param target the same shape
   * @param options.reduction `'mean'` (default) or `'sum'`
   * @throws {AttnError} `SHAPE` if the shapes differ
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const [a, b] = [[1, 2], [1, 4]].map((row) => ({ data: new Float32Array(row), dims: [2] }));
   * const { loss, gradient } = attn.mseLoss(a, b);
   * console.log(loss, ...gradient.data); // 2 0 -2
   * ```
   */
  mseLoss(prediction: Tensor, target: Tensor, options?: { reduction?: 'mean' | 'sum' | undefined }): Loss;
  /**
   * Computes Σ weight · (−p t log σ(x) − (1 − t) log(1 − σ(x))), divided by the number of elements for the mean, and
   * its gradient (torch's `F.binary_cross_entropy_with_logits`). The result is finite even if σ rounds to 0 or 1.
   *
   * @param logits x, any shape
   * @param target t, the same shape, usually 0 or 1
   * @param options.weight a factor per element; its shape broadcasts to that of x; default 1
   * @param options.posWeight p, a factor of positive answers; its shape broadcasts to that of x; default 1
   * @param options.reduction `'mean'` (default) or `'sum'`
   * @throws {AttnError} `SHAPE` if a shape does not fit
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const [x, t] = [[0, 100], [1, 1]].map((row) => ({ data: new Float32Array(row), dims: [2] }));
   * console.log(attn.binaryCrossEntropyWithLogits(x, t, { reduction: 'sum' }).loss.toFixed(4)); // 0.6931
   * ```
   */
  binaryCrossEntropyWithLogits(
    logits: Tensor,
    target: Tensor,
    options?: { weight?: Tensor | undefined; posWeight?: Tensor | undefined; reduction?: 'mean' | 'sum' | undefined },
  ): Loss;

  /**
   * Multiplies all gradients by maxNorm / (norm + 1e-6) if that is below 1 (Pascanu et al. 2013; torch's
   * `nn.utils.clip_grad_norm_`).
   *
   * @param modules at least one, each once
   * @param maxNorm from 0; `Infinity` only computes the norm
   * @returns the norm before clipping: √Σ g² over all gradients of all modules
   * @throws {AttnError} `CONFIG` if `maxNorm` is negative or NaN
   * @throws {AttnError} `ARGUMENT` if there is no module or one is listed twice
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([3, 4]), dims: [1, 2] });
   * console.log(attn.clipGradNorm([words], 1)); // 5
   * ```
   */
  clipGradNorm(modules: readonly Module[], maxNorm: number): number;
  /**
   * Creates an SGD optimiser (torch's `optim.SGD`): g += λ p; b = g in the first step, then µ b + (1 − τ) g; p −= η b,
   * with Nesterov momentum η (g + µ b), without momentum η g.
   *
   * Options: η `learningRate`, above 0, default 1e-3; µ `momentum`, τ `dampening` and λ `weightDecay`, default 0;
   * `nesterov`, default false, which needs a momentum and no dampening; `groups`, default none.
   *
   * @param modules the layers and models to train, at least one, each once
   * @throws {AttnError} `CONFIG` if an option is out of range
   * @throws {AttnError} `ARGUMENT` if there is no module or one is listed twice
   * @throws {AttnError} `UNSUPPORTED` if a module is int8
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 2 });
   * words.loadStateDict({ weight: { data: new Float32Array([1, 2]), dims: [1, 2] } });
   * const optimizer = new attn.SGD([words], { learningRate: 0.5 });
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([1, 2]), dims: [1, 2] });
   * optimizer.step();
   * console.log(...words.forward([0]).data); // 0.5 1
   * ```
   */
  readonly SGD: new (
    modules: readonly Module[],
    options?: {
      learningRate?: number | undefined;
      groups?: readonly ParameterGroup[] | undefined;
      momentum?: number | undefined;
      dampening?: number | undefined;
      nesterov?: boolean | undefined;
      weightDecay?: number | undefined;
    },
  ) => Optimizer;
  /**
   * Creates an Adam optimiser (Kingma & Ba 2015; torch's `optim.Adam`): g += λ p; m = β₁ m + (1 − β₁) g;
   * v = β₂ v + (1 − β₂) g²; p −= η / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε), with t the number of the parameter's step.
   *
   * Options: η `learningRate`, above 0, default 1e-3; `betas`, in [0,1), default [0.9, 0.999]; ε `eps`, from 0, default
   * 1e-8; λ `weightDecay`, from 0, default 0; `groups`, default none.
   *
   * @param modules as in {@link Gradients.SGD}
   * @throws {AttnError} those of {@link Gradients.SGD}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 1, embeddingDim: 1 });
   * const optimizer = new attn.Adam([words], { learningRate: 0.1 });
   * words.forward([0], [1], { forBackward: true });
   * words.backward({ data: new Float32Array([1]), dims: [1, 1] });
   * optimizer.step();
   * console.log([...optimizer.stateDict().keys()]); // [ '0.weight.exp_avg', '0.weight.exp_avg_sq', '0.weight.step' ]
   * ```
   */
  readonly Adam: new (
    modules: readonly Module[],
    options?: {
      learningRate?: number | undefined;
      betas?: readonly [number, number] | undefined;
      eps?: number | undefined;
      weightDecay?: number | undefined;
      groups?: readonly ParameterGroup[] | undefined;
    },
  ) => Optimizer;
  /**
   * Creates an AdamW optimiser (Loshchilov & Hutter 2019; torch's `optim.AdamW`): {@link Gradients.Adam} with p *= 1 −
   * η λ instead of g += λ p. `weightDecay` defaults to 1e-2.
   *
   * @example
   * ```ts
   * // An embedding and an attention layer learn to predict the next token of 0, 1, 2, 0, 1, 2, …
   * import { load } from 'attn';
   *
   * const attn = await load();
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 8 });
   * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
   * const optimizer = new attn.AdamW([words, mha], { learningRate: 0.05, groups: [{ names: /bias/, weightDecay: 0 }] });
   * let loss = 0;
   * for (let step = 0; step < 50; step++) {
   *   const x = words.forward([0, 1, 2], [1, 3], { forBackward: true });
   *   const { output } = mha.forward(x, undefined, undefined, { forBackward: true });
   *   const result = attn.crossEntropy(output, [1, 2, 0]);
   *   words.backward(mha.backward(result.gradient).gradQuery);
   *   optimizer.step();
   *   optimizer.zeroGrad();
   *   loss = result.loss;
   * }
   * console.log(loss < 0.01); // true
   * ```
   */
  readonly AdamW: Gradients['Adam'];
  /**
   * Computes the learning rate of a step with linear warm-up and decay: learningRate · step / warmup, then
   * learningRate · (steps − step) / (steps − warmup), and 0 from `steps` on (transformers'
   * `get_linear_schedule_with_warmup`).
   *
   * @param step counted from 0
   * @param options.learningRate the largest learning rate, above 0
   * @param options.warmup number of warm-up steps, from 0 to `steps`; default 0
   * @param options.steps number of all steps, from 1
   * @throws {AttnError} `CONFIG` if an option is out of range
   * @throws {AttnError} `ARGUMENT` if `step` is not a whole number from 0
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(attn.linearSchedule(3, { learningRate: 1, warmup: 2, steps: 4 })); // 0.5
   * ```
   */
  linearSchedule(step: number, options: { learningRate: number; warmup?: number | undefined; steps: number }): number;
  /**
   * Computes the learning rate of a step with linear warm-up and cosine decay: learningRate · step / warmup, then
   * minimum + (learningRate − minimum) (1 + cos(π (step − warmup) / (steps − warmup))) / 2, and `minimum` from `steps`
   * on (Loshchilov & Hutter 2017). The bits are the same on every machine.
   *
   * @param step counted from 0
   * @param options.learningRate the largest learning rate, above 0
   * @param options.warmup number of warm-up steps, from 0 to `steps`; default 0
   * @param options.steps number of all steps, from 1
   * @param options.minimum from 0 to `learningRate`; default 0
   * @throws {AttnError} those of {@link Gradients.linearSchedule}
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load();
   * console.log(attn.cosineSchedule(2, { learningRate: 1, steps: 4 }).toFixed(4)); // 0.5000
   * ```
   */
  cosineSchedule(step: number, options: { learningRate: number; warmup?: number | undefined; steps: number; minimum?: number | undefined }): number;
}
