/** Gradients, losses, optimisers: the part of the types that is about training. All of it is exported by 'attn'. */
import type { Activation, AttentionOptions, Encoding, Module, StateDict, Tensor, TraceName } from './attn.js';
import type { AbortSignal } from './host.js';

/** Gradients of an attention's inputs, each of the shape of what it is of. */
export interface BackwardResult {
  /** Where a layer's key and value were left to be the query, the sum of all three; `gradKey` and `gradValue` are not there then. */
  gradQuery: Tensor;
  gradKey?: Tensor;
  gradValue?: Tensor;
  /** When a trace was asked for: the gradient of every intermediate, by the name and of the shape that it has in the forward's trace. */
  trace?: { readonly [name in TraceName]?: Tensor };
}

/** A loss, and its gradient with respect to the first argument: what the `backward` of the layer before takes. */
export interface Loss {
  readonly loss: number;
  readonly gradient: Tensor;
}

/** Parameters whose names match, in each module, take these options instead of the optimiser's; of several groups the first that matches. */
export interface ParameterGroup {
  /** Tried on the names of {@link Module.stateDict}, once, when the optimiser is made. */
  readonly names: RegExp;
  /** Above 0. */
  readonly learningRate?: number | undefined;
  /** 0 or above. */
  readonly weightDecay?: number | undefined;
}

/**
 * What all optimisers have. All arithmetic is float32 by torch's formulas in torch's order, without fused operations: the same bits on every machine
 * and with any number of threads. A parameter without a gradient is left alone. NaN in a gradient goes into its parameter, as in torch.
 */
export interface Optimizer {
  /**
   * One step along the gradients that there are.
   *
   * @throws AttnError `DISPOSED` where a module was disposed of, `UNSUPPORTED` where one has become int8, `MEMORY`; no weight has changed then
   */
  step(): void;
  /** No parameter of the modules has a gradient any more. */
  zeroGrad(): void;
  /**
   * 0 or above, else `CONFIG`. Setting it moves the learning rates of groups in the same proportion, as torch's schedulers do. In attn/worker it
   * cannot be assigned: {@link Optimizer.setLearningRate}.
   */
  learningRate: number;
  /** The same as an assignment. */
  setLearningRate(learningRate: number): void;
  /**
   * What is kept of each parameter that has taken a step, torch's names behind those of the place of the module and the parameter, such as
   * `0.linear1.weight.exp_avg`. Options are not among it.
   */
  stateDict(): Map<string, Tensor>;
  /**
   * Takes such a state. A parameter that it does not name is one that has not taken a step.
   *
   * @throws AttnError `MISMATCH`, which lists all names that do not fit; `ARGUMENT` for a step that is no whole number; nothing has been changed then
   */
  loadStateDict(state: StateDict): void;
  /** Frees what is kept; the modules stay. Idempotent; any later use throws `DISPOSED`. An optimiser that is forgotten is freed when it is collected. */
  dispose(): void;
  /** The same as {@link Optimizer.dispose}. */
  [Symbol.dispose](): void;
}

/** Gradients of one number of a text model. */
export interface TextModelGradients {
  /** The number itself. */
  value: number;
  /** (B,L,E), of the word embedding at each place. */
  embeddings?: Tensor;
  /** Of the attention weights, by layer (B,H,L,L); 0 where a query does not see a key. */
  attentions?: Tensor[];
  /** By the names of the model's `stateDict`. */
  parameters?: Map<string, Tensor>;
}

/** What each token of a text has to do with an answer. */
export interface TextAttribution {
  /** Special ones included. */
  tokens: readonly string[];
  /** Places in the text, `null` of special tokens. */
  offsets: readonly ([number, number] | null)[];
  /** By token. */
  scores: Float32Array;
  /** |Σ scores − (f(text) − f(baseline))| / |f(text) − f(baseline)|, of `'integrated_gradients'`. */
  delta?: number;
}

