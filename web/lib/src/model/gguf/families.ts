/** Families and settings of few files, as in src/attn/io/gguf/architecture.cpp. */
import type { Common, Given, Heads, Kind, Names, Settings } from './architecture.js';
import type { Header, refuse } from './header.js';

const neoxLayer: Names = {
  attn_norm: 'input_layernorm',
  attn_qkv: 'attention.query_key_value,parts',
  attn_output: 'attention.dense',
  ffn_norm: 'post_attention_layernorm',
  ffn_up: 'mlp.dense_h_to_4h',
  ffn_down: 'mlp.dense_4h_to_h',
};
const neox: Names = { token_embd: 'gpt_neox.embed_in', output_norm: 'gpt_neox.final_layer_norm', output: 'embed_out' };

export function yarn(settings: Settings): object {
  for (const name of ['ext_factor', 'attn_factor']) settings.mustBe(`rope.scaling.yarn_${name}`, 1);
  settings.mustBe('rope.scaling.yarn_log_multiplier', 0);
  return {
    original_max_position_embeddings: settings.whole('rope.scaling.original_context_length') ?? settings.required('context_length'),
    beta_fast: settings.real('rope.scaling.yarn_beta_fast', 32),
    beta_slow: settings.real('rope.scaling.yarn_beta_slow', 1),
  };
}

interface Source {
  take(count: number): Promise<Uint8Array>;
  unread(bytes: Uint8Array): void;
}

/**
 * Reads the divisors of RoPE's frequencies (Llama 3.1 and later). Their tensor is among the first, so that it can be read
 * before the others. `source`: at the start of the file.
 */
export async function readDivisors(source: Source, { tensors }: Header, refusal: typeof refuse): Promise<Float32Array | undefined> {
  const name = 'rope_freqs.weight';
  const tensor = tensors.find((each) => each.name === name);
  if (!tensor) return undefined;
  const { dims, type, first } = tensor;
  const most = 2 ** 16;
  if (dims.length !== 1 || dims[0]! > most || type.name !== 'F32') refusal(name, `at most ${most} float32 numbers`, 'another tensor');
  const near = 2 ** 24;
  if (first > tensors[0]!.first + near) refusal(name, `a tensor among the first ${near} bytes`, 'a later tensor', 'UNSUPPORTED');
  const end = first + tensor.bytes;
  const bytes = (await source.take(end)).slice();
  if (bytes.length < end) refusal('the file', `at least ${end} bytes, for ${name}`, `${bytes.length} bytes`);
  source.unread(bytes);
  const values = new Float32Array(dims[0]!);
  type.expand(bytes.subarray(first), values);
  return values;
}

/** The formula of Llama 3.1 with low_freq_factor 1 and high_freq_factor 4. */
function divisorOf(frequency: number, factor: number, positions: number): number {
  const turns = (positions * frequency) / (2 * Math.PI);
  const share = Math.min(Math.max((turns - 1) / 3, 0), 1);
  return 1 / ((1 - share) / factor + share);
}

/** Finds the parameters from which the converter made the divisors. `width`: of a head. */
export function llama3(divisors: ArrayLike<number>, theta: number, settings: Settings, width: number, refusal: typeof refuse): object {
  settings.mustBe('rope.scaling.factor', 1);
  const all = Array.from(divisors);
  if (all.length !== width / 2) refusal('the length of rope_freqs.weight', `${width / 2}, half the width of a head`, String(all.length));
  const factor = all.reduce((a, b) => Math.max(a, b));
  // Published models have 8192.
  for (let positions = 16; positions <= 2 ** 20; positions *= 2)
    if (
      all.every((divisor, i) => {
        const expected = divisorOf(theta ** (-i / all.length), factor, positions);
        return Math.abs(divisor - expected) <= 1e-4 * expected;
      })
    )
      return { rope_type: 'llama3', factor, original_max_position_embeddings: positions, low_freq_factor: 1, high_freq_factor: 4 };
  return refusal(
    'rope_freqs.weight',
    'divisors by the formula of Llama 3.1 with low_freq_factor 1 and high_freq_factor 4',
    'a list of other numbers',
    'UNSUPPORTED',
    'Use the checkpoint in safetensors',
  );
}

