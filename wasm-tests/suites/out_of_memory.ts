/**
 * Makes every allocation fail once. The heap is full except for one hole that grows in small steps: a call fails at its
 * first allocation, then at its second, and so on, until it fits. Each call must return its result or MEMORY, and leave
 * no memory behind.
 */
import type { Attn, Embedding, Optimizer, Tensor } from 'attn';
import { assert } from 'chai';
import { assertIsError } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { host, loadHere, settledHeap } from '../support/host.ts';
import { assertSameBits, mask, random } from '../support/tensors.ts';

type Call = () => readonly Tensor[];

function callsOf(attn: Attn, size: number): Record<string, Call> {
  const g = new Generator(size);
  const [B, H, L, S, D] = [2, 2, 2 * size, 3 * size, 8];
  const E = H * D;
  const [q, k, v] = [random(g, [B, H, L, D]), random(g, [B, H, S, D]), random(g, [B, H, S, D])];
  const [x, y] = [random(g, [B, L, E]), random(g, [B, S, E])];
  const padding = mask(
    'attend',
    [B, S],
    Array.from({ length: B * S }, () => Number(g.below(4) > 0)),
  );
  const params = { queryWeight: random(g, [5, D]), keyWeight: random(g, [5, D]), scoreWeight: random(g, [5]), bias: random(g, [5]) };
  const encoderOptions = { dModel: E, nhead: H, dimFeedforward: 8 * size, numLayers: 2, finalNorm: true };
  const classifierOptions = { ...encoderOptions, numClasses: 3, pooling: 'mean' } as const;
  const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: H, addBiasKv: true, addZeroAttn: true });
  const [encoder, classifier] = [new attn.TransformerEncoder(encoderOptions), new attn.TransformerClassifier(classifierOptions)];
  const embedding = new attn.Embedding({ numEmbeddings: 16 * size, embeddingDim: 4 });
  const state = encoder.stateDict();
  const file = attn.writeSafetensors(state);
  const values = (state: ReadonlyMap<string, Tensor>) => [...state.keys()].sort().map((name) => state.get(name)!);
  const table = (found: readonly { id: number; similarity: number }[]) => [
    { data: Float32Array.from(found.flatMap(({ id, similarity }) => [id, similarity])), dims: [found.length, 2] },
  ];
  const made = (module: { stateDict(): Map<string, Tensor>; dispose(): void }) => {
    module.dispose();
    return [];
  };
  return {
    attention: () => {
      const r = attn.scaledDotProductAttention(q, k, v, { keyPaddingMask: padding, needWeights: true, averageWeights: true, trace: true });
      return [r.output, r.weights!, ...Object.values(r.trace!)];
    },
    'plain attention': () => [attn.scaledDotProductAttention(q, k, v, { isCausal: true, dropout: 0.5 }).output],
    'additive attention': () => [attn.additiveAttention(q, k, v, params).output],
    'general attention': () => [attn.generalAttention(q, k, v, { weight: random(new Generator(1), [D, D]) }).output],
    linear: () => [attn.linear(x, random(new Generator(1), [7, E]))],
    functions: () => [attn.softmax(x, 1), attn.layerNorm(x), attn.rmsNorm(x), attn.activation(x, 'gelu'), attn.applyRotary(x), attn.alibiBias(H, L)],
    'multi-head attention': () => {
      const r = mha.forward(x, y, y, { keyPaddingMask: padding, needWeights: true, trace: true });
      return [r.output, r.weights!, ...Object.values(r.trace!)];
    },
    'an encoder': () => {
      const r = encoder.forward(x, { isCausal: true, outputAttentions: true, outputHiddenStates: true, trace: { names: ['scores', 'ff_hidden'] } });
      return [r.output, ...r.attentions!, ...r.hiddenStates!, ...[...r.trace!.values()].flatMap((trace) => Object.values(trace))];
    },
    'a classifier': () => {
      const r = classifier.forward(x);
      return [r.output, r.logits];
    },
    lookup: () => [embedding.forward(Array.from({ length: 8 * size }, (_, i) => i))],
    nearest: () => table(embedding.nearest(0, 5)),
    analogy: () => table(embedding.analogy(0, 1, 2, 3)),
    loadStateDict: () => {
      encoder.loadStateDict(state);
      return [];
    },
    stateDict: () => values(encoder.stateDict()),
    parameterShapes: () => [...encoder.parameterShapes()].map(([, dims]) => ({ data: new Float32Array(0), dims: [...dims, 0] })),
    initialize: () => {
      classifier.initialize();
      return [];
    },
    parseSafetensors: () => values(attn.parseSafetensors(file)),
    'a new attention': () => made(new attn.MultiHeadAttention({ embedDim: E, numHeads: H })),
    'a new encoder': () => made(new attn.TransformerEncoder(encoderOptions)),
    'a new classifier': () => made(new attn.TransformerClassifier(classifierOptions)),
    'a new embedding': () => made(new attn.Embedding({ numEmbeddings: 64 * size, embeddingDim: 4 })),
    'gradients of functions': () => {
      const weight = random(new Generator(1), [7, E]);
      const { gradX, gradWeight } = attn.linearBackward(attn.linear(x, weight), x, weight);
      const { gradQuery, gradKey, trace } = attn.scaledDotProductAttentionBackward(q, q, k, v, { keyPaddingMask: padding, trace: ['scores'] });
      return [gradX, gradWeight, gradQuery, gradKey!, trace!.scores!, attn.mseLoss(q, q).gradient];
    },
    'backward of a layer': () => {
      const layer = new attn.MultiHeadAttention({ embedDim: E, numHeads: H, addBiasKv: true });
      try {
        layer.forward(x, y, y, { keyPaddingMask: padding, forBackward: true });
        const { gradQuery, gradKey } = layer.backward(x);
        return [gradQuery, gradKey!, ...values(layer.gradients())];
      } finally {
        layer.dispose();
      }
    },
    'a step of training': () => {
      const table = new attn.Embedding({ numEmbeddings: 4 * size, embeddingDim: 4 });
      let optimizer: Optimizer | undefined;
      try {
        table.forward([0, 1, 2, 1], undefined, { forBackward: true });
        table.backward(random(new Generator(2), [4, 4]));
        optimizer = new attn.Adam([table], { groups: [{ names: /weight/, learningRate: 0.1 }] });
        attn.clipGradNorm([table], 1);
        optimizer.step();
        return [...values(table.stateDict()), ...values(optimizer.stateDict())];
      } finally {
        optimizer?.dispose();
        table.dispose();
      }
    },
    'a mistake': () => {
      try {
        encoder.forward(random(g, [1, 2, 3]));
      } catch (error) {
        if ((error as { code?: string }).code === 'MEMORY') throw error;
        assertIsError(error, 'SHAPE', ['TransformerEncoder', 'x']);
      }
      return [];
    },
    'a state that does not fit': () => {
      try {
        encoder.loadStateDict({ a: x });
      } catch (error) {
        if ((error as { code?: string }).code === 'MEMORY') throw error;
        assertIsError(error, 'MISMATCH', ['layers.0.norm1.weight']);
      }
      return [];
    },
  };
}