/** What a text model has with the training build; without it each throws `ENVIRONMENT`. */
export interface ModelGradients {
  /**
   * The gradient of one number with respect to what `wrt` names, torch's `autograd.grad` of it, without dropout.
   *
   * @param options `target`: the logit of a label (by number or name) before softmax, where the head has logits of each token that of number `token`
   * (its label is, of fill-mask, a token of the vocabulary, of question-answering `'start'` or `'end'`); or number `component` of the pooled vector,
   * before Dense and scaling. `row` is the sequence, default 0
   * @throws AttnError `UNSUPPORTED` for int8 weights, which `loadModel(…, { weights: 'float32' })` makes float32, and for a label without a head;
   * `OUT_OF_RANGE` for what is not there; `ARGUMENT`, and as `forward`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load({ training: true });
   * const model = await attn.loadModel('models/sentiment');
   * const { value, embeddings } = model.gradients(model.tokenize('not bad'), { target: { label: 'positive' }, wrt: ['embeddings'] });
   * console.log(value, embeddings?.dims); // the logit, [1, 4, 64]
   * ```
   */
  gradients(
    inputs: Encoding,
    options: {
      target: { label: number | string; row?: number | undefined; token?: number | undefined } | { component: number; row?: number | undefined };
      wrt: readonly ('embeddings' | 'parameters' | 'attentions')[];
    },
  ): TextModelGradients;
  /**
   * A score for each token of a text. f is the logit of `target` before softmax, default the answer, the largest; without a head number `target` of the
   * pooled vector.
   *
   * | method | score |
   * |---|---|
   * | `'integrated_gradients'`, the default | Σ over E of (x − b) · ∫ ∂f/∂x on the way from b to x by `steps` (default 50) of Gauss-Legendre; x the word embeddings, b those of PAD but at special tokens (Sundararajan, Taly & Yan 2017) |
   * | `'gradient_x_input'` | Σ over E of x · ∂f/∂x |
   * | `'attention_rollout'` | the pooled rows of the product of 0.5 A + 0.5 I over the layers, A the mean over the heads (Abnar & Zuidema 2020) |
   * | `'attention_gradient'` | those of the product of I + Ā, Ā the mean over the heads of the positive part of A · ∂f/∂A (Chefer, Gur & Wolf 2021) |
   * | `'leave_one_out'` | f of the text less f of the text without the token; 0 for special tokens |
   *
   * A long text is cut as by `classify`. int8 models have rollout and leave-one-out.
   *
   * @throws AttnError `UNSUPPORTED` for gradients of int8 weights; `ARGUMENT` without a head where no target is given; `OUT_OF_RANGE` for one that is not
   * there; `CONFIG` for steps; `ABORTED`, `MEMORY`
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load({ training: true });
   * const model = await attn.loadModel('models/sentiment');
   * const { tokens, scores, delta } = await model.attribute('not bad at all');
   * tokens.forEach((token, i) => console.log(token, scores[i]));
   * console.log(delta); // far below 0.01
   * ```
   */
  attribute(
    text: string,
    options?: {
      method?: 'gradient_x_input' | 'integrated_gradients' | 'attention_rollout' | 'attention_gradient' | 'leave_one_out' | undefined;
      target?: number | string | undefined;
      steps?: number | undefined;
      signal?: AbortSignal | undefined;
    },
  ): Promise<TextAttribution>;
  /**
   * Trains the model on examples, as transformers' Trainer does for sequence classification: AdamW with β 0.9 and 0.999, gradients cut to norm 1, the
   * learning rate falling linearly to 0, no decay of biases and norms; cross entropy of softmax, of one label binary cross entropy, of a regression the
   * squared error (`problem_type`, or a cross-encoder whose files name `Identity`). Each step has dropout in transformers' places, as likely as
   * `config.json` says (`hidden_dropout_prob` and so on, transformers' default where it says nothing; 0 there is none); with `layers: 'head'` in the head
   * alone, for texts are pooled before. What is held out is judged without. A model without a head, or with other labels than are asked for, gets a new
   * one: weights N(0, 0.02²) from the seed.
   * `labels`, `config` and the names of `stateDict` are then those of transformers' …ForSequenceClassification, and `export` writes what it loads.
   * Weights and result follow from the seed, whatever the number of threads. Between two steps the model can be used, with the weights of then.
   *
   * @throws AttnError before anything has changed: `ARGUMENT`, `CONFIG` (for a dropout of the file that is not in [0, 1), too), `OUT_OF_RANGE` for labels and layers that are not there, `UNSUPPORTED` for int8
   * weights and for heads with several answers for a text, `BUSY` while another run trains this model. In the middle: `ABORTED`, `MEMORY`, and
   * `OUT_OF_RANGE` with the step's number for a loss or gradient that is no finite number; weights are those after the last whole step then
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load({ training: true });
   * const model = await attn.loadModel('models/all-MiniLM-L6-v2');
   * const examples = [{ text: 'It broke after a day', label: 'quality' }, { text: 'arrived two weeks late', label: 'delivery' }];
   * await model.fineTune(examples, { layers: 'head', epochs: 20, onProgress: ({ step, loss }) => console.log(step, loss) });
   * console.log(await model.classify('It came late'));
   * const files = await model.export(); // as load() and transformers read them
   * ```
   */
  fineTune(examples: readonly FineTuneExample[], options?: FineTuneOptions): Promise<FineTuneResult>;
}

