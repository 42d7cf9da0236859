import { readFileSync } from 'node:fs';
import { load, readSafetensorsHeader, type Tensor } from 'attn';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { layerNames, onPaper, type LinearNames } from '../src/model/parameter_names.ts';

const folder = (model: string) => new URL(`../../../testdata/models/${model}/`, import.meta.url);

function shapesOf(model: string): Map<string, readonly number[]> {
  const file = readFileSync(new URL('model.safetensors', folder(model)));
  return new Map(Object.entries(readSafetensorsHeader(file).tensors).map(([name, { shape }]) => [name, shape]));
}

const whole = (name: string, count: number) => ({ name, first: 0, count });

describe('the parameter names of a layer', () => {
  it('are found in BERT with and without the prefix of a model with a head', () => {
    for (const [model, prefix, width] of [
      ['sentiment', 'bert.', 64],
      ['tiny-bert-cls', '', 32],
    ] as const) {
      const layer = `${prefix}encoder.layer.1.`;
      const names = layerNames(shapesOf(model), 1)!;
      expect(names.query).toEqual({
        weight: whole(`${layer}attention.self.query.weight`, width),
        bias: whole(`${layer}attention.self.query.bias`, width),
      });
      expect(names.output.weight).toEqual(whole(`${layer}attention.output.dense.weight`, width));
      expect(names.norm1!.weight.name).toBe(`${layer}attention.output.LayerNorm.weight`);
      expect(names.norm2!.weight.name).toBe(`${layer}output.LayerNorm.weight`);
      expect(names.linear2.weight.name).toBe(`${layer}output.dense.weight`);
      expect(names.gate).toBeUndefined();
    }
  });

  it('are the same for every layer of ALBERT, and undefined if it has several sets of weights', () => {
    expect(layerNames(shapesOf('tiny-albert'), 2)!.linear2.weight.name).toBe(
      'albert.encoder.albert_layer_groups.0.albert_layers.0.ffn_output.weight',
    );
    expect(layerNames(shapesOf('tiny-albert-mlm'), 0)).toBeUndefined();
  });

  it('are found in gated post-norm encoders with fused or separate matrices', () => {
    const weights = (model: string) => {
      const names = layerNames(shapesOf(model), 0)!;
      return [names.query, names.key, names.gate!, names.linear1].map(({ weight }) => `${weight.name} ${weight.first}`);
    };
    const jina = 'bert.encoder.layer.0';
    expect(weights('tiny-jina')).toEqual([
      `${jina}.attention.self.query.weight 0`,
      `${jina}.attention.self.key.weight 0`,
      `${jina}.mlp.gated_layers.weight 0`,
      `${jina}.mlp.gated_layers.weight 24`,
    ]);
    const gte = 'gte.encoder.layer.0';
    expect(weights('tiny-gte')).toEqual([
      `${gte}.attention.qkv_proj.weight 0`,
      `${gte}.attention.qkv_proj.weight 16`,
      `${gte}.mlp.up_gate_proj.weight 24`,
      `${gte}.mlp.up_gate_proj.weight 0`,
    ]);
    expect(weights('tiny-nomic-2024')[2]).toBe('encoder.layers.0.mlp.fc12.weight 0');
    expect(weights('tiny-nomic')[3]).toBe('nomic_bert.layers.0.mlp.up_proj.weight 0');
  });

  it('are found in early BERT files, which call the norm parameters gamma and beta', () => {
    expect(layerNames(shapesOf('tiny-bert-legacy'), 0)!.norm2).toEqual({
      weight: whole('bert.encoder.layer.0.output.LayerNorm.gamma', 32),
      bias: whole('bert.encoder.layer.0.output.LayerNorm.beta', 32),
    });
  });

  it('are found in the fused matrices of ModernBERT', () => {
    const names = layerNames(shapesOf('tiny-modernbert'), 2)!;
    const fused = 'model.layers.2.attn.Wqkv.weight';
    expect([names.query, names.key, names.value].map(({ weight }) => weight)).toEqual([
      { name: fused, first: 0, count: 32 },
      { name: fused, first: 32, count: 32 },
      { name: fused, first: 64, count: 32 },
    ]);
    expect(names.query.bias).toBeUndefined();
    expect([names.gate!.weight, names.linear1.weight]).toEqual([
      { name: 'model.layers.2.mlp.Wi.weight', first: 0, count: 48 },
      { name: 'model.layers.2.mlp.Wi.weight', first: 48, count: 48 },
    ]);
    const biased = layerNames(shapesOf('tiny-modernbert-2024'), 1)!;
    expect(biased.value.bias).toEqual({ name: 'model.layers.1.attn.Wqkv.bias', first: 64, count: 32 });
    expect(layerNames(shapesOf('tiny-modernbert'), 0)!.norm1, 'the first layer has no norm before its attention').toBeUndefined();
  });

  it.each(['tiny-bert', 'tiny-bert-multilabel', 'tiny-distilbert', 'tiny-mpnet', 'tiny-mpnet-mean', 'tiny-roberta', 'tiny-xlm-roberta'])(
    'are unique and have the expected shapes in %s',
    (model) => {
      const shapes = shapesOf(model);
      const names = layerNames(shapes, 1)!;
      const parts = [names.query, names.key, names.value, names.output, names.linear1, names.linear2, names.norm1!, names.norm2!];
      const all = parts.flatMap(({ weight, bias }) => [weight.name, bias!.name]);
      expect(new Set(all).size).toBe(16);
      expect(all.every((name) => name.includes('.layer.1.'))).toBe(true);
      expect(shapes.get(names.query.weight.name)).toEqual([32, 32]);
      expect(shapes.get(names.linear1.weight.name)).toEqual([48, 32]);
      expect(shapes.get(names.linear2.weight.name)).toEqual([32, 48]);
      expect(parts.slice(6).map(({ weight }) => shapes.get(weight.name))).toEqual([[32], [32]]);
    },
  );

  it('of GPT-2 are transposed, and its queries, keys and values share a matrix', () => {
    const names = layerNames(shapesOf('tiny-gpt2'), 1)!;
    const fused = 'transformer.h.1.attn.c_attn.weight';
    expect([names.query, names.key, names.value].map(({ weight }) => weight)).toEqual(
      [0, 24, 48].map((first) => ({ name: fused, first, count: 24 })),
    );
    expect(names.key.bias).toEqual({ name: 'transformer.h.1.attn.c_attn.bias', first: 24, count: 24 });
    expect(names.linear1.weight).toEqual({ name: 'transformer.h.1.mlp.c_fc.weight', first: 0, count: 96 });
    const tensor = { data: Float32Array.from([1, 2, 3, 4, 5, 6]), dims: [2, 3] };
    const { ins, outs, value, indexOf } = onPaper(tensor, { name: 'h.0.mlp.c_fc.weight', first: 1, count: 2 });
    expect([ins, outs, value(0, 0), value(1, 1), indexOf({ row: 1, column: 0 })]).toEqual([2, 2, 2, 6, 4]);
  });

  it('of decoders with grouped heads have fewer keys and values, and their own norms', () => {
    const names = layerNames(shapesOf('tiny-llama'), 1)!;
    expect([names.query.weight.count, names.key.weight.count, names.value.weight.count]).toEqual([24, 12, 12]);
    expect(names.norm1!.weight.name).toBe('model.layers.1.input_layernorm.weight');
    expect(names.norm2!.weight.name).toBe('model.layers.1.post_attention_layernorm.weight');
    expect(layerNames(shapesOf('tiny-gemma-2'), 0)!.norm2!.weight.name).toBe('model.layers.0.pre_feedforward_layernorm.weight');
    expect(layerNames(shapesOf('tiny-neox'), 0), 'its matrix has the heads one after the other').toBeUndefined();
  });

  it('distinguish layer 1 from layer 11 and are undefined for a missing layer or family', () => {
    const one = new Map([...shapesOf('tiny-bert')].map(([name, shape]) => [name.replace('.layer.1.', '.layer.11.'), shape]));
    expect(layerNames(one, 1)).toBeUndefined();
    expect(layerNames(one, 11)!.key.weight.name).toBe('bert.encoder.layer.11.attention.self.key.weight');
    expect(layerNames(new Map([['h.0.attn.c_attn.weight', [96, 32]]]), 0)).toBeUndefined();
  });
});

