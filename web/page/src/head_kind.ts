/** What a head mostly does, in words; for the thumbnails' labels. */
export function headKind(weights: Float32Array, size: number): string {
  const mean = (column: (row: number) => number) => {
    let sum = 0;
    let rows = 0;
    for (let i = 0; i < size; ++i) {
      const j = column(i);
      if (j < 0 || j >= size) continue;
      sum += weights[i * size + j]!;
      rows += 1;
    }
    return rows ? sum / rows : 0;
  };
  const kinds: readonly (readonly [string, number])[] = [
    ['the word before', mean((i) => i - 1)],
    ['the next word', mean((i) => i + 1)],
    ['the word itself', mean((i) => i)],
    ['the start mark', mean(() => 0)],
    ['the end mark', mean(() => size - 1)],
  ];
  const [name, share] = kinds.reduce((best, kind) => (kind[1] > best[1] ? kind : best));
  return share > 0.5 ? `mostly ${name}` : share > 0.27 ? `often ${name}` : 'spread out';
}
