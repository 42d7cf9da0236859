/** Parameter names of one layer in a checkpoint, and the rows for parts that share a matrix. */
import type { Dims, Tensor } from 'attn';

/** Outputs `first` to `first + count` of a parameter; weights are (out, in) unless isTransposed, biases and norms (width). */
export interface ParameterRows {
  readonly name: string;
  readonly first: number;
  readonly count: number;
}

export interface LinearNames {
  readonly weight: ParameterRows;
  readonly bias: ParameterRows | undefined;
}

export interface LayerNames {
  readonly query: LinearNames;
  readonly key: LinearNames;
  readonly value: LinearNames;
  readonly output: LinearNames;
  readonly norm1: LinearNames | undefined;
  readonly linear1: LinearNames;
  /** Its output goes through the activation, in a gated feed-forward network. */
  readonly gate: LinearNames | undefined;
  readonly linear2: LinearNames;
  readonly norm2: LinearNames | undefined;
}

type PartName = keyof LayerNames;

/** Names after "layer.N."; parts with the same name share a matrix in this order, one below the other. */
const families: readonly Readonly<Partial<Record<PartName, string>>>[] = [
  // BERT, RoBERTa, XLM-RoBERTa, CamemBERT, data2vec, ERNIE, ELECTRA
  {
    query: 'attention.self.query',
    key: 'attention.self.key',
    value: 'attention.self.value',
    output: 'attention.output.dense',
    norm1: 'attention.output.LayerNorm',
    linear1: 'intermediate.dense',
    linear2: 'output.dense',
    norm2: 'output.LayerNorm',
  },
  // DeBERTa
  {
    query: 'attention.self.query_proj',
    key: 'attention.self.key_proj',
    value: 'attention.self.value_proj',
    output: 'attention.output.dense',
    norm1: 'attention.output.LayerNorm',
    linear1: 'intermediate.dense',
    linear2: 'output.dense',
    norm2: 'output.LayerNorm',
  },
  // DistilBERT
  {
    query: 'attention.q_lin',
    key: 'attention.k_lin',
    value: 'attention.v_lin',
    output: 'attention.out_lin',
    norm1: 'sa_layer_norm',
    linear1: 'ffn.lin1',
    linear2: 'ffn.lin2',
    norm2: 'output_layer_norm',
  },
  // MPNet
  {
    query: 'attention.attn.q',
    key: 'attention.attn.k',
    value: 'attention.attn.v',
    output: 'attention.attn.o',
    norm1: 'attention.LayerNorm',
    linear1: 'intermediate.dense',
    linear2: 'output.dense',
    norm2: 'output.LayerNorm',
  },
  // ALBERT
  {
    query: 'attention.query',
    key: 'attention.key',
    value: 'attention.value',
    output: 'attention.dense',
    norm1: 'attention.LayerNorm',
    linear1: 'ffn',
    linear2: 'ffn_output',
    norm2: 'full_layer_layer_norm',
  },
  // Jina
  {
    query: 'attention.self.query',
    key: 'attention.self.key',
    value: 'attention.self.value',
    output: 'attention.output.dense',
    norm1: 'attention.output.LayerNorm',
    gate: 'mlp.gated_layers',
    linear1: 'mlp.gated_layers',
    linear2: 'mlp.wo',
    norm2: 'mlp.layernorm',
  },
  // NomicBERT
  {
    query: 'attn.Wqkv',
    key: 'attn.Wqkv',
    value: 'attn.Wqkv',
    output: 'attn.out_proj',
    norm1: 'norm1',
    linear1: 'mlp.fc11',
    gate: 'mlp.fc12',
    linear2: 'mlp.fc2',
    norm2: 'norm2',
  },
  // GTE
  {
    query: 'attention.qkv_proj',
    key: 'attention.qkv_proj',
    value: 'attention.qkv_proj',
    output: 'attention.o_proj',
    norm1: 'attn_ln',
    linear1: 'mlp.up_gate_proj',
    gate: 'mlp.up_gate_proj',
    linear2: 'mlp.down_proj',
    norm2: 'mlp_ln',
  },
  // NomicBERT and GTE, as named by transformers
  {
    query: 'self_attn.q_proj',
    key: 'self_attn.k_proj',
    value: 'self_attn.v_proj',
    output: 'self_attn.o_proj',
    norm1: 'post_attention_layernorm',
    linear1: 'mlp.up_proj',
    gate: 'mlp.gate_proj',
    linear2: 'mlp.down_proj',
    norm2: 'post_mlp_layernorm',
  },
  // Gemma
  {
    query: 'self_attn.q_proj',
    key: 'self_attn.k_proj',
    value: 'self_attn.v_proj',
    output: 'self_attn.o_proj',
    norm1: 'input_layernorm',
    linear1: 'mlp.up_proj',
    gate: 'mlp.gate_proj',
    linear2: 'mlp.down_proj',
    norm2: 'pre_feedforward_layernorm',
  },
  // Llama, Mistral, Qwen
  {
    query: 'self_attn.q_proj',
    key: 'self_attn.k_proj',
    value: 'self_attn.v_proj',
    output: 'self_attn.o_proj',
    norm1: 'input_layernorm',
    linear1: 'mlp.up_proj',
    gate: 'mlp.gate_proj',
    linear2: 'mlp.down_proj',
    norm2: 'post_attention_layernorm',
  },
  // GPT-2
  {
    query: 'attn.c_attn',
    key: 'attn.c_attn',
    value: 'attn.c_attn',
    output: 'attn.c_proj',
    norm1: 'ln_1',
    linear1: 'mlp.c_fc',
    linear2: 'mlp.c_proj',
    norm2: 'ln_2',
  },
  // ModernBERT
  {
    query: 'attn.Wqkv',
    key: 'attn.Wqkv',
    value: 'attn.Wqkv',
    output: 'attn.Wo',
    norm1: 'attn_norm',
    gate: 'mlp.Wi',
    linear1: 'mlp.Wi',
    linear2: 'mlp.Wo',
    norm2: 'mlp_norm',
  },
];

