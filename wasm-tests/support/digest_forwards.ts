/**
 * Random forwards, like native-tests/digest/forwards.cpp. Change both together; for the order of draws see
 * digest_draw.ts.
 */
import {
  type Attn,
  type AttnError,
  type AttentionOptions,
  type AttentionResult,
  type Classifier,
  type ClassifierOptions,
  type Encoder,
  type EncoderForwardOptions,
  type EncoderResult,
  encoderTraceNames,
  type Module,
  type MultiHeadAttentionOptions,
  type Tensor,
  traceNames,
} from 'attn';
import type { Generator } from './generator.ts';
import { product } from './tensors.ts';
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
  policies,
  probability,
  rows,
  seed,
  sizes,
  trace,
  values,
} from './digest_draw.ts';

type Writable<T> = { -readonly [K in keyof T]: T[K] };

const encoderTraces = encoderTraceNames.filter((name) => !['c2c', 'c2p', 'p2c'].includes(name));

/** Output, weights, traces in order, present keys and values. */
function attentionTensors(r: AttentionResult): Tensor[] {
  const traced = traceNames.map((name) => r.trace?.[name]);
  return [r.output, r.weights, ...traced, r.present?.key, r.present?.value].filter((t) => t !== undefined);
}

function attentionSizes(g: Generator) {
  const isLarge = large(g);
  const rank = 2 + g.below(3);
  const b = batch(g);
  const kv = 1 + g.below(3);
  const grouped = g.oneIn(3);
  const group = 2 + g.below(2);
  const L = rows(g, isLarge);
  const S = rows(g, isLarge);
  const Dv = 1 + g.below(40);
  const B = rank >= 3 ? b : 1;
  const kvHeads = rank === 4 ? kv : 1;
  const H = rank === 4 && grouped ? kv * group : kvHeads;
  return { rank, B, H, kvHeads, L, S, Dv };
}

/** Adds key, value, masks and options to a call that has the query in call.inputs; `attend` is the function. */
function finishAttention(
  g: Generator,
  call: Call,
  s: ReturnType<typeof attentionSizes>,
  keyWidth: number,
  attend: (q: Tensor, k: Tensor, v: Tensor, options: AttentionOptions) => AttentionResult,
): Call {
  const key = values(g, inputDims(s.rank, s.B, s.kvHeads, s.S, keyWidth), 0.5);
  const value = values(g, inputDims(s.rank, s.B, s.kvHeads, s.S, s.Dv), 1);
  call.inputs = [...call.inputs, key, value];
  call.batch = s.rank >= 3 ? s.B : 0;
  call.masks = masks(g, s.B, s.H, s.L, s.S, s.rank >= 3);
  const options = { ...attentionOptions(g, functionTraces), enableGqa: s.H !== s.kvHeads };
  call.dropping = options.dropout !== undefined;
  call.run = ([q, k, v], given) => attentionTensors(attend(q, k, v, { ...options, ...given }));
  return call;
}

function scaledDotProductAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const s = attentionSizes(g);
  const D = 1 + g.below(40);
  call.inputs = [values(g, inputDims(s.rank, s.B, s.H, s.L, D), 0.5)];
  return finishAttention(g, call, s, D, attn.scaledDotProductAttention);
}

/** Draws enough keys that attention processes them in blocks, unless single weights are requested. */
function longAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const rank = 2 + g.below(3);
  const b = 1 + g.below(2);
  const heads = 1 + g.below(2);
  const L = 1 + g.below(3);
  const S = 1025 + g.below(376);
  const Dv = 1 + g.below(6);
  const D = 1 + g.below(6);
  const B = rank >= 3 ? b : 1;
  const H = rank === 4 ? heads : 1;
  call.inputs = [values(g, inputDims(rank, B, H, L, D), 1)];
  return finishAttention(g, call, { rank, B, H, kvHeads: H, L, S, Dv }, D, attn.scaledDotProductAttention);
}

function additiveAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const s = attentionSizes(g);
  const Dq = 1 + g.below(24);
  const Dk = 1 + g.below(24);
  const A = 1 + g.below(24);
  const biased = g.oneIn(2);
  const queryWeight = values(g, [A, Dq], 0.25);
  const keyWeight = values(g, [A, Dk], 0.25);
  const scoreWeight = values(g, [A], 0.5);
  const bias = biased ? values(g, [A], 0.5) : undefined;
  const params = { queryWeight, keyWeight, scoreWeight, bias };
  call.inputs = [values(g, inputDims(s.rank, s.B, s.H, s.L, Dq), 0.5)];
  return finishAttention(g, call, s, Dk, (q, k, v, options) => attn.additiveAttention(q, k, v, params, options));
}

function generalAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const s = attentionSizes(g);
  const Dq = 1 + g.below(40);
  const Dk = 1 + g.below(40);
  const weight = values(g, [Dq, Dk], 0.25);
  call.inputs = [values(g, inputDims(s.rank, s.B, s.H, s.L, Dq), 0.5)];
  return finishAttention(g, call, s, Dk, (q, k, v, options) => attn.generalAttention(q, k, v, { weight }, options));
}

/** Draws training or eval mode, and a number of steps. */
function drawMode(g: Generator) {
  const training = g.oneIn(3);
  const drawn = seed(g);
  const steps = 1 + g.below(2);
  return { training, seed: drawn, steps: training ? steps : 1 };
}

const schemes = ['torch', 'xavier_uniform', 'xavier_normal', 'kaiming_uniform', 'kaiming_normal', 'normal'] as const;

/** Draws a layer's weights from a scheme and a seed, sometimes via a state; they become the call's constants. */
function drawWeights(g: Generator, call: Call, layer: Module): void {
  const asNew = g.oneIn(4);
  const scheme = g.pick(schemes);
  const drawn = seed(g);
  const std = (1 + g.below(64)) / 64;
  if (!asNew) layer.initialize({ scheme, seed: drawn, std });
  const loaded = g.oneIn(4);
  if (loaded) {
    const shapes = layer.parameterShapes();
    layer.loadStateDict(new Map([...shapes.keys()].sort().map((name) => [name, values(g, shapes.get(name)!, 0.25)])));
  }
  const state = layer.stateDict();
  call.constants = [...state.keys()].sort().map((name) => state.get(name)!);
  call.quantize = () => layer.quantize();
  call.dispose = () => layer.dispose();
}

function runSteps(layer: Module, mode: ReturnType<typeof drawMode>, forward: () => Tensor[]): Tensor[] {
  if (mode.training) layer.train({ seed: mode.seed });
  const out: Tensor[] = [];
  for (let step = 0; step < mode.steps; step++) out.push(...forward());
  return out;
}

function multiHeadAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const isLarge = large(g);
  const kv = 1 + g.below(4);
  const grouped = g.oneIn(4);
  const group = 2 + g.below(2);
  const width = 1 + g.below(12);
  const ownWidths = g.oneIn(3);
  const kdim = 1 + g.below(40);
  const vdim = 1 + g.below(40);
  const ownHead = g.oneIn(4);
  const headDim = 1 + g.below(16);
  const ownValueHead = g.oneIn(4);
  const valueHeadDim = 1 + g.below(16);
  const anyWidth = 1 + g.below(40);
  const H = grouped ? kv * group : kv;
  const E = ownHead ? anyWidth : H * width;

  const o: Writable<MultiHeadAttentionOptions> = { embedDim: E, numHeads: H };
  if (grouped) o.numKeyValueHeads = kv;
  if (ownWidths) {
    o.kdim = kdim;
    o.vdim = vdim;
  }
  if (ownHead) o.headDim = headDim;
  if (ownValueHead) o.valueHeadDim = valueHeadDim;
  o.bias = !g.oneIn(4);
  o.addBiasKv = g.oneIn(4);
  o.addZeroAttn = g.oneIn(4);
  o.dropout = probability(g);
  const hasScale = g.oneIn(4);
  const scale = g.unit();
  if (hasScale) o.scale = scale;
  o.outProj = !g.oneIn(4);
  const layer = new attn.MultiHeadAttention(o);
  drawWeights(g, call, layer);

  const batched = !g.oneIn(4);
  const b = batch(g);
  const L = rows(g, isLarge);
  const other = rows(g, isLarge);
  const askedCross = g.oneIn(2);
  const cross = askedCross || ownWidths;
  const rank = batched ? 3 : 2;
  const B = batched ? b : 1;
  const S = cross ? other : L;
  call.inputs = [values(g, inputDims(rank, B, 1, L, E), 1)];
  if (cross) {
    const key = values(g, inputDims(rank, B, 1, S, ownWidths ? kdim : E), 1);
    const value = values(g, inputDims(rank, B, 1, S, ownWidths ? vdim : E), 1);
    call.inputs = [...call.inputs, key, value];
  }
  call.masks = masks(g, B, H, L, S, batched);
  const options = attentionOptions(g, traceNames);
  const mode = drawMode(g);
  call.batch = batched ? B : 0;
  call.dropping = options.dropout !== undefined || mode.training;
  call.run = ([query, key, value], given) =>
    runSteps(layer, mode, () => attentionTensors(layer.forward(query, key, value, { ...options, ...given })));
  return call;
}

