import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { argmax } from '../arithmetic/arrays.ts';
import { drawCells, labelEvery, levelsOf, type Look } from '../draw/heatmap.ts';
import { cutOut, isWhole, moved as movedPart, showing, within, zoomed, type Part } from '../draw/part.ts';
import { drawOverlay, headColour } from '../draw/overlay.ts';
import { fixed } from '../formats/numbers.ts';
import type { Overlay } from '../state/overlay.ts';
import type { Place, Shown } from '../state/map_view.ts';
import { Minimap } from './minimap.tsx';
import { usePanning } from './panning.ts';
import { pageStep } from './rove.ts';
import { useWidth } from './size.ts';

export interface Cell {
  readonly row: number;
  readonly column: number;
}

export interface AttentionMapProps {
  readonly shown: Shown;
  readonly look: Look;
  readonly label: string;
  readonly cell: Cell;
  readonly locked: boolean;
  readonly onPoint: (cell: Cell) => void;
  readonly onLock: (cell: Cell, locked: boolean) => void;
  readonly onKey: (key: string) => void;
  /** The visible part. */
  readonly part: Part;
  readonly onPart: (part: Part) => void;
  /** Drawn instead of the head in focus; the numbers stay those of that head. */
  readonly overlay: Overlay | undefined;
  readonly heads: number;
}

/** Keys that are passed to onKey. */
const others = [',', '.', '[', ']', 'm', 'e', '?', '+', '=', '-', '0'];
/** Assistive technology gets the cells of the active row up to this distance. */
const reach = 16;

const inSecondText = (place: Place | undefined) => place?.source === 1;

/** If space is short, each label stands for several places; the active one is always shown. */
function Labels({
  shown: { places },
  first,
  count: shownCount,
  active,
  step,
}: {
  shown: Shown;
  first: number;
  count: number;
  active: number;
  step: number;
}) {
  const every = labelEvery(step);
  const starts = Array.from({ length: Math.ceil(shownCount / every) }, (_, i) => first + i * every);
  return starts.map((start) => {
    const count = Math.min(every, first + shownCount - start);
    const isActive = active >= start && active < start + count;
    const place = places[isActive ? active : start]!;
    const names = [isActive && 'active', inSecondText(place) && 'second'].filter(Boolean).join(' ');
    return (
      <span key={start} class={names} style={{ flexGrow: count }}>
        <span>{place.label}</span>
      </span>
    );
  });
}

/** The part of the map's width that its cells have, about. */
const fieldShare = 0.85;
/** 7rem, as in focus.css. */
const mostStep = 112;

/**
 * Rows are queries, columns are keys. The canvas is below a grid with one tab stop, which contains the active row for
 * assistive technology.
 */