/** A text, or a pair of them, and what the model shall say of it. */
export interface FineTuneExample {
  text: string | readonly [string, string];
  /** A label by name or number; of one label 0, 1 or what lies between, of a regression any number. */
  label: number | string;
}

/** What `onProgress` is told after each step. */
export interface FineTuneProgress {
  /** Counted from 1. */
  epoch: number;
  step: number;
  /** Of the whole run. */
  steps: number;
  /** Of the step's batch, before the step. */
  loss: number;
  /** After an epoch, where some examples are held out; of a regression no accuracy. */
  validationLoss?: number;
  validationAccuracy?: number;
}

export interface FineTuneOptions {
  /** Default 3. */
  epochs?: number | undefined;
  /** Default 16. */
  batchSize?: number | undefined;
  /** Above 0, at the start; default 5e-5, of the head alone 1e-3. */
  learningRate?: number | undefined;
  /** Default 0.01, of all but biases and norms. */
  weightDecay?: number | undefined;
  /** Default `'all'`. A number: so many of the last layers, and the head. `'head'` sends each text through the encoder once. */
  layers?: 'head' | 'all' | number | undefined;
  /** Of the head. Default the model's own, else those of the examples: names in their order, or `LABEL_0` and so on. */
  labels?: readonly string[] | undefined;
  /** 0 to 2⁵³ − 1, default 0: of the order of the examples, of dropout, and of a new head. */
  seed?: number | undefined;
  /** Share of the examples, from 0 up to, not including, 1, that are held out; default 0. */
  validation?: number | undefined;
  signal?: AbortSignal | undefined;
  onProgress?: ((progress: FineTuneProgress) => void) | undefined;
}

export interface FineTuneResult {
  /** Mean over the steps of the last epoch. */
  loss: number;
  validationAccuracy?: number;
}

