/**
 * Random calls of gradients, like native-tests/digest/backward.cpp. Change both together; for the order of draws see
 * digest_draw.ts.
 */
import { type Attn, type AttentionOptions, type BackwardResult, type MultiHeadAttentionOptions, type Tensor, traceNames } from 'attn';
import type { Generator } from './generator.ts';
import {
  activations,
  attentionOptions,
  batch,
  type Call,
  functionTraces,
  inputDims,
  large,
  length,
  masks,
  newCall,
  probability,
  rows,
  seed,
  sizes,
  values,
} from './digest_draw.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

/** Gradients of inputs, then traces in order. */
function gradientTensors({ gradQuery, gradKey, gradValue, trace }: BackwardResult): Tensor[] {
  return [gradQuery, gradKey, gradValue, ...traceNames.map((name) => trace?.[name])].filter((t) => t !== undefined);
}

const stateTensors = (state: Map<string, Tensor>) => [...state.keys()].sort().map((name) => state.get(name)!);

function attention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const isLarge = large(g);
  const which = g.below(3);
  const rank = 2 + g.below(3);
  const b = batch(g);
  const kv = 1 + g.below(3);
  const grouped = g.oneIn(3);
  const group = 2 + g.below(2);
  const L = rows(g, isLarge);
  const S = rows(g, isLarge);
  const Dv = 1 + g.below(40);
  const D = 1 + g.below(40);
  const Dk = 1 + g.below(40);
  const A = 1 + g.below(24);
  const biased = g.oneIn(2);
  const B = rank >= 3 ? b : 1;
  const kvHeads = rank === 4 ? kv : 1;
  const H = rank === 4 && grouped ? kv * group : kvHeads;
  const keyWidth = which === 0 ? D : Dk;
  const grad = values(g, inputDims(rank, B, H, L, Dv), 1);
  const query = values(g, inputDims(rank, B, H, L, D), 0.5);
  const key = values(g, inputDims(rank, B, kvHeads, S, keyWidth), 0.5);
  const value = values(g, inputDims(rank, B, kvHeads, S, Dv), 1);
  call.inputs = [grad, query, key, value];
  const weight = values(g, [D, Dk], 0.25);
  const queryWeight = values(g, [A, D], 0.25);
  const keyWeight = values(g, [A, Dk], 0.25);
  const scoreWeight = values(g, [A], 0.5);
  const bias = biased ? values(g, [A], 0.5) : undefined;
  const params = { queryWeight, keyWeight, scoreWeight, bias };
  call.masks = masks(g, B, H, L, S, rank >= 3);
  const options: Writable<AttentionOptions> = attentionOptions(g, functionTraces);
  const capped = g.oneIn(3);
  const cap = 1 + g.below(64);
  const windowed = g.oneIn(3);
  const left = g.below(S + 2);
  const right = g.below(S + 2);
  options.enableGqa = H !== kvHeads;
  if (which === 0 && capped) options.softcap = cap / 8;
  if (which === 0 && windowed) options.window = [left - 1, right - 1];
  call.batch = which === 0 && rank >= 3 ? B : 0;
  call.dropping = options.dropout !== undefined;
  call.run = ([grad, q, k, v], given) => {
    const all = { ...options, ...given };
    if (which === 0) return gradientTensors(attn.scaledDotProductAttentionBackward(grad, q, k, v, all));
    if (which === 1) {
      const found = attn.generalAttentionBackward(grad, q, k, v, { weight }, all);
      return [...gradientTensors(found), found.gradWeight];
    }
    const found = attn.additiveAttentionBackward(grad, q, k, v, params, all);
    const { gradQueryWeight, gradKeyWeight, gradScoreWeight, gradBias } = found;
    return [...gradientTensors(found), gradQueryWeight, gradKeyWeight, gradScoreWeight, ...(gradBias ? [gradBias] : [])];
  };
  return call;
}

function multiHeadAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const isLarge = large(g);
  const kv = 1 + g.below(3);
  const group = 1 + g.below(2);
  const half = 1 + g.below(6);
  const ownWidths = g.oneIn(3);
  const kdim = 1 + g.below(30);
  const vdim = 1 + g.below(30);
  const H = kv * group;
  const E = H * 2 * half;
  const o: Writable<MultiHeadAttentionOptions> = { embedDim: E, numHeads: H, numKeyValueHeads: kv, ...(ownWidths && { kdim, vdim }) };
  o.bias = !g.oneIn(4);
  o.addBiasKv = g.oneIn(4);
  o.addZeroAttn = g.oneIn(4);
  o.dropout = probability(g);
  o.outProj = !g.oneIn(4);
  const turned = g.oneIn(3);
  if (turned) o.rotary = {};
  const layer = new attn.MultiHeadAttention(o);
  layer.initialize({ seed: seed(g) });
  call.dispose = () => layer.dispose();

  const batched = !g.oneIn(4);
  const b = batch(g);
  const L = rows(g, isLarge);
  const other = rows(g, isLarge);
  const askedCross = g.oneIn(2);
  const cross = askedCross || ownWidths;
  const rank = batched ? 3 : 2;
  const B = batched ? b : 1;
  const S = cross ? other : L;
  const grad = values(g, inputDims(rank, B, 1, L, E), 1);
  const query = values(g, inputDims(rank, B, 1, L, E), 1);
  call.inputs = [grad, query];
  if (cross) {
    const key = values(g, inputDims(rank, B, 1, S, ownWidths ? kdim : E), 1);
    const value = values(g, inputDims(rank, B, 1, S, ownWidths ? vdim : E), 1);
    call.inputs = [grad, query, key, value];
  }
  call.masks = masks(g, B, H, L, S, batched);
  const options = attentionOptions(g, traceNames);
  const training = g.oneIn(2);
  const trainSeed = seed(g);
  call.run = ([grad, query, key, value], given) => {
    if (training) layer.train({ seed: trainSeed });
    layer.zeroGrad();
    layer.forward(query, key, value, { ...options, ...given, trace: false, forBackward: !training });
    const found = layer.backward(grad, { trace: options.trace });
    return [...gradientTensors(found), ...stateTensors(layer.gradients())];
  };
  return call;
}

/** Draws a row-wise function of rank 1 to 4. */
function anyFunction(g: Generator, attn: Attn): Call {
  const call = newCall();
  const isLarge = large(g);
  const which = g.below(6);
  const rank = 1 + g.below(4);
  const dims = sizes(g, rank, isLarge ? 12 : 5);
  const width = 1 + g.below(isLarge ? 130 : 40);
  const outWidth = 1 + g.below(isLarge ? 130 : 40);
  const weighted = g.oneIn(2);
  const eps = g.pick([1e-5, 1e-12, 1e-3, 0.5]);
  const name = g.pick(activations);
  const dim = g.below(2 * rank) - rank;
  const offset = g.below(2000) - 1000;
  const interleaved = g.oneIn(2);
  dims[rank - 1] = which === 5 ? 2 * width : width;
  const gradDims = [...dims];
  if (which === 0) gradDims[rank - 1] = outWidth;
  const grad = values(g, gradDims, 1);
  const x = values(g, dims, 2);
  call.inputs = [grad, x];
  const matrix = values(g, [outWidth, width], 1);
  const drawnWeight = values(g, [width], 1);
  const weight = weighted ? drawnWeight : undefined;
  const ofNorm = ({ gradX, gradWeight, gradBias }: { gradX: Tensor; gradWeight?: Tensor; gradBias?: Tensor }) =>
    [gradX, gradWeight, gradBias].filter((t) => t !== undefined);
  call.run = ([grad, x]) => {
    switch (which) {
      case 0: {
        const { gradX, gradWeight, gradBias } = attn.linearBackward(grad, x, matrix);
        return [gradX, gradWeight, gradBias];
      }
      case 1:
        return ofNorm(attn.layerNormBackward(grad, x, weight, eps));
      case 2:
        return ofNorm(attn.rmsNormBackward(grad, x, weight, eps));
      case 3:
        return [attn.softmaxBackward(grad, attn.softmax(x, dim), dim)];
      case 4:
        return [attn.activationBackward(grad, x, name)];
      default:
        // Rank 1 has no positions.
        return rank >= 2 ? [attn.applyRotaryBackward(grad, { offset, interleaved })] : [];
    }
  };
  return call;
}

