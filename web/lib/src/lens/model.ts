/** Reads a text model through its public functions, which may be those of attn/worker. */
import { elements } from '../args/arrays.js';
import { describe, fail, reading } from '../args/error.js';
import { readSignal } from '../args/options.js';
import { readMembers } from '../args/signature.js';
import type { Dims, EncoderTraceName, Encoding, TextForwardOptions, TextModelGradients, TextModelOutput, Tensor } from '../attn.js';
import type { LensText } from '../lens.js';
import { aborted } from '../platform/abort.js';
import { yieldEvery30ms } from '../platform/event_loop.js';

type Awaitable<T> = T | PromiseLike<T>;

/** Common to TextModel and its counterpart in attn/worker. */
export interface AnyModel {
  readonly config: Awaitable<Readonly<Record<string, unknown>>>;
  readonly task: Awaitable<string>;
  readonly weights: Awaitable<string>;
  readonly wordEmbeddings: Awaitable<{ forward(ids: Int32Array, dims: Dims): Awaitable<Tensor> }>;
  tokenize(text: string, options?: object): Awaitable<Encoding>;
  tokenToId(token: string): Awaitable<number | undefined>;
  idToToken(id: number): Awaitable<string | undefined>;
  forward(inputs: Encoding, options?: TextForwardOptions): Awaitable<TextModelOutput>;
  unembed(hiddenStates: Tensor): Awaitable<Tensor>;
  gradients(
    inputs: Encoding,
    options: {
      target: { label: number; contrast?: number | undefined; token?: number | undefined };
      wrt?: readonly 'embeddings'[];
      trace?: { readonly names: readonly EncoderTraceName[] };
    },
  ): Awaitable<TextModelGradients>;
  attribute(text: LensText, options?: object): Awaitable<{ tokens: readonly string[]; scores: Float32Array }>;
  parameterShapes(): Awaitable<ReadonlyMap<string, Dims>>;
  getParameter(name: string): Awaitable<Tensor>;
}

/** Where a family of pre-norm decoders keeps its weights; `#` is the layer. */
interface Family {
  readonly isRms: boolean;
  readonly epsilon: readonly [name: string, otherwise: number];
  readonly headsName: string;
  readonly finalNorm: string;
  readonly attentionOutput: string;
  readonly mlpOutput: string;
  /** Whether weights are stored as (in,out). */
  readonly isTransposed: boolean;
}

const gpt2: Family = {
  isRms: false,
  epsilon: ['layer_norm_epsilon', 1e-5],
  headsName: 'n_head',
  finalNorm: 'ln_f',
  attentionOutput: 'h.#.attn.c_proj',
  mlpOutput: 'h.#.mlp.c_proj',
  isTransposed: true,
};
const llama: Family = {
  isRms: true,
  epsilon: ['rms_norm_eps', 1e-6],
  headsName: 'num_attention_heads',
  finalNorm: 'norm',
  attentionOutput: 'layers.#.self_attn.o_proj',
  mlpOutput: 'layers.#.mlp.down_proj',
  isTransposed: false,
};
/** By model_type. A family is here only if a test compares it: others may scale or cap what the lens would take as it is. */
const families: Readonly<Record<string, Family>> = { gpt2, llama, mistral: llama, qwen2: llama, qwen3: llama };

export function readModel(op: string, value: unknown): AnyModel {
  const members = ['forward', 'tokenize', 'unembed'];
  const isModel = reading(
    op,
    'model',
    () => typeof value === 'object' && value !== null && members.every((name) => typeof (value as Record<string, unknown>)[name] === 'function'),
  );
  if (!isModel) fail('ARGUMENT', op, 'model', describe(value), 'a model that loadModel() returned');
  return value as AnyModel;
}

export interface CommonOptions {
  readonly values: Readonly<Record<string, unknown>>;
  readonly signal: AbortSignal | undefined;
}

export function readOptions(op: string, value: unknown, names: readonly string[]): CommonOptions {
  return reading(op, 'options', () => {
    const list = value === undefined ? [] : readMembers(op, 'options', value, [...names, 'signal']);
    return { values: Object.fromEntries(names.map((name, i) => [name, list[i]])), signal: readSignal(op, list[names.length]) };
  });
}

/** Called between two forwards: handles events, and throws if the signal is aborted. */
export function breaks(op: string, signal: AbortSignal | undefined): () => Promise<void> {
  const sometimes = yieldEvery30ms();
  return async () => {
    await sometimes();
    if (signal?.aborted) throw aborted(signal, op);
  };
}

export interface Tokens {
  readonly inputs: Encoding;
  readonly ids: Int32Array;
  readonly tokens: readonly string[];
}

