/**
 * Writes a trained model as DistilBERT files, for the other sections. DistilBERT's head has one more map and a ReLU:
 * they get an identity with a bias larger than any activation, which the last bias subtracts again, so only the last
 * bits change. Models with one answer per position are written without a head.
 */
import type { Attn, Tensor } from 'attn';
import type { State } from './learner.ts';
import type { Settings } from './settings.ts';
import { first, padding, unknown, type Task } from './task.ts';

const zeros = (...dims: readonly number[]): Tensor => ({ data: new Float32Array(dims.reduce((a, b) => a * b, 1)), dims });
const filled = (value: number, ...dims: readonly number[]): Tensor => ({ data: zeros(...dims).data.fill(value), dims });

/** The rows of queries, keys or values in a (3E,..) tensor. */
function third({ data, dims: [rows = 0, ...rest] }: Tensor, part: number): Tensor {
  const size = data.length / 3;
  return { data: data.slice(part * size, (part + 1) * size), dims: [rows / 3, ...rest] };
}

/** An upper bound of the absolute outputs of the last norm. */
function bound(weight: Tensor, bias: Tensor): number {
  const width = weight.data.length;
  const most = weight.data.reduce((sum, value, e) => Math.max(sum, Math.abs(value) * Math.sqrt(width) + Math.abs(bias.data[e]!)), 0);
  return 2 ** Math.ceil(Math.log2(most + 1));
}

function headOf(state: State, last: string): ReadonlyMap<string, Tensor> {
  const weight = state.get('classifier.weight')!;
  const bias = state.get('classifier.bias')!;
  const [classes = 0, width = 0] = weight.dims;
  const lift = bound(state.get(`${last}norm2.weight`)!, state.get(`${last}norm2.bias`)!);
  const identity = zeros(width, width);
  for (let e = 0; e < width; ++e) identity.data[e * width + e] = 1;
  const lowered = bias.data.map((value, c) => value - lift * weight.data.subarray(c * width, (c + 1) * width).reduce((a, b) => a + b, 0));
  return new Map([
    ['pre_classifier.weight', identity],
    ['pre_classifier.bias', filled(lift, width)],
    ['classifier.weight', weight],
    ['classifier.bias', { data: lowered, dims: [classes] }],
  ]);
}

function weightsOf(task: Task, settings: Settings, state: State, waves: Tensor): ReadonlyMap<string, Tensor> {
  const { width, layers, positions } = settings;
  const get = (name: string) => state.get(name)!;
  const places = positions === 'learned' ? get('position_embeddings.weight') : positions === 'sinusoidal' ? waves : zeros(task.length, width);
  const embeddings = 'distilbert.embeddings.';
  const all = new Map([
    [`${embeddings}word_embeddings.weight`, get('word_embeddings.weight')],
    [`${embeddings}position_embeddings.weight`, places],
    [`${embeddings}LayerNorm.weight`, filled(1, width)],
    [`${embeddings}LayerNorm.bias`, zeros(width)],
  ]);
  const pairs = [
    ['attention.out_lin', 'self_attn.out_proj'],
    ['sa_layer_norm', 'norm1'],
    ['ffn.lin1', 'linear1'],
    ['ffn.lin2', 'linear2'],
    ['output_layer_norm', 'norm2'],
  ] as const;
  for (let i = 0; i < layers; ++i) {
    const [to, from] = [`distilbert.transformer.layer.${i}.`, `encoder.layers.${i}.`];
    ['q_lin', 'k_lin', 'v_lin'].forEach((name, part) => {
      all.set(`${to}attention.${name}.weight`, third(get(`${from}self_attn.in_proj_weight`), part));
      all.set(`${to}attention.${name}.bias`, third(get(`${from}self_attn.in_proj_bias`), part));
    });
    for (const [theirs, ours] of pairs) for (const kind of ['weight', 'bias']) all.set(`${to}${theirs}.${kind}`, get(`${from}${ours}.${kind}`));
  }
  if (task.isOne) for (const [name, tensor] of headOf(state, `encoder.layers.${layers - 1}.`)) all.set(name, tensor);
  return all;
}

function configOf(task: Task, { width, heads, layers }: Settings): object {
  return {
    model_type: 'distilbert',
    architectures: [task.isOne ? 'DistilBertForSequenceClassification' : 'DistilBertModel'],
    dim: width,
    hidden_dim: 2 * width,
    n_heads: heads,
    n_layers: layers,
    activation: 'gelu',
    max_position_embeddings: task.length,
    vocab_size: task.symbols.length,
    sinusoidal_pos_embds: false,
    ...(task.symbols.includes(padding) && { pad_token_id: task.symbols.indexOf(padding) }),
    ...(task.isOne && {
      id2label: Object.fromEntries(task.answers.map((label, i) => [i, label])),
      label2id: Object.fromEntries(task.answers.map((label, i) => [label, i])),
    }),
  };
}

function tokenizerOf(task: Task): object {
  const vocab = Object.fromEntries(task.symbols.map((symbol, id) => [symbol, id]));
  const special = [unknown, padding, first].filter((token) => Object.hasOwn(vocab, token));
  const isText = task.id === 'reviews';
  const sequence = { Sequence: { id: 'A', type_id: 0 } };
  const front = { SpecialToken: { id: first, type_id: 0 } };
  return {
    version: '1.0',
    truncation: null,
    padding: null,
    added_tokens: special.map((content) => ({
      id: vocab[content],
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: isText ? { type: 'Lowercase' } : null,
    pre_tokenizer: { type: isText ? 'BertPreTokenizer' : 'WhitespaceSplit' },
    post_processor: task.isOne
      ? {
          type: 'TemplateProcessing',
          single: [front, sequence],
          pair: [front, sequence, { Sequence: { id: 'B', type_id: 0 } }],
          special_tokens: { [first]: { id: first, ids: [vocab[first]], tokens: [first] } },
        }
      : null,
    decoder: null,
    // Without word pieces in the vocabulary, only whole words are known.
    model: { type: 'WordPiece', unk_token: unknown, continuing_subword_prefix: '##', max_input_chars_per_word: 100, vocab },
  };
}

/** By file name. */
export function folderOf(attn: Attn, task: Task, settings: Settings, state: State): Record<string, Uint8Array<ArrayBuffer> | string> {
  const waves = attn.sinusoidalPositions(task.length, settings.width);
  const tokenizerConfig = { tokenizer_class: 'PreTrainedTokenizerFast', unk_token: unknown, model_max_length: task.length };
  return {
    'config.json': JSON.stringify(configOf(task, settings), undefined, 2),
    'tokenizer.json': JSON.stringify(tokenizerOf(task)),
    'tokenizer_config.json': JSON.stringify(tokenizerConfig),
    'model.safetensors': attn.writeSafetensors(new Map(weightsOf(task, settings, state, waves)), { format: 'pt' }),
  };
}