function loss(g: Generator, attn: Attn): Call {
  const call = newCall();
  const which = g.below(3);
  const N = length(g, 200);
  const C = 1 + g.below(30);
  const labels: number[] = [];
  for (let i = 0; i < N; i++) {
    const ignored = g.oneIn(8);
    const drawn = g.below(C);
    labels.push(ignored ? -100 : drawn);
  }
  const labelSmoothing = g.below(5) / 10;
  const weighted = g.oneIn(2);
  const summed = g.oneIn(2);
  const x = values(g, [N, C], 4);
  const y = values(g, [N, C], 1);
  call.inputs = [x, y];
  const weight = values(g, [C], 1);
  const reduction = summed ? 'sum' : 'mean';
  call.run = ([x, y]) => {
    const { loss, gradient } =
      which === 0
        ? attn.crossEntropy(x, labels, { labelSmoothing, reduction, ...(weighted && { weight }) })
        : which === 1
          ? attn.mseLoss(x, y, { reduction })
          : attn.binaryCrossEntropyWithLogits(x, y, { reduction, ...(weighted && { posWeight: weight }) });
    return [{ data: Float32Array.of(loss), dims: [1] }, gradient];
  };
  return call;
}

/** Trains an embedding and an attention for some steps; returns losses, weights and the optimiser's state. */
function training(g: Generator, attn: Attn): Call {
  const N = 2 + g.below(20);
  const H = 1 + g.below(3);
  const width = 1 + g.below(8);
  const L = 1 + g.below(12);
  const which = g.below(3);
  const rate = (1 + g.below(64)) / 256;
  const weightDecay = g.below(8) / 64;
  const momentum = g.below(8) / 8;
  const dropout = probability(g);
  const drawn = seed(g);
  const steps = 1 + g.below(4);
  const most = g.below(64) / 16;
  const E = H * width;
  const labels: number[] = [];
  for (let i = 0; i < L; i++) labels.push(g.below(E));
  const ids: number[] = [];
  for (let i = 0; i < L; i++) ids.push(g.below(N));
  return {
    ...newCall(),
    run() {
      const words = new attn.Embedding({ numEmbeddings: N, embeddingDim: E, paddingIdx: 0 });
      const mha = new attn.MultiHeadAttention({ embedDim: E, numHeads: H, dropout });
      const modules = [words, mha];
      for (const module of modules) {
        module.initialize({ seed: drawn });
        module.train({ seed: drawn });
      }
      const groups = [{ names: /bias/, learningRate: 2 * rate, weightDecay: 0 }];
      const options = { learningRate: rate, weightDecay, groups };
      const optimizer = which === 0 ? new attn.SGD(modules, { ...options, momentum }) : new attn[which === 1 ? 'Adam' : 'AdamW'](modules, options);
      const out: Tensor[] = [];
      for (let step = 0; step < steps; step++) {
        const { output } = mha.forward(words.forward(ids, [1, L]));
        const { loss, gradient } = attn.crossEntropy(output, labels);
        words.backward(mha.backward(gradient).gradQuery);
        const norm = attn.clipGradNorm(modules, most);
        optimizer.learningRate = attn.cosineSchedule(step, { learningRate: rate, warmup: 1, steps });
        optimizer.step();
        optimizer.zeroGrad();
        out.push({ data: Float32Array.of(loss, norm), dims: [2] });
      }
      for (const each of [...modules, optimizer]) out.push(...stateTensors(each.stateDict()));
      for (const each of [...modules, optimizer]) each.dispose();
      return out;
    },
  };
}

const kinds = [attention, multiHeadAttention, anyFunction, training, attention, multiHeadAttention, loss];

export const backwards = 1500;

/** Draws the call with this number, below `backwards`. */
export const drawBackwardCall = (g: Generator, attn: Attn, number: number): Call => kinds[number % kinds.length](g, attn);
