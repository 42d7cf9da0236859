import type { Figure, FigureOptions, FigurePart, MapFigure } from '../element.js';
import { inkOn, viridis } from './colours.js';
import { colourBar } from './figure.js';
import { shortened, widthOf, wrapped } from './text.js';

const longestLabel = 24;
export const margin = 16;
const titleSize = 15;
const textSize = 12;
export const smallSize = 11;
const leastWithNumber = 26;
/** SVG files with more cells would be too large. */
const mostRectangles = 128 * 128;

export const belowThreshold = -1;
export const notAllowed = -2;

export const inks = {
  light: { ink: '#16181d', muted: '#545b69', query: '#1f4fc4', key: '#a03f09', line: '#16181d', paper: '#ffffff' },
  dark: { ink: '#e8ebf1', muted: '#a5aebd', query: '#92b4ff', key: '#ffb37d', line: '#e8ebf1', paper: '#171b23' },
} as const;

/** Levels are 0 to 1, or belowThreshold for cells that are not drawn. */
function levelsOf({
  rows,
  columns,
  weights,
  scale,
  threshold = 0,
}: FigureOptions & { rows: readonly string[]; columns: readonly string[] }): Float32Array {
  const width = columns.length;
  const levels = new Float32Array(rows.length * width);
  let most = 0;
  for (let i = 0; i < levels.length; ++i) most = Math.max(most, weights[i]! || 0);
  for (let i = 0; i < rows.length; ++i) {
    let largest = most;
    if (scale === 'row') {
      largest = 0;
      for (let j = 0; j < width; ++j) largest = Math.max(largest, weights[i * width + j]! || 0);
    }
    for (let j = 0; j < width; ++j) {
      const weight = weights[i * width + j]!;
      levels[i * width + j] = weight < threshold ? belowThreshold : weight / (largest || 1);
    }
  }
  return levels;
}

function numberIn(weight: number): string | undefined {
  if (!(weight >= 0.005)) return undefined;
  return weight >= 0.995 ? weight.toFixed(1) : weight.toFixed(2).slice(1);
}

type Texts = Pick<FigureOptions, 'title' | 'text' | 'background'>;

/** Returns the y below the title and text. */
export function head(
  { title, text }: Texts,
  width: number,
  colours: (typeof inks)['light' | 'dark'],
): { readonly parts: FigurePart[]; readonly end: number } {
  const parts: FigurePart[] = [];
  let y = margin;
  const add = (line: string, size: number, fill: string, weight?: string) => {
    y += size;
    parts.push({ kind: 'text', x: margin, y, text: line, size, fill, anchor: 'start', ...(weight !== undefined && { weight }) });
    y += Math.round(0.4 * size);
  };
  if (title) for (const line of wrapped(title, titleSize, width - 2 * margin, 3)) add(line, titleSize, colours.ink, '600');
  if (text) for (const line of wrapped(text, textSize, width - 2 * margin, 6)) add(line, textSize, colours.muted);
  return { parts, end: parts.length > 0 ? y + 6 : y };
}

export function finished(
  { title, background }: Texts,
  width: number,
  colours: (typeof inks)['light' | 'dark'],
  parts: FigurePart[],
  y: number,
  note: string,
  gap = 5,
): Figure {
  const lines = wrapped(note, smallSize, width - 2 * margin, 4);
  lines.forEach((text, i) => {
    parts.push({ kind: 'text', x: margin, y: y + (i + 1) * (smallSize + gap), text, size: smallSize, fill: colours.muted, anchor: 'start' });
  });
  return {
    width: Math.ceil(width),
    height: Math.ceil(y + lines.length * (smallSize + gap) + margin),
    title: title ?? 'Attention weights',
    ...(background !== false && { background: colours.paper }),
    parts,
  };
}

const labelled = (names: readonly string[]) => names.map((name) => shortened(name, longestLabel));
const longest = (labels: readonly string[], size: number) => labels.reduce((most, label) => Math.max(most, widthOf(label, size)), 0);

