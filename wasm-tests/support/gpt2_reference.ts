/** GPT-2 in float64, with a hook at every activation: the reference of the suite lens. */
import type { TextModel } from 'attn';
import type { PatchSite } from 'attn/lens';

type Matrix = Float64Array[];
export type Site = 'resid_pre' | 'z' | 'attn_out' | 'mlp_out' | 'resid_post' | 'pattern';
/** May change the values (L rows); `pattern` has a row per head and query. */
export type Hook = (layer: number, site: Site, values: Matrix) => void;

const gelu = (x: number) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3)));

/** Returns a function from ids to logits (L,V). */
export function reference(model: TextModel): (ids: readonly number[], hook?: Hook) => Matrix {
  const weights = new Map([...model.stateDict()].map(([name, tensor]) => [name.replace(/^transformer\./, ''), tensor]));
  const { n_head: H, n_layer: layers, layer_norm_epsilon: epsilon } = model.config as Record<string, number>;
  const values = (name: string) => weights.get(name)!.data;

  const norm = (x: Matrix, name: string): Matrix =>
    x.map((row) => {
      const mean = row.reduce((sum, value) => sum + value, 0) / row.length;
      const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
      return row.map((value, e) => ((value - mean) / Math.sqrt(variance + epsilon)) * values(`${name}.weight`)[e] + values(`${name}.bias`)[e]);
    });
  const linear = (x: Matrix, name: string): Matrix => {
    const [weight, bias] = [values(`${name}.weight`), values(`${name}.bias`)];
    return x.map((row) => Float64Array.from(bias, (b, o) => row.reduce((sum, value, i) => sum + value * weight[i * bias.length + o], b)));
  };
  const add = (a: Matrix, b: Matrix): Matrix => a.map((row, i) => row.map((value, e) => value + b[i][e]));

  function attention(x: Matrix, layer: number, hook: Hook): Matrix {
    const qkv = linear(x, `h.${layer}.attn.c_attn`);
    const E = x[0].length;
    const D = E / H;
    const z = x.map(() => new Float64Array(E));
    const pattern: Matrix = [];
    for (let head = 0; head < H; head++)
      for (let i = 0; i < x.length; i++) {
        const scores = x.map((_, j) => {
          if (j > i) return -Infinity;
          let score = 0;
          for (let d = head * D; d < (head + 1) * D; d++) score += qkv[i][d] * qkv[j][E + d];
          return score / Math.sqrt(D);
        });
        const most = Math.max(...scores);
        const powers = scores.map((score) => Math.exp(score - most));
        const sum = powers.reduce((all, power) => all + power, 0);
        pattern.push(Float64Array.from(powers, (power) => power / sum));
      }
    hook(layer, 'pattern', pattern);
    for (let head = 0; head < H; head++)
      for (let i = 0; i < x.length; i++)
        for (let j = 0; j <= i; j++) for (let d = head * D; d < (head + 1) * D; d++) z[i][d] += pattern[head * x.length + i][j] * qkv[j][2 * E + d];
    hook(layer, 'z', z);
    const out = linear(z, `h.${layer}.attn.c_proj`);
    hook(layer, 'attn_out', out);
    return out;
  }

  return (ids, hook = () => {}) => {
    const [words, places] = [values('wte.weight'), values('wpe.weight')];
    const E = words.length / weights.get('wte.weight')!.dims[0];
    let x: Matrix = ids.map((id, i) => Float64Array.from({ length: E }, (_, e) => words[id * E + e] + places[i * E + e]));
    for (let layer = 0; layer < layers; layer++) {
      hook(layer, 'resid_pre', x);
      x = add(x, attention(norm(x, `h.${layer}.ln_1`), layer, hook));
      const hidden = linear(norm(x, `h.${layer}.ln_2`), `h.${layer}.mlp.c_fc`).map((row) => row.map(gelu));
      const out = linear(hidden, `h.${layer}.mlp.c_proj`);
      hook(layer, 'mlp_out', out);
      x = add(x, out);
      hook(layer, 'resid_post', x);
    }
    return norm(x, 'ln_f').map((row) =>
      Float64Array.from({ length: words.length / E }, (_, id) => row.reduce((sum, value, e) => sum + value * words[id * E + e], 0)),
    );
  };
}

export const siteNames: Readonly<Record<PatchSite, Site>> = { residual: 'resid_pre', attention: 'attn_out', mlp: 'mlp_out', head: 'z' };

/** Activations of the reference by layer, at one site. */
export function activations(run: ReturnType<typeof reference>, list: readonly number[], wanted: Site): Float64Array[][] {
  const all: Float64Array[][] = [];
  run(list, (layer, site, values) => {
    if (site === wanted) all[layer] = values.map((row) => row.slice());
  });
  return all;
}

/** A hook that moves one cell (position, or head at all positions) of a layer's site from its value by a share towards the clean one. */
export function towards(clean: Float64Array[][], layer: number, site: PatchSite, cell: number, heads: number, share: number): Hook {
  return (at, name, values) => {
    if (at !== layer || name !== siteNames[site]) return;
    values.forEach((row, i) => {
      const D = row.length / heads;
      row.forEach((value, e) => {
        if (site === 'head' ? Math.floor(e / D) === cell : i === cell) row[e] = value + share * (clean[layer][i][e] - value);
      });
    });
  };
}
