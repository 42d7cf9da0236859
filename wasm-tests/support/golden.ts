/** Reads the golden files of testdata/ (its README says how they are made) and runs their cases. */
import type { Attn, AttentionOptions, Mask, MultiHeadAttentionOptions, Tensor } from 'attn';
import { assert } from 'chai';
import { bytes } from './host.ts';
import { assertClose, product, slice } from './tensors.ts';

export interface GoldenCase {
  readonly name: string;
  /** projected_attention: three linear layers of x, then attention. */
  readonly op: 'scaled_dot_product_attention' | 'multi_head_attention' | 'projected_attention';
  /** Of the module, and the names of its state. */
  readonly module?: MultiHeadAttentionOptions;
  readonly state?: readonly string[];
  readonly options: AttentionOptions;
  readonly inputs: readonly string[];
  readonly mask?: { readonly kind: Mask['kind']; readonly tensor: string };
  readonly keyPaddingMask?: { readonly kind: Mask['kind']; readonly tensor: string };
  /** Inputs that are not stored but follow from a seed. */
  readonly generated?: Readonly<Record<string, { kind: 'uniform' | 'normal'; seed: number; dims: readonly number[]; factor?: number }>>;
  /** Name -> max |torch float32 - float64|. */
  readonly expected: Readonly<Record<string, number>>;
  /** Large results: which rows of the last dimension are stored, and the sum over all. */
  readonly rows?: Readonly<Record<string, { dims: readonly number[]; rows: readonly number[]; sum: number }>>;
  readonly variance?: { readonly scores: number };
}

export interface GoldenFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly cases: readonly GoldenCase[];
}

export async function readGoldenFile(name: string): Promise<GoldenFile> {
  const file = await bytes(`testdata/${name}.safetensors`);
  const length = Number(new DataView(file.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  const metadata: Record<string, string> = header.__metadata__ ?? {};
  return { bytes: file, metadata, cases: metadata.cases ? JSON.parse(metadata.cases) : [] };
}

/** SEMANTICS: twice torch's own float32 error plus 1e-6 (assertClose multiplies by max(1, largest value)). */
export function tolerance(error: number): number {
  return 2 * error + 1e-6;
}

/** MurmurHash3's finaliser of seed · 0x9E3779B1 + index as a multiple of 2^-23 in [-1, 1): the generator of tools/goldens. */
function unit(seed: number, index: number): number {
  let h = (Math.imul(seed, 0x9e3779b1) + index) >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  h = (h ^ (h >>> 16)) >>> 0;
  return (h >>> 8) / 8388608 - 1;
}

function generate({ kind, seed, dims, factor = 1 }: NonNullable<GoldenCase['generated']>[string]): Tensor {
  const data = new Float32Array(product(dims));
  for (let i = 0; i < data.length; i++)
    if (kind === 'uniform') data[i] = unit(seed, i) * factor;
    else {
      // Half the sum of twelve uniforms: close to N(0, 1), and exact in a double.
      let sum = 0;
      for (let j = 0; j < 12; j++) sum += unit(seed, 12 * i + j);
      data[i] = 0.5 * sum;
    }
  return { data, dims };
}

/** Runs one case and compares everything it names. */
export function runCase(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase): void {
  const get = (name: string): Tensor => {
    const made = c.generated?.[name];
    const t = made ? generate(made) : tensors.get(`${c.name}/${name}`);
    if (!t) assert.fail(`${c.name}: the file has no tensor ${name}`);
    return t;
  };
  const toMask = (m: GoldenCase['mask']): Mask | undefined => m && { kind: m.kind, data: get(m.tensor).data, dims: get(m.tensor).dims };
  const traced = Object.keys(c.expected).filter((name) => name !== 'weights') as AttentionOptions['trace'];
  const options: AttentionOptions = {
    ...c.options,
    ...(c.op === 'projected_attention' && { trace: traced }),
    mask: toMask(c.mask),
    keyPaddingMask: toMask(c.keyPaddingMask),
  };
  const [query, key, value] = ['query', 'key', 'value'].map((name) => (c.inputs.includes(name) ? get(name) : undefined));
  let result;
  if (c.op === 'scaled_dot_product_attention') result = attn.scaledDotProductAttention(query!, key!, value!, options);
  else if (c.op === 'projected_attention') {
    const has = (name: string) => c.state!.includes(name);
    const [q, k, v] = ['q', 'k', 'v'].map((p) => {
      const [weight, bias] = [`${p}_proj.weight`, `${p}_proj.bias`];
      return attn.linear(get('x'), get(`state.${weight}`), has(bias) ? get(`state.${bias}`) : undefined);
    });
    result = attn.scaledDotProductAttention(q, k, v, options);
  } else {
    const mha = new attn.MultiHeadAttention(c.module!);
    mha.loadStateDict(new Map(c.state!.map((name) => [name, get(`state.${name}`)])));
    result = mha.forward(query!, key, value ?? key, options);
    mha.dispose();
  }
  assert.isNotEmpty(Object.keys(c.expected), `${c.name} expects something`);
  for (const [name, error] of Object.entries(c.expected)) {
    const actual = name === 'output' ? result.output : name === 'weights' ? result.weights : result.trace?.[name as keyof typeof result.trace];
    const what = `${c.name}: ${name}`;
    const stored = get(`expected.${name}`);
    const part = c.rows?.[name];
    if (!part) assertClose(actual, stored, tolerance(error), what);
    else {
      if (!actual) assert.fail(`${what}: missing`);
      assert.deepEqual([...actual.dims], [...part.dims], `${what}: dims`);
      const width = part.dims[part.dims.length - 1];
      const flat = { data: actual.data, dims: [actual.data.length / width, width] };
      part.rows.forEach((row, i) => assertClose(slice(flat, 0, row, row + 1), slice(stored, 0, i, i + 1), tolerance(error), `${what}, row ${row}`));
      const largest = actual.data.reduce((a, x) => Math.max(a, Number.isFinite(x) ? Math.abs(x) : 0), 1);
      const sum = actual.data.reduce((a, x) => a + (Number.isFinite(x) ? x : 0), 0);
      assert.isAtMost(Math.abs(sum - part.sum), tolerance(error) * largest * actual.data.length, `${what}: sum`);
    }
  }
  if (c.variance) {
    const scores = result.trace!.scores!.data;
    const mean = scores.reduce((a, x) => a + x, 0) / scores.length;
    const variance = scores.reduce((a, x) => a + (x - mean) ** 2, 0) / scores.length;
    // Over n or over n - 1: the golden's way of counting is within this.
    assert.closeTo(variance / c.variance.scores, 1, 1e-4, `${c.name}: variance of the scores`);
  }
}