describe('the named parameters', () => {
  let attn: Awaited<ReturnType<typeof load>>;
  beforeAll(async () => void (attn = await load({ variant: 'simd' })));
  afterAll(() => attn.dispose());

  it.each([
    'tiny-bert',
    'tiny-bert-legacy',
    'tiny-distilbert',
    'tiny-mpnet',
    'tiny-roberta',
    'tiny-xlm-roberta',
    'tiny-modernbert',
    'tiny-modernbert-2024',
  ])('reproduce the intermediate values of a layer of %s', async (model) => {
    const text = await attn.loadModel(folder(model));
    const { hiddenStates, trace: traces } = text.forward(text.tokenize('A film with wonderful actors'), {
      outputHiddenStates: true,
      trace: { layers: [1] },
    });
    const trace = traces!.get(1)!;
    const names = layerNames(text.parameterShapes(), 1)!;
    const preNorm = text.config['model_type'] === 'modernbert';
    const head = 2;
    /** Linear layer: output `first + column` of row 3. */
    const compute = (x: Tensor, { weight, bias }: LinearNames, first: number, column: number) => {
      const part = { out: [first, 1 + column] as const };
      const w = onPaper(text.getParameter(weight.name), weight, part);
      const width = x.dims.at(-1)!;
      let sum = bias ? onPaper(text.getParameter(bias.name), bias, part).value(0, column) : 0;
      for (let i = 0; i < width; ++i) sum += x.data[3 * width + i]! * w.value(i, column);
      return sum;
    };
    const number = (x: Tensor, column: number) => x.data[3 * x.dims.at(-1)! + column]!;
    const x = preNorm ? trace.norm1! : hiddenStates![1]!;
    const width = x.dims[2]! / 4;
    for (const [part, name] of [
      ['query', 'q_proj'],
      ['key', 'k_proj'],
      ['value', 'v_proj'],
    ] as const)
      expect(compute(x, names[part], head * width, 5), part).toBeCloseTo(number(trace[name]!, head * width + 5), 4);
    expect(compute(trace.merged!, names.output, 0, 7), 'output').toBeCloseTo(number(trace.output!, 7), 4);
    expect(compute(trace.ff_hidden!, names.linear2, 0, 9), 'linear2').toBeCloseTo(number(trace.ff_output!, 9), 4);
    const act = (value: number, of: string) => {
      const named = { gelu: 'gelu', gelu_new: 'gelu_tanh', gelu_pytorch_tanh: 'gelu_tanh', relu: 'relu', silu: 'silu' }[of] as 'gelu';
      return attn.activation({ data: Float32Array.of(value), dims: [1] }, named).data[0]!;
    };
    const activation = String(text.config['hidden_act'] ?? text.config['activation'] ?? text.config['hidden_activation']);
    const z = preNorm ? trace.norm2! : trace.norm1!;
    const one = compute(z, names.linear1, 0, 11);
    const hidden = names.gate ? act(compute(z, names.gate, 0, 11), activation) * one : act(one, activation);
    expect(hidden, 'linear1 and gate').toBeCloseTo(number(trace.ff_hidden!, 11), 4);
    const [before, after, norm] = preNorm ? [trace.attn_residual!, trace.norm2!, names.norm2!] : [trace.ff_residual!, trace.norm2!, names.norm2!];
    const row = Array.from(before.data.subarray(3 * 4 * width, 4 * 4 * width));
    const mean = row.reduce((a, b) => a + b) / row.length;
    const variance = row.reduce((sum, value) => sum + (value - mean) ** 2, 0) / row.length;
    const gamma = onPaper(text.getParameter(norm.weight.name), norm.weight).value(0, 13);
    const beta = norm.bias ? onPaper(text.getParameter(norm.bias.name), norm.bias).value(0, 13) : 0;
    expect(((row[13]! - mean) / Math.sqrt(variance + 1e-6)) * gamma + beta, 'norm2').toBeCloseTo(number(after, 13), 3);
    text.dispose();
  });
});
