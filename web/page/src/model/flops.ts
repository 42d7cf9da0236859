/** Counts the arithmetic of a forward. */
import { headWidthOf, isGated } from './kind.ts';

export interface EncoderSize {
  readonly layers: number;
  readonly heads: number;
  /** E */
  readonly width: number;
  /** F */
  readonly hidden: number;
  readonly gated: boolean;
  /** Width of all queries, and of all keys, if they differ from E. */
  readonly queries?: number;
  readonly keys?: number;
}

/** Matrix products only: norms, softmax, activations, embeddings and the head are not counted. */
export function multiplyAdds({ layers, width, hidden, gated, queries = width, keys = queries }: Omit<EncoderSize, 'heads'>, length: number) {
  const projections = layers * 2 * length * width * (queries + keys);
  const attention = layers * 2 * length * length * queries;
  const feedForward = layers * (gated ? 3 : 2) * length * width * hidden;
  return { projections, attention, feedForward, total: projections + attention + feedForward };
}

export function encoderSize(config: Readonly<Record<string, unknown>>): EncoderSize {
  const type = config['model_type'];
  const names =
    type === 'distilbert'
      ? ['n_layers', 'n_heads', 'dim', 'hidden_dim']
      : config['n_embd'] !== undefined
        ? ['n_layer', 'n_head', 'n_embd', 'n_inner']
        : ['num_hidden_layers', 'num_attention_heads', 'hidden_size', 'intermediate_size'];
  const [layers, heads, width, hidden] = names.map((name) => Number(config[name])) as [number, number, number, number];
  const size = { layers, heads, width, hidden: config['n_inner'] === null || Number.isNaN(hidden) ? 4 * width : hidden, gated: isGated(config) };
  const keyHeads = Number(config['num_key_value_heads'] ?? heads);
  const headWidth = headWidthOf(config, width / heads);
  return keyHeads === heads && headWidth * heads === width ? size : { ...size, queries: heads * headWidth, keys: keyHeads * headWidth };
}

/** A multiply-add counts as two operations. */
export const gigaflops = (multiplyAdds: number, milliseconds: number): number => (2e-6 * multiplyAdds) / milliseconds;
