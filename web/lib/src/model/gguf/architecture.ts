/**
 * The counterpart of src/attn/io/gguf/architecture.cpp. Keys and names are those of llama.cpp
 * (gguf-py/gguf/constants.py), and what is undone here is what its convert_hf_to_gguf.py does.
 */
import { type Header, type Metadata, refuse, type Tensor } from './header.js';

/**
 * rotary: within each head, pairs of neighbouring rows become two halves; parts: (3,heads,width) becomes
 * (heads,3,width); transposed: (out,in) becomes (in,out), as in transformers' Conv1D; lessOne: 1 is subtracted from
 * each value.
 */
type Order = 'same' | 'rotary' | 'parts' | 'transposed' | 'lessOne';

export interface NamedTensor {
  readonly tensor: Tensor;
  readonly name: string;
  readonly shape: readonly number[];
  readonly order: Order;
  /** Rows per head, for rotary and parts. */
  readonly headRows: number;
}

/** "name in the checkpoint, order" by name, without .weight and .bias. */
export type Names = Readonly<Record<string, string>>;

const gpt2Layer: Names = {
  attn_norm: 'ln_1',
  attn_qkv: 'attn.c_attn,transposed',
  attn_output: 'attn.c_proj,transposed',
  ffn_norm: 'ln_2',
  ffn_up: 'mlp.c_fc,transposed',
  ffn_down: 'mlp.c_proj,transposed',
};
const gpt2: Names = {
  token_embd: 'transformer.wte',
  position_embd: 'transformer.wpe',
  output_norm: 'transformer.ln_f',
  output: 'lm_head',
};
const llamaLayer: Names = {
  attn_norm: 'input_layernorm',
  attn_q: 'self_attn.q_proj,rotary',
  attn_k: 'self_attn.k_proj,rotary',
  attn_v: 'self_attn.v_proj',
  attn_output: 'self_attn.o_proj',
  attn_q_norm: 'self_attn.q_norm',
  attn_k_norm: 'self_attn.k_norm',
  ffn_norm: 'post_attention_layernorm',
  ffn_gate: 'mlp.gate_proj',
  ffn_up: 'mlp.up_proj',
  ffn_down: 'mlp.down_proj',
};
const llama: Names = { token_embd: 'model.embed_tokens', output_norm: 'model.norm', output: 'lm_head' };
export type Kind = readonly [type: string, model: string, names: Names, layer: Names, layers: string, configOf: (of: Given) => object];

const ofLlama = (type: string, model: string): Kind => [type, `${model}ForCausalLM`, llama, llamaLayer, 'model.layers.', configOfLlama];
/** By names of general.architecture. */
const kinds: Readonly<Record<string, Kind>> = {
  gpt2: ['gpt2', 'GPT2LMHeadModel', gpt2, gpt2Layer, 'transformer.h.', configOfGpt2],
  llama: ofLlama('llama', 'Llama'),
  qwen2: ofLlama('qwen2', 'Qwen2'),
  qwen3: ofLlama('qwen3', 'Qwen3'),
};
/** Those of gguf_parts. */
const otherNames = ['gemma2', 'gemma3', 'gptneox'];

/** Metadata under the prefix of the architecture. */
export class Settings {
  readonly #metadata: Metadata;
  readonly #prefix: string;

  constructor(metadata: Metadata, name: string) {
    this.#metadata = metadata;
    this.#prefix = `${name}.`;
  }

  key(name: string): string {
    return this.#prefix + name;
  }
  whole(name: string): number | undefined {
    return this.#metadata.whole(this.key(name));
  }
  number(name: string): number | undefined {
    return this.#metadata.number(this.key(name));
  }
  string(name: string): string | undefined {
    return this.#metadata.string(this.key(name));
  }
  flag(name: string): boolean | undefined {
    return this.#metadata.flag(this.key(name));
  }
  required(name: string): number {
    return this.whole(name) ?? refuse(this.key(name), 'a whole number', 'missing');
  }
  /** The shortest decimal number that is the same float32, because GGUF files have float32. */
  real(name: string, otherwise?: number): number {
    const value = Math.fround(this.number(name) ?? otherwise ?? refuse(this.key(name), 'a number', 'missing'));
    for (let digits = 1; digits <= 9; ++digits) {
      const short = Number(value.toPrecision(digits));
      if (Math.fround(short) === value) return short;
    }
    return value;
  }
  /** Refuses a setting that changes the computation, unless it is missing or `neutral`. */
  mustBe(name: string, neutral: number): void {
    const key = this.key(name);
    const found = this.#metadata.find(key);
    if (!found) return;
    const given = found.kind === 'true or false' ? Number(found.value) : this.#metadata.number(key);
    if (given !== neutral) refuse(key, String(neutral), String(given), 'UNSUPPORTED');
  }
}

