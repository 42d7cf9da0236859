import { strongest } from '../draw/lines.ts';
import { fixed } from '../formats/numbers.ts';
import type { Shown } from '../state/map_view.ts';
import { lockAt } from './focus.tsx';

const most = 12;

/** The largest weights, for maps that are too large to read. */
export function Links({ shown: now }: { shown: Shown }) {
  const { places, weights } = now;
  const links = strongest(weights, places.length, 0, most).toReversed();
  return (
    <div class="links">
      <h3 id="links-title">The strongest links</h3>
      <ol aria-labelledby="links-title">
        {links.map(({ row, column, weight }) => (
          <li key={`${row}.${column}`}>
            <button type="button" class="quiet" onClick={() => lockAt(now, { row, column }, true)}>
              <span class="as-query">{places[row]!.label}</span> <span aria-hidden="true">→</span>
              <span class="visually-hidden">to</span> <span class="as-key">{places[column]!.label}</span>{' '}
              <span class="figure">{fixed(weight, 4)}</span>
            </button>
          </li>
        ))}
      </ol>
    </div>
  );
}