/** Repeats ids (L) as (count,L). */
export const repeated = (ids: Int32Array, count: number): Encoding => {
  const inputIds = new Int32Array(count * ids.length);
  for (let i = 0; i < count; ++i) inputIds.set(ids, i * ids.length);
  return { inputIds, dims: [count, ids.length] } as unknown as Encoding;
};

/** Overlong text is an error: a truncated one would have other positions. */
export async function readTokens(op: string, model: AnyModel, text: LensText, argument = 'text'): Promise<Tokens> {
  let ids: Int32Array;
  if (typeof text === 'string') ids = (await model.tokenize(text, { truncation: false })).inputIds;
  else {
    const given: unknown = text;
    const list = reading(op, argument, () => {
      const isList = Array.isArray(given) || (ArrayBuffer.isView(given) && !(given instanceof DataView));
      if (!isList) fail('ARGUMENT', op, argument, describe(given), 'a string, or an Array or a typed array of token ids');
      return elements(given as ArrayLike<unknown>, (id, i) => {
        if (!Number.isInteger(id) || (id as number) < 0 || (id as number) >= 2 ** 31)
          fail('ARGUMENT', op, `${argument}[${i}]`, describe(id), 'the id of a token');
        return id as number;
      });
    });
    ids = Int32Array.from(list);
  }
  if (ids.length === 0) fail('ARGUMENT', op, argument, 'has no token', 'at least one token');
  const tokens: string[] = [];
  for (const id of ids) tokens.push((await model.idToToken(id)) ?? '');
  return { inputs: repeated(ids, 1), ids, tokens };
}

/** Reads an id, a spelling in the vocabulary, or a text that is a single token. */
export async function readToken(op: string, model: AnyModel, argument: string, value: unknown): Promise<number> {
  const id = typeof value === 'number' ? value : await idOf(op, model, argument, value);
  if (!Number.isInteger(id)) fail('ARGUMENT', op, argument, describe(value), 'the id or the text of a token');
  const size = Number((await model.config)['vocab_size']);
  if (id < 0 || id >= size) fail('OUT_OF_RANGE', op, argument, `is ${id}`, `the id of a token from 0 to ${size - 1}`);
  return id;
}

async function idOf(op: string, model: AnyModel, argument: string, value: unknown): Promise<number> {
  if (typeof value !== 'string')
    fail('ARGUMENT', op, argument, value === undefined ? 'is missing' : describe(value), 'the id or the text of a token');
  // The tokenizers of Llama 2 and Mistral put a space in front of a text, so ' Paris' would be two tokens.
  const id = (await model.tokenToId(value)) ?? (value.startsWith(' ') ? await model.tokenToId(`▁${value.slice(1)}`) : undefined);
  if (id !== undefined) return id;
  const { inputIds } = await model.tokenize(value, { addSpecialTokens: false });
  if (inputIds.length !== 1)
    fail('OUT_OF_RANGE', op, argument, `is ${JSON.stringify(value)}, which has ${inputIds.length} tokens`, 'a text that is a single token');
  return inputIds[0]!;
}

export function readList<T>(op: string, argument: string, value: unknown, expected: string, read: (element: unknown, index: number) => T): T[] {
  return reading(op, argument, () =>
    Array.isArray(value) ? elements(value as unknown[], read) : fail('ARGUMENT', op, argument, describe(value), expected),
  );
}

/** Reads indices from 0 to count − 1; default all. */
export function readIndices(op: string, argument: string, value: unknown, count: number): number[] {
  if (value === undefined) return Array.from({ length: count }, (_, i) => i);
  return readList(op, argument, value, 'an Array of whole numbers', (each, i) => readIndex(op, `${argument}[${i}]`, each, count));
}

export function readIndex(op: string, argument: string, value: unknown, count: number, otherwise?: number): number {
  if (value === undefined && otherwise !== undefined) return otherwise;
  if (typeof value !== 'number' || !Number.isInteger(value)) fail('ARGUMENT', op, argument, describe(value), 'a whole number');
  if (value < 0 || value >= count) fail('OUT_OF_RANGE', op, argument, `is ${value}`, `a number from 0 to ${count - 1}`);
  return value;
}

/** Names of a model's weights, whose prefix depends on the checkpoint's class. */
export class Weights {
  readonly model: AnyModel;
  readonly names: readonly string[];

  constructor(model: AnyModel, names: Iterable<string>) {
    this.model = model;
    this.names = [...names];
  }

  find(name: string): string | undefined {
    return ['', 'transformer.', 'model.'].map((prefix) => prefix + name).find((each) => this.names.includes(each));
  }

  async get(name: string): Promise<Tensor> {
    return this.model.getParameter(this.find(name) ?? name);
  }

  async optional(name: string): Promise<Float32Array | undefined> {
    const found = this.find(name);
    return found === undefined ? undefined : (await this.model.getParameter(found)).data;
  }
}

export interface Normed {
  readonly values: Float64Array;
  /** √(variance + ε), or for RMSNorm √(mean square + ε). */
  readonly divisor: number;
}

