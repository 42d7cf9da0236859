import { useRef } from 'preact/hooks';
import type { Shown } from '../state/map_view.ts';
import type { Cell } from './attention_map.tsx';
import { scrollable, useOverflow } from './overflow.ts';

interface Props {
  readonly shown: Shown;
  readonly texts: readonly string[];
  readonly cell: Cell;
  readonly locked: boolean;
  readonly onPoint: (cell: Cell) => void;
  readonly onLock: (cell: Cell, locked: boolean) => void;
}

/** Words with less weight show no number. */
const leastNumber = 0.095;

/** Shades each word by its weight in the row in focus. Pointing at a word selects its row. */
export function ShadedText({ shown, texts, cell, locked, onPoint, onLock }: Props) {
  const frame = useRef<HTMLDivElement>(null);
  const overflows = useOverflow(frame);
  const { places, weights } = shown;
  const size = places.length;
  const row = weights.subarray(cell.row * size, (cell.row + 1) * size);
  const largest = row.reduce((a, b) => Math.max(a, b), 0) || 1;
  const mark = (p: number, text: string) => {
    const weight = row[p]!;
    return (
      <span
        key={`${p}`}
        class={['shaded', p === cell.row && 'self', p === cell.column && 'active'].filter(Boolean).join(' ')}
        style={{ '--share': `${Math.round((100 * weight) / largest)}%` }}
        onPointerMove={(event) => {
          if (!locked && event.pointerType === 'mouse' && p !== cell.row) onPoint({ row: p, column: cell.column });
        }}
        onClick={() => onLock({ row: p, column: cell.column }, !(locked && p === cell.row))}
      >
        {text}
        {weight >= leastNumber && <small class="figure">{weight >= 0.995 ? weight.toFixed(1) : weight.toFixed(2).slice(1)}</small>}
      </span>
    );
  };
  const special = places.flatMap(({ source, label }, p) => (source === undefined ? [mark(p, label), ' '] : []));
  return (
    <div class="shaded-frame" ref={frame} {...scrollable(overflows, 'The text')}>
      <div class="shaded-texts" aria-hidden="true">
        {texts.map((text, source) => {
          const pieces: unknown[] = [];
          let at = 0;
          places.forEach((place, p) => {
            if (place.source !== source || !place.range) return;
            const start = Math.max(at, place.range[0]);
            const end = Math.max(start, place.range[1]);
            pieces.push(text.slice(at, start), mark(p, text.slice(start, end)));
            at = end;
          });
          pieces.push(text.slice(at));
          return (
            <p key={source} class={source === 1 ? 'second' : ''} dir="auto">
              {texts.length > 1 && <span class="tag">text {source + 1}</span>} {pieces as string[]}
            </p>
          );
        })}
        {special.length > 0 && <p class="shaded-special">{special}</p>}
      </div>
    </div>
  );
}
