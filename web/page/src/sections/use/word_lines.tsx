import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import type { Alignment } from '../../state/align.ts';
import type { Place } from '../../ui/matrix_view.tsx';
import { rove } from '../../ui/rove.ts';
import { observeSize } from '../../ui/size.ts';

interface WordLinesProps {
  readonly of: Alignment;
  readonly selected: Place;
  readonly onSelect: (place: Place) => void;
}

/** Two sentences one above the other, or in two columns if they are too long, with lines between the pairs. */
export function WordLines({ of, selected, onSelect }: WordLinesProps) {
  const { words, choices, pairs } = of;
  const frame = useRef<HTMLDivElement>(null);
  const [curves, setCurves] = useState<readonly string[]>([]);
  useLayoutEffect(() => {
    const current = frame.current!;
    const measure = () => setCurves(curvesIn(current, pairs));
    measure();
    return observeSize([current], measure);
  }, [of]);
  const rowOf = new Map(pairs.map(({ row, column }) => [column, row]));
  const columnOf = new Map(pairs.map(({ row, column }) => [row, column]));
  return (
    <div ref={frame} class="align-figure">
      <Sentence
        name="Words of the first sentence"
        words={words[0]}
        chosen={selected.row}
        counterpart={(row) => words[1][columnOf.get(row) ?? -1]}
        onChoose={(row) => onSelect({ row, column: choices.ofRow[row]! })}
      />
      <Sentence
        name="Words of the second sentence"
        words={words[1]}
        chosen={selected.column}
        counterpart={(column) => words[0][rowOf.get(column) ?? -1]}
        onChoose={(column) => onSelect({ row: choices.ofColumn[column]!, column })}
      />
      <svg class="align-lines" aria-hidden="true">
        {curves.map((curve, i) => {
          const isChosen = pairs[i]?.row === selected.row && pairs[i].column === selected.column;
          return <path key={i} d={curve} class={isChosen ? 'chosen' : ''} />;
        })}
      </svg>
    </div>
  );
}

interface SentenceProps {
  readonly name: string;
  readonly words: readonly string[];
  readonly chosen: number;
  readonly counterpart: (index: number) => string | undefined;
  readonly onChoose: (index: number) => void;
}

function Sentence({ name, words, chosen, counterpart, onChoose }: SentenceProps) {
  const group = useRef<HTMLDivElement>(null);
  return (
    <div ref={group} class="align-words" role="group" aria-label={name} dir="auto" onKeyDown={(event) => rove(event, group.current!)}>
      {words.map((word, i) => {
        const other = counterpart(i);
        return (
          <button
            key={i}
            type="button"
            class={other === undefined ? 'alone' : ''}
            aria-label={other === undefined ? `${word}, no counterpart` : `${word}, corresponds to ${other}`}
            aria-pressed={i === chosen}
            tabIndex={i === chosen ? 0 : -1}
            onClick={() => onChoose(i)}
          >
            {word}
          </button>
        );
      })}
    </div>
  );
}

/** Chooses the layout that fits; returns a path for each pair, in pixels of the frame. */
function curvesIn(frame: HTMLElement, pairs: Alignment['pairs']): readonly string[] {
  const groups = Array.from(frame.querySelectorAll<HTMLElement>('.align-words'));
  frame.classList.remove('upright');
  const isUpright = groups.some(({ scrollWidth }) => scrollWidth > frame.clientWidth);
  frame.classList.toggle('upright', isUpright);
  const origin = frame.getBoundingClientRect();
  const [first, second] = groups.map((group) => Array.from(group.children, (word) => word.getBoundingClientRect())) as [DOMRect[], DOMRect[]];
  const round = (value: number) => Math.round(10 * value) / 10;
  return pairs.map(({ row, column }) => {
    const [a, b] = [first[row]!, second[column]!];
    const ends = isUpright
      ? [a.right - origin.left, a.top + a.height / 2 - origin.top, b.left - origin.left, b.top + b.height / 2 - origin.top]
      : [a.left + a.width / 2 - origin.left, a.bottom - origin.top, b.left + b.width / 2 - origin.left, b.top - origin.top];
    const [x1, y1, x2, y2] = ends.map(round) as [number, number, number, number];
    const [x, y] = [round((x1 + x2) / 2), round((y1 + y2) / 2)];
    return isUpright ? `M${x1} ${y1}C${x} ${y1} ${x} ${y2} ${x2} ${y2}` : `M${x1} ${y1}C${x1} ${y} ${x2} ${y} ${x2} ${y2}`;
  });
}
