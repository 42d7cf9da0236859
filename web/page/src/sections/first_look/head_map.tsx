import type { Tensor } from 'attn';
import { useMemo } from 'preact/hooks';

/** Weights from the first number on are drawn, with the opacity of the second. */
const levels = [
  [0.08, 0.3],
  [0.2, 0.4],
  [0.5, 1],
] as const;

/** Cells along a side: a long text shows the largest weight in each. */
const most = 24;

/** One path for each level. */
function pathsOf({ data, dims }: Tensor, head: number): readonly string[] {
  const length = dims[3]!;
  const size = Math.min(length, most);
  const largest = new Float32Array(size * size);
  for (let row = 0, at = head * length * length; row < length; ++row)
    for (let column = 0; column < length; ++column, ++at) {
      const cell = Math.floor((row * size) / length) * size + Math.floor((column * size) / length);
      if (data[at]! > largest[cell]!) largest[cell] = data[at]!;
    }
  const scale = length / size;
  return levels.map(([from]) =>
    Array.from(largest, (weight, i) =>
      weight < from ? '' : `M${scale * (i % size)} ${scale * Math.floor(i / size)}h${scale}v${scale}h${-scale}z`,
    ).join(''),
  );
}

/** The attention of a head as a picture of some pixels; weights (1,H,L,L). */
export function HeadMap({ weights, head }: { weights: Tensor | undefined; head: number }) {
  const isThere = weights !== undefined && head < weights.dims[1]!;
  const paths = useMemo(() => (isThere ? pathsOf(weights, head) : []), [weights, head]);
  const length = weights?.dims[3] ?? 1;
  return (
    <svg viewBox={`0 0 ${length} ${length}`} preserveAspectRatio="none" aria-hidden="true">
      {paths.map((d, i) => (
        <path key={i} fill-opacity={levels[i]![1]} d={d} />
      ))}
    </svg>
  );
}