/** Gemma's settings that Llama lacks, as llama.cpp computes them. */
function gemma({ settings, name }: Given, { count, width }: Heads, rope: unknown): object {
  const is2 = name === 'gemma2';
  // Only the models with 27 billion parameters, known by their layers, do not scale by the width of a head.
  const isLargest = settings.required('block_count') === (is2 ? 46 : 62);
  const period = 'attention.sliding_window_pattern';
  if (is2) settings.mustBe(period, 2);
  const cap = (key: string, otherwise: number) => settings.real(key, otherwise) || null;
  return {
    hidden_activation: 'gelu_pytorch_tanh',
    query_pre_attn_scalar: isLargest ? Math.floor(settings.required('embedding_length') / count) : width,
    sliding_window: settings.whole('attention.sliding_window') ?? (is2 ? 4096 : 1024),
    ...(is2 ? { attn_logit_softcapping: cap('attn_logit_softcapping', 50) } : { sliding_window_pattern: settings.whole(period) ?? 6 }),
    final_logit_softcapping: cap('final_logit_softcapping', is2 ? 30 : 0),
    rope_parameters: is2
      ? rope
      : { full_attention: rope, sliding_attention: { rope_type: 'default', rope_theta: settings.real('rope.freq_base_swa', 10000) } },
  };
}

function configOfNeoX({ header, settings }: Given, { headsOf, hasOne, refuse: refusal }: Common): object {
  const { count, ofKeys, width } = headsOf(settings, true);
  if (ofKeys !== count) refusal(settings.key('attention.head_count_kv'), String(count), String(ofKeys), 'UNSUPPORTED');
  const scaling = settings.string('rope.scaling.type') ?? 'none';
  if (scaling !== 'none') refusal(settings.key('rope.scaling.type'), 'the type none', scaling, 'UNSUPPORTED');
  settings.mustBe('rope.scaling.factor', 1);
  const turned = settings.whole('rope.dimension_count') ?? width;
  if (turned < 2 || turned % 2 !== 0 || turned > width)
    refusal(settings.key('rope.dimension_count'), `an even number from 2 to ${width}, the width of a head`, String(turned));
  return {
    hidden_act: 'gelu',
    max_position_embeddings: settings.required('context_length'),
    hidden_size: settings.required('embedding_length'),
    num_hidden_layers: settings.required('block_count'),
    num_attention_heads: count,
    intermediate_size: settings.required('feed_forward_length'),
    layer_norm_eps: settings.real('attention.layer_norm_epsilon'),
    use_parallel_residual: settings.flag('use_parallel_residual') ?? true,
    attention_bias: hasOne(header, ['attn_qkv', 'attn_output']),
    rope_parameters: {
      rope_type: 'default',
      rope_theta: settings.real('rope.freq_base', 10000),
      // Half a column more, because transformers rounds the product with the width down.
      partial_rotary_factor: turned === width ? 1 : (turned + 0.5) / width,
    },
  };
}

/** Rows (3,H,D) become (H,3,D). */
export function joinParts(values: Float32Array, width: number, D: number): Float32Array<ArrayBuffer> {
  const to = new Float32Array(values.length);
  const heads = values.length / (width * 3 * D);
  for (let part = 0; part < 3; ++part)
    for (let head = 0; head < heads; ++head) {
      const from = (part * heads + head) * D * width;
      to.set(values.subarray(from, from + D * width), (head * 3 + part) * D * width);
    }
  return to;
}

/** By names of general.architecture. */
export function families(common: Common): Readonly<Record<string, Kind>> {
  const { llama, llamaLayer, configOfLlama, headsOf } = common;
  const gemmaLayer: Names = {
    ...llamaLayer,
    post_attention_norm: 'post_attention_layernorm',
    ffn_norm: 'pre_feedforward_layernorm',
    post_ffw_norm: 'post_feedforward_layernorm',
  };
  const ofGemma = (type: string, model: string): Kind => [
    type,
    `${model}ForCausalLM`,
    llama,
    gemmaLayer,
    'model.layers.',
    (given) => {
      const config = configOfLlama(given);
      return { ...config, ...gemma(given, headsOf(given.settings), config['rope_parameters']) };
    },
  ];
  return {
    gemma2: ofGemma('gemma2', 'Gemma2'),
    gemma3: ofGemma('gemma3_text', 'Gemma3'),
    gptneox: ['gpt_neox', 'GPTNeoXForCausalLM', neox, neoxLayer, 'gpt_neox.layers.', (given) => configOfNeoX(given, common)],
  };
}
