/** Arcs, strips, bars and the flow of the values, in pixels from the figure's corner. */
import { arc, dropTo, flowTo, type Point } from '../../draw/arcs.ts';
import { fixed } from '../../formats/numbers.ts';
import type { FirstLook } from '../../state/first_look.ts';
import type { SentenceLayout } from '../../ui/sentence.tsx';
import { Strip, largest } from '../../ui/strip.tsx';
import { Counted } from './counted.tsx';

export const figureHeight = 436;
export const rows = { words: 90, key: 182, score: 232, weight: 284, bar: 312, value: 374 } as const;
const lines = [162, 214, 266, 350];
export const stripHeight = 16;
export const sumAt = 404;

/** A smaller weight of a word on itself has no arc. */
const least = 0.02;
/** In a long text, smaller weights have no arcs. */
const [many, leastOfMany] = [40, 0.005];
/** The room for arcs above the words. */
const most = 84;

export const percent = (share: number): string => `${Math.round(100 * share)} %`;
/** In ASCII, for names; pictures have a minus sign. */
export const scoreText = (score: number): string => (score < -1e30 ? 'hidden' : fixed(score, 1));
export const scoreShown = (score: number): string => scoreText(score).replace('-', '−');
export const isLarge = (weight: number): boolean => weight >= 0.2;

/** Query times key, number by number, for each column; and the largest product, key and value of all columns. */
export function numbersOf({ columns, query }: FirstLook) {
  const products = columns.map(({ key }) => key.map((number, d) => number * query[d]!));
  const most = (rows: readonly Float32Array[]) => largest(rows.map(largest));
  return [products, most(products), most(columns.map(({ key }) => key)), most(columns.map(({ value }) => value))] as const;
}

interface Props {
  readonly now: FirstLook;
  readonly layout: SentenceLayout;
  readonly wraps: boolean;
  readonly isStacked: boolean;
  readonly seen: readonly [number, number];
}

export function Arcs({ now, layout, wraps, isStacked, seen }: Props) {
  const { columns, place, isOff } = now;
  const { tops, width, height } = layout;
  const origin = wraps ? 0 : rows.words;
  const at = (i: number) => ({ x: tops[i]!.x, y: origin + tops[i]!.y });
  const query = tops[place] && at(place);
  return (
    <svg class={isOff ? 'first-drawing off' : 'first-drawing'} width={width} height={wraps ? height : figureHeight} aria-hidden="true">
      {!wraps && <Rows now={now} layout={layout} isStacked={isStacked} seen={seen} />}
      <g class="arcs step-3">
        {query &&
          columns.map(({ weight, token, isMasked }, i) =>
            isMasked || (i === place && weight < least) || (columns.length > many && weight < leastOfMany) ? null : (
              <path
                key={token}
                class="look-arc"
                d={arc(query, at(i), wraps ? 40 : most)}
                pathLength={1}
                style={{ strokeWidth: `${0.8 + 12 * weight}px`, strokeOpacity: (0.14 + 0.66 * weight).toFixed(2) }}
              />
            ),
          )}
      </g>
    </svg>
  );
}

function Rows({ now, layout, isStacked, seen }: Omit<Props, 'wraps'>) {
  const { columns, query, place } = now;
  const { columnWidth, width } = layout;
  const strip = columnWidth - 12;
  const [products, product, key, value] = numbersOf(now);
  const left = (i: number) => layout.columns[i]! - strip / 2;
  const flow = (from: Point) => (isStacked ? dropTo(from, { x: 75, y: figureHeight + 4 }) : flowTo(from, { x: width + 58, y: sumAt + 10 }));
  return (
    <>
      {lines.map((y) => (
        <line key={y} class="rule" x1={0} x2={width} y1={y} y2={y} />
      ))}
      {columns.map((column, i) =>
        layout.columns[i]! < seen[0] || layout.columns[i]! > seen[1] ? null : (
          <g key={column.token} class={i === place ? 'column of-the-query' : 'column'}>
            <g class="step-1">
              <Strip kind="key" values={column.key} x={left(i)} y={rows.key} width={strip} height={stripHeight} most={key} />
            </g>
            <g class="step-2">
              <text class="score" x={layout.columns[i]} y={rows.score + 14}>
                <Counted value={column.score} step={2} write={scoreShown} />
              </text>
              <Strip kind="signed" values={products[i]!} x={left(i)} y={rows.score + 21} width={strip} height={6} most={product} />
            </g>
            <g class="step-3">
              <text class={isLarge(column.weight) ? 'weight large' : 'weight'} x={layout.columns[i]} y={rows.weight + 16}>
                <Counted value={column.weight} step={3} write={percent} />
              </text>
              <rect class="weight-room" x={left(i)} y={rows.bar} width={strip} height={6} rx={3} />
              <rect class="weight-bar" x={left(i)} y={rows.bar} height={6} rx={3} style={{ width: `${strip * column.weight}px` }} />
            </g>
            <g class="step-4" style={{ opacity: 0.22 + 0.78 * Math.min(1, 1.3 * column.weight) }}>
              <Strip kind="value" values={column.value} x={left(i)} y={rows.value} width={strip} height={stripHeight} most={value} />
            </g>
            {column.weight >= 0.05 && (
              <path
                class="passing step-4"
                d={flow({ x: layout.columns[i]!, y: rows.value + stripHeight + 4 })}
                pathLength={1}
                style={{ strokeWidth: `${1 + 8 * column.weight}px` }}
              />
            )}
          </g>
        ),
      )}
      <g class="asking" style={{ '--from': `${left(0)}px`, '--to': `${left(columns.length - 1)}px` }}>
        <Strip kind="query" values={query} x={0} y={rows.key - stripHeight - 3} width={strip} height={stripHeight} most={largest(query)} />
      </g>
    </>
  );
}
