/**
 * Runs ONNX's backend node tests (testdata/onnx.md), each by the calls that a user of the package would write for the
 * operator. If ONNX's axes, heads or caches differ, the inputs are rearranged here; the numbers are unchanged.
 */
import type { Attn, AttentionOptions, Mask, Tensor, TraceName } from 'attn';
import { assert } from 'chai';
import { readGoldenFile, tolerance } from '../support/golden.ts';
import { loadHere } from '../support/host.ts';
import { assertClose, concat, mask, product, reshape, slice, tensor } from '../support/tensors.ts';

interface OnnxCase {
  readonly name: string;
  readonly op: string;
  readonly opset: number;
  readonly attributes: Readonly<Record<string, number | string>>;
  /** Name -> ONNX type; all are stored as F32. */
  readonly inputs: Readonly<Record<string, string>>;
  readonly expected: Readonly<Record<string, number>>;
  /** Results that no call returns, with the reason. */
  readonly leftOut: Readonly<Record<string, string>>;
  /** Derived from this case, with caches of angles for base `theta`. */
  readonly of?: string;
  readonly theta?: number;
}

/** By ONNX names. */
type Results = Readonly<Record<string, Tensor>>;

/** One case: inputs and attributes that the test does not use are errors. */
class Running {
  readonly attn: Attn;
  readonly case: OnnxCase;
  readonly #tensors: ReadonlyMap<string, Tensor>;
  readonly #unread: Set<string>;

  constructor(attn: Attn, tensors: ReadonlyMap<string, Tensor>, c: OnnxCase) {
    this.attn = attn;
    this.case = c;
    this.#tensors = tensors;
    this.#unread = new Set([...Object.keys(c.inputs), ...Object.keys(c.attributes)]);
  }

  stored(name: string): Tensor {
    return this.#tensors.get(`${this.case.name}/${name}`) ?? assert.fail(`${this.case.name}: the file has no tensor ${name}`);
  }

  optional(name: string): Tensor | undefined {
    this.#unread.delete(name);
    return name in this.case.inputs ? this.stored(name) : undefined;
  }

  input(name: string): Tensor {
    return this.optional(name) ?? assert.fail(`${this.case.name}: no input ${name}`);
  }

  attribute<T extends number | string>(name: string): T | undefined {
    this.#unread.delete(name);
    return this.case.attributes[name] as T | undefined;
  }

