/** Reads the golden files of testdata/ (see its README) and runs their cases. */
import {
  type Activation,
  type Attn,
  type AttentionResult,
  type EncoderResult,
  type Mask,
  readSafetensorsHeader,
  type Tensor,
  type TraceName,
} from 'attn';
import { assert } from 'chai';
import { bytes } from './host.ts';
import { assertClose, product, take } from './tensors.ts';

export interface GoldenCase {
  readonly name: string;
  /** A name of `runners`. */
  readonly op: string;
  /** Options of the constructor, and names of its state. */
  readonly module?: Readonly<Record<string, unknown>>;
  readonly state?: readonly string[];
  readonly options: Readonly<Record<string, unknown>>;
  readonly inputs: readonly string[];
  readonly mask?: { readonly kind: Mask['kind']; readonly tensor: string };
  readonly keyPaddingMask?: { readonly kind: Mask['kind']; readonly tensor: string };
  /** For text classifiers. */
  readonly ids?: { readonly data: readonly number[]; readonly dims: readonly number[] };
  /** For human readers. */
  readonly texts?: unknown;
  readonly vocabulary?: unknown;
  /** Inputs generated from a seed instead of stored. */
  readonly generated?: Readonly<Record<string, { kind: 'uniform' | 'normal'; seed: number; dims: readonly number[]; factor?: number }>>;
  readonly expected: Readonly<Record<string, number>>;
  /** For large results: the stored rows of the last dimension, and the sum over all. */
  readonly rows?: Readonly<Record<string, { dims: readonly number[]; rows: readonly number[]; sum: number }>>;
  readonly variance?: { readonly scores: number };
  /** For gradients: the file with the forward case of the same name, which has the inputs. */
  readonly of?: string;
}

export interface GoldenFile {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly metadata: Readonly<Record<string, string>>;
  readonly cases: readonly GoldenCase[];
}

export async function readGoldenFile(name: string): Promise<GoldenFile> {
  const file = await bytes(`testdata/${name}.safetensors`);
  const { metadata } = readSafetensorsHeader(file);
  return { bytes: file, metadata, cases: metadata.cases ? JSON.parse(metadata.cases) : [] };
}

/** Twice torch's own float32 error plus 1e-6 (assertClose multiplies by max(1, largest value)). */
export function tolerance(error: number): number {
  return 2 * error + 1e-6;
}

/**
 * Hashes seed · 0x9E3779B1 + index by MurmurHash3's finaliser to a multiple of 2^-23 in [-1, 1), like
 * testdata/make/goldens.
 */
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
      // Half the sum of twelve uniforms is close to N(0, 1), and exact in a double.
      let sum = 0;
      for (let j = 0; j < 12; j++) sum += unit(seed, 12 * i + j);
      data[i] = 0.5 * sum;
    }
  return { data, dims };
}

export type Results = Map<string, Tensor>;

const known = new Set([
  ...['name', 'op', 'module', 'state', 'options', 'inputs', 'mask', 'keyPaddingMask', 'ids', 'texts', 'vocabulary', 'generated', 'expected', 'rows'],
  ...['variance', 'of'],
]);

/** A case during its run: parts of the file that no runner reads are errors afterwards. */
export class Running {
  readonly attn: Attn;
  readonly case: GoldenCase;
  readonly #tensors: Map<string, Tensor>;
  readonly #inputs: Set<string>;
  readonly #options: Set<string>;
  readonly #state: Set<string>;

  constructor(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase) {
    this.attn = attn;
    this.case = c;
    this.#tensors = tensors;
    this.#inputs = new Set(c.inputs);
    this.#options = new Set(Object.keys(c.options));
    this.#state = new Set(c.state);
  }

  /** Returns a tensor from the file or from a seed. */
  stored(name: string): Tensor {
    const made = this.case.generated?.[name];
    const t = made ? generate(made) : this.#tensors.get(`${this.case.name}/${name}`);
    return t ?? assert.fail(`${this.case.name}: the file has no tensor ${name}`);
  }

  optional(name: string): Tensor | undefined {
    return this.#inputs.delete(name) ? this.stored(name) : undefined;
  }

  input(name: string): Tensor {
    return this.optional(name) ?? assert.fail(`${this.case.name}: no input ${name}`);
  }

