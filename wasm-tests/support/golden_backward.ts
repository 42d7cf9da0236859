/**
 * Golden cases of gradients, losses and optimisers (testdata/backward, layers_backward, encoder_backward, losses and
 * optimizers.safetensors).
 */
import type { Activation, Attn, EncoderForwardOptions, Optimizer, ParameterGroup, Tensor, TraceName } from 'attn';
import { assert } from 'chai';
import { compareCase, type GoldenCase, type Results, Running } from './golden.ts';
import { slice } from './tensors.ts';

export interface Opened {
  readonly tensors: Map<string, Tensor>;
  readonly cases: ReadonlyMap<string, GoldenCase>;
}

type Gradients = { readonly trace?: { readonly [name in TraceName]?: Tensor } } & { readonly [name: string]: unknown };

/** Renames gradQuery to grad_query, and traces likewise. */
function namesOf({ trace, ...gradients }: Gradients): Results {
  const all: Results = new Map();
  for (const [name, tensor] of Object.entries(gradients))
    all.set(
      name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      tensor as Tensor,
    );
  for (const [name, tensor] of Object.entries(trace ?? {})) all.set(`trace.${name}`, tensor);
  return all;
}

const gradX = (t: Tensor): Results => new Map([['grad_x', t]]);

const traceOf = (c: GoldenCase) =>
  Object.keys(c.expected)
    .filter((name) => name.startsWith('trace.'))
    .map((name) => name.slice(6) as TraceName);

/** Options of backward: those of forward, backward's own traces, and options absent from the forward case. */
function attentionOptions(own: Running, forward: Running): object {
  const { dropout, seed } = own.case.options;
  if (own !== forward) own.options();
  const trace = traceOf(own.case);
  return {
    ...forward.options(),
    ...(dropout !== undefined && { dropout }),
    ...(seed !== undefined && { seed }),
    trace: trace.length ? trace : false,
  };
}

function encoderBackward(name: 'TransformerEncoderLayer' | 'TransformerEncoder' | 'TransformerClassifier', own: Running, forward: Running): Results {
  const encoder = new own.attn[name](forward.case.module as never);
  encoder.loadStateDict(forward.state());
  const { trace, ...options } = forward.options() as EncoderForwardOptions;
  encoder.forward(forward.input('x'), { ...options, outputAttentions: false, outputHiddenStates: false, forBackward: true });
  const found = encoder.backward(own.input('grad'), { trace });
  const all = gradX(found.gradX);
  for (const [layer, tensors] of found.trace ?? []) for (const [step, tensor] of Object.entries(tensors)) all.set(`trace.${layer}.${step}`, tensor);
  for (const [parameter, tensor] of encoder.gradients()) all.set(`state.${parameter}`, tensor);
  encoder.dispose();
  return all;
}