export function mapFigure(options: FigureOptions): MapFigure {
  const { tokens: rows, keys: columns = rows, weights, legend, note, rowsTitle = 'looks (query)', columnsTitle = 'is looked at (key)' } = options;
  const colours = inks[options.theme ?? 'light'];
  const levels = options.levels ?? levelsOf({ ...options, rows, columns });
  const [rowLabels, columnLabels] = [labelled(rows), labelled(columns)];
  const count = Math.max(rows.length, columns.length, 1);
  const axis = smallSize + 8;
  // The sizes of labels and cells depend on each other.
  const most = options.width ?? Infinity;
  const asked = Math.min(options.cell ?? 34, Math.max(2, Math.floor(1024 / count)));
  const sizeFor = (cell: number) => Math.max(9, Math.min(13, cell * 0.7));
  const leftFor = (cell: number) => margin + axis + Math.ceil(longest(rowLabels, sizeFor(cell))) + 8;
  const cell = Math.max(0.5, Math.min(asked, (most - leftFor(asked) - margin) / Math.max(1, columns.length)));
  const labelSize = sizeFor(cell);
  const left = leftFor(cell);
  const [across, down] = [cell * columns.length, cell * rows.length];
  const least = 260;
  const width = Math.min(
    Math.max(left + across + margin, least, options.width ?? Math.min(560, margin * 2 + widthOf(options.title ?? '', titleSize))),
    most,
  );
  const { parts, end } = head(options, width, colours);
  const top = end + axis + Math.ceil(longest(columnLabels, labelSize)) + 8;
  parts.push(
    { kind: 'text', x: left + across / 2, y: end + smallSize, text: columnsTitle, size: smallSize, fill: colours.key, anchor: 'middle' },
    { kind: 'text', x: margin + smallSize, y: top + down / 2, text: rowsTitle, size: smallSize, fill: colours.query, anchor: 'middle', turned: true },
  );
  const gap = cell > 6 ? 1 : 0;
  if (rows.length * columns.length > mostRectangles || cell < 2)
    parts.push({ kind: 'cells', x: left, y: top, width: across, height: down, rows: rows.length, columns: columns.length, levels });
  else
    levels.forEach((level, at) => {
      const [i, j] = [Math.floor(at / columns.length), at % columns.length];
      const [x, y] = [left + j * cell, top + i * cell];
      // Masked keys get a stroke, to differ from small weights.
      if (level === notAllowed)
        parts.push({
          kind: 'path',
          d: `M${x + cell * 0.35} ${y + cell * 0.65}L${x + cell * 0.65} ${y + cell * 0.35}`,
          stroke: colours.ink,
          opacity: 0.35,
        });
      if (level < 0) return;
      const title = `${rows[i]!} to ${columns[j]!}, ${weights[at]!.toFixed(4)}`;
      parts.push({ kind: 'rect', x, y, width: cell - gap, height: cell - gap, fill: viridis(level), title });
      const number = cell >= leastWithNumber ? numberIn(weights[at]!) : undefined;
      if (number !== undefined) {
        const size = Math.min(12, cell * 0.36);
        parts.push({
          kind: 'text',
          x: x + (cell - gap) / 2,
          y: y + (cell - gap) / 2 + 0.36 * size,
          text: number,
          size,
          fill: inkOn(level),
          anchor: 'middle',
        });
      }
    });
  const every = Math.max(1, Math.ceil((labelSize + 1) / cell));
  const middle = (i: number) => (i + 0.5) * cell + 0.36 * labelSize;
  rowLabels.forEach((text, i) => {
    if (i % every === 0) parts.push({ kind: 'text', x: left - 6, y: top + middle(i), text, size: labelSize, fill: colours.query, anchor: 'end' });
  });
  columnLabels.forEach((text, i) => {
    if (i % every === 0)
      parts.push({ kind: 'text', x: left + middle(i), y: top - 6, text, size: labelSize, fill: colours.key, anchor: 'start', turned: true });
  });
  const y = top + down + 14;
  const { low, high } = legend ?? { low: '0', high: legendOf(weights, options.scale) };
  parts.push(...legendParts(low, high, y, colours.ink));
  return { ...finished(options, width, colours, parts, y + smallSize, note ?? ''), cells: { left, top, cell } };
}