  option<T>(name: string): T | undefined {
    this.#options.delete(name);
    return this.case.options[name] as T | undefined;
  }

  #mask(m: NonNullable<GoldenCase['mask']>): Mask {
    const { data, dims } = this.input(m.tensor);
    return { kind: m.kind, data, dims };
  }

  /** All options; the API refuses unknown ones. */
  options(): object {
    this.#options.clear();
    const { options, mask, keyPaddingMask } = this.case;
    return { ...options, ...(mask && { mask: this.#mask(mask) }), ...(keyPaddingMask && { keyPaddingMask: this.#mask(keyPaddingMask) }) };
  }

  /** Returns the tensors of the state with this prefix, which is removed. */
  state(prefix = ''): Map<string, Tensor> {
    const names = [...this.#state].filter((name) => name.startsWith(prefix));
    for (const name of names) this.#state.delete(name);
    return new Map(names.map((name) => [name.slice(prefix.length), this.stored(`state.${name}`)]));
  }

  assertAllRead(): void {
    const unread = [
      ...Object.keys(this.case).filter((name) => !known.has(name)),
      ...[...this.#inputs].map((name) => `input ${name}`),
      ...[...this.#options].map((name) => `option ${name}`),
      ...[...this.#state].map((name) => `state ${name}`),
    ];
    assert.isEmpty(unread, `${this.case.name}: parts that the runner does not use`);
  }
}

const output = (t: Tensor): Results => new Map([['output', t]]);

function attentionResults({ output, weights, trace }: AttentionResult): Results {
  return new Map(Object.entries({ ...trace, output, ...(weights && { weights }) }));
}

function encoderResults(r: EncoderResult & { logits?: Tensor }): Results {
  const all: Results = output(r.output);
  if (r.logits) all.set('logits', r.logits);
  r.attentions?.forEach((t, i) => all.set(`attentions.${i}`, t));
  r.hiddenStates?.forEach((t, i) => all.set(`hiddenStates.${i}`, t));
  for (const [layer, trace] of r.trace ?? []) for (const [name, t] of Object.entries(trace)) all.set(`trace.${layer}.${name}`, t);
  return all;
}

function encode(c: Running, name: 'TransformerEncoderLayer' | 'TransformerEncoder' | 'TransformerClassifier'): Results {
  const encoder = new c.attn[name](c.case.module as never);
  encoder.loadStateDict(c.state());
  const results = encoderResults(encoder.forward(c.input('x'), c.options()));
  encoder.dispose();
  return results;
}

const runners: Readonly<Record<string, (c: Running) => Results>> = {
  scaled_dot_product_attention: (c) =>
    attentionResults(c.attn.scaledDotProductAttention(c.input('query'), c.input('key'), c.input('value'), c.options())),
  projected_attention: (c) => {
    const state = c.state();
    const x = c.input('x');
    const [q, k, v] = ['q', 'k', 'v'].map((p) => c.attn.linear(x, state.get(`${p}_proj.weight`)!, state.get(`${p}_proj.bias`)));
    const trace = Object.keys(c.case.expected).filter((name) => name !== 'weights') as TraceName[];
    return attentionResults(c.attn.scaledDotProductAttention(q, k, v, { ...c.options(), trace }));
  },
  multi_head_attention: (c) => {
    const mha = new c.attn.MultiHeadAttention(c.case.module as never);
    mha.loadStateDict(c.state());
    const key = c.optional('key');
    const results = attentionResults(mha.forward(c.input('query'), key, c.optional('value') ?? key, c.options()));
    mha.dispose();
    return results;
  },
  additive_attention: (c) => {
    const [query, key, value, queryWeight, keyWeight, scoreWeight] = ['query', 'key', 'value', 'queryWeight', 'keyWeight', 'scoreWeight'].map(
      (name) => c.input(name),
    );
    const params = { queryWeight, keyWeight, scoreWeight, bias: c.optional('bias') };
    return attentionResults(c.attn.additiveAttention(query, key, value, params, c.options()));
  },
  general_attention: (c) =>
    attentionResults(c.attn.generalAttention(c.input('query'), c.input('key'), c.input('value'), { weight: c.input('weight') }, c.options())),
  linear: (c) => output(c.attn.linear(c.input('x'), c.input('weight'), c.optional('bias'))),
  softmax: (c) => output(c.attn.softmax(c.input('x'), c.option('dim'))),
  layer_norm: (c) => output(c.attn.layerNorm(c.input('x'), c.optional('weight'), c.optional('bias'), c.option('eps'))),
  rms_norm: (c) => output(c.attn.rmsNorm(c.input('x'), c.optional('weight'), c.option('eps'))),
  activation: (c) => output(c.attn.activation(c.input('x'), c.option<Activation>('name')!)),
  sinusoidal_positions: (c) => output(c.attn.sinusoidalPositions(c.option('length')!, c.option('width')!)),
  apply_rotary: (c) => output(c.attn.applyRotary(c.input('x'), c.options())),
  alibi_bias: (c) => output(c.attn.alibiBias(c.option('numHeads')!, c.option('length')!, c.option('keyLength'))),
  transformer_encoder_layer: (c) => encode(c, 'TransformerEncoderLayer'),
  transformer_encoder: (c) => encode(c, 'TransformerEncoder'),
  transformer_classifier: (c) => encode(c, 'TransformerClassifier'),
  embedding: (c) => {
    const embedding = new c.attn.Embedding(c.case.module as never);
    embedding.loadStateDict(c.state());
    const results = output(embedding.forward(c.option<number[]>('ids')!, c.option('dims')));
    embedding.dispose();
    return results;
  },
  sentiment_classifier: (c) => {
    const { embedding: table, ...rest } = c.case.module!;
    const embedding = new c.attn.Embedding(table as never);
    const classifier = new c.attn.TransformerClassifier(rest as never);
    embedding.loadStateDict(c.state('embedding.'));
    classifier.loadStateDict(c.state());
    const { data, dims } = c.case.ids!;
    const words = embedding.forward(Int32Array.from(data), dims);
    const positions = c.attn.sinusoidalPositions(dims[1], words.dims[2]).data;
    const x = { data: words.data.map((value, i) => value + positions[i % positions.length]), dims: words.dims };
    const results = encoderResults(classifier.forward(x, c.options()));
    embedding.dispose();
    classifier.dispose();
    return results;
  },
};

/** Runs a case and compares all of its expected results. */
export function runCase(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase): void {
  const running = new Running(attn, tensors, c);
  if (!Object.hasOwn(runners, c.op)) assert.fail(`${c.name}: no runner for ${c.op}`);
  compareCase(running, runners[c.op](running));
}

export function compareCase(running: Running, results: Results): void {
  const { case: c } = running;
  running.assertAllRead();
  assert.isNotEmpty(Object.keys(c.expected), `${c.name} expects something`);
  for (const name of Object.keys(c.expected))
    compareStored(c, running.stored(`expected.${name}`), name, results.get(name) ?? assert.fail(`${c.name}: ${name}: missing`));
  if (c.variance) {
    const scores = results.get('scores')!.data;
    const mean = scores.reduce((a, x) => a + x, 0) / scores.length;
    const variance = scores.reduce((a, x) => a + (x - mean) ** 2, 0) / scores.length;
    assert.closeTo(variance / c.variance.scores, 1, 1e-5, `${c.name}: variance of the scores`);
  }
}

export function compareRows(c: GoldenCase, tensors: Map<string, Tensor>, name: string, actual: Tensor): void {
  compareStored(c, tensors.get(`${c.name}/expected.${name}`)!, name, actual);
}

function compareStored(c: GoldenCase, stored: Tensor, name: string, actual: Tensor): void {
  const what = `${c.name}: ${name}`;
  const error = c.expected[name];
  const part = c.rows?.[name];
  if (!part) {
    assertClose(actual, stored, tolerance(error), what);
    return;
  }
  assert.deepEqual([...actual.dims], [...part.dims], `${what}: dims`);
  const width = part.dims[part.dims.length - 1];
  const flat = { data: actual.data, dims: [actual.data.length / width, width] };
  assertClose(take(flat, 0, part.rows), stored, tolerance(error), what);
  const largest = stored.data.reduce((a, x) => Math.max(a, Number.isFinite(x) ? Math.abs(x) : 0), 1);
  const sum = actual.data.reduce((a, x) => a + (Number.isFinite(x) ? x : 0), 0);
  assert.isAtMost(Math.abs(sum - part.sum), tolerance(error) * largest * actual.data.length, `${what}: sum`);
}
