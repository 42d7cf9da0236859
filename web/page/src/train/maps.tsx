import { capitalized, headName } from '../formats/names.ts';
import { LevelMap } from '../ui/level_map.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { fixed } from '../formats/numbers.ts';

export interface HeadMap {
  readonly name: string;
  /** (L,L) */
  readonly weights: Float32Array;
  readonly note: string;
  readonly brightest: number;
  readonly isExpected?: boolean;
}

const largestOf = (weights: Float32Array): number => weights.reduce((a, b) => Math.max(a, b), 0);

export function mapsOf(attentions: readonly Float32Array[], length: number, expected: Float32Array | undefined): readonly HeadMap[] {
  const size = length * length;
  return attentions.flatMap((layer, l) =>
    Array.from({ length: layer.length / size }, (_, h) => {
      const weights = layer.subarray(h * size, (h + 1) * size);
      const note = expected ? `${Math.round(100 * overlap(weights, expected, length))} % as expected` : `brightest: ${fixed(largestOf(weights), 2)}`;
      return { name: capitalized(headName(l, h)), weights, note, brightest: expected ? 1 : largestOf(weights) };
    }),
  );
}

/** Mean overlap of the rows with a non-empty expectation; 1 for equal maps. */
export function overlap(weights: Float32Array, expected: Float32Array, length: number): number {
  let [sum, rows] = [0, 0];
  for (let i = 0; i < length; ++i) {
    const [row, wanted] = [weights, expected].map((all) => all.subarray(i * length, (i + 1) * length)) as [Float32Array, Float32Array];
    if (!wanted.some((value) => value > 0)) continue;
    ++rows;
    sum += row.reduce((total, value, j) => total + Math.min(value, wanted[j]!), 0);
  }
  return rows > 0 ? sum / rows : 0;
}

export function MapPicture({
  of: { name, weights, note, brightest, isExpected },
  tokens,
  in: of,
}: {
  of: HeadMap;
  tokens: readonly string[];
  in?: string | undefined;
}) {
  const labels = tokens.map((token, i) => (
    <span key={i}>
      <span>{token}</span>
    </span>
  ));
  return (
    <figure class={['train-map', isExpected && 'expected', tokens.some((token) => token.length > 1) && 'words'].filter(Boolean).join(' ')}>
      <figcaption>
        {name}
        <small>{note}</small>
      </figcaption>
      <div class="train-map-columns" aria-hidden="true">
        {labels}
      </div>
      <div class="train-map-rows" aria-hidden="true">
        {labels}
      </div>
      <LevelMap levels={weights} size={tokens.length} brightest={brightest} name={[name, of, note].filter(Boolean).join(', ')} />
    </figure>
  );
}

export function MapTable({ of: { name, weights }, tokens }: { of: HeadMap; tokens: readonly string[] }) {
  const count = tokens.length;
  const axis = (kind: string) => ({ kind, count, label: (i: number) => tokens[i]! });
  return (
    <NumberTable
      name={`${name}, weights`}
      rows={axis('query')}
      columns={axis('key')}
      cell={(i, j) => fixed(weights[i * count + j] ?? 0, 4)}
      tint={(i, j) => weights[i * count + j] ?? 0}
    />
  );
}
