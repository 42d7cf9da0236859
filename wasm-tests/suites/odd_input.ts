/** Tests unusual but valid input: shared memory, getters, proxies, frozen objects, arrays that grew. */
import type { Attn, Tensor } from 'attn';
import { assert } from 'chai';
import { k, q, v } from '../support/catalogue.ts';
import { assertIsError } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import { assertSameBits, random } from '../support/tensors.ts';

const g = new Generator(15);

function attempt(call: () => unknown): unknown {
  try {
    return call();
  } catch (error) {
    return error;
  }
}

describe('unusual but valid input', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());
  const same = (a: Tensor, b = attn.scaledDotProductAttention(q, k, v).output) => assertSameBits(a, b);

  it('shared memory is copied first', () => {
    // Pages without isolation do not expose SharedArrayBuffer, but a shared WebAssembly memory provides one.
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const shared = new Float32Array(memory.buffer, 64, 24);
    shared.set(q.data);
    same(attn.scaledDotProductAttention({ data: shared, dims: q.dims } as unknown as Tensor, k, v).output);
  });

  it("properties that shadow an array's own are ignored", () => {
    const shadowed = random(g, [3, 700]);
    const right = attn.softmax({ data: shadowed.data.slice(), dims: shadowed.dims });
    for (const [name, value] of Object.entries({ BYTES_PER_ELEMENT: 1, length: 8, byteOffset: 4, buffer: new ArrayBuffer(8) }))
      Object.defineProperty(shadowed.data, name, { value });
    assertSameBits(attn.softmax(shadowed), right);
  });

  it('options are read once, including proxies and getters', () => {
    const reads = new Map<PropertyKey, number>();
    const options = new Proxy({ isCausal: true, needWeights: true, trace: ['scores'] } as Record<PropertyKey, unknown>, {
      get(target, key) {
        reads.set(key, (reads.get(key) ?? 0) + 1);
        return target[key];
      },
    });
    const r = attn.scaledDotProductAttention(q, k, v, options as never);
    same(r.output, attn.scaledDotProductAttention(q, k, v, { isCausal: true }).output);
    for (const [key, count] of reads) assert.equal(count, 1, String(key));
  });

  it('tensors are read once', () => {
    let reads = 0;
    const shifty = {
      dims: q.dims,
      get data() {
        return reads++ === 0 ? q.data : new Float32Array(1);
      },
    };
    same(attn.scaledDotProductAttention(shifty, k, v).output);
  });

  it('a getter that uses the instance: BUSY, or the right result', () => {
    let inner: Tensor | undefined;
    const options = {
      get isCausal() {
        inner = attn.scaledDotProductAttention(k, q, random(g, [2, 3, 2])).output;
        return false;
      },
    };
    try {
      same(attn.scaledDotProductAttention(q, k, v, options).output);
      assert.deepEqual([...inner!.dims], [2, 5, 2]);
    } catch (error) {
      assertIsError(error, 'BUSY');
    }
    same(attn.scaledDotProductAttention(q, k, v).output);
  });

  it('frozen objects, null prototypes and undefined options are valid', () => {
    const bare = Object.assign(Object.create(null), { data: q.data, dims: Object.freeze([...q.dims]) }) as Tensor;
    same(attn.scaledDotProductAttention(Object.freeze(bare), k, v, Object.freeze({ mask: undefined, scale: undefined, isCausal: undefined })).output);
    same(attn.scaledDotProductAttention(q, k, v, undefined).output);
  });

  it('a resizable buffer that grew', () => {
    const buffer = Reflect.construct(ArrayBuffer, [96, { maxByteLength: 192 }]) as ArrayBuffer & { resize?(n: number): void };
    const data = new Float32Array(buffer, 0, 24);
    data.set(q.data);
    buffer.resize?.(160);
    same(attn.scaledDotProductAttention({ data, dims: q.dims }, k, v).output);
  });

  it('changing or freezing the dims of a result does not affect later results', () => {
    const r = attn.scaledDotProductAttention(q, k, v);
    try {
      (r.output.dims as number[])[0] = 99;
    } catch {
      // Frozen dims are also valid.
    }
    assert.deepEqual([...attn.scaledDotProductAttention(q, k, v).output.dims], [2, 3, 6]);
  });

  /** Counts reads of each property, at any depth. */
  function counted<T extends object>(target: T, reads: Map<string, number>, path = ''): T {
    return new Proxy(target, {
      get(object, key) {
        const name = `${path}.${String(key)}`;
        if (typeof key === 'string') reads.set(name, (reads.get(name) ?? 0) + 1);
        const value = Reflect.get(object, key) as unknown;
        return typeof value === 'object' && value !== null && !Array.isArray(value) && !ArrayBuffer.isView(value)
          ? counted(value, reads, name)
          : value;
      },
    });
  }

  it('constructors, encoders and parameters: every property is read once, at any depth', () => {
    const reads = new Map<string, number>();
    const options = { dModel: 8, nhead: 2, dimFeedforward: 12, numLayers: 2, numClasses: 3, pooling: 'max', activation: 'gelu' } as const;
    const [plain, read] = [new attn.TransformerClassifier(options), new attn.TransformerClassifier(counted(options, reads, 'options'))];
    const x = random(g, [2, 3, 8]);
    const forward = {
      mask: { kind: 'attend', data: new Uint8Array([1, 1, 0]), dims: [3] },
      isCausal: true,
      outputAttentions: true,
      trace: { layers: [1], names: ['norm2'] },
    } as const;
    assertSameBits(read.forward(counted(x, reads, 'x'), counted(forward, reads, 'forward')).logits, plain.forward(x, forward).logits);
    const params = { queryWeight: random(g, [7, 4]), keyWeight: random(g, [7, 4]), scoreWeight: random(g, [7]) };
    same(
      attn.additiveAttention(q, k, v, counted(params, reads, 'params'), counted({ scale: 0.5 }, reads, 'options of a call')).output,
      attn.additiveAttention(q, k, v, params, { scale: 0.5 }).output,
    );
    read.loadStateDict(counted(Object.fromEntries(plain.stateDict()), reads, 'state'));
    assert.isAbove(reads.size, 40);
    for (const [name, count] of reads) assert.equal(count, 1, name);
    plain.dispose();
    read.dispose();
  });

  it('ids in shared memory, within a larger buffer, and in every kind of array', () => {
    const embedding = new attn.Embedding({ numEmbeddings: 9, embeddingDim: 3 });
    const expected = embedding.forward([8, 0, 4]);
    const memory = new WebAssembly.Memory({ initial: 1, maximum: 1, shared: true });
    const [narrow, wide] = [new Int32Array(memory.buffer, 4, 3), new BigInt64Array(memory.buffer, 64, 3)];
    narrow.set([8, 0, 4]);
    wide.set([8n, 0n, 4n]);
    for (const ids of [narrow, wide, Int32Array.of(7, 8, 0, 4).subarray(1), Object.freeze([8, -0, 4])])
      assertSameBits(embedding.forward(ids), expected);
    embedding.dispose();
  });

  it('64-bit ids beyond 32 bits are out of range and do not wrap', () => {
    const embedding = new attn.Embedding({ numEmbeddings: 9, embeddingDim: 3 });
    // Truncated to 32 bits, each would be a valid id.
    for (const id of [2n ** 32n, -(2n ** 32n), 2n ** 32n + 8n, 8n - 2n ** 32n, 2n ** 31n, -(2n ** 31n) - 1n, 2n ** 63n - 1n, -(2n ** 63n)])
      assertIsError(
        attempt(() => embedding.forward(BigInt64Array.of(1n, id))),
        'OUT_OF_RANGE',
        ['[1]', String(id)],
      );
    embedding.dispose();
  });

  it('a getter that uses the same layer: BUSY, or the right result', () => {
    const encoder = new attn.TransformerEncoderLayer({ dModel: 8, nhead: 2, dimFeedforward: 12 });
    const x = random(g, [2, 3, 8]);
    const expected = encoder.forward(x).output;
    let inner: Tensor | undefined;
    const options = {
      get isCausal() {
        encoder.initialize({ seed: 1 });
        encoder.initialize({ seed: 0 });
        inner = encoder.forward(x).output;
        return false;
      },
    };
    try {
      same(encoder.forward(x, options).output, expected);
      same(inner!, expected);
    } catch (error) {
      assertIsError(error, 'BUSY');
    }
    same(encoder.forward(x).output, expected);
    encoder.dispose();
  });

  it('a state from a Map of another realm or with a null prototype', () => {
    const embedding = new attn.Embedding({ numEmbeddings: 2, embeddingDim: 3 });
    const weight = random(g, [2, 3]);
    embedding.loadStateDict(Object.assign(Object.create(null) as Record<string, Tensor>, { weight }));
    same(embedding.stateDict().get('weight')!, weight);
    embedding.dispose();
  });
});
