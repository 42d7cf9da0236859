/** How much arithmetic a forward is. */

export interface EncoderSize {
  readonly layers: number;
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
export function multiplyAdds({ layers, width, hidden, gated }: EncoderSize, length: number) {
  const projections = layers * 4 * length * width * width;
  const attention = layers * 2 * length * length * width;
  const feedForward = layers * (gated ? 3 : 2) * length * width * hidden;
  return { projections, attention, feedForward, total: projections + attention + feedForward };
}

/** From config.json, whatever the family calls it; undefined when it does not say. */
export function encoderSize(config: Readonly<Record<string, unknown>>): EncoderSize | undefined {
  const number = (...names: readonly string[]) => names.map((name) => config[name]).find((value) => typeof value === 'number');
  const [layers, width, hidden] = [number('num_hidden_layers', 'n_layers'), number('hidden_size', 'dim'), number('intermediate_size', 'hidden_dim')];
  if (layers === undefined || width === undefined || hidden === undefined) return undefined;
  return { layers, width, hidden, gated: config['model_type'] === 'modernbert' };
}

/** GFLOP/s; a multiply-add is two operations. */
export const gigaflops = (multiplyAdds: number, milliseconds: number): number => (2e-6 * multiplyAdds) / milliseconds;
