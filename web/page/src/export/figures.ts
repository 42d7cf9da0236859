import { linesFigure, mapFigure, type Figure, type FigureOptions } from 'attn/element';
import { levelsOf } from '../draw/heatmap.ts';
import { leastOf, type Scale } from '../draw/scale.ts';
import type { Selection } from './selection.ts';

type Shown = Pick<Selection, 'title' | 'sentence' | 'notes' | 'shown' | 'look'>;

function legendOf(scale: Scale, largest: number): NonNullable<FigureOptions['legend']> {
  if (scale === 'row') return { low: '0', high: 'the largest weight of each row' };
  return scale === 'log' ? { low: leastOf(largest).toFixed(4), high: `${largest.toFixed(2)}, logarithmic` } : { low: '0', high: largest.toFixed(2) };
}

function optionsOf({ title, sentence, notes, shown, look }: Shown): FigureOptions {
  const { places, weights, largest } = shown;
  return {
    tokens: places.map(({ label }) => label),
    weights,
    levels: levelsOf(shown, look),
    legend: legendOf(look.scaleBy, largest),
    title,
    text: sentence,
    note: notes.join(' '),
    threshold: look.threshold,
  };
}

/** Properties of <attention-map>. */
export function mapOptionsOf(of: Shown) {
  const { tokens, weights, levels, legend, title, text, note } = optionsOf(of);
  const shape = { data: weights, dims: [tokens.length, tokens.length] };
  return { tokens, weights: shape, caption: title ?? '', text: text ?? '', note: note ?? '', options: { levels: levels!, legend: legend! } };
}

export const mapOf = (of: Shown): Figure => mapFigure(optionsOf(of));
export const linesOf = (of: Shown): Figure => linesFigure(optionsOf(of));