/** The usable size of a block may differ by a few bytes. */
const slack = 1024;

function fill(attn: Attn, largest: number): Embedding[] {
  const all: Embedding[] = [];
  for (let floats = largest; floats >= 1; floats = Math.floor(floats / 2))
    for (;;)
      try {
        all.push(new attn.Embedding({ numEmbeddings: floats, embeddingDim: 1 }));
      } catch (error) {
        assertIsError(error, 'MEMORY');
        break;
      }
  return all;
}

/** Allocates an embedding of this many floats, or fewer if blocks that moved into the hole left less space. */
function plugOf(attn: Attn, floats: number): Embedding | undefined {
  for (let count = floats; count > 0; count -= 8)
    try {
      return new attn.Embedding({ numEmbeddings: count, embeddingDim: 1 });
    } catch (error) {
      assertIsError(error, 'MEMORY');
    }
  return undefined;
}

describe('out of memory', () => {
  function holes(name: string, size: number, most: number, step: number): void {
    it(`${name}: MEMORY at every allocation, or the result`, async () => {
      const attn = await loadHere({ maximumMemory: 2 ** 23 });
      const calls = Object.entries(callsOf(attn, size));
      const expected = calls.map(([, call]) => call());
      settledHeap(attn);
      const fresh = attn.info.heap.used;
      const hole = new attn.Embedding({ numEmbeddings: most, embeddingDim: 1 });
      const ballast = fill(attn, 2 ** 18);
      hole.dispose();

      const failures = calls.map(() => 0);
      const successes = calls.map(() => 0);
      /** After so many successes in a row a call needs no more steps. */
      const enough = 8;
      for (let free = 0; free < most; free += step) {
        // The hole is the rest of the heap after the plug.
        const plug = plugOf(attn, most - 64 - free);
        let { used } = attn.info.heap;
        calls.forEach(([kind, call], i) => {
          if (successes[i] === enough) return;
          const what = `${kind} in ${4 * free} bytes`;
          try {
            const result = call();
            result.forEach((t, n) => assertSameBits(t, expected[i][n], `${what}, result ${n}`));
            successes[i]++;
          } catch (error) {
            assertIsError(error, 'MEMORY');
            failures[i]++;
            successes[i] = 0;
          }
          const now = attn.info.heap.used;
          // More would be a leak; less would be memory freed while in use.
          assert.equal(now, used, `heap in use after ${what}: ${used} before, ${now} now`);
          used = now;
        });
        plug?.dispose();
      }
      for (const each of ballast) each.dispose();
      const kinds = calls.map(([kind], i) => `${kind} ${failures[i]}`);
      host.note(`failures, ${name}: ${kinds.join(', ')}`);
      assert.isAtMost(attn.info.heap.used - fresh, slack, 'heap in use at the end');
      // On average about thirty hole sizes per kind, so many different allocations failed.
      assert.isAtLeast(
        failures.reduce((a, n) => a + n, 0),
        30 * calls.length,
        'failures',
      );
      calls.forEach(([kind, call], i) => {
        // A mistake needs some bytes, whatever the size.
        if (kind !== 'a mistake' || size === 1) assert.isAtLeast(failures[i], 1, `failures of ${kind}`);
        assert.equal(successes[i], enough, `successes of ${kind}`);
        call().forEach((t, n) => assertSameBits(t, expected[i][n], `${kind} at the end, result ${n}`));
      });
      attn.dispose();
    });
  }

  holes('small calls, in steps of 32 bytes', 1, 2 ** 14, 8);
  holes('larger calls, in steps of 1 KiB', 12, 2 ** 16, 256);

  it('a failing backward leaves gradients and saved values unchanged, and succeeds with more memory', async () => {
    const attn = await loadHere({ maximumMemory: 2 ** 23 });
    const g = new Generator(5);
    const [x, grad, logits] = [random(g, [2, 5, 16]), random(g, [2, 5, 16]), random(g, [2, 3])];
    const encoderOptions = { dModel: 16, nhead: 2, dimFeedforward: 24, numLayers: 2, finalNorm: true };
    const mha = new attn.MultiHeadAttention({ embedDim: 16, numHeads: 2, addBiasKv: true });
    const encoder = new attn.TransformerEncoder(encoderOptions);
    const classifier = new attn.TransformerClassifier({ ...encoderOptions, numClasses: 3, pooling: 'max' });
    const layers = {
      mha: { of: mha, forward: () => mha.forward(x, x, grad, { forBackward: true }), backward: () => mha.backward(grad) },
      encoder: { of: encoder, forward: () => encoder.forward(x, { forBackward: true }), backward: () => encoder.backward(grad) },
      classifier: { of: classifier, forward: () => classifier.forward(x, { forBackward: true }), backward: () => classifier.backward(logits) },
    };
    for (const { forward, backward } of Object.values(layers)) {
      forward();
      backward();
    }
    const failures: string[] = [];
    for (const [name, { of, forward, backward }] of Object.entries(layers)) {
      const earlier = of.gradients();
      assert.isNotEmpty([...earlier]);
      forward();
      const most = 2 ** 15;
      const hole = new attn.Embedding({ numEmbeddings: most, embeddingDim: 1 });
      const ballast = fill(attn, 2 ** 18);
      hole.dispose();
      let failed = 0;
      let free = 0;
      for (let done = false; !done; free += 8 + (free >> 4)) {
        assert.isBelow(free, most, `${name} needs more than the whole hole`);
        const plug = plugOf(attn, most - 64 - free);
        const { used } = attn.info.heap;
        try {
          backward();
          done = true;
        } catch (error) {
          assertIsError(error, 'MEMORY');
          failed++;
          assert.equal(attn.info.heap.used, used, `heap in use after ${name} in ${4 * free} bytes`);
        }
        plug?.dispose();
        const gradients = of.gradients();
        assert.sameMembers([...gradients.keys()], [...earlier.keys()], `${name} in ${4 * free} bytes`);
        for (const [parameter, now] of gradients) {
          const before = earlier.get(parameter)!;
          const what = `${name}: ${parameter} in ${4 * free} bytes`;
          assertSameBits(now, done ? { data: before.data.map((value) => 2 * value), dims: before.dims } : before, what);
        }
      }
      assert.isAtLeast(failed, 3, name);
      failures.push(`${name} ${failed}`);
      for (const each of ballast) each.dispose();
    }
    host.note(`failures of a backward on top of earlier gradients: ${failures.join(', ')}`);
    attn.dispose();
  });

  it('a call that exceeds the maximum memory is refused before any work, repeatedly', async () => {
    const attn = await loadHere({ maximumMemory: 2 ** 23 });
    settledHeap(attn);
    const long = { data: new Float32Array(4000), dims: [1, 4000, 1] };
    const { used, peak } = attn.info.heap;
    for (let i = 0; i < 50; i++) {
      for (const call of [
        () => attn.scaledDotProductAttention(long, long, long, { needWeights: true }),
        () => new attn.TransformerEncoder({ dModel: 512, nhead: 8, numLayers: 6 }),
        () => new attn.Embedding({ numEmbeddings: 2 ** 22, embeddingDim: 2 }),
        () => attn.sinusoidalPositions(2000, 2000),
        () => attn.alibiBias(8, 1000),
      ])
        try {
          call();
          assert.fail('there was enough memory');
        } catch (error) {
          assertIsError(error, 'MEMORY', ['bytes']);
        }
      assert.equal(attn.info.heap.used, used);
    }
    assert.isAtMost(attn.info.heap.peak - peak, 2 ** 16, 'no large allocation was attempted');
    attn.dispose();
  });
});
