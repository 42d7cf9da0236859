/** Numbers as a row of cells in the colour of their kind: the darker, the larger. For SVG. */

export type Kind = 'query' | 'key' | 'value';

export interface StripProps {
  readonly kind: Kind;
  readonly values: ArrayLike<number>;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** The number that is drawn darkest. */
  readonly most: number;
}

export const largest = (values: ArrayLike<number>): number => Array.from(values).reduce((most, value) => Math.max(most, Math.abs(value)), 0);

export function Strip({ kind, values, x, y, width, height, most }: StripProps) {
  const step = width / values.length;
  const gap = Math.min(0.6, step / 6);
  return (
    <g class={`strip of-${kind}`}>
      {Array.from(values, (value, i) => (
        <rect
          key={i}
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
