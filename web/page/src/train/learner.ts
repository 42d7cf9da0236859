/** The model: embeddings plus positions, normalised as in BERT, and an encoder with a classifier. */
import type { Attn, Classifier, Embedding, Module, Tensor } from 'attn';
import type { Settings } from './settings.ts';
import type { Task } from './task.ts';

export interface Batch {
  readonly ids: Int32Array;
  /** [B, L] */
  readonly dims: readonly [number, number];
  /** (B,L): 1 for a symbol, 0 for padding; undefined without padding. */
  readonly mask: Uint8Array | undefined;
  /** (B,L), or (B) for one answer per example. */
  readonly labels: Int32Array;
}

export interface Forward {
  /** (B,L,C), or (B,C) for one answer per example. */
  readonly logits: Tensor;
  /** By layer (B,H,L,L), if requested. */
  readonly attentions: readonly Tensor[];
}

export type State = ReadonlyMap<string, Tensor>;

/** DistilBERT's eps, because the model is opened as one. */
const eps = 1e-12;
/** Width of the feed-forward network relative to the model. */
const expansion = 2;

export class Learner {
  readonly modules: readonly Module[];
  readonly parameterCount: number;
  readonly #attn: Attn;
  readonly #words: Embedding;
  readonly #places: Embedding | undefined;
  readonly #waves: Tensor | undefined;
  readonly #model: Classifier;
  readonly #width: number;
  readonly #causal: boolean;
  /** Input of the norm, for its gradient. */
  #sum: Tensor | undefined;

  constructor(attn: Attn, task: Task, settings: Settings) {
    const { width, heads, layers, dropout, positions, causal, initialisation: scheme, std, seed } = settings;
    this.#attn = attn;
    this.#width = width;
    this.#causal = causal;
    this.#words = new attn.Embedding({ numEmbeddings: task.symbols.length, embeddingDim: width });
    this.#words.initialize({ seed: 3 * seed });
    if (positions === 'learned') {
      this.#places = new attn.Embedding({ numEmbeddings: task.length, embeddingDim: width });
      this.#places.initialize({ seed: 3 * seed + 1 });
    }
    this.#waves = positions === 'sinusoidal' ? attn.sinusoidalPositions(task.length, width) : undefined;
    this.#model = new attn.TransformerClassifier({
      dModel: width,
      nhead: heads,
      dimFeedforward: expansion * width,
      numLayers: layers,
      numClasses: task.answers.length,
      pooling: task.isOne ? 'cls' : 'none',
      activation: 'gelu',
      layerNormEps: eps,
      dropout,
    });
    this.#model.initialize({ scheme, seed: 3 * seed + 2, ...(scheme === 'normal' ? { std } : {}) });
    this.modules = [this.#words, ...(this.#places ? [this.#places] : []), this.#model];
    this.parameterCount = this.modules.reduce((sum, each) => sum + each.parameterCount, 0);
    const root = rootOf(settings);
    if (root !== 1) this.load(scaled(this.state(), root));
  }

  /** With `seed`, dropout is applied and `backward` becomes possible. */
  forward({ ids, dims, mask }: Batch, { seed, outputAttentions }: { readonly seed?: number; readonly outputAttentions?: boolean } = {}): Forward {
    const forBackward = seed !== undefined;
    const sum = this.#words.forward(ids, dims, { forBackward });
    const [, length] = dims;
    if (this.#places) {
      const places = Int32Array.from(ids, (_, i) => i % length);
      const { data } = this.#places.forward(places, dims, { forBackward });
      for (let i = 0; i < data.length; ++i) sum.data[i]! += data[i]!;
    }
    if (this.#waves) {
      const { data } = this.#waves;
      const size = length * this.#width;
      for (let i = 0; i < sum.data.length; ++i) sum.data[i]! += data[i % size]!;
    }
    this.#sum = forBackward ? sum : undefined;
    if (forBackward) this.#model.train({ seed });
    try {
      const { logits, attentions } = this.#model.forward(this.#attn.layerNorm(sum, undefined, undefined, eps), {
        isCausal: this.#causal,
        ...(mask && { keyPaddingMask: { kind: 'attend' as const, data: mask, dims } }),
        ...(outputAttentions && { outputAttentions }),
      });
      return { logits, attentions: attentions ?? [] };
    } finally {
      if (forBackward) this.#model.eval();
    }
  }

  /** Uses the last forward with a seed. */
  backward(gradLogits: Tensor): void {
    const { gradX } = this.#model.backward(gradLogits);
    const { gradX: gradSum } = this.#attn.layerNormBackward(gradX, this.#sum!, undefined, eps);
    this.#words.backward(gradSum);
    this.#places?.backward(gradSum);
  }

  gradients(): State {
    return this.#named((module) => module.gradients());
  }

  state(): State {
    return this.#named((module) => module.stateDict());
  }

  load(state: State): void {
    for (const [prefix, module] of this.#parts())
      module.loadStateDict(new Map(Array.from(module.parameterShapes().keys(), (name) => [name, state.get(prefix + name)!])));
  }

  dispose(): void {
    for (const module of this.modules) module.dispose();
  }

  #parts(): readonly (readonly [string, Module])[] {
    const places = this.#places ? ([['position_embeddings.', this.#places]] as const) : [];
    return [['word_embeddings.', this.#words], ...places, ['', this.#model]];
  }

  #named(read: (module: Module) => ReadonlyMap<string, Tensor>): State {
    return new Map(this.#parts().flatMap(([prefix, module]) => Array.from(read(module), ([name, tensor]) => [prefix + name, tensor] as const)));
  }
}

/**
 * The encoder always divides scores by √D. Without that scale, in_proj is √√D times as large and out_proj 1/√√D: the
 * same function, and Trainer adapts the learning rates.
 */
export function rootOf({ scale, width, heads }: Settings): number {
  return scale ? 1 : Math.sqrt(Math.sqrt(width / heads));
}

/** Factor of a weight relative to a model without the division. */
export const factorOf = (name: string, root: number): number => (name.includes('in_proj') ? root : name.endsWith('out_proj.weight') ? 1 / root : 1);

const scaled = (state: State, root: number): State =>
  new Map(
    Array.from(state, ([name, { data, dims }]) => {
      const factor = factorOf(name, root);
      return [name, { data: data.map((value) => value * factor), dims }];
    }),
  );
