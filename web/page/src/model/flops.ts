/** How much arithmetic a forward is. */
import { isGated } from './kind.ts';

export interface EncoderSize {
  readonly layers: number;
  readonly heads: number;
  /** E */
  readonly width: number;
  /** F, width of the feed-forward. */
  readonly hidden: number;
  /** Whether the feed-forward has a second matrix beside the first. */
  readonly gated: boolean;
}

/**
 * Multiply-adds of the matrix products of one text of L tokens, by part: projections 4 L E², attention 2 L² E, feed-forward 2 L E F (gated 3 L E F), times
 * the layers. Softmax, norms, activations, embeddings and the head are not counted.
 */
export function multiplyAdds({ layers, width, hidden, gated }: Omit<EncoderSize, 'heads'>, length: number) {
  const projections = layers * 4 * length * width * width;
  const attention = layers * 2 * length * length * width;
  const feedForward = layers * (gated ? 3 : 2) * length * width * hidden;
  return { projections, attention, feedForward, total: projections + attention + feedForward };
}

/** From the config.json of a model that was loaded: it has these numbers, by the names of its family. */
export function encoderSize(config: Readonly<Record<string, unknown>>): EncoderSize {
  const type = config['model_type'];
  const names =
    type === 'distilbert'
      ? ['n_layers', 'n_heads', 'dim', 'hidden_dim']
      : config['n_embd'] !== undefined
        ? ['n_layer', 'n_head', 'n_embd', 'n_inner']
        : ['num_hidden_layers', 'num_attention_heads', 'hidden_size', 'intermediate_size'];
  const [layers, heads, width, hidden] = names.map((name) => Number(config[name])) as [number, number, number, number];
  return { layers, heads, width, hidden, gated: isGated(config) };
}

/** GFLOP/s; a multiply-add is two operations. */
export const gigaflops = (multiplyAdds: number, milliseconds: number): number => (2e-6 * multiplyAdds) / milliseconds;
