/** Above this number, sorting all values is faster. */
const mostInserted = 100;

/** The first of equal ones first. With `wanted`, only of these. */
export function largest(values: Float32Array, count: number, wanted?: ReadonlySet<number>): number[] {
  const best: number[] = [];
  if (count > mostInserted) {
    for (const i of values.keys()) if (!wanted || wanted.has(i)) best.push(i);
    return best.sort((a, b) => values[b]! - values[a]! || a - b).slice(0, count);
  }
  values.forEach((value, i) => {
    if (wanted && !wanted.has(i)) return;
    if (best.length === count && value <= values[best[count - 1]!]!) return;
    let at = best.length;
    while (at > 0 && values[best[at - 1]!]! < value) --at;
    best.splice(at, 0, i);
    best.length = Math.min(best.length, count);
  });
  return best;
}
