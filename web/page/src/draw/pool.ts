/** (from,from) -> (to,to), to ≤ from: the maximum, so that no bright spot is lost. */
export function poolMax(weights: Float32Array, from: number, to: number): Float32Array {
  if (from === to) return weights.slice();
  const result = new Float32Array(to * to);
  const place = Int32Array.from({ length: from }, (_, i) => Math.floor((i * to) / from));
  for (let i = 0; i < from; ++i) {
    const row = place[i]! * to;
    for (let j = 0; j < from; ++j) {
      const at = row + place[j]!;
      const weight = weights[i * from + j]!;
      if (weight > result[at]!) result[at] = weight;
    }
  }
  return result;
}
