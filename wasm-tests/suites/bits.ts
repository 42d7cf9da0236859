/**
 * Bit identity with the native 4-lane build. Each of 1200 random forwards, configuration and data, follows from integers alone; its results are hashed.
 * native-tests/digest/main.cpp makes the same calls through the C++ library and prints the same hashes, one a line. Change both together.
 *
 * Forward i draws from splitmix32 (support/generator.ts) seeded with 0x5eed0000 + i, in the order in which the code below draws: every draw is a
 * statement of its own, and conditions never skip a draw unless they skip a whole tensor. Kinds by i % 8: 0-3 scaledDotProductAttention,
 * 4-5 MultiHeadAttention, 6 linear, 7 softmax.
 *   below(n) = floor(next · n / 2^32);  unit = (next >> 8) / 2^23 - 1, exact in float32.
 *   length: k = below(8), n = below(24); 4n where k is 0, else n + 1.
 *   values(count, factor): factor · 2^below(3) times unit, count times; then, where below(16) is 0 and count is not, the element below(count) becomes
 *   one of NaN, Inf, -Inf, -0, 2^-149, 3e38.
 * Hash: FNV-1a over 32-bit words (each NaN counts as 0x7fc00000), per tensor its number of elements first; then h ^= h >> 15.
 */
import type { Attn, AttentionOptions, AttentionResult, Mask, Tensor, TraceName } from 'attn';
import { assert } from 'chai';
import { Generator } from '../support/generator.ts';
import { bytes, host, loadHere } from '../support/host.ts';
import { product, words } from '../support/tensors.ts';

export const forwards = 1200;

const specials = [NaN, Infinity, -Infinity, -0, 2 ** -149, 3e38];
const schemes = ['torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal', 'normal'] as const;
const policies = ['zero', 'nan', 'uniform'] as const;
const traceNames: readonly TraceName[] = [
  'q_proj',
  'k_proj',
  'v_proj',
  'q',
  'k',
  'v',
  'scores',
  'masked_scores',
  'probabilities',
  'weights',
  'weighted_values',
  'context',
  'merged',
  'output',
];