/** A pre-norm decoder and its weights. */
export class Decoder {
  readonly model: AnyModel;
  readonly family: Family;
  readonly weights: Weights;
  readonly epsilon: number;
  readonly gain: Float32Array;
  readonly shift: Float32Array | undefined;

  private constructor(model: AnyModel, family: Family, weights: Weights, epsilon: number, gain: Float32Array, shift: Float32Array | undefined) {
    this.model = model;
    this.family = family;
    this.weights = weights;
    this.epsilon = epsilon;
    this.gain = gain;
    this.shift = shift;
  }

  /** Throws UNSUPPORTED for a family that the lens does not know. */
  static async of(op: string, model: AnyModel): Promise<Decoder> {
    const [task, config] = [await model.task, await model.config];
    if (task !== 'text-generation') fail('UNSUPPORTED', op, 'model', `is for ${task}`, 'a model for text-generation');
    const type = String(config['model_type']);
    const family = Object.hasOwn(families, type) ? families[type]! : undefined;
    if (!family) fail('UNSUPPORTED', op, 'model', `has the model_type ${type}`, `one of ${Object.keys(families).join(', ')}`);
    const weights = new Weights(model, (await model.parameterShapes()).keys());
    const [name, otherwise] = family.epsilon;
    const epsilon = Math.fround(typeof config[name] === 'number' ? config[name] : otherwise);
    const { data } = await weights.get(`${family.finalNorm}.weight`);
    return new Decoder(model, family, weights, epsilon, data, await weights.optional(`${family.finalNorm}.bias`));
  }

  get width(): number {
    return this.gain.length;
  }

  /** y = (x − mean) / √(var + ε) · γ + β, or for RMSNorm x / √(mean of squares + ε) · γ. */
  finalNorm(x: ArrayLike<number>): Normed {
    const [E, { isRms }] = [this.width, this.family];
    let mean = 0;
    if (!isRms) for (let e = 0; e < E; ++e) mean += x[e]! / E;
    let square = 0;
    for (let e = 0; e < E; ++e) square += (x[e]! - mean) ** 2 / E;
    const divisor = Math.sqrt(square + this.epsilon);
    const values = Float64Array.from({ length: E }, (_, e) => ((x[e]! - mean) / divisor) * this.gain[e]! + (this.shift?.[e] ?? 0));
    return { values, divisor };
  }

  /** logit = row · normed hidden state */
  async logitDirections(ids: readonly number[]): Promise<Float32Array[]> {
    const E = this.width;
    const own = this.weights.find('lm_head.weight');
    if (own === undefined) {
      const { data } = await (await this.model.wordEmbeddings).forward(Int32Array.from(ids), [ids.length]);
      return ids.map((_, i) => data.subarray(i * E, (i + 1) * E));
    }
    const { data } = await this.model.getParameter(own);
    return ids.map((id) => data.slice(id * E, (id + 1) * E));
  }

  layers(): number {
    let count = 0;
    while (this.weights.find(this.nameOf('attentionOutput', count, 'weight')) !== undefined) ++count;
    return count;
  }

  async heads(): Promise<number> {
    return Number((await this.model.config)[this.family.headsName]);
  }

  nameOf(part: 'attentionOutput' | 'mlpOutput', layer: number, kind: 'weight' | 'bias'): string {
    return `${this.family[part].replace('#', String(layer))}.${kind}`;
  }
}

/** Logits take far more memory than hidden states. */
const rowsAtOnce = 16;

/** As check_logits() in C++: NaN and infinity have no softmax, nor have logits that are all −infinity. */
function checkLogits(op: string, logits: Float32Array): void {
  let most = -Infinity;
  logits.forEach((logit, id) => {
    if (!(logit < Infinity)) fail('OUT_OF_RANGE', op, `the logit of token ${id}`, logit > 0 ? 'is infinity' : 'is NaN', 'a number');
    most = Math.max(most, logit);
  });
  if (most === -Infinity) fail('OUT_OF_RANGE', op, 'the largest logit', 'is -infinity', 'a number');
}

export async function eachRowOfLogits(
  op: string,
  model: AnyModel,
  hidden: Float32Array,
  width: number,
  use: (logits: Float32Array, row: number) => void | Promise<void>,
): Promise<void> {
  const count = hidden.length / width;
  for (let first = 0; first < count; first += rowsAtOnce) {
    const rows = Math.min(rowsAtOnce, count - first);
    const { data, dims } = await model.unembed({ data: hidden.slice(first * width, (first + rows) * width), dims: [rows, width] });
    const V = dims[1]!;
    for (let i = 0; i < rows; ++i) {
      const logits = data.subarray(i * V, (i + 1) * V);
      checkLogits(op, logits);
      await use(logits, first + i);
    }
  }
}
