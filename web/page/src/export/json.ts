import { float32Text } from './csv.ts';
import type { Selection } from './selection.ts';

export function toJson({ shown: { places, weights }, facts }: Pick<Selection, 'shown' | 'facts'>): string {
  const size = places.length;
  const head = Object.entries({ ...facts, labels: places.map(({ label }) => label) }).map(
    ([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},\n`,
  );
  const rows = places.map((_, i) => `    [${Array.from(weights.subarray(i * size, (i + 1) * size), float32Text).join(', ')}]`);
  return `{\n${head.join('')}  "weights": [\n${rows.join(',\n')}\n  ]\n}\n`;
}