function encoderOptions(g: Generator, isLarge: boolean): ClassifierOptions {
  const factor = isLarge ? 2 : 1;
  const nhead = 1 + g.below(4);
  const width = factor * (1 + g.below(6));
  const dimFeedforward = factor * (1 + g.below(24));
  const dropout = probability(g);
  const activation = g.pick(activations);
  const layerNormEps = g.pick([1e-5, 1e-12, 1e-3, 0.5]);
  const normFirst = g.oneIn(2);
  const bias = !g.oneIn(4);
  const norm = g.oneIn(3) ? 'rms_norm' : 'layer_norm';
  const gated = g.oneIn(3);
  const numLayers = 1 + g.below(3);
  const finalNorm = g.oneIn(2);
  const numClasses = 1 + g.below(9);
  const pooling = g.pick(['none', 'mean', 'cls', 'max'] as const);
  return {
    dModel: nhead * width,
    nhead,
    dimFeedforward,
    dropout,
    activation,
    layerNormEps,
    normFirst,
    bias,
    norm,
    gated,
    numLayers,
    finalNorm,
    numClasses,
    pooling,
  };
}

/** Draws all options of an encoder's forward except masks; `layers` is the encoder's number of layers. */
function forwardOptions(g: Generator, layers: number): EncoderForwardOptions {
  const out: Writable<EncoderForwardOptions> = {};
  out.isCausal = g.oneIn(4);
  out.fullyMasked = g.pick(policies);
  out.outputAttentions = g.oneIn(3);
  out.outputHiddenStates = g.oneIn(3);
  const traced = g.below(10);
  if (traced < 2) {
    const asked: Writable<NonNullable<EncoderForwardOptions['trace']>> = {};
    const someLayers = g.oneIn(2);
    if (someLayers) {
      const some: number[] = [];
      const count = g.below(3);
      for (let i = 0; i < count; i++) some.push(g.below(layers));
      asked.layers = some;
    }
    const names = trace(g, traced === 0, encoderTraces);
    if (names) asked.names = names;
    out.trace = asked;
  }
  return out;
}

function encoderTensors(r: EncoderResult & { logits?: Tensor }): Tensor[] {
  const out = [r.output, r.logits, ...(r.attentions ?? []), ...(r.hiddenStates ?? [])];
  for (const layer of [...(r.trace?.keys() ?? [])].sort((a, b) => a - b)) for (const name of encoderTraces) out.push(r.trace?.get(layer)?.[name]);
  return out.filter((t) => t !== undefined);
}

function encoder(g: Generator, isLarge: boolean, o: ClassifierOptions, layer: Encoder | Classifier, layers: number, isPlaced = false): Call {
  const call = newCall();
  drawWeights(g, call, layer);
  const batched = !g.oneIn(4);
  const b = batch(g);
  const L = rows(g, isLarge);
  const rank = batched ? 3 : 2;
  const B = batched ? b : 1;
  call.inputs = [values(g, inputDims(rank, B, 1, L, o.dModel), 1)];
  call.masks = masks(g, B, o.nhead, L, L, batched);
  const options: Writable<EncoderForwardOptions> = forwardOptions(g, layers);
  if (isPlaced) options.queryOffset = g.below(2 * L + 1) - L;
  const mode = drawMode(g);
  call.batch = batched ? B : 0;
  call.dropping = mode.training;
  call.run = ([x], given) => runSteps(layer, mode, () => encoderTensors(layer.forward(x, { ...options, ...given })));
  return call;
}

function transformerEncoderLayer(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const o = encoderOptions(g, isLarge);
  const { numLayers: _, finalNorm: _1, numClasses: _2, pooling: _3, ...options } = o;
  return encoder(g, isLarge, o, new attn.TransformerEncoderLayer(options), 1);
}

