/**
 * Tests quantize() of layers: int8 weights, other weights, and loading float32 weights again. For the bits see bits.ts.
 */
import type { Attn, Int8Tensor, Module, Tensor } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { loadHere } from '../support/host.ts';
import { assertSameBits, random, tensor } from '../support/tensors.ts';

const x = random(new Generator(5), [2, 6, 12]);

interface Case {
  readonly name: string;
  make(attn: Attn): Module;
  /** Runs the layer on a fixed input. */
  run(layer: Module): Tensor;
}

const encoder = { dModel: 12, nhead: 3, dimFeedforward: 20 };

const cases: readonly Case[] = [
  {
    name: 'MultiHeadAttention',
    make: (attn) => new attn.MultiHeadAttention({ embedDim: 12, numHeads: 3, addBiasKv: true }),
    run: (layer) => (layer as InstanceType<Attn['MultiHeadAttention']>).forward(x).output,
  },
  {
    name: 'MultiHeadAttention with grouped heads',
    make: (attn) => new attn.MultiHeadAttention({ embedDim: 12, numHeads: 6, numKeyValueHeads: 2, bias: false }),
    run: (layer) => (layer as InstanceType<Attn['MultiHeadAttention']>).forward(x).output,
  },
  {
    name: 'TransformerEncoderLayer',
    make: (attn) => new attn.TransformerEncoderLayer({ ...encoder, gated: true }),
    run: (layer) => (layer as InstanceType<Attn['TransformerEncoderLayer']>).forward(x).output,
  },
  {
    name: 'TransformerEncoder',
    make: (attn) => new attn.TransformerEncoder({ ...encoder, numLayers: 2, finalNorm: true }),
    run: (layer) => (layer as InstanceType<Attn['TransformerEncoder']>).forward(x).output,
  },
  {
    name: 'TransformerClassifier',
    make: (attn) => new attn.TransformerClassifier({ ...encoder, numLayers: 1, numClasses: 3, pooling: 'mean' }),
    run: (layer) => (layer as InstanceType<Attn['TransformerClassifier']>).forward(x).logits,
  },
  {
    name: 'Embedding',
    make: (attn) => new attn.Embedding({ numEmbeddings: 7, embeddingDim: 12 }),
    run: (layer) => (layer as InstanceType<Attn['Embedding']>).forward([0, 6, 3], [3]),
  },
];

const isInt8 = (value: Int8Tensor | Tensor): value is Int8Tensor => value.data instanceof Int8Array;

/** Quantizes a two-dimensional weight as specified. */
function nearest({ data, dims }: Tensor): { q: number[]; scale: number[] } {
  const [rows, width] = dims;
  const q: number[] = [];
  const scale: number[] = [];
  for (let row = 0; row < rows; row++) {
    const values = data.subarray(row * width, (row + 1) * width);
    const step = Math.fround(values.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 127);
    scale.push(step);
    for (const value of values) q.push(step === 0 ? 0 : Math.round(Math.fround(value / step)));
  }
  return { q, scale };
}

describe('quantize', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const { name, make, run } of cases)
    describe(name, () => {
      let layer: Module;
      beforeEach(() => void (layer = make(attn)));
      afterEach(() => layer.dispose());

      it('converts weights of two dimensions to int8, and leaves the others', () => {
        const before = layer.stateDict();
        const output = run(layer);
        for (const [key, value] of layer.int8StateDict()) {
          assert.isFalse(isInt8(value), key);
          assertSameBits(value as Tensor, before.get(key)!, key);
        }
        layer.quantize();
        const state = layer.int8StateDict();
        assert.sameMembers([...state.keys()], [...before.keys()]);
        const after = layer.stateDict();
        for (const [key, value] of state) {
          const was = before.get(key)!;
          assert.deepEqual(value.dims, was.dims, key);
          assert.equal(isInt8(value), was.dims.length === 2, key);
          if (!isInt8(value)) {
            assertSameBits(value as Tensor, was, key);
            assertSameBits(after.get(key)!, was, key);
            continue;
          }
          const { q, scale } = nearest(was);
          assert.deepEqual([...value.scale], scale, key);
          assert.deepEqual(value.data, Int8Array.from(q), key);
          const width = was.dims[1];
          assertSameBits(
            after.get(key)!,
            tensor(was.dims, (i) => value.scale[Math.floor(i / width)] * value.data[i]),
            key,
          );
        }
        const rounded = run(layer);
        assert.notDeepEqual(rounded.data, output.data);
        const most = output.data.reduce((all, value) => Math.max(all, Math.abs(value)), 0);
        rounded.data.forEach((value, i) => assert.closeTo(value, output.data[i], most / 10));
        layer.quantize();
        assertSameBits(run(layer), rounded, 'once more');
      });

      it('newly loaded weights are float32 again', () => {
        const before = layer.stateDict();
        const output = run(layer);
        layer.quantize();
        layer.loadStateDict(before);
        for (const value of layer.int8StateDict().values()) assert.isFalse(isInt8(value));
        assertSameBits(run(layer), output, 'loaded');
        layer.initialize({ seed: 9 });
        const drawn = run(layer);
        layer.quantize();
        layer.initialize({ seed: 9 });
        assertSameBits(run(layer), drawn, 'drawn');
      });

      it('a weight with NaN or infinity is FORMAT with its name, and nothing changes', () => {
        for (const [key, { data, dims }] of layer.stateDict()) {
          if (dims.length !== 2) continue;
          const state = layer.stateDict();
          const spoilt = data.slice();
          spoilt[spoilt.length - 1] = key.length % 2 ? NaN : -Infinity;
          layer.loadStateDict(new Map([...state, [key, { data: spoilt, dims }]]));
          const error = assertThrows(() => layer.quantize(), 'FORMAT');
          assert.include(error.message, key);
          for (const value of layer.int8StateDict().values()) assert.isFalse(isInt8(value));
          layer.loadStateDict(state);
        }
      });
    });

  it('gives the same in a worker', async () => {
    const there = await loadWorker({ variant: attn.info.variant });
    const options = { ...encoder, numLayers: 2, finalNorm: true };
    const [a, b] = [await new there.TransformerEncoder(options), new attn.TransformerEncoder(options)];
    await a.quantize();
    b.quantize();
    const state = await a.int8StateDict();
    assert.deepEqual([...state.keys()], [...b.int8StateDict().keys()]);
    for (const [key, value] of b.int8StateDict()) assert.deepEqual(state.get(key), value, key);
    assertSameBits((await a.forward(x)).output, b.forward(x).output, 'forward');
    await there.dispose();
    b.dispose();
  });
});