  assertAllRead(): void {
    assert.isEmpty([...this.#unread], `${this.case.name}: unused inputs and attributes`);
  }
}

/** (B,L,H,D) <-> (B,H,L,D). */
function swapped(t: Tensor): Tensor {
  const [B, M, N, D] = t.dims;
  return tensor([B, N, M, D], (i) => {
    const [d, m, n, b] = [i % D, Math.floor(i / D) % M, Math.floor(i / (D * M)) % N, Math.floor(i / (D * M * N))];
    return t.data[((b * M + m) * N + n) * D + d];
  });
}

/** (B,L,H·D) -> (B,H,L,D); rank 4 is already in this form. */
function byHead(t: Tensor, heads: number | undefined): Tensor {
  if (t.dims.length === 4) return t;
  const [B, L, width] = t.dims;
  return swapped(reshape(t, [B, L, heads!, width / heads!]));
}

function merged(t: Tensor): Tensor {
  const [B, H, L, D] = t.dims;
  return reshape(swapped(t), [B, L, H * D]);
}

interface Attending {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  /** Causality and window. */
  readonly placed: Pick<AttentionOptions, 'isCausal' | 'window'>;
  readonly mask: Mask | undefined;
  /** nonpad_kv_seqlen: the number of keys per batch row. */
  readonly lengths: readonly number[] | undefined;
  readonly others: AttentionOptions;
}

/** A mask shorter than the keys blocks the keys after its end. */
function maskOf(c: Running, S: number): Mask | undefined {
  const given = c.optional('attn_mask');
  if (!given) return undefined;
  const kind = c.case.inputs.attn_mask === 'bool' ? 'attend' : 'additive';
  const width = given.dims[given.dims.length - 1];
  const values = tensor([given.data.length / width, S], (i) => {
    const [row, j] = [Math.floor(i / S), i % S];
    return j < width ? given.data[row * width + j] : kind === 'attend' ? 0 : -Infinity;
  }).data;
  const dims = [...given.dims.slice(0, -1), S];
  return mask(kind, dims.length === 3 ? [1, ...dims] : dims, values); // ONNX reads rank 3 as (H,L,S), attn as (B,L,S)
}

/**
 * Builds the mask equivalent to these lengths, causality and window: the queries of each row are at the end of its
 * keys.
 */
function maskOfPlaces({ query, key, placed, mask: given, lengths }: Attending): Mask {
  const [B, , L] = query.dims;
  const S = key.dims[2];
  const from = given ? [...Array<number>(4 - given.dims.length).fill(1), ...given.dims] : [1, 1, 1, 1];
  const H = from[1];
  const [left, right] = placed.window ?? [-1, -1];
  const values = tensor([B, H, L, S], (i) => {
    const at = [Math.floor(i / (S * L * H)), Math.floor(i / (S * L)) % H, Math.floor(i / S) % L, i % S];
    const distance = at[3] - (at[2] + lengths![at[0]] - L);
    const seen = (!placed.isCausal || distance <= 0) && (left < 0 || -distance <= left) && (right < 0 || distance <= right);
    const value = given ? given.data[at.reduce((sum, x, axis) => sum * from[axis] + (from[axis] === 1 ? 0 : x), 0)] : 1;
    return seen ? value : given?.kind === 'additive' ? -Infinity : 0;
  });
  return mask(given?.kind ?? 'attend', values.dims, values.data);
}

function rowOf(given: Mask, row: number): Mask {
  if (given.dims.length < 4 || given.dims[0] === 1) return given;
  const part = slice({ data: Float32Array.from(given.data), dims: given.dims }, 0, row, row + 1);
  return mask(given.kind, part.dims, part.data);
}

/** Computes the case by each equivalent call. */
function attend(attn: Attn, a: Attending): Results[] {
  const run = (more: AttentionOptions): Results => {
    const r = attn.scaledDotProductAttention(a.query, a.key, a.value, { ...a.others, mask: a.mask, ...more });
    const traced = Object.values(r.trace ?? {})[0];
    return {
      Y: r.output,
      ...(traced && { qk_matmul_output: traced }),
      ...(r.present && { present_key: r.present.key, present_value: r.present.value }),
    };
  };
  if (!a.lengths) return [run(a.placed)];
  const [B, , L] = a.query.dims;
  const S = a.key.dims[2];
  const keyPaddingMask = mask('attend', [B, S], tensor([B, S], (i) => Number(i % S < a.lengths![Math.floor(i / S)])).data);
  const offsets = a.lengths.map((length) => length - L);
  if (offsets.every((offset) => offset === offsets[0])) return [run({ ...a.placed, queryOffset: offsets[0], keyPaddingMask })];
  if (!a.placed.isCausal && !a.placed.window) return [run({ keyPaddingMask })];
  // Batch rows have different positions: either one mask for all, or one call per row.
  const rows = offsets.map((_, b) => {
    const [query, key, value] = [a.query, a.key, a.value].map((t) => slice(t, 0, b, b + 1));
    return attend(attn, { ...a, query, key, value, mask: a.mask && rowOf(a.mask, b), lengths: [a.lengths![b]] })[0];
  });
  const joined = (name: string) => {
    const parts = rows.map((row) => row[name]);
    return concat(parts, 0);
  };
  return [run({ keyPaddingMask, mask: maskOfPlaces(a) }), Object.fromEntries(Object.keys(rows[0]).map((name) => [name, joined(name)]))];
}

/**
 * qk_matmul_output_mode -> trace. Mode 0 is before softcap, which has no trace, so it is compared only without softcap.
 */
const modes: readonly TraceName[] = ['scores', 'scores', 'masked_scores', 'probabilities'];

function attention(c: Running): Results[] {
  const [heads, keyHeads] = [c.attribute<number>('q_num_heads'), c.attribute<number>('kv_num_heads')];
  const given = c.input('Q');
  const [query, key, value] = [byHead(given, heads), byHead(c.input('K'), keyHeads), byHead(c.input('V'), keyHeads)];
  const pastKey = c.optional('past_key');
  const past = pastKey && { key: pastKey, value: c.input('past_value') };
  const S = key.dims[2] + (past?.key.dims[2] ?? 0);
  const [left, right] = [c.attribute<number>('left_window_size'), c.attribute<number>('right_window_size')];
  const window = left === undefined && right === undefined ? undefined : ([left ?? -1, right ?? -1] as const);
  const lengths = c.optional('nonpad_kv_seqlen');
  const softcap = c.attribute<number>('softcap');
  const mode = c.attribute<number>('qk_matmul_output_mode') ?? 0;
  const traced = 'qk_matmul_output' in c.case.expected;
  if (traced && mode === 0) assert.isUndefined(softcap, `${c.case.name}: scores before softcap`);
  const precision = c.attribute<number>('softmax_precision');
  assert.include([undefined, 1, 11], precision, 'softmax in float32; float64 is within the tolerance');
  return attend(c.attn, {
    query,
    key,
    value,
    placed: { isCausal: c.attribute<number>('is_causal') === 1, window },
    mask: maskOf(c, S),
    lengths: lengths && Array.from(lengths.data),
    others: {
      scale: c.attribute<number>('scale'),
      softcap,
      past,
      enableGqa: query.dims[1] !== key.dims[1],
      trace: traced ? [modes[mode]] : [],
    },
  }).map((results) => (given.dims.length === 4 ? results : { ...results, Y: merged(results.Y) }));
}

/** Caches of angles with position ids become one call per batch row and run of consecutive positions. */
function rotary(c: Running): Results[] {
  const given = c.input('input');
  const x = byHead(given, c.attribute('num_heads'));
  const [B, , L, D] = x.dims;
  const width = c.attribute<number>('rotary_embedding_dim') ?? D;
  const interleaved = c.attribute<number>('interleaved') === 1;
  const positions = c.input('position_ids').data;
  const rows: Tensor[] = [];
  for (let b = 0; b < B; b++) {
    const parts: Tensor[] = [];
    for (let from = 0, to = 1; from < L; from = to++) {
      while (to < L && positions[b * L + to] === positions[b * L + to - 1] + 1) to++;
      const part = slice(slice(x, 0, b, b + 1), 2, from, to);
      const offset = positions[b * L + from];
      parts.push(concat([c.attn.applyRotary(slice(part, 3, 0, width), { theta: c.case.theta!, offset, interleaved }), slice(part, 3, width, D)], 3));
    }
    rows.push(concat(parts, 2));
  }
  const output = concat(rows, 0);
  return [{ output: given.dims.length === 4 ? output : merged(output) }];
}

/** Normalises over all axes from `axis` on, flattened into rows. */
function normalized(c: Running, normalize: (x: Tensor, weight: Tensor, eps: number) => Tensor): Results[] {
  const x = c.input('X');
  const axis = c.attribute<number>('axis') ?? -1;
  const width = product(x.dims.slice(axis));
  const y = normalize(reshape(x, [x.data.length / width, width]), reshape(c.input('W'), [width]), c.attribute<number>('epsilon') ?? 1e-5);
  return [{ Y: reshape(y, x.dims) }];
}

/** The calls for each operator. */
const operators: Readonly<Record<string, (c: Running) => Results[]>> = {
  Attention: attention,
  RotaryEmbedding: rotary,
  LayerNormalization: (c) =>
    normalized(c, (x, weight, eps) => {
      const bias = c.input('B');
      return c.attn.layerNorm(x, weight, reshape(bias, [bias.data.length]), eps);
    }),
  RMSNormalization: (c) => normalized(c, (x, weight, eps) => c.attn.rmsNorm(x, weight, eps)),
  Softmax: (c) => [{ y: c.attn.softmax(c.input('x'), c.attribute<number>('axis') ?? -1) }],
  Gelu: (c) => [{ y: c.attn.activation(c.input('x'), c.attribute('approximate') === 'tanh' ? 'gelu_tanh' : 'gelu') }],
  Swish: (c) => {
    assert.equal(c.attribute('alpha') ?? 1, 1, 'silu');
    return [{ y: c.attn.activation(c.input('x'), 'silu') }];
  },
};

const file = await readGoldenFile('onnx');
const cases = file.cases as readonly unknown[] as readonly OnnxCase[];

describe(`ONNX ${file.metadata.onnx}: backend node tests`, () => {
  let attn: Attn;
  let tensors: Map<string, Tensor>;
  before(async () => {
    attn = await loadHere();
    tensors = attn.parseSafetensors(file.bytes);
  });
  after(() => attn.dispose());

  it('every ONNX case for these operators is run, or skipped with a reason', () => {
    const leftOut: { name: string; op: string; reason: string }[] = JSON.parse(file.metadata.left_out);
    const own = cases.filter((c) => c.of === undefined);
    for (const { name, reason } of leftOut) assert.isNotEmpty(reason, name);
    assert.equal(new Set([...own, ...leftOut].map((c) => c.name)).size, Number(file.metadata.collected));
    assert.deepEqual([own.length, leftOut.length], [132, 19]);
    // A substitute case has the same operator.
    for (const c of cases) if (c.of !== undefined) assert.equal(leftOut.find((each) => each.name === c.of)?.op, c.op, c.name);
    assert.hasAllKeys(Object.fromEntries(cases.map((c) => [c.op, true])), Object.keys(operators));
  });

  for (const c of cases)
    it(c.name, () => {
      const running = new Running(attn, tensors, c);
      const ways = operators[c.op](running);
      running.assertAllRead();
      assert.isNotEmpty(Object.keys(c.expected));
      ways.forEach((results, way) => {
        assert.hasAllKeys(results, Object.keys(c.expected), `${c.name}, way ${way}`);
        for (const [name, error] of Object.entries(c.expected))
          assertClose(results[name], running.stored(`expected.${name}`), tolerance(error), `${c.name}, way ${way}: ${name}`);
      });
    });
});