function transformerEncoder(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const o = encoderOptions(g, isLarge);
  const { numClasses: _, pooling: _1, ...options } = o;
  return encoder(g, isLarge, o, new attn.TransformerEncoder(options), o.numLayers);
}

function transformerClassifier(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const o = encoderOptions(g, isLarge);
  return encoder(g, isLarge, o, new attn.TransformerClassifier(o), o.numLayers);
}

function neighborsTensor(neighbors: readonly { id: number; similarity: number }[]): Tensor {
  return { data: Float32Array.from(neighbors.flatMap(({ id, similarity }) => [id, similarity])), dims: [neighbors.length, 2] };
}

function embedding(g: Generator, attn: Attn): Call {
  const call = newCall();
  const N = 1 + g.below(40);
  const E = 1 + g.below(40);
  const padded = g.oneIn(3);
  const padding = g.below(N);
  const table = new attn.Embedding({ numEmbeddings: N, embeddingDim: E, ...(padded && { paddingIdx: padding }) });
  drawWeights(g, call, table);
  const rank = 1 + g.below(3);
  const idsDims = sizes(g, rank, 5);
  idsDims[0] -= 1;
  const form = g.below(3);
  const drawn: number[] = [];
  for (let i = 0; i < product(idsDims); i++) drawn.push(g.below(N));
  const ids = form === 0 ? Int32Array.from(drawn) : form === 1 ? BigInt64Array.from(drawn, BigInt) : drawn;
  const asked: number[] = [];
  for (let i = 0; i < 4; i++) asked.push(g.below(N));
  const k = g.below(N + 2);
  const target = values(g, [E], 1);
  call.run = () => [
    table.forward(ids, idsDims),
    neighborsTensor(table.nearest(asked[0], k)),
    neighborsTensor(table.nearest(target.data, k)),
    { data: Float32Array.of(table.similarity(asked[0], asked[1])), dims: [1] },
    neighborsTensor(table.analogy(asked[1], asked[2], asked[3], k)),
  ];
  return call;
}

function anySizes(g: Generator, rank: number): number[] {
  const small = [130, 24, 12, 6];
  const huge = [20000, 220, 40, 20];
  return sizes(g, rank, large(g) ? huge[rank - 1] : small[rank - 1]);
}

/** Records a function of one tensor whose first dimension is the batch. */
function runOne(call: Call, x: Tensor, f: (x: Tensor) => Tensor): Call {
  call.inputs = [x];
  call.batch = x.dims.length >= 2 ? x.dims[0] : 0;
  call.run = ([t]) => [f(t)];
  return call;
}

function linear(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const rank = 1 + g.below(4);
  const huge = [1, 150, 24, 9];
  const dims = sizes(g, rank - 1, isLarge ? huge[rank - 1] : 5);
  const K = 1 + g.below(isLarge ? 130 : 40);
  const N = 1 + g.below(isLarge ? 130 : 40);
  const biased = g.oneIn(2);
  const x = values(g, [...dims, K], 1);
  const weight = values(g, [N, K], 1);
  const bias = values(g, [N], 1);
  return runOne(newCall(), x, (t) => (biased ? attn.linear(t, weight, bias) : attn.linear(t, weight)));
}

function softmax(g: Generator, attn: Attn): Call {
  const rank = 1 + g.below(4);
  const dims = anySizes(g, rank);
  const dim = g.below(2 * rank) - rank;
  const call = runOne(newCall(), values(g, dims, 8), (x) => attn.softmax(x, dim));
  if (dim === 0 || dim === -rank) call.batch = 0;
  return call;
}

function norm(g: Generator, attn: Attn): Call {
  const rms = g.oneIn(2);
  const rank = 1 + g.below(4);
  const dims = anySizes(g, rank);
  const width = 1 + g.below(130);
  const affine = g.below(3);
  const eps = g.pick([1e-5, 1e-12, 1e-3, 0.5]);
  dims[rank - 1] = width;
  const x = values(g, dims, 4);
  const drawnWeight = values(g, [width], 1);
  const drawnBias = values(g, [width], 1);
  const weight = affine > 0 ? drawnWeight : undefined;
  const bias = affine === 2 ? drawnBias : undefined;
  return runOne(newCall(), x, (t) => (rms ? attn.rmsNorm(t, weight, eps) : attn.layerNorm(t, weight, bias, eps)));
}

