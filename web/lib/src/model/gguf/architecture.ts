/**
 * Translates metadata and tensor names of gpt2, llama and qwen2 to those of a Hugging Face checkpoint, as
 * src/attn/io/gguf/architecture.cpp does. Keys and names are those of llama.cpp (gguf-py/gguf/constants.py), and what is
 * undone here is what its convert_hf_to_gguf.py does.
 */
import { type Header, type Metadata, refuse, type Tensor } from './header.js';

/**
 * How the rows of a tensor become those of the checkpoint. rotary: within each head, pairs of neighbouring rows become
 * two halves; transposed: (out,in) becomes (in,out), as in transformers' Conv1D.
 */
type Order = 'same' | 'rotary' | 'transposed';

/** Tensor of the file under its name in the checkpoint. */
export interface NamedTensor {
  readonly tensor: Tensor;
  readonly name: string;
  readonly shape: readonly number[];
  readonly order: Order;
  /** Rows per head, for rotary. */
  readonly headRows: number;
}

/** Without .weight and .bias. */
type Names = Readonly<Record<string, readonly [checkpoint: string, order?: Order]>>;

const gpt2Layer: Names = {
  attn_norm: ['ln_1'],
  attn_qkv: ['attn.c_attn', 'transposed'],
  attn_output: ['attn.c_proj', 'transposed'],
  ffn_norm: ['ln_2'],
  ffn_up: ['mlp.c_fc', 'transposed'],
  ffn_down: ['mlp.c_proj', 'transposed'],
};
const gpt2: Names = {
  token_embd: ['transformer.wte'],
  position_embd: ['transformer.wpe'],
  output_norm: ['transformer.ln_f'],
  output: ['lm_head'],
};
const llamaLayer: Names = {
  attn_norm: ['input_layernorm'],
  attn_q: ['self_attn.q_proj', 'rotary'],
  attn_k: ['self_attn.k_proj', 'rotary'],
  attn_v: ['self_attn.v_proj'],
  attn_output: ['self_attn.o_proj'],
  ffn_norm: ['post_attention_layernorm'],
  ffn_gate: ['mlp.gate_proj'],
  ffn_up: ['mlp.up_proj'],
  ffn_down: ['mlp.down_proj'],
};
const llama: Names = { token_embd: ['model.embed_tokens'], output_norm: ['model.norm'], output: ['lm_head'] };

/** Metadata under the prefix of the architecture. */
class Settings {
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
  required(name: string): number {
    return this.whole(name) ?? refuse(this.key(name), 'a whole number', 'missing');
  }
  /** As the shortest decimal number that is the same float32, because GGUF files have float32. */
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
  const tensor = find(header, name) ?? refuse('the list of tensors', `one with ${name}`, 'one without it');
  if (tensor.dims.length !== 2) refuse(`the rank of ${name}`, '2', String(tensor.dims.length));
  return tensor.dims[1]!;
}

const isTied = (header: Header) => !find(header, 'output.weight');

const configOfGpt2 = (header: Header, settings: Settings) => ({
  architectures: ['GPT2LMHeadModel'],
  model_type: 'gpt2',
  activation_function: 'gelu_new',
  vocab_size: rowsOf(header, 'token_embd.weight'),
  n_positions: settings.required('context_length'),
  n_embd: settings.required('embedding_length'),
  n_layer: settings.required('block_count'),
  n_head: settings.required('attention.head_count'),
  n_inner: settings.required('feed_forward_length'),
  layer_norm_epsilon: settings.real('attention.layer_norm_epsilon'),
  tie_word_embeddings: isTied(header),
});

function ropeOf(settings: Settings): object {
  const rope_theta = settings.real('rope.freq_base', 10000);
  const kind = settings.string('rope.scaling.type') ?? 'linear'; // the default of llama.cpp
  if (kind !== 'none' && kind !== 'linear') refuse(settings.key('rope.scaling.type'), 'none or linear', kind, 'UNSUPPORTED');
  settings.mustBe('rope.scaling.attn_factor', 1);
  const old = settings.real('rope.scale_linear', 1);
  const factor = settings.real('rope.scaling.factor', old);
  const isLinear = kind === 'linear' && factor !== 0 && factor !== 1;
  return { rope_theta, rope_type: isLinear ? 'linear' : 'default', ...(isLinear && { factor }) };
}

interface Heads {
  readonly count: number;
  readonly ofKeys: number;
  readonly width: number;
}

function headsOf(settings: Settings): Heads {
  const count = settings.required('attention.head_count');
  const all = settings.required('embedding_length');
  if (count < 1 || all < 1 || count > all)
    refuse(settings.key('attention.head_count'), `a number from 1 to ${all}, the embedding_length`, String(count));
  const ofKeys = settings.whole('attention.head_count_kv') ?? count;
  const width = settings.whole('attention.key_length') ?? Math.floor(all / count);
  for (const name of ['attention.value_length', 'rope.dimension_count']) {
    const given = settings.whole(name) ?? width;
    if (given !== width) refuse(settings.key(name), `${width}, the width of a head`, String(given), 'UNSUPPORTED');
  }
  if (width < 2 || width % 2 !== 0) refuse('the width of a head', 'an even number of at least 2', String(width));
  return { count, ofKeys, width };
}

/**
 * Whether any layer has one of these. transformers has one switch for attention and one for the MLP, so a model that has
 * only some is a mismatch.
 */