/** `own` is the gradient case, `forward` the case with the inputs. */
const runners: Readonly<Record<string, (own: Running, forward: Running) => Results>> = {
  linear_backward: (own, forward) => namesOf(own.attn.linearBackward(own.input('grad'), forward.input('x'), forward.input('weight'))),
  softmax_backward: (own, forward) => {
    const dim = own.option<number>('dim');
    return gradX(own.attn.softmaxBackward(own.input('grad'), own.attn.softmax(forward.input('x'), dim), dim));
  },
  layer_norm_backward: (own, forward) => {
    const bias = forward.optional('bias');
    // A bias without weight is tested with a weight of ones.
    const weight = forward.optional('weight') ?? (bias && { data: bias.data.map(() => 1), dims: bias.dims });
    return namesOf(own.attn.layerNormBackward(own.input('grad'), forward.input('x'), weight, own.option('eps')));
  },
  rms_norm_backward: (own, forward) =>
    namesOf(own.attn.rmsNormBackward(own.input('grad'), forward.input('x'), forward.optional('weight'), own.option('eps'))),
  activation_backward: (own, forward) => gradX(own.attn.activationBackward(own.input('grad'), forward.input('x'), own.option<Activation>('name')!)),
  apply_rotary_backward: (own) => gradX(own.attn.applyRotaryBackward(own.input('grad'), own.options())),
  scaled_dot_product_attention_backward: (own, forward) => {
    const [grad, query, key, value] = [own.input('grad'), forward.input('query'), forward.input('key'), forward.input('value')];
    return namesOf(own.attn.scaledDotProductAttentionBackward(grad, query, key, value, attentionOptions(own, forward)) as never);
  },
  general_attention_backward: (own, forward) => {
    const [grad, query, key, value] = [own.input('grad'), forward.input('query'), forward.input('key'), forward.input('value')];
    const params = { weight: forward.input('weight') };
    return namesOf(own.attn.generalAttentionBackward(grad, query, key, value, params, attentionOptions(own, forward)) as never);
  },
  additive_attention_backward: (own, forward) => {
    const [grad, query, key, value] = [own.input('grad'), forward.input('query'), forward.input('key'), forward.input('value')];
    const [queryWeight, keyWeight, scoreWeight] = ['queryWeight', 'keyWeight', 'scoreWeight'].map((name) => forward.input(name));
    const params = { queryWeight, keyWeight, scoreWeight, bias: forward.optional('bias') };
    return namesOf(own.attn.additiveAttentionBackward(grad, query, key, value, params, attentionOptions(own, forward)) as never);
  },
  multi_head_attention_backward: (own, forward) => {
    const mha = new own.attn.MultiHeadAttention(forward.case.module as never);
    mha.loadStateDict(forward.state());
    const key = forward.optional('key');
    const value = forward.optional('value') ?? key;
    mha.forward(forward.input('query'), key, value, { ...forward.options(), trace: false, forBackward: true });
    const trace = traceOf(own.case);
    const gradients = mha.backward(own.input('grad'), trace.length ? { trace } : {});
    const all = namesOf(gradients as never);
    for (const [name, tensor] of mha.gradients()) all.set(`state.${name}`, tensor);
    mha.dispose();
    return all;
  },
  transformer_encoder_layer_backward: (own, forward) => encoderBackward('TransformerEncoderLayer', own, forward),
  transformer_encoder_backward: (own, forward) => encoderBackward('TransformerEncoder', own, forward),
  transformer_classifier_backward: (own, forward) => encoderBackward('TransformerClassifier', own, forward),
};

/** Runs a gradient case; `file` opens another file by name, or its own. */
export function runBackward(attn: Attn, file: (name: string | undefined) => Opened, c: GoldenCase): void {
  const own = new Running(attn, file(undefined).tensors, c);
  const { tensors, cases } = file(c.of);
  if (!Object.hasOwn(runners, c.op)) assert.fail(`${c.name}: no runner for ${c.op}`);
  const forward = c.of === undefined ? own : new Running(attn, tensors, cases.get(c.name)!);
  compareCase(own, runners[c.op](own, forward));
}

export function runLoss(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase): void {
  const own = new Running(attn, tensors, c);
  const [weight, posWeight] = [own.optional('weight'), own.optional('posWeight')];
  const { labels, ...options } = own.options() as { labels: number[] };
  const all = { ...options, ...(weight && { weight }), ...(posWeight && { posWeight }) };
  const { loss, gradient } =
    c.op === 'cross_entropy'
      ? attn.crossEntropy(own.input('logits'), labels, all)
      : c.op === 'mse_loss'
        ? attn.mseLoss(own.input('prediction'), own.input('target'), options)
        : attn.binaryCrossEntropyWithLogits(own.input('logits'), own.input('target'), all);
  const { dims } = own.stored('expected.loss');
  compareCase(
    own,
    new Map([
      ['gradient', gradient],
      ['loss', { data: Float32Array.of(loss), dims }],
    ]),
  );
}