/** What the training build has beside the gradients of layers; the others throw `ENVIRONMENT`, which names `load({ training: true })`. */
export interface Gradients {
  /**
   * Gradients of {@link Attn.scaledDotProductAttention}: with P its probabilities and dP = grad vᵀ, dS = P ∘ (dP − Σ P ∘ dP), gradQuery =
   * scale · dS k, gradKey = scale · dSᵀ q, gradValue = Pᵀ grad (torch.autograd; Dao et al. 2022). P is computed again: besides a trace nothing is as
   * large as (B,H,L,S). Masked keys are skipped: whatever they hold, NaN included, reaches no gradient.
   *
   * @param grad that of the output, (..,L,Dv)
   * @param query, key, value, options as the forward had them; a trace is one of gradients
   * @throws AttnError `SHAPE` when grad has not the output's shape; `UNSUPPORTED` for a `past`; else as the forward
   *
   * @example
   * ```ts
   * import { load } from 'attn';
   *
   * const attn = await load({ training: true });
   * const x = { data: new Float32Array([1, 0, 0, 1, 1, 1]), dims: [3, 2] };
   * const grad = { data: new Float32Array(6).fill(1), dims: [3, 2] };
   * const { gradQuery, trace } = attn.scaledDotProductAttentionBackward(grad, x, x, x, { trace: ['scores'] });
   * console.log(gradQuery.dims, trace?.scores?.dims); // [3, 2] [3, 3]
   * ```
   */
  scaledDotProductAttentionBackward(grad: Tensor, query: Tensor, key: Tensor, value: Tensor, options?: AttentionOptions): BackwardResult;
  /** Gradients of {@link Attn.generalAttention}, whose weight (Dq,Dk) has one too; else as {@link Gradients.scaledDotProductAttentionBackward}. */
  generalAttentionBackward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    params: { weight: Tensor },
    options?: AttentionOptions,
  ): BackwardResult & { gradWeight: Tensor };
  /** Gradients of {@link Attn.additiveAttention} and its parameters; else as {@link Gradients.scaledDotProductAttentionBackward}. */
  additiveAttentionBackward(
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    params: { queryWeight: Tensor; keyWeight: Tensor; scoreWeight: Tensor; bias?: Tensor | undefined },
    options?: AttentionOptions,
  ): BackwardResult & { gradQueryWeight: Tensor; gradKeyWeight: Tensor; gradScoreWeight: Tensor; gradBias?: Tensor };
  /**
   * Gradients of {@link Attn.linear}: gradX = grad W, gradWeight = gradᵀ x, gradBias = Σ grad (torch.autograd of F.linear).
   *
   * @param grad that of the result, (..,out)
   * @param x (..,in)
   * @param weight (out,in)
   * @throws AttnError `SHAPE`, `MEMORY`
   */
  linearBackward(grad: Tensor, x: Tensor, weight: Tensor): { gradX: Tensor; gradWeight: Tensor; gradBias: Tensor };
  /**
   * Gradients of {@link Attn.layerNorm}, none of which depends on its bias. With n = (x − mean) · f, f = 1 / √(variance + eps), g = grad · weight:
   * gradX = f · (g − mean(g) − n · mean(g n)), gradWeight = Σ grad · n, gradBias = Σ grad, both where a weight is given.
   *
   * @throws AttnError `SHAPE`, `CONFIG` for eps, `MEMORY`
   */
  layerNormBackward(grad: Tensor, x: Tensor, weight?: Tensor, eps?: number): { gradX: Tensor; gradWeight?: Tensor; gradBias?: Tensor };
  /**
   * Gradients of {@link Attn.rmsNorm}. With n = x · f, f = 1 / √(mean of x² + eps), g = grad · weight: gradX = f · (g − n · mean(g n)),
   * gradWeight = Σ grad · n, where a weight is given.
   *
   * @throws AttnError `SHAPE`, `CONFIG` for eps, `MEMORY`
   */
  rmsNormBackward(grad: Tensor, x: Tensor, weight?: Tensor, eps?: number): { gradX: Tensor; gradWeight?: Tensor };
  /**
   * Gradient of {@link Attn.softmax}: y · (grad − Σ grad · y).
   *
   * @param y the softmax itself
   * @param dim default −1, the last
   */
  softmaxBackward(grad: Tensor, y: Tensor, dim?: number): Tensor;
  /** Gradient of {@link Attn.activation}: grad · f′(x), at 0 what torch has there. */
  activationBackward(grad: Tensor, x: Tensor, name: Activation): Tensor;
  /** Gradient of {@link Attn.applyRotary}: the same turns the other way. */
  applyRotaryBackward(grad: Tensor, options?: { theta?: number | undefined; offset?: number | undefined; interleaved?: boolean | undefined }): Tensor;

  /**
   * Σᵢ (1 − ε) w[yᵢ] (−log pᵢ[yᵢ]) + ε/C Σ_c w[c] (−log pᵢ[c]), pᵢ = softmax(logitsᵢ), divided by Σᵢ w[yᵢ] for the mean
   * (torch.nn.functional.cross_entropy, with the classes in the last dimension whatever the rank).
   * Where every label is ignored the mean is NaN, as in torch, the sum 0, and the gradient 0.
   *
   * @param logits (..,C)
   * @param labels one for each row: a class from 0 to C − 1, or `ignoreIndex`
   * @param options `labelSmoothing` ε in [0,1], default 0; `ignoreIndex`, default −100; `weight` w (C), default 1; `reduction`, default `'mean'`
   * @throws AttnError `OUT_OF_RANGE` with the place of the first label that is no class; `SHAPE`, `CONFIG`, `DTYPE`, `MEMORY`
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
  /** Σ (prediction − target)², divided by the number of terms for the mean, the default (torch.nn.functional.mse_loss). One shape: torch would broadcast. */
  mseLoss(prediction: Tensor, target: Tensor, options?: { reduction?: 'mean' | 'sum' | undefined }): Loss;
  /**
   * Σ weight · (−p t log σ(x) − (1 − t) log(1 − σ(x))), divided by the number of terms for the mean, the default
   * (torch.nn.functional.binary_cross_entropy_with_logits). Exact where σ is 0 or 1.
   *
   * @param logits x
   * @param target t, of the same shape, usually 0 or 1
   * @param options `weight` of each term and `posWeight` p of a positive answer, of shapes that broadcast to that of x, default 1
   */
  binaryCrossEntropyWithLogits(
    logits: Tensor,
    target: Tensor,
    options?: { weight?: Tensor | undefined; posWeight?: Tensor | undefined; reduction?: 'mean' | 'sum' | undefined },
  ): Loss;

  /**
   * Multiplies all gradients by maxNorm / (norm + 1e-6) where that is below 1 (Pascanu et al. 2013; torch.nn.utils.clip_grad_norm_).
   *
   * @param maxNorm from 0; `Infinity` only asks for the norm
   * @returns the norm before, √Σ g² over all gradients of all modules
   */
  clipGradNorm(modules: readonly Module[], maxNorm: number): number;
  /**
   * g += λ p; b = g in the first step, then µ b + (1 − τ) g; p −= η b, with Nesterov η (g + µ b), without momentum η g (torch.optim.SGD).
   * λ `weightDecay`, µ `momentum`, τ `dampening`, all 0 by default; η `learningRate`, default 1e-3.
   *
   * @throws AttnError `CONFIG`, `ARGUMENT` for no module or one that is there twice, `UNSUPPORTED` for one that is int8, `DISPOSED`, `WRONG_INSTANCE`
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
   * g += λ p; m = β₁ m + (1 − β₁) g; v = β₂ v + (1 − β₂) g²; p −= η / (1 − β₁ᵗ) · m / (√v / √(1 − β₂ᵗ) + ε), t the parameter's step
   * (Kingma & Ba 2015; torch.optim.Adam). η `learningRate`, default 1e-3; `betas`, default [0.9, 0.999]; ε `eps`, default 1e-8; λ `weightDecay`,
   * default 0. Errors as {@link Gradients.SGD}.
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
   * p *= 1 − η λ instead of g += λ p, all else as {@link Gradients.Adam}; λ 1e-2 by default (Loshchilov & Hutter 2019; torch.optim.AdamW).
   *
   * @example
   * ```ts
   * // An embedding and an attention learn to say which token comes next in 0, 1, 2, 0, 1, 2, …
   * import { load } from 'attn';
   *
   * const attn = await load({ training: true });
   * const words = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 8 });
   * const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
   * const optimizer = new attn.AdamW([words, mha], { learningRate: 0.05, groups: [{ names: /bias/, weightDecay: 0 }] });
   * let loss = 0;
   * for (let step = 0; step < 50; step++) {
   *   const { output } = mha.forward(words.forward([0, 1, 2], [1, 3], { forBackward: true }), undefined, undefined, { forBackward: true });
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
   * The learning rate of a step, counted from 0: learningRate · step / warmup, then learningRate · (steps − step) / (steps − warmup), 0 from `steps` on
   * (transformers' get_linear_schedule_with_warmup). `warmup` is 0 by default.
   *
   * @throws AttnError `CONFIG`, `ARGUMENT` for a step below 0
   */
  linearSchedule(step: number, options: { learningRate: number; warmup?: number | undefined; steps: number }): number;
  /**
   * learningRate · step / warmup, then minimum + (learningRate − minimum) (1 + cos(π (step − warmup) / (steps − warmup))) / 2, `minimum`, by default 0,
   * from `steps` on (Loshchilov & Hutter 2017). The cosine is attn's own: the same bits on every machine.
   *
   * @throws AttnError `CONFIG`, `ARGUMENT` for a step below 0
   */
  cosineSchedule(step: number, options: { learningRate: number; warmup?: number | undefined; steps: number; minimum?: number | undefined }): number;
}