/** A colour scale with the names of its ends. */
export function legendParts(low: string, high: string, y: number, fill: string): readonly FigurePart[] {
  const lowWidth = Math.ceil(widthOf(low, smallSize)) + 6;
  return [
    { kind: 'text', x: margin, y: y + smallSize - 1, text: low, size: smallSize, fill, anchor: 'start' },
    ...colourBar(margin + lowWidth, y, 120, smallSize),
    { kind: 'text', x: margin + lowWidth + 126, y: y + smallSize - 1, text: high, size: smallSize, fill, anchor: 'start' },
  ];
}

function legendOf(weights: ArrayLike<number>, scale: FigureOptions['scale']): string {
  if (scale === 'row') return 'the largest weight of each row';
  let largest = 0;
  for (let i = 0; i < weights.length; ++i) largest = Math.max(largest, weights[i]! || 0);
  return largest.toFixed(2);
}

/** More lines would cover the area. */
const mostLines = 300;

export function linesFigure(options: FigureOptions): Figure {
  const {
    tokens: rows,
    keys: columns = rows,
    weights,
    threshold = 0,
    note,
    rowsTitle = 'looks (query)',
    columnsTitle = 'is looked at (key)',
  } = options;
  const colours = inks[options.theme ?? 'light'];
  const [rowLabels, columnLabels] = [labelled(rows), labelled(columns)];
  const step = Math.max(12, Math.min(26, Math.floor(1024 / Math.max(1, rows.length, columns.length))));
  const size = Math.max(9, Math.min(13, step * 0.62));
  const left = margin + Math.ceil(Math.max(longest(rowLabels, size), widthOf(rowsTitle, smallSize))) + 8;
  const span = Math.min(420, 200 + 8 * Math.max(rows.length, columns.length));
  const right = left + span;
  const width = Math.max(right + 8 + Math.ceil(Math.max(longest(columnLabels, size), widthOf(columnsTitle, smallSize))) + margin, 260);
  const { parts, end } = head(options, width, colours);
  parts.push(
    { kind: 'text', x: left - 6, y: end + smallSize, text: rowsTitle, size: smallSize, fill: colours.query, anchor: 'end' },
    { kind: 'text', x: right + 6, y: end + smallSize, text: columnsTitle, size: smallSize, fill: colours.key, anchor: 'start' },
  );
  const top = end + smallSize + 10;
  const lines: { readonly weight: number; readonly from: number; readonly to: number }[] = [];
  for (let i = 0; i < rows.length; ++i)
    for (let j = 0; j < columns.length; ++j) {
      const weight = weights[i * columns.length + j]!;
      if (weight > 0 && weight >= threshold) lines.push({ weight, from: i, to: j });
    }
  // The largest weights are drawn on top.
  lines.sort((a, b) => a.weight - b.weight);
  const round = (value: number) => Math.round(10 * value) / 10;
  for (const { weight, from, to } of lines.slice(-mostLines)) {
    const [a, b] = [top + (from + 0.5) * step, top + (to + 0.5) * step].map(round);
    const d = `M${left} ${a}C${round(left + span / 2)} ${a} ${round(left + span / 2)} ${b} ${right} ${b}`;
    parts.push({ kind: 'path', d, stroke: colours.query, strokeWidth: Math.max(0.5, 7 * weight), opacity: Math.min(1, 0.12 + 0.8 * weight) });
  }
  const base = (i: number) => top + (i + 0.5) * step + 0.36 * size;
  rowLabels.forEach((text, i) => parts.push({ kind: 'text', x: left - 6, y: base(i), text, size, fill: colours.query, anchor: 'end' }));
  columnLabels.forEach((text, i) => parts.push({ kind: 'text', x: right + 6, y: base(i), text, size, fill: colours.key, anchor: 'start' }));
  const y = top + step * Math.max(rows.length, columns.length) + 8;
  const about = `A line is as thick as its weight.${lines.length > mostLines ? ` The ${mostLines} largest of ${lines.length} are drawn.` : ''}`;
  return finished(options, width, colours, parts, y, [about, note].filter(Boolean).join(' '), 4);
}