const find = ({ tensors }: Header, name: string) => tensors.find((tensor) => tensor.name === name);

function rowsOf(header: Header, name: string): number {
  const tensor = find(header, name) ?? refuse(name, 'a tensor', 'missing');
  if (tensor.dims.length !== 2) refuse(`the rank of ${name}`, '2', String(tensor.dims.length));
  return tensor.dims[1]!;
}

/** From gguf_parts. */
export interface Parts {
  families(common: Common): Readonly<Record<string, Kind>>;
  yarn(settings: Settings): object;
  llama3(divisors: ArrayLike<number>, theta: number, settings: Settings, width: number, refusal: typeof refuse): object;
}

export interface Given {
  readonly header: Header;
  readonly settings: Settings;
  /** general.architecture */
  readonly name: string;
  /** The divisors of RoPE's frequencies (rope_freqs.weight). */
  readonly divisors: ArrayLike<number> | undefined;
  readonly parts: Parts | undefined;
}

function configOfGpt2({ settings }: Given): object {
  return {
    activation_function: 'gelu_new',
    n_positions: settings.required('context_length'),
    n_embd: settings.required('embedding_length'),
    n_layer: settings.required('block_count'),
    n_head: settings.required('attention.head_count'),
    n_inner: settings.required('feed_forward_length'),
    layer_norm_epsilon: settings.real('attention.layer_norm_epsilon'),
  };
}

function ropeOf({ settings, divisors, parts }: Given, width: number): object {
  const rope_theta = settings.real('rope.freq_base', 10000);
  const kind = settings.string('rope.scaling.type') ?? 'linear'; // the default of llama.cpp
  if (!['none', 'linear', 'yarn'].includes(kind)) refuse(settings.key('rope.scaling.type'), 'linear, none or yarn', kind, 'UNSUPPORTED');
  settings.mustBe('rope.scaling.attn_factor', 1);
  const factor = settings.real('rope.scaling.factor', settings.real('rope.scale_linear', 1));
  const isScaled = kind !== 'none' && factor !== 0 && factor !== 1;
  if (divisors) return { rope_theta, ...parts!.llama3(divisors, rope_theta, settings, width, refuse) };
  return {
    rope_theta,
    rope_type: isScaled ? kind : 'default',
    ...(isScaled && { factor }),
    ...(isScaled && kind === 'yarn' && parts!.yarn(settings)),
  };
}

export interface Heads {
  readonly count: number;
  readonly ofKeys: number;
  readonly width: number;
}

/** `isPartial`: RoPE may turn a part of each head. */
function headsOf(settings: Settings, isPartial = false): Heads {
  const count = settings.required('attention.head_count');
  const all = settings.required('embedding_length');
  if (count < 1 || all < 1 || count > all)
    refuse(settings.key('attention.head_count'), `a number from 1 to ${all}, the embedding_length`, String(count));
  const ofKeys = settings.whole('attention.head_count_kv') ?? count;
  const width = settings.whole('attention.key_length') ?? Math.floor(all / count);
  for (const name of ['attention.value_length', ...(isPartial ? [] : ['rope.dimension_count'])]) {
    const given = settings.whole(name) ?? width;
    if (given !== width) refuse(settings.key(name), `${width}, the width of a head`, String(given), 'UNSUPPORTED');
  }
  if (width < 2 || width % 2 !== 0) refuse('the width of a head', 'an even number of at least 2', String(width));
  return { count, ofKeys, width };
}

/** transformers has one switch for attention and one for the MLP, so a model that has only some is a mismatch. */
const hasOne = ({ tensors }: Header, names: readonly string[]) => tensors.some(({ name }) => names.some((each) => name.endsWith(`.${each}.bias`)));

function configOfLlama(given: Given): Readonly<Record<string, unknown>> {
  const { header, settings, name } = given;
  const isGemma = name.startsWith('gemma');
  for (const key of ['expert_count', 'use_parallel_residual', ...(isGemma ? [] : ['attention.sliding_window'])]) settings.mustBe(key, 0);
  for (const key of ['attention.causal', 'logit_scale', 'residual_scale', 'embedding_scale']) settings.mustBe(key, 1);
  settings.mustBe('attention.scale', 0);
  const heads = headsOf(settings);
  return {
    max_position_embeddings: settings.required('context_length'),
    hidden_size: settings.required('embedding_length'),
    num_hidden_layers: settings.required('block_count'),
    num_attention_heads: heads.count,
    num_key_value_heads: heads.ofKeys,
    head_dim: heads.width,
    intermediate_size: settings.required('feed_forward_length'),
    rms_norm_eps: settings.real('attention.layer_norm_rms_epsilon'),
    ...(name !== 'qwen2' && { attention_bias: hasOne(header, ['attn_q', 'attn_k', 'attn_v', 'attn_output']) }),
    ...(name === 'llama' && { mlp_bias: hasOne(header, ['ffn_gate', 'ffn_up', 'ffn_down']) }),
    ...(!isGemma && { hidden_act: 'silu' }),
    rope_parameters: ropeOf(given, heads.width),
  };
}