interface OptimizerOptions {
  readonly groups?: readonly { names: string; learningRate?: number; weightDecay?: number }[];
  readonly begins?: Readonly<Record<string, number>>;
  readonly schedule?: { warmup: number; steps: number };
  readonly maxNorm?: number;
  readonly learningRate?: number;
}

/**
 * Runs 100 steps on given gradients. An embedding accepts any gradient for its first rows, so each parameter of the
 * case is the matrix of one embedding, with a parameter group of its optimiser.
 */
export function runOptimizer(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase): void {
  const own = new Running(attn, tensors, c);
  const { groups = [], begins = {}, schedule, maxNorm, ...options } = own.options() as OptimizerOptions;
  const parameters = [...own.state()].map(([name, first]) => {
    const { dims } = first;
    const [rows, width] = [dims[0], dims[1] ?? 1];
    const table = new attn.Embedding({ numEmbeddings: rows, embeddingDim: width });
    table.loadStateDict({ weight: { data: first.data, dims: [rows, width] } });
    const group = groups.find(({ names }) => name.includes(names));
    const made: readonly ParameterGroup[] = group
      ? [
          { ...group, names: /^weight$/ },
          { names: /./, learningRate: 100 },
        ]
      : [];
    const Class = attn[c.op as 'SGD' | 'Adam' | 'AdamW'];
    const optimizer: Optimizer = new Class([table], { ...options, ...(group && { groups: made }) });
    const all = own.input(`gradient.${name}`);
    return { name, dims, table, optimizer, all, ids: Int32Array.from({ length: rows }, (_, i) => i), width };
  });
  const results: Results = new Map();
  const take = (end: string) => {
    for (const { name, dims, table } of parameters) results.set(name + end, { data: table.stateDict().get('weight')!.data, dims });
  };
  const norms: number[] = [];
  for (let step = 0; step < 100; step++) {
    for (const { name, table, optimizer, all, ids, width } of parameters) {
      optimizer.zeroGrad();
      if (step < (begins[name] ?? 0)) continue;
      table.forward(ids, undefined, { forBackward: true });
      table.backward({ data: slice(all, 0, step, step + 1).data, dims: [ids.length, width] });
    }
    if (schedule)
      for (const { optimizer } of parameters)
        optimizer.learningRate = attn.linearSchedule(step, { learningRate: options.learningRate!, ...schedule });
    if (maxNorm !== undefined)
      norms.push(
        attn.clipGradNorm(
          parameters.map(({ table }) => table),
          maxNorm,
        ),
      );
    for (const { optimizer } of parameters) optimizer.step();
    if (step === 0) take('.first');
  }
  take('');
  for (const { name, dims, optimizer } of parameters)
    for (const [kept, tensor] of optimizer.stateDict())
      if (!kept.endsWith('.step')) results.set(name + kept.replace('0.weight', ''), { data: tensor.data, dims });
  if (norms.length) results.set('norms', { data: Float32Array.from(norms), dims: [100] });
  for (const { table, optimizer } of parameters) {
    optimizer.dispose();
    table.dispose();
  }
  assert.sameMembers([...results.keys()], Object.keys(c.expected));
  compareCase(own, results);
}

export function runSchedule(attn: Attn, tensors: Map<string, Tensor>, c: GoldenCase): void {
  const own = new Running(attn, tensors, c);
  const options = own.options() as { learningRate: number; steps: number };
  const [high, low] = [own.stored('expected.high').data, own.stored('expected.low').data];
  for (let step = 0; step < options.steps; step++) {
    const rate = c.op === 'linear_schedule' ? attn.linearSchedule(step, options) : attn.cosineSchedule(step, options);
    assert.isAtMost(Math.abs(rate - (high[step] + low[step])), 1e-14 * options.learningRate, `${c.name}: step ${step}`);
  }
  own.assertAllRead();
}