export function AttentionMap({ shown, look, label, cell, locked, onPoint, onLock, onKey, part: wanted, onPart, overlay, heads }: AttentionMapProps) {
  const { places, weights } = shown;
  const size = places.length;
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const grid = useRef<HTMLDivElement>(null);
  const [whole, width] = [useWidth(box), useWidth(field)];
  const [spoken, setSpoken] = useState('');

  const part = within(wanted, size);
  const levels = useMemo(() => levelsOf(shown, look), [shown, look.threshold, look.scaleBy]);
  useLayoutEffect(() => {
    if (!width) return;
    const surface = canvas.current!;
    const density = Math.min(window.devicePixelRatio || 1, 3);
    surface.width = surface.height = Math.round(width * density);
    const context = surface.getContext('2d')!;
    context.scale(density, density);
    const { fontFamily: font, color: ink } = getComputedStyle(surface);
    const inPart = { places: places.slice(0, part.count), weights: cutOut(weights, size, part) };
    const area = { context, width, left: 0, top: 0, density, font, ink };
    if (overlay) {
      const colours = overlay.heads.map((head) => headColour(head, heads));
      drawOverlay(area, part.count, cutOut(overlay.levels, size, part), cutOut(overlay.winners, size, part), colours);
    } else drawCells(area, inPart, cutOut(levels, size, part));
  }, [width, levels, overlay, part.row, part.column, part.count]);

  const say = ({ row, column }: Cell) => `${places[row]!.label} to ${places[column]!.label}, ${fixed(weights[row * size + column]!, 2)}`;

  // Only moves are announced, not changes of the weights in a cell.
  const moved = useRef(false);
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    setSpoken(say(cell));
  }, [cell.row, cell.column, locked]);

  const at = (event: PointerEvent | MouseEvent): Cell => {
    const box = field.current!.getBoundingClientRect();
    const inPart = (value: number) => Math.min(part.count - 1, Math.max(0, Math.floor(value * part.count)));
    return {
      row: part.row + inPart((event.clientY - box.top) / box.height),
      column: part.column + inPart((event.clientX - box.left) / box.width),
    };
  };

  /** A row's name selects its largest key, a column's name its largest query. */
  const rowOf = (i: number) => weights.subarray(i * size, (i + 1) * size);
  const columnOf = (j: number) => Float32Array.from({ length: size }, (_, i) => weights[i * size + j]!);
  const across = (event: PointerEvent | MouseEvent) => at(event).column;
  const down = (event: PointerEvent | MouseEvent) => at(event).row;
  const ofLabels = (target: (place: number) => Cell, placeOf: (event: PointerEvent | MouseEvent) => number) => ({
    onPointerMove: (event: PointerEvent) => {
      if (!locked && event.pointerType === 'mouse') onPoint(target(placeOf(event)));
    },
    onClick: (event: MouseEvent) => {
      const wanted = target(placeOf(event));
      onLock(wanted, !(locked && wanted.row === cell.row && wanted.column === cell.column));
      grid.current?.focus({ preventScroll: true });
    },
  });

  // A held key repeats faster than the page renders.
  const latest = useRef(cell);
  latest.current = cell;
  const move = (row: number, column: number) => {
    moved.current = true;
    latest.current = { row: Math.min(size - 1, Math.max(0, row)), column: Math.min(size - 1, Math.max(0, column)) };
    onPoint(latest.current);
  };

  // Scrolls to a cell that was chosen elsewhere or by keys; the first part is that of the address.
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) return void (isFirst.current = false);
    const { row, column } = showing(part, size, cell);
    if (row !== part.row || column !== part.column) onPart({ ...part, row, column });
  }, [cell.row, cell.column]);

  // Two fingers zoom and move at once, before the next render.
  const latestPart = useRef(part);
  latestPart.current = part;
  const go = (to: Part) => onPart((latestPart.current = to));
  const panning = usePanning({
    isZoomed: !isWhole(part, size),
    field,
    zoom: (factor, at) => go(zoomed(latestPart.current, size, factor, at)),
    pan: (rows, columns) => {
      const now = latestPart.current;
      const next = movedPart(now, size, rows * now.count, columns * now.count);
      if (next.row === now.row && next.column === now.column) return false;
      go(next);
      return true;
    },
  });
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
      PageUp: () => move(row - pageStep, column),
      PageDown: () => move(row + pageStep, column),
      Home: () => move(corner ? 0 : row, 0),
      End: () => move(corner ? size - 1 : row, size - 1),
      Enter: () => onLock(latest.current, !locked),
      ' ': () => onLock(latest.current, !locked),
      Escape: () => onLock(latest.current, false),
    };
    if (Object.hasOwn(moves, event.key)) moves[event.key]!();
    else if (others.includes(event.key)) onKey(event.key);
    else return;
    event.preventDefault();
  };

  const activeId = 'map-active-cell';
  const percent = (n: number) => `${(100 * n) / part.count}%`;
  // From the whole, because the room of the field depends on the size of the names.
  const step = Math.min((fieldShare * whole) / part.count, mostStep);
  const inView = (place: number, first: number) => place >= first && place < first + part.count;
  const [rowInView, columnInView] = [inView(cell.row, part.row), inView(cell.column, part.column)];
  const second = places.findIndex(inSecondText);
  const from = Math.max(0, cell.column - reach);
  return (
    <div
      ref={box}
      class={isWhole(part, size) ? 'map' : 'map zoomed'}
      style={{ '--label-size': `${Math.max(9, Math.min(13.5, step * 0.8))}px`, '--rows': part.count }}
    >
      {!isWhole(part, size) && <Minimap levels={levels} size={size} part={part} onPart={onPart} />}
      <div class="map-columns" aria-hidden="true" {...ofLabels((place) => ({ row: argmax(columnOf(place)), column: place }), across)}>
        <Labels shown={shown} first={part.column} count={part.count} active={cell.column} step={step} />
      </div>
      <div class="map-rows" aria-hidden="true" {...ofLabels((place) => ({ row: place, column: argmax(rowOf(place)) }), down)}>
        <Labels shown={shown} first={part.row} count={part.count} active={cell.row} step={step} />
      </div>
      <div class="map-field" ref={field}>
        <canvas ref={canvas} aria-hidden="true" />
        {inView(second, part.row) && second > 0 && (
          <div aria-hidden="true" class="map-border" style={{ left: 0, right: 0, top: percent(second - part.row) }} />
        )}
        {inView(second, part.column) && second > 0 && (
          <div aria-hidden="true" class="map-border" style={{ top: 0, bottom: 0, left: percent(second - part.column) }} />
        )}
        {rowInView && (
          <div aria-hidden="true" class="map-band" style={{ left: 0, right: 0, top: percent(cell.row - part.row), height: percent(1) }} />
        )}
        {columnInView && (
          <div
            aria-hidden="true"
            class="map-band of-column"
            style={{ top: 0, bottom: 0, left: percent(cell.column - part.column), width: percent(1) }}
          />
        )}
        {rowInView && columnInView && (
          <div
            aria-hidden="true"
            class={locked ? 'map-cell locked' : 'map-cell'}
            style={{ left: percent(cell.column - part.column), top: percent(cell.row - part.row), width: percent(1), height: percent(1) }}
          />
        )}
        <div
          class="map-grid"
          ref={grid}
          role="grid"
          tabIndex={0}
          aria-label={label}
          aria-describedby="map-hint"
          aria-readonly="true"
          aria-rowcount={size + 1}
          aria-colcount={size + 1}
          aria-activedescendant={activeId}
          onKeyDown={keydown}
          {...panning.handlers}
          onPointerMove={(event) => {
            if (panning.move(event)) return;
            if (!locked && event.pointerType === 'mouse') onPoint(at(event));
          }}
          onClick={(event) => {
            if (panning.wasDragged()) return;
            const target = at(event);
            onLock(target, !(locked && target.row === cell.row && target.column === cell.column));
          }}
        >
          <div role="row" aria-rowindex={cell.row + 2}>
            <span role="rowheader" aria-colindex={1}>
              {places[cell.row]!.label}
            </span>
            {places.slice(from, cell.column + reach + 1).map((_, i) => {
              const column = from + i;
              return (
                <span
                  key={column}
                  role="gridcell"
                  aria-colindex={column + 2}
                  aria-selected={locked && column === cell.column}
                  id={column === cell.column ? activeId : undefined}
                >
                  {say({ row: cell.row, column })}
                </span>
              );
            })}
          </div>
        </div>
      </div>
      <p class="visually-hidden" aria-live="polite">
        {spoken}
      </p>
    </div>
  );
}
