import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { truncate } from '../formats/truncate.ts';
import { curve, rowLines, strongest } from '../draw/lines.ts';
import type { Shown } from '../state/map_view.ts';
import type { Cell } from './attention_map.tsx';
import { scrollable, useOverflow } from './overflow.ts';
import { observeSize } from './size.ts';

/** More lines would be a solid area. They use stroke-opacity, because opacity would give each line a layer that browsers composite on every move. */
const mostLines = 300;
/** Characters per label. Not cut by CSS: hundreds of clipped boxes would be painted one by one on every move. */
const longestLabel = 16;
/** Limits for the row in focus: smaller weights and further lines are not visible. */
const [leastWeight, mostOfRow] = [0.003, 60];

interface Props {
  readonly shown: Shown;
  readonly threshold: number;
  readonly cell: Cell;
  readonly locked: boolean;
  readonly onPoint: (cell: Cell) => void;
  readonly onLock: (cell: Cell, locked: boolean) => void;
}

/** For pointers only; the map is accessible. */
export function TokenLines({ shown, threshold, cell, locked, onPoint, onLock }: Props) {
  const { places, weights } = shown;
  const size = places.length;
  const frame = useRef<HTMLDivElement>(null);
  const overflows = useOverflow(frame);
  const [rowHeight, setRowHeight] = useState(20);
  // Cached, because reading it would force a layout on every move.
  const frameHeight = useRef(0);
  const scrolled = useRef(0);
  useLayoutEffect(() => {
    const element = frame.current!;
    // Whole pixels: a fraction too much would make the frame scrollable and a tab stop.
    const measure = () => {
      frameHeight.current = Math.floor(element.getBoundingClientRect().height);
      setRowHeight(Math.max(16, Math.min(44, frameHeight.current / size)));
    };
    measure();
    return observeSize([element], measure);
  }, [size]);

  const pointed = useRef(false);
  useEffect(() => {
    if (!overflows || pointed.current) return;
    const top = cell.row * rowHeight;
    if (top < scrolled.current || top > scrolled.current + frameHeight.current - rowHeight) frame.current!.scrollTop = top - frameHeight.current / 2;
  }, [cell.row, overflows, rowHeight]);

  const all = useMemo(() => strongest(weights, size, threshold, mostLines), [shown, threshold]);
  const ofRow = useMemo(() => rowLines(weights, size, cell.row, Math.max(threshold, leastWeight)).slice(-mostOfRow), [shown, threshold, cell.row]);
  const faint = useMemo(
    () =>
      all.map((line) => (
        <path key={`${line.row}.${line.column}`} d={curve(line)} stroke-width={6 * line.weight} stroke-opacity={0.15 + line.weight / 2} />
      )),
    [all],
  );

  const best = (row: number): Cell => {
    let column = 0;
    for (let j = 1; j < size; ++j) if (weights[row * size + j]! > weights[row * size + column]!) column = j;
    return { row, column };
  };
  // The labels are static while the pointer moves; the active one is drawn on top.
  const labels = useMemo(
    () => (
      <ol>
        {places.map(({ label, source }, i) => (
          <li key={i} class={source === 1 ? 'second' : ''}>
            <span>{truncate(label, longestLabel)}</span>
          </li>
        ))}
      </ol>
    ),
    [places],
  );
  const column = (side: 'query' | 'key') => {
    const active = side === 'query' ? cell.row : cell.column;
    const at = (event: { clientY: number; currentTarget: Element }) => {
      const box = event.currentTarget.getBoundingClientRect();
      return Math.max(0, Math.min(size - 1, Math.floor(((event.clientY - box.top) / box.height) * size)));
    };
    const target = (i: number) => (side === 'query' ? best(i) : { row: cell.row, column: i });
    return (
      <div
        class={side === 'query' ? 'lines-tokens as-query' : 'lines-tokens as-key'}
        onPointerMove={(event) => {
          const i = at(event);
          if (!locked && i !== active && event.pointerType === 'mouse') onPoint(target(i));
        }}
        onClick={(event) => {
          const i = at(event);
          onLock(target(i), !(locked && i === active));
        }}
      >
        {labels}
        <span class={places[active]!.source === 1 ? 'active second' : 'active'} style={{ top: `${(active + 0.5) * rowHeight}px` }}>
          {places[active]!.label}
        </span>
      </div>
    );
  };
  return (
    <div
      class="lines-frame"
      ref={frame}
      onScroll={(event) => (scrolled.current = event.currentTarget.scrollTop)}
      onPointerEnter={() => (pointed.current = true)}
      onPointerLeave={() => (pointed.current = false)}
      {...scrollable(overflows, 'Lines from queries to keys')}
    >
      <div class="lines" aria-hidden="true" style={{ height: `${rowHeight * size}px`, '--label-size': `${Math.min(14, rowHeight * 0.75)}px` }}>
        {column('query')}
        <svg viewBox={`0 0 100 ${size}`} preserveAspectRatio="none">
          <g class="lines-all">{faint}</g>
          <g class="lines-row">
            {ofRow.map((line) => (
              <path
                key={line.column}
                d={curve(line)}
                stroke-width={1 + 8 * line.weight}
                stroke-opacity={0.35 + 0.65 * line.weight}
                class={line.column === cell.column ? 'active' : ''}
              />
            ))}
          </g>
        </svg>
        {column('key')}
      </div>
    </div>
  );
}
