/** A run of training, like native-tests/digest/training.cpp. Change both together. */
import type { Attn, Tensor } from 'attn';
import { Hash } from './digest_draw.ts';
import { Generator } from './generator.ts';

const steps = 200;
const B = 8;
const L = 10;
const E = 16;
const C = 3;

function drawBatch(g: Generator): { x: Tensor; attend: Uint8Array<ArrayBuffer>; labels: number[] } {
  const data = new Float32Array(B * L * E);
  const attend = new Uint8Array(B * L);
  const labels: number[] = [];
  for (let b = 0; b < B; b++) {
    const length = L / 2 + g.below(L / 2 + 1);
    const sums = [0, 0, 0]; // exact: all numbers are multiples of 2^-23
    for (let i = 0; i < L; i++) {
      attend[b * L + i] = i < length ? 1 : 0;
      for (let e = 0; e < E; e++) {
        const value = g.unit();
        data[(b * L + i) * E + e] = value;
        if (i < length && e < C) sums[e] += value;
      }
    }
    labels.push(sums.indexOf(Math.max(...sums)));
  }
  return { x: { data, dims: [B, L, E] }, attend, labels };
}

/** Hashes all losses and the final weights of 200 AdamW steps on a small classifier with dropout. */
export function trainClassifier(attn: Attn): string {
  const g = new Generator(0x7ea10000);
  const model = new attn.TransformerClassifier({
    ...{ dModel: E, nhead: 2, dimFeedforward: 32, dropout: 0.1, activation: 'gelu', numLayers: 2, numClasses: C },
    pooling: 'mean',
  } as const);
  model.initialize({ seed: 1 });
  model.train({ seed: 2 });
  const optimizer = new attn.AdamW([model], { learningRate: 3e-3 });
  const hash = new Hash();
  for (let step = 0; step < steps; step++) {
    const { x, attend, labels } = drawBatch(g);
    const { logits } = model.forward(x, { keyPaddingMask: { kind: 'attend', data: attend, dims: [B, L] } });
    const { loss, gradient } = attn.crossEntropy(logits, labels, { labelSmoothing: 0.05 });
    model.backward(gradient);
    attn.clipGradNorm([model], 1);
    optimizer.step();
    optimizer.zeroGrad();
    hash.add({ data: Float32Array.of(loss), dims: [1] });
  }
  const state = model.stateDict();
  for (const name of [...state.keys()].sort()) hash.add(state.get(name)!);
  optimizer.dispose();
  model.dispose();
  return hash.text();
}