/** GPT-2 stores weights as (in, out). */
export const isTransposed = (name: string): boolean => /\.c_(attn|proj|fc)\.weight$/.test(name);

/** Current names, and those of the first BERT files. */
const endings = { weight: ['weight', 'gamma'], bias: ['bias', 'beta'] } as const;

const outputsOf = (name: string, dims: Dims): number => dims[isTransposed(name) ? 1 : 0]!;

/** `layer` is 0-based; undefined for an unknown family. */
export function layerNames(shapes: ReadonlyMap<string, Dims>, layer: number): LayerNames | undefined {
  const names = [...shapes.keys()];
  // ALBERT shares one layer. Several shared groups are not supported.
  const shared = new Set(names.flatMap((name) => /albert_layer_groups\.\d+\.albert_layers\.\d+/.exec(name) ?? []));
  if (shared.size > 1) return undefined;
  const at = shared.size === 1 ? 0 : layer;
  const find = (part: string, kind: keyof typeof endings) =>
    names.find((name) => endings[kind].some((ending) => name.endsWith(`.${at}.${part}.${ending}`)));
  for (const family of families) {
    if ([family.query!, family.linear2!, family.norm2!].some((part) => !find(part, 'weight'))) continue;
    const linear = (part: PartName): LinearNames | undefined => {
      const own = family[part];
      if (own === undefined) return undefined;
      const sharers = (Object.keys(family) as PartName[]).filter((each) => family[each] === own);
      const rowsOf = (kind: keyof typeof endings): ParameterRows | undefined => {
        const name = find(own, kind);
        if (name === undefined) return undefined;
        const count = outputsOf(name, shapes.get(name)!) / sharers.length;
        return { name, first: sharers.indexOf(part) * count, count };
      };
      const weight = rowsOf('weight');
      return weight && { weight, bias: rowsOf('bias') };
    };
    const needed = (part: PartName) => linear(part)!;
    return {
      query: needed('query'),
      key: needed('key'),
      value: needed('value'),
      output: needed('output'),
      norm1: linear('norm1'),
      linear1: needed('linear1'),
      gate: linear('gate'),
      linear2: needed('linear2'),
      norm2: linear('norm2'),
    };
  }
  return undefined;
}

/** Ranges of outputs and inputs; by default all. */
export interface Part {
  readonly out?: readonly [first: number, count: number];
  readonly in?: readonly [first: number, count: number];
}

/** Reads a weight as in × out, and a vector as one row. */
export function onPaper({ data, dims }: Tensor, rows: ParameterRows, { out, in: inputs }: Part = {}) {
  const isVector = dims.length === 1;
  const width = isVector ? 1 : dims[1]!;
  const isInOut = !isVector && isTransposed(rows.name);
  const [firstOut, outs] = out ?? [0, rows.count];
  const [firstIn, ins] = isVector ? [0, 1] : (inputs ?? [0, isInOut ? dims[0]! : width]);
  const indexOf = ({ row, column }: { readonly row: number; readonly column: number }) => {
    const [output, input] = [rows.first + firstOut + column, firstIn + row];
    return isInOut ? input * width + output : output * width + input;
  };
  return { ins, outs, indexOf, value: (row: number, column: number) => data[indexOf({ row, column })]! };
}