function activation(g: Generator, attn: Attn): Call {
  const rank = 1 + g.below(4);
  const dims = anySizes(g, rank);
  const name = g.pick(activations);
  return runOne(newCall(), values(g, dims, 4), (x) => attn.activation(x, name));
}

function sinusoidalPositions(g: Generator, attn: Attn): Call {
  const L = length(g, 200);
  const width = g.below(65);
  return { ...newCall(), run: () => [attn.sinusoidalPositions(L, width)] };
}

function rotary(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const rank = 2 + g.below(3);
  const b = batch(g);
  const H = 1 + g.below(4);
  const L = length(g, isLarge ? 240 : 24);
  const D = 2 * (1 + g.below(20));
  const far = g.oneIn(2);
  const offset = g.below(2 ** 20) - 2 ** 19;
  const theta = g.pick([10000, 500000, 1, 2.5]);
  const interleaved = g.oneIn(2);
  const x = values(g, inputDims(rank, b, H, L, D), 1);
  const call = runOne(newCall(), x, (t) => attn.applyRotary(t, { theta, offset: far ? offset : 0, interleaved }));
  if (rank === 2) call.batch = 0;
  return call;
}

function alibi(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const H = 1 + g.below(20);
  const L = length(g, isLarge ? 110 : 20);
  const S = length(g, isLarge ? 110 : 20);
  const other = g.oneIn(2);
  return { ...newCall(), run: () => [other ? attn.alibiBias(H, L, S) : attn.alibiBias(H, L)] };
}

/** Draws softcap, window and queryOffset; S includes the past. */
function place(g: Generator, o: Writable<AttentionOptions>, S: number): void {
  const capped = g.oneIn(2);
  const cap = 1 + g.below(64);
  const windowed = g.oneIn(2);
  const left = g.below(S + 2);
  const right = g.below(S + 2);
  const moved = g.oneIn(3);
  const offset = g.below(2 * S + 1);
  o.outputPresent = g.oneIn(3);
  if (capped) o.softcap = cap / 8;
  if (windowed) o.window = [left - 1, right - 1];
  if (moved) o.queryOffset = offset - S;
}

function placedAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const s = attentionSizes(g);
  const D = 1 + g.below(40);
  const continued = g.oneIn(2);
  const drawn = g.below(40);
  const P = continued ? drawn : 0;
  call.inputs = [values(g, inputDims(s.rank, s.B, s.H, s.L, D), 0.5)];
  call.inputs = [...call.inputs, values(g, inputDims(s.rank, s.B, s.kvHeads, s.S, D), 0.5)];
  call.inputs = [...call.inputs, values(g, inputDims(s.rank, s.B, s.kvHeads, s.S, s.Dv), 1)];
  if (continued) {
    call.inputs = [...call.inputs, values(g, inputDims(s.rank, s.B, s.kvHeads, P, D), 0.5)];
    call.inputs = [...call.inputs, values(g, inputDims(s.rank, s.B, s.kvHeads, P, s.Dv), 1)];
  }
  call.batch = s.rank >= 3 ? s.B : 0;
  call.masks = masks(g, s.B, s.H, s.L, P + s.S, s.rank >= 3);
  const options: Writable<AttentionOptions> = attentionOptions(g, functionTraces);
  place(g, options, P + s.S);
  options.enableGqa = s.H !== s.kvHeads;
  call.dropping = options.dropout !== undefined;
  call.run = ([q, k, v, key, value], given) =>
    attentionTensors(attn.scaledDotProductAttention(q, k, v, { ...options, ...given, ...(continued && { past: { key, value } }) }));
  return call;
}

function rotaryOptions(g: Generator): { theta: number; interleaved: boolean; offset: number } {
  const theta = g.pick([10000, 500000, 1, 2.5]);
  const interleaved = g.oneIn(2);
  const offset = g.below(2000) - 1000;
  return { theta, interleaved, offset };
}

