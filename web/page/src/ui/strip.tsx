/** Numbers as a row of cells in the colour of their kind, or of their signs: the darker, the larger. */
import { Fragment } from 'preact';
import '../styles/strip.css';

export type Kind = 'query' | 'key' | 'value' | 'signed';

export interface StripProps {
  readonly kind: Kind;
  readonly values: ArrayLike<number>;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly most: number;
}

export const largest = (values: ArrayLike<number>): number => Array.from(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);

/** For SVG. */
export function Strip({ kind, values, x, y, width, height, most }: StripProps) {
  const step = width / values.length;
  const gap = Math.min(0.6, step / 6);
  return (
    <g class={`strip of-${kind}`}>
      {Array.from(values, (value, i) => (
        <rect
          key={i}
          class={kind === 'signed' ? (value < 0 ? 'minus' : 'plus') : undefined}
          x={x + i * step}
          y={y}
          width={step - gap}
          height={height}
          fill-opacity={(0.07 + 0.93 * Math.min(1, Math.abs(value) / (most || 1))).toFixed(2)}
        />
      ))}
    </g>
  );
}

export interface StripRow {
  readonly name: string;
  /** Default: the name, if no two rows share one. */
  readonly key?: number;
  readonly values: ArrayLike<number>;
  /** Default: the largest of this row. */
  readonly most?: number;
}

/** Named rows of signed numbers below each other, as wide as their place; the text next to them says what they show. */
export const StripRows = ({ rows }: { rows: readonly StripRow[] }) => (
  <div class="strip-rows" aria-hidden="true">
    {rows.map(({ name, key = name, values, most = largest(values) }) => (
      <Fragment key={key}>
        <span class="strip-name">{name}</span>
        <svg viewBox={`0 0 ${values.length} 1`} preserveAspectRatio="none">
          <Strip kind="signed" values={values} x={0} y={0} width={values.length} height={1} most={most} />
        </svg>
      </Fragment>
    ))}
  </div>
);
