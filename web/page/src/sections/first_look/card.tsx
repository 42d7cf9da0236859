/** On a phone: the column of one word, changed by buttons or by swiping. */
import { useRef, useState } from 'preact/hooks';
import type { FirstLook } from '../../state/first_look.ts';
import { type Kind, Strip, largest } from '../../ui/strip.tsx';
import { queryName } from './columns.tsx';
import { numbersOf, percent, scoreShown } from './drawing.tsx';

/** Pixels of a swipe. */
const leastSwipe = 40;

export function Card({ now }: { now: FirstLook | undefined }) {
  const [chosen, setChosen] = useState<number>();
  const start = useRef<number | undefined>(undefined);
  if (!now || now.columns.length === 0) return <div class="first-card" aria-hidden="true" />;
  const { columns, place } = now;
  const best = columns.reduce((a, { weight }, i) => (i !== place && weight > (columns[a]?.weight ?? -1) ? i : a), -1);
  const at = Math.min(chosen ?? Math.max(0, best), columns.length - 1);
  const { word, key, value, score, weight } = columns[at]!;
  const go = (by: number) => setChosen((at + by + columns.length) % columns.length);
  const [products, product, keys, values] = numbersOf(now);
  const strip = (kind: Kind, numbers: Float32Array, most: number) => (
    <svg viewBox="0 0 160 16" preserveAspectRatio="none" aria-hidden="true">
      <Strip kind={kind} values={numbers} x={0} y={0} width={160} height={16} most={most} />
    </svg>
  );
  return (
    <div
      class="first-card"
      role="group"
      aria-label="One word"
      onPointerDown={(event) => (start.current = event.clientX)}
      onPointerUp={(event) => {
        const moved = event.clientX - (start.current ?? event.clientX);
        if (Math.abs(moved) > leastSwipe) go(moved < 0 ? 1 : -1);
      }}
    >
      <div class="first-card-head">
        <button type="button" aria-label="Previous word" onClick={() => go(-1)}>
          ←
        </button>
        <p aria-live="polite">
          {queryName(now)} <span aria-hidden="true">→</span> <strong>{word}</strong>
        </p>
        <button type="button" aria-label="Next word" onClick={() => go(1)}>
          →
        </button>
      </div>
      <dl>
        <div class="step-1">
          <dt>Query</dt>
          <dd>{strip('query', now.query, largest(now.query))}</dd>
        </div>
        <div class="step-1">
          <dt>Key</dt>
          <dd>{strip('key', key, keys)}</dd>
        </div>
        <div class="step-2">
          <dt>Score</dt>
          <dd class="first-card-weight">
            {strip('signed', products[at]!, product)}
            {scoreShown(score)}
          </dd>
        </div>
        <div class="step-3">
          <dt>Weight</dt>
          <dd class="first-card-weight">
            <span class="guess-room" aria-hidden="true">
              <span class="weight-bar" style={{ width: `${100 * weight}%` }} />
            </span>
            {percent(weight)}
          </dd>
        </div>
        <div class="step-4">
          <dt>Value</dt>
          <dd style={{ opacity: 0.14 + 0.86 * Math.min(1, 1.3 * weight) }}>{strip('value', value, values)}</dd>
        </div>
        <div class="step-4">
          <dt>Sum</dt>
          <dd>{strip('value', now.sum, largest(now.sum))}</dd>
        </div>
      </dl>
      <p class="note">{now.elsewhere >= 0.005 && `elsewhere ${percent(now.elsewhere)} ${now.elsewhereOn}`}</p>
    </div>
  );
}
