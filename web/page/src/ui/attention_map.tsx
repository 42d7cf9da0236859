import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { colour, inkOn } from '../palette.ts';
import { fixed } from '../numbers.ts';

export interface Cell {
  readonly row: number;
  readonly column: number;
}

export interface AttentionMapProps {
  readonly tokens: readonly string[];
  /** (L, L) of the head in focus. */
  readonly weights: Float32Array;
  readonly label: string;
  /** Whether a key is hidden from a query. */
  readonly blocked: (row: number, column: number) => boolean;
  readonly cell: Cell;
  readonly held: boolean;
  readonly onPoint: (cell: Cell) => void;
  readonly onHold: (cell: Cell, held: boolean) => void;
  readonly onKey: (key: string) => void;
  readonly onDrawn: () => void;
}

/** Cells at least this wide carry their number. */
const numberWidth = 27;

/**
 * One head: rows are queries, columns are keys. The cells are on a canvas; over it lies a grid of one tab stop that tells the active row to
 * assistive technology (the other rows are there when one moves to them).
 */
export function AttentionMap({ tokens, weights, label, blocked, cell, held, onPoint, onHold, onKey, onDrawn }: AttentionMapProps) {
  const size = tokens.length;
  const field = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [spoken, setSpoken] = useState('');

  useLayoutEffect(() => {
    const element = field.current!;
    const measure = () => setWidth(element.clientWidth);
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    measure();
    return () => observer.disconnect();
  }, []);

  useLayoutEffect(() => {
    if (!width) return;
    const surface = canvas.current!;
    const density = Math.min(window.devicePixelRatio || 1, 3);
    surface.width = surface.height = Math.round(width * density);
    const context = surface.getContext('2d')!;
    context.scale(density, density);
    const step = width / size;
    const gap = step > 6 ? 1 : 0;
    let largest = 0;
    for (const w of weights) largest = Math.max(largest, w);
    const style = getComputedStyle(surface);
    context.font = `${Math.min(12, step * 0.36)}px ${style.fontFamily}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let i = 0; i < size; ++i) {
      for (let j = 0; j < size; ++j) {
        const x = j * step;
        const y = i * step;
        if (blocked(i, j)) {
          // A hidden key is no small weight: it is left out, so it gets a stroke instead of a colour.
          context.strokeStyle = style.color;
          context.globalAlpha = 0.35;
          context.beginPath();
          context.moveTo(x + step * 0.35, y + step * 0.65);
          context.lineTo(x + step * 0.65, y + step * 0.35);
          context.stroke();
          context.globalAlpha = 1;
          continue;
        }
        const weight = weights[i * size + j]!;
        const level = weight / (largest || 1);
        context.fillStyle = colour(level);
        context.fillRect(x, y, step - gap, step - gap);
        if (step >= numberWidth && weight >= 0.095) {
          context.fillStyle = inkOn(level);
          context.fillText(weight >= 0.995 ? '1.0' : weight.toFixed(2).slice(1), x + (step - gap) / 2, y + (step - gap) / 2 + 0.5);
        }
      }
    }
    onDrawn();
  }, [width, size, weights, blocked]);

  // A head or a sentence may change under a cell that does not move; only moves are spoken.
  const moved = useRef(false);
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    setSpoken(`${tokens[cell.row]} to ${tokens[cell.column]}, ${fixed(weights[cell.row * size + cell.column]!, 2)}`);
  }, [cell, weights]);

  const at = (event: PointerEvent | MouseEvent): Cell => {
    const box = field.current!.getBoundingClientRect();
    const clamp = (value: number) => Math.min(size - 1, Math.max(0, Math.floor(value * size)));
    return { row: clamp((event.clientY - box.top) / box.height), column: clamp((event.clientX - box.left) / box.width) };
  };

  // A key that is held down repeats faster than the page is drawn.
  const latest = useRef(cell);
  latest.current = cell;
  const move = (row: number, column: number) => {
    moved.current = true;
    latest.current = { row: Math.min(size - 1, Math.max(0, row)), column: Math.min(size - 1, Math.max(0, column)) };
    onPoint(latest.current);
  };

  const keydown = (event: KeyboardEvent) => {
    if (event.altKey || event.metaKey) return;
    const { row, column } = latest.current;
    const corner = event.ctrlKey;
    if (event.ctrlKey && event.key !== 'Home' && event.key !== 'End') return;
    const moves: Record<string, () => void> = {
      ArrowUp: () => move(row - 1, column),
      ArrowDown: () => move(row + 1, column),
      ArrowLeft: () => move(row, column - 1),
      ArrowRight: () => move(row, column + 1),
      Home: () => move(corner ? 0 : row, 0),
      End: () => move(corner ? size - 1 : row, size - 1),
      Enter: () => onHold(latest.current, !held),
      ' ': () => onHold(latest.current, !held),
      Escape: () => onHold(latest.current, false),
    };
    if (Object.hasOwn(moves, event.key)) moves[event.key]!();
    else if ([',', '.', '[', ']', 'm', 'e', '?'].includes(event.key)) onKey(event.key);
    else return;
    event.preventDefault();
  };

  const activeId = 'map-active-cell';
  const percent = (n: number) => `${(100 * n) / size}%`;
  return (
    <div class="map">
      <div class="map-columns" aria-hidden="true">
        {tokens.map((token, j) => (
          <span key={j} class={j === cell.column ? 'active' : ''}>
            {token}
          </span>
        ))}
      </div>
      <div class="map-rows" aria-hidden="true">
        {tokens.map((token, i) => (
          <span key={i} class={i === cell.row ? 'active' : ''}>
            {token}
          </span>
        ))}
      </div>
      <div class="map-field" ref={field}>
        <canvas ref={canvas} aria-hidden="true" />
        <div aria-hidden="true" class="map-band" style={{ left: 0, right: 0, top: percent(cell.row), height: percent(1) }} />
        <div
          aria-hidden="true"
          class={held ? 'map-cell held' : 'map-cell'}
          style={{ left: percent(cell.column), top: percent(cell.row), width: percent(1), height: percent(1) }}
        />
        <div
          class="map-grid"
          role="grid"
          tabIndex={0}
          aria-label={label}
          aria-describedby="map-hint"
          aria-readonly="true"
          aria-rowcount={size + 1}
          aria-colcount={size + 1}
          aria-activedescendant={activeId}
          onKeyDown={keydown}
          onPointerMove={(event) => {
            if (!held && event.pointerType === 'mouse') onPoint(at(event));
          }}
          onClick={(event) => {
            const target = at(event);
            onHold(target, !(held && target.row === cell.row && target.column === cell.column));
          }}
        >
          <div role="row" aria-rowindex={cell.row + 2}>
            <span role="rowheader" aria-colindex={1}>
              {tokens[cell.row]}
            </span>
            {tokens.map((token, j) => (
              <span
                key={j}
                role="gridcell"
                aria-colindex={j + 2}
                aria-selected={held && j === cell.column}
                id={j === cell.column ? activeId : undefined}
              >
                {tokens[cell.row]} to {token}, {fixed(weights[cell.row * size + j]!, 2)}
              </span>
            ))}
          </div>
        </div>
      </div>
      <p class="visually-hidden" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}
