/**
 * Tests every function at 2 GiB and 4 GiB per allocation, where 32-bit addresses and sizes overflow: MEMORY, another
 * error or the result, and the instance stays usable. Arrays are untouched zeros, which occupy no memory until they are
 * copied into the heap.
 */
import { load, type Attn, type LoadOptions, type Tensor } from 'attn';
import { assert } from 'chai';
import { assertIsError } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { host, settledHeap } from '../support/host.ts';
import { assertSameBits, random } from '../support/tensors.ts';

const GiB = 2 ** 30;
/** Shared by all tests, which only read it. */
let zeros: ArrayBuffer;
const floats = (bytes: number) => new Float32Array(zeros, 0, bytes / 4);

/** Each call allocates at least this many bytes at once: input, result or weights. */
type Entries = Record<string, (bytes: number) => unknown>;

/** Calls that copy no large input into the heap. */
function smallEntries(attn: Attn): Entries {
  return {
    sinusoidalPositions: (bytes) => attn.sinusoidalPositions(1, bytes / 4 - 1),
    'additive scores': (bytes) => {
      const [L, one] = [Math.ceil(Math.sqrt(bytes / 4)), { data: new Float32Array([1]), dims: [1] }];
      const row = { data: new Float32Array(L), dims: [L, 1] };
      const w = { data: one.data, dims: [1, 1] };
      return attn.additiveAttention(row, row, row, { queryWeight: w, keyWeight: w, scoreWeight: one }, { needWeights: true, trace: true });
    },
    weights: (bytes) => {
      const L = Math.ceil(Math.sqrt(bytes / 4));
      const row = { data: new Float32Array(L), dims: [L, 1] };
      return attn.scaledDotProductAttention(row, row, row, { needWeights: true, trace: true });
    },
    Embedding: (bytes) => new attn.Embedding({ numEmbeddings: bytes / 4, embeddingDim: 1 }),
    MultiHeadAttention: (bytes) => new attn.MultiHeadAttention({ embedDim: 2 * Math.ceil(Math.sqrt(bytes / 4) / 2), numHeads: 2 }),
    TransformerEncoderLayer: (bytes) => new attn.TransformerEncoderLayer({ dModel: 2, nhead: 1, dimFeedforward: bytes / 8 }),
    TransformerClassifier: (bytes) =>
      new attn.TransformerClassifier({ dModel: 2, nhead: 1, dimFeedforward: 2, numLayers: 1, numClasses: bytes / 8, pooling: 'mean' }),
  };
}

function largeEntries(attn: Attn): Entries {
  const g = new Generator(2);
  const [small, one] = [random(g, [1, 8]), random(g, [1, 1])];
  const mha = new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
  const encoder = new attn.TransformerEncoder({ dModel: 8, nhead: 2, dimFeedforward: 8, numLayers: 1 });
  const embedding = new attn.Embedding({ numEmbeddings: 3, embeddingDim: 8 });
  const row = (bytes: number): Tensor => ({ data: floats(bytes), dims: [bytes / 4] });
  const eights = (bytes: number): Tensor => ({ data: floats(bytes), dims: [bytes / 32, 8] });
  return {
    activation: (bytes) => attn.activation(row(bytes), 'relu'),
    softmax: (bytes) => attn.softmax(row(bytes)),
    layerNorm: (bytes) => attn.layerNorm(eights(bytes)),
    rmsNorm: (bytes) => attn.rmsNorm(row(bytes)),
    applyRotary: (bytes) => attn.applyRotary(eights(bytes)),
    'linear, x': (bytes) => attn.linear({ data: floats(bytes), dims: [bytes / 4, 1] }, one),
    'linear, weight': (bytes) => attn.linear(small, eights(bytes)),
    'scaledDotProductAttention, query': (bytes) => attn.scaledDotProductAttention(eights(bytes), small, small),
    'scaledDotProductAttention, key': (bytes) => attn.scaledDotProductAttention(small, eights(bytes), small),
    'scaledDotProductAttention, mask': (bytes) =>
      attn.scaledDotProductAttention(small, small, small, { mask: { kind: 'attend', data: new Uint8Array(zeros, 0, bytes - 48), dims: [2, bytes / 2 - 24] } }), // prettier-ignore
    'additiveAttention, parameters': (bytes) =>
      attn.additiveAttention(one, one, one, { queryWeight: { data: floats(bytes), dims: [bytes / 4, 1] }, keyWeight: one, scoreWeight: one }),
    'generalAttention, weight': (bytes) => attn.generalAttention(one, small, small, { weight: row(bytes) }),
    'MultiHeadAttention.forward': (bytes) => mha.forward(eights(bytes)),
    'TransformerEncoder.forward': (bytes) => encoder.forward(eights(bytes)),
    'Embedding.forward': (bytes) => embedding.forward(new Int32Array(zeros, 0, bytes / 4)),
    'Embedding.nearest': (bytes) => embedding.nearest(floats(bytes), 1),
    'Embedding.loadStateDict': (bytes) => embedding.loadStateDict({ weight: eights(bytes) }),
    parseSafetensors: (bytes) => attn.parseSafetensors(new Uint8Array(zeros, 0, bytes)),
  };
}

