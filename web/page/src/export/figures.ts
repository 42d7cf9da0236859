/** The head in focus as figures for slides and papers: with sentence, titles of the axes, numbers and colour scale. */
import { linesFigure, mapFigure, type Figure, type FigureOptions } from 'attn/element';
import { levelsOf } from '../draw/heatmap.ts';
import type { Selection } from './selection.ts';

type Shown = Pick<Selection, 'title' | 'sentence' | 'notes' | 'shown' | 'look'>;

function optionsOf({ title, sentence, notes, shown, look }: Shown): FigureOptions {
  const { places, weights, largest } = shown;
  return {
    tokens: places.map(({ label }) => label),
    weights,
    levels: levelsOf(shown, look),
    legend: { low: '0', high: look.scaleBy === 'row' ? 'the largest weight of each row' : largest.toFixed(2) },
    title,
    text: sentence,
    note: notes.join(' '),
    threshold: look.threshold,
  };
}

/** As the element takes it. */
export function mapOptionsOf(of: Shown) {
  const { tokens, weights, levels, legend, title, text, note } = optionsOf(of);
  const shape = { data: weights, dims: [tokens.length, tokens.length] };
  return { tokens, weights: shape, caption: title ?? '', text: text ?? '', note: note ?? '', options: { levels: levels!, legend: legend! } };
}

export const mapOf = (of: Shown): Figure => mapFigure(optionsOf(of));
export const linesOf = (of: Shown): Figure => linesFigure(optionsOf(of));