function placedMultiHeadAttention(g: Generator, attn: Attn): Call {
  const call = newCall();
  const kv = 1 + g.below(3);
  const group = 1 + g.below(3);
  const half = 1 + g.below(6);
  const E = 1 + g.below(30);
  const Dv = 1 + g.below(9);
  const [H, D] = [kv * group, 2 * half];
  const turned = !g.oneIn(3);
  const drawnRotary = rotaryOptions(g);
  const layer = new attn.MultiHeadAttention({
    embedDim: E,
    numHeads: H,
    numKeyValueHeads: kv,
    headDim: D,
    valueHeadDim: Dv,
    ...(turned && { rotary: drawnRotary }),
  });
  drawWeights(g, call, layer);

  const batched = !g.oneIn(4);
  const b = batch(g);
  const L = rows(g, false);
  const S = rows(g, false);
  const cross = g.oneIn(3);
  const continued = g.oneIn(2);
  const drawn = g.below(30);
  const P = continued ? drawn : 0;
  const keys = P + (cross ? S : L);
  const rank = batched ? 3 : 2;
  const B = batched ? b : 1;
  const x = values(g, inputDims(rank, B, 1, L, E), 1);
  call.inputs = [x, cross ? values(g, inputDims(rank, B, 1, S, E), 1) : x];
  if (continued) {
    call.inputs = [...call.inputs, values(g, batched ? [B, kv, P, D] : [kv, P, D], 1)];
    call.inputs = [...call.inputs, values(g, batched ? [B, kv, P, Dv] : [kv, P, Dv], 1)];
  }
  call.masks = masks(g, B, H, L, keys, batched);
  const options: Writable<AttentionOptions> = attentionOptions(g, traceNames);
  place(g, options, keys);
  call.batch = batched ? B : 0;
  call.dropping = options.dropout !== undefined;
  call.run = ([query, memory, key, value], given) => {
    const other = cross ? memory : undefined;
    return attentionTensors(layer.forward(query, other, other, { ...options, ...given, ...(continued && { past: { key, value } }) }));
  };
  return call;
}

function placedEncoder(g: Generator, attn: Attn): Call {
  const isLarge = large(g);
  const { numClasses: _, pooling: _1, ...drawn } = encoderOptions(g, isLarge);
  const grouped = g.oneIn(2);
  const turned = g.oneIn(2);
  const drawnRotary = rotaryOptions(g);
  const windowed = g.oneIn(2);
  const left = g.below(12);
  const right = g.below(12);
  const cap = g.below(64);
  const options = {
    ...drawn,
    ...(grouped && drawn.nhead % 2 === 0 && { numKeyValueHeads: drawn.nhead / 2 }),
    ...(turned && (drawn.dModel / drawn.nhead) % 2 === 0 && { rotary: drawnRotary }),
    ...(windowed && { window: [left - 1, right - 1] as const }),
    softcap: cap / 8,
  };
  return encoder(g, isLarge, { ...options, numClasses: 1 }, new attn.TransformerEncoder(options), options.numLayers, true);
}

const kinds = [
  scaledDotProductAttention,
  transformerEncoderLayer,
  linear,
  multiHeadAttention,
  additiveAttention,
  scaledDotProductAttention,
  transformerEncoder,
  softmax,
  multiHeadAttention,
  generalAttention,
  scaledDotProductAttention,
  transformerClassifier,
  norm,
  multiHeadAttention,
  additiveAttention,
  embedding,
  transformerEncoder,
  activation,
  multiHeadAttention,
  generalAttention,
  sinusoidalPositions,
  transformerClassifier,
  rotary,
  scaledDotProductAttention,
  alibi,
  longAttention,
];

const placedKinds = [placedAttention, placedMultiHeadAttention, placedEncoder];

export const forwards = 12000;
/** The last forwards use windows, softcaps, positions and pasts. */
const placedForwards = 2000;

/** Draws the call with this number, below `forwards`. */
export const drawCall = (g: Generator, attn: Attn, number: number): Call =>
  number < forwards - placedForwards ? kinds[number % kinds.length](g, attn) : placedKinds[number % placedKinds.length](g, attn);

const quantizedKinds = [
  transformerEncoderLayer,
  multiHeadAttention,
  transformerEncoder,
  transformerClassifier,
  placedMultiHeadAttention,
  embedding,
  placedEncoder,
];

export const quantizedForwards = 1500;

/**
 * Draws the call with this number, below `quantizedForwards`, of a quantized layer. Its bits are the same on every
 * machine.
 */
export function drawQuantizedCall(g: Generator, attn: Attn, number: number): Call {
  const call = quantizedKinds[number % quantizedKinds.length](g, attn);
  try {
    call.quantize!();
  } catch (error) {
    // Some weights contain NaN or infinities, which int8 cannot represent.
    if ((error as AttnError).code !== 'FORMAT') throw error;
    call.batch = 0;
    call.run = () => [];
  }
  return call;
}