describe('sizes at 2 GiB and 4 GiB', () => {
  if (host.engine !== 'node' || host.build !== 'release') return;
  before(() => void (zeros = new ArrayBuffer(4 * GiB)));
  const collect = () => void (globalThis as { gc?: () => void }).gc?.();
  after(() => {
    zeros = new ArrayBuffer(0);
    collect();
  });
  const g = new Generator(1);
  const [q, k, v] = [random(g, [2, 3, 4]), random(g, [2, 5, 4]), random(g, [2, 5, 6])];

  /** Runs each call at these sizes; reports how many allocated the memory and succeeded. */
  async function each(options: LoadOptions, entriesOf: (attn: Attn) => Entries, sizes: readonly number[]): Promise<void> {
    const attn = await load({ variant: 'simd', ...options });
    const expected = attn.scaledDotProductAttention(q, k, v).output;
    const entries = Object.entries(entriesOf(attn));
    settledHeap(attn);
    for (const [name, run] of entries)
      for (const bytes of sizes) {
        const { used } = attn.info.heap;
        try {
          run(bytes);
        } catch (error) {
          assertIsError(error, ['MEMORY', 'SHAPE', 'MASK', 'FORMAT', 'OUT_OF_RANGE', 'MISMATCH', 'CONFIG']);
        }
        assertSameBits(attn.scaledDotProductAttention(q, k, v).output, expected, `after ${name} of ${bytes} bytes`);
        assert.equal(attn.info.heap.used, used, `heap in use after ${name} of ${bytes} bytes`);
      }
    attn.dispose();
    collect();
  }

  const all = [2 * GiB - 64, 2 * GiB, 4 * GiB - 64, 4 * GiB];
  for (const threads of [1, 2])
    describe(`threads: ${threads}`, () => {
      it('results, weights and scores', () => each({ threads }, smallEntries, all));
      it('inputs that exceed the memory', () => each({ threads, maximumMemory: 2 * GiB }, largeEntries, all));
      it('inputs of 4 GiB', () => each({ threads }, largeEntries, [4 * GiB - 64, 4 * GiB]));
    });

  // Copies of this size take half a second, so one build represents both; they allocate in the same way.
  it('inputs of 2 GiB, and no memory for more', () => each({ threads: 1 }, largeEntries, [2 * GiB]));
  it('a mask and a row slightly below 2 GiB', () =>
    each({ threads: 2 }, (attn) => {
      const { activation, 'scaledDotProductAttention, mask': masked } = largeEntries(attn);
      return { activation, masked };
    }, [2 * GiB])); // prettier-ignore

  it('a result of more than 2 GiB is computed if it fits', async () => {
    const attn = await load({ variant: 'simd' });
    const length = GiB / 2 + 1000;
    const { data } = attn.alibiBias(1, 1, length);
    assert.lengthOf(data, length);
    for (const i of [0, 1, 255, 2 ** 20, length - 1]) assert.equal(data[i], Math.fround(-i / 256), `element ${i}`);
    attn.dispose();
  });
});