const hasOne = ({ tensors }: Header, names: readonly string[]) => tensors.some(({ name }) => names.some((each) => name.endsWith(`.${each}.bias`)));

function configOfLlama(header: Header, settings: Settings, isLlama: boolean): object {
  for (const name of ['expert_count', 'attention.sliding_window', 'use_parallel_residual']) settings.mustBe(name, 0);
  for (const name of ['attention.causal', 'logit_scale', 'residual_scale', 'embedding_scale']) settings.mustBe(name, 1);
  settings.mustBe('attention.scale', 0);
  const heads = headsOf(settings);
  return {
    architectures: [isLlama ? 'LlamaForCausalLM' : 'Qwen2ForCausalLM'],
    model_type: isLlama ? 'llama' : 'qwen2',
    hidden_act: 'silu',
    vocab_size: rowsOf(header, 'token_embd.weight'),
    max_position_embeddings: settings.required('context_length'),
    hidden_size: settings.required('embedding_length'),
    num_hidden_layers: settings.required('block_count'),
    num_attention_heads: heads.count,
    num_key_value_heads: heads.ofKeys,
    head_dim: heads.width,
    intermediate_size: settings.required('feed_forward_length'),
    rms_norm_eps: settings.real('attention.layer_norm_rms_epsilon'),
    tie_word_embeddings: isTied(header),
    ...(isLlama && {
      attention_bias: hasOne(header, ['attn_q', 'attn_k', 'attn_v', 'attn_output']),
      mlp_bias: hasOne(header, ['ffn_gate', 'ffn_up', 'ffn_down']),
    }),
    rope_parameters: ropeOf(settings),
  };
}

/** The rows of a tensor, or the values of a bias, must be whole heads. */
function checkHeads({ name, dims, type }: Tensor, shape: readonly number[], width: number): void {
  if (dims.length === 1 && type.values !== 1) refuse(`the type of ${name}`, 'F32, F16 or BF16', type.name, 'UNSUPPORTED');
  if (dims.length > 2 || dims.at(-1)! % width !== 0)
    refuse(`the shape of ${name}`, `a matrix whose rows are a multiple of ${width}, the width of a head`, `(${shape.join(',')})`);
}

/** Translates "blk.3.attn_q.weight" and names outside layers; undefined if a name is unknown. */
function translate(tensor: Tensor, isGpt2: boolean, layers: number): Omit<NamedTensor, 'headRows'> | undefined {
  const [, layer, part, suffix] = /^(?:blk\.(0|[1-9]\d{0,9})\.)?(.*)(\.weight|\.bias)$/s.exec(tensor.name) ?? [];
  if (part === undefined || (layer !== undefined && Number(layer) >= layers)) return undefined;
  const names = layer === undefined ? (isGpt2 ? gpt2 : llama) : isGpt2 ? gpt2Layer : llamaLayer;
  if (!Object.hasOwn(names, part)) return undefined;
  const [checkpoint, given = 'same'] = names[part]!;
  const order = given === 'transposed' && suffix === '.bias' ? 'same' : given;
  const shape = [...tensor.dims].reverse();
  if (order === 'transposed') {
    if (shape.length !== 2) refuse(`the rank of ${tensor.name}`, '2', String(shape.length));
    shape.reverse();
  }
  const prefix = layer === undefined ? '' : `${isGpt2 ? 'transformer.h.' : 'model.layers.'}${layer}.`;
  return { tensor, name: prefix + checkpoint + suffix!, shape, order };
}

export interface Architecture {
  readonly config: object;
  readonly tensors: readonly NamedTensor[];
}

/**
 * Throws UNSUPPORTED for other architectures, RoPE scaling other than linear, experts and unknown tensors; FORMAT if a
 * value is missing.
 */
export function readArchitecture(header: Header): Architecture {
  const known = 'gpt2, llama, qwen2';
  const name = header.metadata.string('general.architecture') ?? refuse('general.architecture', `one of ${known}`, 'missing');
  const settings = new Settings(header.metadata, name);
  const [isGpt2, isLlama] = [name === 'gpt2', name === 'llama'];
  if (!isGpt2 && !isLlama && name !== 'qwen2') refuse('general.architecture', `one of ${known}`, name, 'UNSUPPORTED');
  const files = header.metadata.whole('split.count') ?? 1;
  if (files > 1) refuse('split.count', '1, a model in one file', String(files), 'UNSUPPORTED', "llama.cpp's gguf-split --merge joins the files");
  if (find(header, 'rope_freqs.weight'))
    refuse(
      'the list of tensors',
      'one without rope_freqs.weight',
      'one with it',
      'UNSUPPORTED',
      'attn does not read scaled RoPE frequencies of GGUF files. Use the checkpoint in safetensors',
    );
  const config = isGpt2 ? configOfGpt2(header, settings) : configOfLlama(header, settings, isLlama);
  const layers = settings.required('block_count');
  const headWidth = isLlama ? headsOf(settings).width : 0;
  const tensors = header.tensors.map((tensor): NamedTensor => {
    const named = translate(tensor, isGpt2, layers) ?? refuse('the list of tensors', `tensors of ${name}`, tensor.name, 'UNSUPPORTED');
    if (named.order !== 'rotary') return { ...named, headRows: 1 };
    // Only the converter of llama reorders rows.
    if (!isLlama) return { ...named, order: 'same', headRows: 1 };
    checkHeads(tensor, named.shape, headWidth);
    return { ...named, headRows: headWidth };
  });
  return { config, tensors };
}