/** The parts of other families. */
export const common = { llama, llamaLayer, configOfLlama, headsOf, hasOne, refuse };
export type Common = typeof common;

/** Rows, or the values of a bias, must be whole heads. */
function checkHeads({ name, dims, type }: Tensor, shape: readonly number[], unit: number): void {
  if (dims.length === 1 && type.values !== 1) refuse(`the type of ${name}`, 'F32, F16 or BF16', type.name, 'UNSUPPORTED');
  if (dims.length > 2 || dims.at(-1)! % unit !== 0)
    refuse(`the shape of ${name}`, `a matrix whose rows are a multiple of ${unit}, the width of a head`, `(${shape.join(',')})`);
}

/** Translates "blk.3.attn_q.weight" and names outside layers; undefined if a name is unknown. */
function translate(tensor: Tensor, [, , model, layerNames, layers]: Kind, count: number): Omit<NamedTensor, 'headRows'> | undefined {
  const [, layer, part, suffix] = /^(?:blk\.(0|[1-9]\d{0,9})\.)?(.*)(\.weight|\.bias)$/s.exec(tensor.name) ?? [];
  if (part === undefined || (layer !== undefined && Number(layer) >= count)) return undefined;
  const names = layer === undefined ? model : layerNames;
  if (!Object.hasOwn(names, part)) return undefined;
  const [checkpoint, given = 'same'] = names[part]!.split(',') as [string, Order?];
  const order = given === 'transposed' && suffix === '.bias' ? 'same' : given;
  const shape = [...tensor.dims].reverse();
  if (order === 'transposed') {
    if (shape.length !== 2) refuse(`the rank of ${tensor.name}`, '2', String(shape.length));
    shape.reverse();
  }
  const prefix = layer === undefined ? '' : `${layers}${layer}.`;
  return { tensor, name: prefix + checkpoint + suffix!, shape, order };
}

export interface Architecture {
  readonly config: object;
  readonly tensors: readonly NamedTensor[];
}

const divisorsName = 'rope_freqs.weight';

/** Whether readArchitecture() needs gguf_parts. */
export function needsParts(header: Header): boolean {
  const { metadata } = header;
  const name = metadata.string('general.architecture') ?? '';
  return find(header, divisorsName) !== undefined || otherNames.includes(name) || metadata.string(`${name}.rope.scaling.type`) === 'yarn';
}

/**
 * `divisors`: the values of rope_freqs.weight. Throws UNSUPPORTED for other architectures, RoPE scaling, experts and unknown
 * tensors; FORMAT if a value is missing.
 */
export function readArchitecture(header: Header, parts?: Parts, divisors?: ArrayLike<number>): Architecture {
  const known = `one of ${[...Object.keys(kinds), ...otherNames].join(', ')}`;
  const name = header.metadata.string('general.architecture') ?? refuse('general.architecture', known, 'missing');
  const settings = new Settings(header.metadata, name);
  const all = { ...kinds, ...parts?.families(common) };
  const kind = Object.hasOwn(all, name) ? all[name]! : refuse('general.architecture', known, name, 'UNSUPPORTED');
  const files = header.metadata.whole('split.count') ?? 1;
  if (files > 1) refuse('split.count', '1, a model in one file', String(files), 'UNSUPPORTED', "llama.cpp's gguf-split --merge joins the files");
  const [model_type, model, , , , configOf] = kind;
  const config = {
    architectures: [model],
    model_type,
    vocab_size: rowsOf(header, 'token_embd.weight'),
    tie_word_embeddings: !find(header, 'output.weight'),
    ...configOf({ header, settings, name, divisors, parts }),
  };
  const layers = settings.required('block_count');
  const tensors = header.tensors.flatMap((tensor): NamedTensor[] => {
    if (name === 'llama' && tensor.name === divisorsName) return [];
    const named = translate(tensor, kind, layers) ?? refuse(tensor.name, `a tensor of ${name}`, 'unknown', 'UNSUPPORTED');
    let { order } = named;
    // Only the converter of llama reorders rows, and only that of Gemma adds 1 to the weights of norms.
    if (order === 'rotary' && name !== 'llama') order = 'same';
    if (name.startsWith('gemma') && named.name.endsWith('norm.weight')) order = 'lessOne';
    if (order !== 'rotary' && order !== 'parts') return [{ ...named, order, headRows: 1 }];
    const { width } = headsOf(settings, order === 'parts');
    checkHeads(tensor, named.shape, order === 'parts' ? 3 * width : width);
    return [{ ...named, headRows: width }];
  });
  return { config, tensors };
}
