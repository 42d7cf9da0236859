import { useRef } from 'preact/hooks';
import type { ComponentChildren } from 'preact';
import type { FirstLook } from '../../state/first_look.ts';
import { headWeights } from '../../state/map_view.ts';
import { strongestIn } from '../../state/strongest.ts';
import { update } from '../../state/view.ts';
import type { SentenceLayout } from '../../ui/sentence.tsx';
import { Strip, largest } from '../../ui/strip.tsx';
import { rove } from '../../ui/rove.ts';
import { percent, rows, scoreText } from './drawing.tsx';

export function queryName(now: FirstLook | undefined): string {
  const word = now?.columns[now.place]?.word;
  return now?.isBlank || word === undefined ? 'the blank' : `“${word}”`;
}

export function RowLabels({ now }: { now: FirstLook | undefined }) {
  return (
    <div class="first-labels">
      <Label name="Query" top={rows.words + 2} step={1} about={`what ${queryName(now)} looks for`}>
        <svg width="100" height="16" aria-hidden="true">
          {now && now.columns.length > 0 && <Strip kind="query" values={now.query} x={0} y={0} width={100} height={16} most={largest(now.query)} />}
        </svg>
      </Label>
      <Label name="Key" top={rows.key - 13} step={1} about="compared with the query" />
      <Label name="Score" top={rows.score - 12} step={2} about={`query · key / √${now?.width ?? 32}`} />
      <Label name="Weight" top={rows.weight - 1} step={3} about="softmax: sums to 100 %">
        <span class="elsewhere" hidden={!now || now.columns.length === 0 || now.elsewhere < 0.005}>
          elsewhere {percent(now?.elsewhere ?? 0)} <span class="muted">{now?.elsewhereOn}</span>
        </span>
      </Label>
      <Label name="Value" top={rows.value - 13} step={4} about="weight × value" />
    </div>
  );
}

function Label({ name, top, step, about, children }: { name: string; top: number; step: number; about: string; children?: ComponentChildren }) {
  return (
    <div class={`first-label step-${step}`} style={{ top: `${top}px` }}>
      <strong>{name}</strong>
      {name === 'Query' && children}
      <span class="note">{about}</span>
      {name !== 'Query' && children}
    </div>
  );
}

/** Makes a word the query; the key is the one it looks at most. */
export function ask({ of, columns, head }: FirstLook, token: number): void {
  const isWord = of.run.tokens.map((_, i) => columns.some((column) => column.token === i));
  update({ cell: strongestIn(headWeights(of.run, of.layer, head), isWord, [token]) });
}

/** A column is a button: its word becomes the query. */
export function Columns({ now, layout }: { now: FirstLook; layout: SentenceLayout }) {
  const group = useRef<HTMLDivElement>(null);
  return (
    <div ref={group} class="first-columns" role="group" aria-label="Words" onKeyDown={(event) => rove(event, group.current!)}>
      {now.columns.map(({ token, label, score, weight, isMasked }, i) => (
        <button
          key={token}
          type="button"
          tabIndex={i === Math.max(0, now.place) ? 0 : -1}
          aria-pressed={i === now.place}
          aria-label={`${label}: ${isMasked ? 'hidden by the mask' : `score ${scoreText(score)}, weight ${percent(weight)}`}`}
          style={{ left: `${layout.columns[i]! - layout.columnWidth / 2 + 2}px`, width: `${layout.columnWidth - 4}px` }}
          onClick={() => ask(now, token)}
        />
      ))}
    </div>
  );
}