class Hash {
  #h = 0x811c9dc5;
  #word(w: number): void {
    this.#h = Math.imul(this.#h ^ w, 0x01000193);
  }
  add(t: Tensor): void {
    this.#word(t.data.length);
    for (const w of words(t)) this.#word(w);
  }
  text(): string {
    return ((this.#h ^ (this.#h >>> 15)) >>> 0).toString(16).padStart(8, '0');
  }
}

function length(g: Generator): number {
  const k = g.below(8);
  const n = g.below(24);
  return k === 0 ? 4 * n : n + 1;
}

function values(g: Generator, dims: readonly number[], factor: number): Tensor {
  const count = product(dims);
  const scale = factor * 2 ** g.below(3);
  const data = new Float32Array(count);
  for (let i = 0; i < count; i++) data[i] = g.unit() * scale;
  const special = g.below(16);
  if (special === 0 && count > 0) {
    const at = g.below(count);
    data[at] = specials[g.below(6)];
  }
  return { data, dims };
}

/** Masks and the rest of the options, for a call whose scores are (B,H,L,S); forms counts the ranks of mask that fit the inputs. */
function options(g: Generator, [B, H, L, S]: readonly number[], forms: number, batched: boolean): AttentionOptions {
  const out: { -readonly [K in keyof AttentionOptions]: AttentionOptions[K] } = {};
  const kind = g.below(4);
  const form = g.below(forms);
  const b = g.below(2) ? B : 1;
  const h = g.below(2) ? H : 1;
  const l = g.below(2) ? L : 1;
  if (kind > 0) {
    const dims = [[S], [l, S], [b, l, S], [b, h, l, S]][form];
    const count = product(dims);
    let data: Float32Array | Uint8Array;
    if (kind === 3) {
      data = new Float32Array(count);
      for (let i = 0; i < count; i++) {
        const blocked = g.below(4) === 0;
        data[i] = blocked ? -Infinity : g.unit() * 2;
      }
    } else {
      data = new Uint8Array(count);
      for (let i = 0; i < count; i++) data[i] = g.below(3) === 0 ? 0 : 1;
    }
    out.mask = { kind: (['attend', 'block', 'additive'] as const)[kind - 1], data, dims } satisfies Mask;
  }
  const padded = g.below(3) === 0;
  if (padded && batched) {
    const data = new Uint8Array(B * S);
    for (let i = 0; i < data.length; i++) data[i] = g.below(5) === 0 ? 1 : 0;
    out.keyPaddingMask = { kind: 'block', data, dims: [B, S] };
  }
  out.isCausal = g.below(3) === 0;
  out.fullyMasked = policies[g.below(3)];
  const hasScale = g.below(4) === 0;
  const scale = g.unit();
  if (hasScale) out.scale = scale;
  out.needWeights = g.below(2) === 0;
  out.averageWeights = g.below(2) === 0;
  const traced = g.below(6) === 0;
  if (traced) out.trace = traceNames;
  return out;
}

function addResult(hash: Hash, r: AttentionResult): void {
  hash.add(r.output);
  if (r.weights) hash.add(r.weights);
  for (const name of traceNames) {
    const t = r.trace?.[name];
    if (t) hash.add(t);
  }
}

function attention(g: Generator, attn: Attn, hash: Hash): void {
  const rank = 2 + g.below(3);
  const b = 1 + g.below(3);
  const kv = 1 + g.below(3);
  const grouped = g.below(3) === 0;
  const group = 2 + g.below(2);
  const L = length(g);
  const S = length(g);
  const D = 1 + g.below(40);
  const Dv = 1 + g.below(40);
  const B = rank >= 3 ? b : 1;
  const kvHeads = rank === 4 ? kv : 1;
  const H = rank === 4 && grouped ? kvHeads * group : kvHeads;
  const dims = (heads: number, rows: number, width: number) => [B, heads, rows, width].filter((_, i) => i >= 2 || (i === 0 ? rank >= 3 : rank === 4));
  const q = values(g, dims(H, L, D), 0.5);
  const k = values(g, dims(kvHeads, S, D), 0.5);
  const v = values(g, dims(kvHeads, S, Dv), 1);
  addResult(hash, attn.scaledDotProductAttention(q, k, v, { ...options(g, [B, H, L, S], rank, rank >= 3), enableGqa: H !== kvHeads }));
}

function multiHead(g: Generator, attn: Attn, hash: Hash): void {
  const H = 1 + g.below(4);
  const width = 1 + g.below(16);
  const own = g.below(3) === 0;
  const kdim = 1 + g.below(40);
  const vdim = 1 + g.below(40);
  const bias = g.below(4) !== 0;
  const outProj = g.below(4) !== 0;
  const hasScale = g.below(4) === 0;
  const scale = g.unit();
  const scheme = schemes[g.below(6)];
  const seed = g.next();
  const std = (1 + g.below(64)) / 64;
  const batched = g.below(4) !== 0;
  const b = 1 + g.below(3);
  const L = length(g);
  const other = length(g);
  const drawnCross = g.below(2) === 0;
  const cross = drawnCross || own;
  const E = H * width;
  const B = batched ? b : 1;
  const S = cross ? other : L;
  const mha = new attn.MultiHeadAttention({
    embedDim: E,
    numHeads: H,
    bias,
    outProj,
    ...(own ? { kdim, vdim } : {}),
    ...(hasScale ? { scale } : {}),
  });
  mha.initialize({ scheme, seed, std });
  const state = mha.stateDict();
  for (const name of [...state.keys()].sort()) hash.add(state.get(name)!);
  const dims = (rows: number, columns: number) => (batched ? [B, rows, columns] : [rows, columns]);
  const x = values(g, dims(L, E), 1);
  const key = cross ? values(g, dims(S, own ? kdim : E), 1) : undefined;
  const value = cross ? values(g, dims(S, own ? vdim : E), 1) : undefined;
  addResult(hash, mha.forward(x, key, value, options(g, [B, H, L, S], batched ? 4 : 2, batched)));
  mha.dispose();
}

function linear(g: Generator, attn: Attn, hash: Hash): void {
  const rank = 1 + g.below(4);
  const dims: number[] = [];
  for (let i = 1; i < rank; i++) dims.push(1 + g.below(6));
  const K = 1 + g.below(130);
  const N = 1 + g.below(70);
  const biased = g.below(2) === 0;
  const x = values(g, [...dims, K], 1);
  const w = values(g, [N, K], 1);
  const b = values(g, [N], 1);
  hash.add(biased ? attn.linear(x, w, b) : attn.linear(x, w));
}

function softmax(g: Generator, attn: Attn, hash: Hash): void {
  const rank = 1 + g.below(4);
  const dims: number[] = [];
  for (let i = 0; i < rank; i++) dims.push(1 + g.below(20));
  const dim = g.below(2 * rank) - rank;
  hash.add(attn.softmax(values(g, dims, 8), dim));
}

/** The hashes of all forwards, as the native program prints them. */
export function digest(attn: Attn): string[] {
  return Array.from({ length: forwards }, (_, i) => {
    const g = new Generator(0x5eed0000 + i);
    const hash = new Hash();
    const kind = i % 8;
    (kind < 4 ? attention : kind < 6 ? multiHead : kind === 6 ? linear : softmax)(g, attn, hash);
    return hash.text();
  });
}

describe('bits', () => {
  let attn: Attn;
  let first: string[];
  before(async () => {
    attn = await loadHere();
    first = digest(attn);
  });
  after(() => attn.dispose());

  it('a second run gives the same bits', () => assert.deepEqual(digest(attn), first));

  // Relaxed SIMD fuses multiply and add where the machine can: within tolerance, not to the bit.
  if (host.variant === 'simd')
    it(`${forwards} random forwards: the same bits as the native 4-lane build`, async () => {
      const native = new TextDecoder()
        .decode(await bytes('digest/digest.txt'))
        .trim()
        .split('\n');
      assert.equal(native.length, forwards, 'lines of the native program');
      const different = native.flatMap((line, i) => (line === first[i] ? [] : [i]));
      host.note(`bits: ${different.length} of ${forwards} forwards differ from the native 4-lane build`);
      assert.isEmpty(different, `${different.length} forwards differ, the first: ${different.slice(0, 20)}`);
    });
});
