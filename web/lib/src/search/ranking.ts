/**
 * Returns the largest first and of equal scores the lowest index first; NaN counts as less than every number. A binary heap
 * holds the best so far, with the worst of them at its root.
 */
export function best(scores: ArrayLike<number>, count: number, isWanted: (index: number) => boolean = () => true): number[] {
  const heap: number[] = [];
  const isWorse = (a: number, b: number) => scores[a]! < scores[b]! || (scores[a] === scores[b] && a > b) || Number.isNaN(scores[a]);
  const sink = () => {
    for (let at = 0; ;) {
      let worst = at;
      for (const child of [2 * at + 1, 2 * at + 2]) if (child < heap.length && isWorse(heap[child]!, heap[worst]!)) worst = child;
      if (worst === at) return;
      [heap[at], heap[worst], at] = [heap[worst]!, heap[at]!, worst];
    }
  };
  for (let i = 0; i < scores.length && count > 0; ++i) {
    if (heap.length === count && !isWorse(heap[0]!, i)) continue;
    if (!isWanted(i)) continue;
    if (heap.length === count) {
      heap[0] = i;
      sink();
      continue;
    }
    let at = heap.push(i) - 1;
    for (let parent; at > 0 && isWorse(heap[at]!, heap[(parent = (at - 1) >> 1)]!); at = parent)
      [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
  }
  return heap.sort((a, b) => (isWorse(a, b) ? 1 : -1));
}

/** Weakens the first ranks of each list (Cormack et al. 2009, who found 60 to be best or close to it). */
const rankOffset = 60;

/** Reciprocal rank fusion: score = Σ 1 / (60 + rank), with rank 1 for the first of a list. */
export function fused(lists: readonly (readonly number[])[]): { readonly row: number; readonly score: number }[] {
  const scores = new Map<number, number>();
  for (const list of lists) list.forEach((row, i) => scores.set(row, (scores.get(row) ?? 0) + 1 / (rankOffset + i + 1)));
  // Stable: of equal scores, that of the first list is first.
  return Array.from(scores, ([row, score]) => ({ row, score })).sort((a, b) => b.score - a.score);
}
