import { defineAttentionMap, type AttentionMap, type FigureOptions, type Weights } from 'attn/element';
import { createElement } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

defineAttentionMap();

interface Props {
  readonly tokens: readonly string[];
  readonly keys?: readonly string[] | undefined;
  readonly weights: Weights;
  readonly caption?: string;
  readonly text?: string;
  readonly note?: string;
  readonly options?: Partial<FigureOptions>;
}

/** Fills the package's element as a page without a framework would. */
export function MapElement({ tokens, keys, weights, caption = '', text = '', note = '', options = {} }: Props) {
  const map = useRef<AttentionMap>(null);
  useLayoutEffect(() => {
    Object.assign(map.current!, { tokens, keys, weights, caption, text, note, options });
  });
  return createElement('attention-map', { ref: map });
}
