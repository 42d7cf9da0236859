/** A matrix as a picture, with the number that is selected. The table next to it has all numbers. */
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { paint } from '../draw/palette.ts';
import { fixed } from '../formats/numbers.ts';
import '../styles/matrix_view.css';
import type { Kind } from './strip.tsx';
import { Subscripted } from './subscripted.tsx';

export interface Place {
  readonly row: number;
  readonly column: number;
}

export interface StepAxis {
  readonly kind: string;
  readonly count: number;
  readonly label: (index: number) => string;
}

export type MatrixKind = Kind | 'weight';

interface MatrixViewProps {
  readonly name: string;
  readonly kind: MatrixKind;
  readonly rows: StepAxis;
  readonly columns: StepAxis;
  readonly value: (row: number, column: number) => number;
  /** The number in the darkest colour, for weights; the brightest is 1. */
  readonly least?: number;
  readonly selected: Place;
  /** Cells with a dot. */
  readonly marked?: readonly Place[];
  readonly onSelect: (place: Place) => void;
}

/** Evenly spaced rows and columns of a larger matrix are drawn. */
const [mostRows, mostColumns] = [128, 256];
/** More names would not fit next to their rows. */
const mostNames = 20;

/** Counts the changes of the theme, which the canvas does not follow by itself. */
function useTheme(): number {
  const [changes, setChanges] = useState(0);
  useEffect(() => {
    const observer = new MutationObserver(() => setChanges((count) => count + 1));
    observer.observe(document.documentElement, { attributeFilter: ['data-theme'] });
    return () => observer.disconnect();
  }, []);
  return changes;
}

const channels = (colour: string): readonly number[] => (colour.match(/\d+(\.\d+)?/g) ?? []).slice(0, 3).map(Number);

function draw(canvas: HTMLCanvasElement, kind: MatrixKind, least: number, value: (i: number, j: number) => number): void {
  const { width, height } = canvas;
  const numbers = Float32Array.from({ length: width * height }, (_, i) => value(Math.floor(i / width), i % width));
  const most = numbers.reduce((all, each) => (Number.isFinite(each) ? Math.max(all, Math.abs(each)) : all), 0) || 1;
  const { color, caretColor } = getComputedStyle(canvas);
  const [plus, minus] = [channels(color), channels(caretColor)];
  const context = canvas.getContext('2d')!;
  const image = context.createImageData(width, height);
  numbers.forEach((each, i) => {
    if (!Number.isFinite(each)) return;
    if (kind === 'weight') return paint(image.data, i, (each - least) / (1 - least || 1));
    image.data.set(each < 0 ? minus : plus, 4 * i);
    image.data[4 * i + 3] = 255 * (0.05 + (0.95 * Math.abs(each)) / most);
  });
  context.putImageData(image, 0, 0);
}

export function MatrixView({ name, kind, rows, columns, value, least = 0, selected, marked = [], onSelect }: MatrixViewProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const theme = useTheme();
  const size = { rows: Math.min(rows.count, mostRows), columns: Math.min(columns.count, mostColumns) };
  const [stepDown, stepAcross] = [rows.count / size.rows, columns.count / size.columns];
  useLayoutEffect(
    () => draw(canvas.current!, kind, least, (i, j) => value(Math.floor(i * stepDown), Math.floor(j * stepAcross))),
    [theme, value, least],
  );
  const { row, column } = selected;
  const places = { '--rows': rows.count, '--columns': columns.count, '--row': row, '--column': column };
  const hasNames = rows.kind !== '' && !/^(in|number)$/.test(rows.kind) && rows.count <= mostNames;
  return (
    <figure class="matrix-view" style={places}>
      <figcaption>
        <strong class={`of-${kind}`}>
          <Subscripted>{name}</Subscripted>
        </strong>{' '}
        <span class="note">
          {rows.count} × {columns.count}
        </span>
        <span class="matrix-reading">
          {rows.kind && `${/^(in|number)$/.test(rows.kind) ? `${rows.kind} ` : ''}${rows.label(row)}, `}
          {/^(in|out|number)$/.test(columns.kind) && `${columns.kind} `}
          {columns.label(column)}: <span class="figure">{fixed(value(row, column), 4)}</span>
        </span>
      </figcaption>
      {hasNames && (
        <div class="matrix-names" aria-hidden="true">
          {Array.from({ length: rows.count }, (_, i) => (
            <span key={i} class={i === row ? 'current' : ''}>
              {rows.label(i)}
            </span>
          ))}
        </div>
      )}
      <div
        class="matrix-cells"
        onClick={(event) => {
          const { left, top, width, height } = event.currentTarget.getBoundingClientRect();
          const place = (at: number, count: number) => Math.min(count - 1, Math.max(0, Math.floor(at * count)));
          onSelect({ row: place((event.clientY - top) / height, rows.count), column: place((event.clientX - left) / width, columns.count) });
        }}
      >
        <canvas ref={canvas} class={`of-${kind}`} width={size.columns} height={size.rows} aria-hidden="true" />
        {marked.map((each) => (
          <span key={`${each.row}.${each.column}`} class="matrix-mark" style={{ '--row': each.row, '--column': each.column }} />
        ))}
        <span class="matrix-cell" />
      </div>
    </figure>
  );
}
