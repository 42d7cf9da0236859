import { type Attn, AttnError, type Encoding, readSafetensorsHeader, type Tensor, type TextModel } from 'attn';
import { load as loadWorker, AttnError as WorkerError } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { checkpoints, encoders, ofBuild } from '../support/model_cases.ts';
import { assertSameBits, random, tensor } from '../support/tensors.ts';

type Weights = 'auto' | 'float32' | 'int8';
type Files = Record<string, Uint8Array>;

const texts = ['A happy person smiles.', '', 'Was it bad?', 'The film was not bad, it was good!'];
const folder = (name: string) => url(`testdata/models/${name}`);
const loadAs = (attn: Attn, name: string, weights: Weights) => attn.loadModel(folder(name), { cache: 'none', weights });
const everything = { outputAttentions: true, outputHiddenStates: true } as const;
const wordsOf = (model: TextModel) => [...model.parameterShapes().keys()].find((name) => /(word|tok)_embeddings\.weight$/.test(name))!;
const queryOf = (model: TextModel) =>
  [...model.parameterShapes().keys()].find((name) => /\.(query|query_proj|q_lin|q_proj|qkv_proj|Wqkv|attn\.q)\.weight$/.test(name))!;

function headerOf(file: Uint8Array) {
  const { tensors, metadata, dataStart } = readSafetensorsHeader(file);
  assert.deepEqual(metadata, { format: 'pt' });
  let end = 0;
  for (const { dtype, data_offsets } of Object.values(tensors)) {
    assert.equal(data_offsets[0], end);
    assert.equal(data_offsets[0] % { F32: 4, F16: 2, I8: 1 }[dtype]!, 0, 'a multiple of its width');
    end = data_offsets[1];
  }
  assert.equal(dataStart + end, file.length);
  return tensors;
}
const configOf = (files: Files) => JSON.parse(new TextDecoder().decode(files['config.json']));

function assertSameForward(got: TextModel, expected: TextModel, inputs: Encoding, what: string): void {
  const [a, b] = [got.forward(inputs, everything), expected.forward(inputs, everything)];
  assertSameBits(a.lastHiddenState, b.lastHiddenState, what);
  if (b.logits) assertSameBits(a.logits!, b.logits, what);
  b.attentions!.forEach((each, i) => assertSameBits(a.attentions![i], each, `${what}: attention ${i}`));
}

describe('int8 models as files', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of ofBuild(encoders))
    it(`${name}: int8 files give the same bits as weights quantized while loading`, async () => {
      const [floats, quantized] = [await loadAs(attn, name, 'auto'), await loadAs(attn, name, 'int8')];
      assert.deepEqual([floats.weights, quantized.weights], ['float32', 'int8']);
      const files = await quantized.export();
      assert.includeMembers(Object.keys(files), ['config.json', 'tokenizer.json', 'model.safetensors', 'tokenizer_config.json']);
      const header = headerOf(files['model.safetensors']);
      const int8 = Object.keys(header).filter((key) => header[key].dtype === 'I8');
      assert.include(int8, wordsOf(quantized));
      assert.include(int8, queryOf(quantized));
      for (const key of int8) assert.deepEqual(header[`${key}_scale`].shape, [header[key].shape[0], 1]);
      assert.equal(configOf(files).quantization_config.quant_method, 'compressed-tensors');

      const again = await attn.loadModel(files);
      assert.equal(again.weights, 'int8');
      const inputs = quantized.tokenize(texts);
      assertSameForward(again, quantized, inputs, 'read back');
      assertSameBits(await again.embed(texts), await quantized.embed(texts), 'embed');
      assert.deepEqual(await again.export(), files, 'written again');
      assert.deepEqual(await floats.export({ weights: 'int8' }), files, 'of float32');

      const dequantized = await attn.loadModel(files, { weights: 'float32' });
      assert.equal(dequantized.weights, 'float32');
      for (const [key, values] of quantized.stateDict()) assertSameBits(dequantized.getParameter(key), values, key);
      const asFloats = await quantized.export({ weights: 'float32' });
      assert.deepEqual(asFloats, await dequantized.export());
      assert.notProperty(configOf(asFloats), 'quantization_config');
      assertSameForward(await attn.loadModel(asFloats), dequantized, inputs, 'float32 files');
      for (const model of [floats, quantized, again, dequantized]) model.dispose();
    });

  for (const name of ofBuild(checkpoints))
    it(`${name}: float32 files have the same numbers, float16 files the nearest ones`, async () => {
      const model = await loadAs(attn, name, 'float32');
      const [floats, halves] = [await model.export(), await model.export({ weights: 'float16' })];
      assert.equal(configOf(halves).dtype ?? configOf(halves).torch_dtype, 'float16');
      assert.equal(configOf(floats).dtype ?? configOf(floats).torch_dtype, 'float32');
      const state = attn.parseSafetensors(floats['model.safetensors']);
      const nearest = attn.parseSafetensors(halves['model.safetensors']);
      for (const { dtype } of Object.values(headerOf(halves['model.safetensors']))) assert.equal(dtype, 'F16');
      for (const [key, values] of model.stateDict()) {
        assertSameBits(state.get(key), values, key);
        const got = nearest.get(key)!;
        values.data.forEach((value, i) => {
          const binade = Math.max(Math.floor(Math.log2(Math.abs(value) || 1)), -14);
          if (!(Math.abs(got.data[i] - value) <= 2 ** (binade - 11))) assert.fail(`${key}[${i}]: ${got.data[i]} for ${value}`);
        });
      }
      const again = await attn.loadModel(halves);
      assert.equal(again.weights, 'float32');
      assert.deepEqual(await again.export({ weights: 'float16' }), halves);
      model.dispose();
      again.dispose();
    });

  it('a classifier tied to the embedding matrix has its scales under its own name, as transformers expects', async () => {
    const decoders = {
      'tiny-bert-mlm': 'cls.predictions.decoder',
      'tiny-distilbert-mlm': 'vocab_projector',
      'tiny-roberta-mlm': 'lm_head.decoder',
      'tiny-electra-mlm': 'generator_lm_head',
      'tiny-modernbert-mlm': 'decoder',
    };
    for (const [name, decoder] of Object.entries(decoders)) {
      const model = await loadAs(attn, name, 'int8');
      const file = (await model.export())['model.safetensors'];
      const header = headerOf(file);
      const start = file.length - Math.max(...Object.values(header).map(({ data_offsets }) => data_offsets[1]));
      const [own, ofWords] = [`${decoder}.weight_scale`, `${wordsOf(model)}_scale`].map((each) => header[each]);
      const bytesOf = ({ data_offsets: [from, to] }: (typeof header)[string]) => file.slice(start + from, start + to);
      assert.deepEqual(own.shape, ofWords.shape, name);
      assert.deepEqual(bytesOf(own), bytesOf(ofWords), name);
      assert.notProperty(header, `${decoder}.weight`);
      model.dispose();
    }
    const untied = await loadAs(attn, 'tiny-mpnet-mlm', 'int8');
    const header = headerOf((await untied.export())['model.safetensors']);
    assert.equal(header['lm_head.decoder.weight'].dtype, 'I8');
    untied.dispose();
  });

  it('every half float, values between two, and values beyond the range', async () => {
    const model = await loadAs(attn, 'tiny-bert', 'float32');
    const words = wordsOf(model);
    const table = model.getParameter(words);
    const write = async (values: ArrayLike<number>) => {
      table.data.set(values);
      model.loadStateDict({ [words]: table }, { strict: false });
      const file = (await model.export({ weights: 'float16' }))['model.safetensors'];
      const start = readSafetensorsHeader(file).dataStart + headerOf(file)[words].data_offsets[0];
      return new Uint16Array(file.buffer.slice(start, start + 2 * values.length));
    };
    const floatOf = (half: number) => {
      const [exponent, fraction] = [(half >> 10) & 31, half & 1023];
      return (
        (half >> 15 ? -1 : 1) *
        (exponent === 0 ? fraction * 2 ** -24 : exponent === 31 ? (fraction ? NaN : Infinity) : (1024 + fraction) * 2 ** (exponent - 25))
      );
    };
    for (let from = 0; from < 0x10000; from += 8192) {
      const halves = Array.from({ length: 8192 }, (_, i) => from + i).filter((half) => (half & 0x7fff) < 0x7c00);
      const next = (half: number) => ((half & 0x7fff) === 0x7bff ? floatOf(half) : floatOf(half + 1));
      assert.deepEqual([...(await write(halves.map(floatOf)))], halves);
      const even = halves.filter((half) => (half & 0x7fff) !== 0x7bff);
      assert.deepEqual(
        [...(await write(even.map((half) => (floatOf(half) + next(half)) / 2)))],
        even.map((half) => half + (half & 1)),
      );
    }
    assert.deepEqual([...(await write([Infinity, -Infinity, 65519, -65519, 2 ** -25, 2 ** -25 * 1.001]))], [0x7c00, 0xfc00, 0x7bff, 0xfbff, 0, 1]);
    assert.isNaN(floatOf((await write([NaN]))[0]));
    table.data[0] = 65520;
    model.loadStateDict({ [words]: table }, { strict: false });
    const error = await assertRejects(model.export({ weights: 'float16' }), 'OUT_OF_RANGE', [words, '65520']);
    assert.equal(error.detail['argument'], words);
    table.data[0] = 0;
    table.data[40] = NaN;
    model.loadStateDict({ [words]: table }, { strict: false });
    await assertRejects(model.export({ weights: 'int8' }), 'FORMAT', [words, 'NaN']);
    assert.isTrue((await model.export()) instanceof Object, 'representable in float32');
    model.dispose();
  });

  it('in a worker: the same files, of the same type', async () => {
    const worker = await loadWorker(setup);
    const [here, there] = [
      await loadAs(attn, 'tiny-bert-cls', 'int8'),
      await worker.loadModel(folder('tiny-bert-cls'), { cache: 'none', weights: 'int8' }),
    ];
    assert.equal(await there.weights, 'int8');
    const files = await there.export();
    assert.deepEqual(files, await here.export());
    assert.deepEqual(await there.export({ weights: 'float16' }), await here.export({ weights: 'float16' }));
    assert.deepEqual(await there.export(), files, 'the sent bytes stay intact');
    const floats = await worker.loadModel(files, { weights: 'float32' });
    assert.equal(await floats.weights, 'float32');
    assert.equal(await (await worker.loadModel(files)).weights, 'int8');
    await assertRejects(there.export({ weights: 'int4' } as never), 'CONFIG', ['weights', 'float16'], WorkerError);
    await there.dispose();
    await assertRejects(there.export(), 'DISPOSED', [], WorkerError);
    await worker.dispose();
    here.dispose();
  });

  it('files of a model with parts in folders retain their names; changing the returned files does not change the given ones', async () => {
    const model = await loadAs(attn, 'tiny-bert-cls', 'int8');
    const files = await model.export();
    assert.includeMembers(Object.keys(files), ['modules.json', '1_Pooling/config.json', 'sentence_bert_config.json']);
    const modules = new TextDecoder().decode(files['modules.json']).replace(/"path": ""/, '"path": "0_Transformer"');
    const inside = Object.fromEntries(
      Object.entries(files).map(([name, file]) => [/^(modules|1_P|config_s)/.test(name) ? name : `0_Transformer/${name}`, file] as const),
    );
    const nested = await attn.loadModel({ ...inside, 'modules.json': modules });
    const written = await nested.export();
    assert.includeMembers(Object.keys(written), [
      'modules.json',
      '0_Transformer/config.json',
      '0_Transformer/model.safetensors',
      '1_Pooling/config.json',
    ]);
    assert.deepEqual(written['0_Transformer/model.safetensors'], files['model.safetensors']);
    for (const file of Object.values(written)) file.fill(0);
    assert.deepEqual((await nested.export())['0_Transformer/tokenizer.json'], files['tokenizer.json']);
    assertSameBits(await (await attn.loadModel(await nested.export())).embed(texts), await model.embed(texts), 'embed');
  });

  it('an unread head is not written, and config.json states that', async () => {
    const read = (name: string) => bytes(`testdata/models/tiny-bert-cls/${name}`);
    const given = { ...(JSON.parse(new TextDecoder().decode(await read('config.json'))) as object), architectures: ['BertForMaskedLM'] };
    const source = { 'config.json': JSON.stringify(given), 'tokenizer.json': await read('tokenizer.json'), 'model.safetensors': await read('model.safetensors') }; // prettier-ignore
    const model = await attn.loadModel(source, { weights: 'int8' });
    const { architectures } = model.config;
    const [first] = architectures as string[];
    const config = configOf(await model.export());
    assert.match(first, /For(PreTraining|MaskedLM)$/);
    assert.deepEqual(config.architectures, [first.replace(/For(PreTraining|MaskedLM)$/, 'Model')]);
    assert.deepEqual(model.config['architectures'], architectures);
    model.dispose();
  });

  it('architectures of any JSON type are refused with a typed error, or exported unchanged', async () => {
    const read = (name: string) => bytes(`testdata/models/tiny-bert-cls/${name}`);
    const before = JSON.parse(new TextDecoder().decode(await read('config.json'))) as object;
    const others = { 'tokenizer.json': await read('tokenizer.json'), 'model.safetensors': await read('model.safetensors') };
    for (const architectures of [5, {}, null, [5], [], 'BertForMaskedLM', [null], true, [['x']], undefined]) {
      const model = await attn.loadModel({ ...others, 'config.json': JSON.stringify({ ...before, architectures }) }).catch((error: unknown) => {
        assert.instanceOf(error, AttnError, JSON.stringify(architectures));
      });
      if (!model) continue;
      for (const weights of ['float32', 'int8'] as const)
        assert.deepEqual(configOf(await model.export({ weights })).architectures, architectures as never);
      model.dispose();
    }
  });

  it('wrong options are ARGUMENT with a suggestion', async () => {
    await assertRejects(attn.loadModel(folder('tiny-bert'), { weights: 'float16' } as never), 'CONFIG', ['weights', 'int8']);
    const model = await loadAs(attn, 'tiny-bert', 'int8');
    await assertRejects(model.export({ weigths: 'int8' } as never), 'ARGUMENT', ['Did you mean weights?']);
    await assertRejects(model.export({ weights: 8 } as never), 'ARGUMENT', ['weights']);
    await assertRejects(model.export(null as never), 'ARGUMENT', ['options']);
    model.dispose();
    await assertRejects(model.export(), 'DISPOSED');
    assertThrows(() => model.weights, 'DISPOSED');
  });

  it('an int8 model takes a third of the memory of float32, and disposal frees it', async () => {
    const own = await loadHere();
    const before = settledHeap(own);
    const used: number[] = [];
    for (const weights of ['float32', 'int8'] as const) {
      const model = await loadAs(own, 'sentiment', weights);
      used.push(settledHeap(own) - before);
      model.dispose();
    }
    assert.isAtMost(used[1] / used[0], 0.4, used.join());
    assert.equal(settledHeap(own), before);
    own.dispose();
  });
});

describe('int8 models, edited and traced', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of ofBuild(encoders))
    it(`${name}: parts of a layer equal those of the dequantized weights within the quantization error of their inputs`, async () => {
      const model = await loadAs(attn, name, 'int8');
      const floats = await attn.loadModel(await model.export(), { weights: 'float32' });
      const inputs = model.tokenize(texts);
      const { dims } = model.forward(inputs).lastHiddenState;
      const E = dims[2];
      const x = random(new Generator(5), dims);
      const steps = Float64Array.from({ length: dims[0] * dims[1] }, (_, row) => {
        const values = x.data.subarray(row * E, (row + 1) * E);
        return (Math.max(0, ...values) - Math.min(0, ...values)) / 255;
      });
      // Layer 0 must not begin with a norm, so that x is the input of the projections.
      const options = { patch: { layer: 0, hiddenState: x }, trace: { layers: [0], names: ['q_proj', 'k_proj', 'v_proj'] } } as const;
      const [got, expected] = [model.forward(inputs, options).trace!.get(0)!, floats.forward(inputs, options).trace!.get(0)!];
      const maps = /\b0\.\D*\.((query|key|value)(_proj)?|[qkv]_(lin|proj)|qkv_proj|Wqkv|attn\.[qkv])\.weight$/;
      // ALBERT numbers layers in groups.
      const weights = [...model.stateDict()].filter(([key]) => maps.test(key) && !/groups\.[1-9]/.test(key));
      const rows = weights
        .sort(([a], [b]) => 'qkv'.indexOf(/([qkv])[^.]*\.weight$/.exec(a)![1]) - 'qkv'.indexOf(/([qkv])[^.]*\.weight$/.exec(b)![1]))
        .flatMap(
          ([
            ,
            {
              data,
              dims: [count],
            },
          ]) => Array.from({ length: count }, (_, j) => data.subarray(j * E, (j + 1) * E)),
        );
      assert.lengthOf(rows, 3 * E);
      const sums = rows.map((row) => row.reduce((sum, value) => sum + Math.abs(value), 0));
      const norms = rows.map((row) => Math.hypot(...row));
      (['q_proj', 'k_proj', 'v_proj'] as const).forEach((part, which) => {
        let squares = 0;
        const { data } = got[part]!;
        data.forEach((value, i) => {
          const [step, j] = [steps[Math.floor(i / E)], which * E + (i % E)];
          const error = Math.abs(value - expected[part]!.data[i]);
          // Each number is off by at most half a step; the rest is float32 rounding.
          const allowed = (step / 2) * sums[j] * 1.001 + 1e-4;
          if (!(error <= allowed)) assert.fail(`${part}[${i}] is off by ${error}, allowed ${allowed}`);
          squares += (error / ((step / Math.sqrt(12)) * norms[j])) ** 2;
        });
        // The mean squared rounding error is step² / 12.
        assert.closeTo(Math.sqrt(squares / data.length), 1, 0.15, part);
      });
      model.dispose();
      floats.dispose();
    });

  it('patches, disabled heads, masks and traces also work with int8', async () => {
    const model = await loadAs(attn, 'tiny-bert', 'int8');
    const inputs = model.tokenize(texts);
    const [B, L] = inputs.dims;
    const plain = model.forward(inputs, { ...everything, trace: {} });
    const headMask = tensor([2, 4], [1, 0, -0.5, 2, 1, 1, 1, 1]);
    const masked = model.forward(inputs, { headMask, trace: { layers: [0], names: ['merged', 'context'] } });
    const { merged } = plain.trace!.get(0)! as Record<string, Tensor>;
    const E = merged.dims[2];
    const scaled = { dims: merged.dims, data: merged.data.map((value, i) => value * headMask.data[Math.floor((i % E) / (E / 4))]) };
    assertSameBits(masked.trace!.get(0)!.merged!, scaled, 'merged');
    assertSameBits(model.forward(inputs, { patch: { layer: 0, merged: scaled } }).lastHiddenState, masked.lastHiddenState, 'as a patch');
    assertSameBits(
      model.forward(inputs, { patch: { layer: 1, hiddenState: plain.hiddenStates![1] } }).lastHiddenState,
      plain.lastHiddenState,
      'its own hidden state',
    );
    assertSameBits(model.traceLayer(inputs, 1, ['merged']).merged!, plain.trace!.get(1)!.merged!, 'traceLayer');
    const open = model.forward(inputs, { mask: { kind: 'attend', data: new Uint8Array(L).fill(1), dims: [L] } });
    assertSameBits(open.lastHiddenState, plain.lastHiddenState, 'an open mask');
    assert.notDeepEqual(model.forward(inputs, { isCausal: true }).lastHiddenState, plain.lastHiddenState);
    assert.equal(B, texts.length);
    model.dispose();
  });

  it('word embeddings are those of the dequantized matrix: nearest, similarity, analogy', async () => {
    const model = await loadAs(attn, 'tiny-bert', 'int8');
    const { data, dims } = model.getParameter(wordsOf(model));
    const [count, E] = dims;
    const table = new attn.Embedding({ numEmbeddings: count, embeddingDim: E });
    table.loadStateDict({ weight: { data, dims } });
    const words = model.wordEmbeddings;
    for (const id of [3, 20, count - 1]) {
      assert.deepEqual(words.forward([id]), table.forward([id]));
      const [a, b] = [words.nearest(id, 5), table.nearest(id, 5)];
      b.forEach(({ similarity }, i) => assert.closeTo(a[i].similarity, similarity, 1e-5));
      assert.closeTo(words.similarity(id, 7), table.similarity(id, 7), 1e-5);
    }
    assert.equal(words.analogy(3, 20, 40, 1)[0].id, table.analogy(3, 20, 40, 1)[0].id);
    model.dispose();
  });

  it('stateDict() gives dequantized weights, and loadStateDict() rounds to int8 again', async () => {
    const model = await loadAs(attn, 'tiny-bert', 'int8');
    const floats = await loadAs(attn, 'tiny-bert', 'float32');
    const name = queryOf(model);
    const [weight, exact] = [model.getParameter(name), floats.getParameter(name)];
    const E = weight.dims[1];
    for (let row = 0; row < weight.dims[0]; ++row) {
      const values = exact.data.subarray(row * E, (row + 1) * E);
      const scale = Math.max(...values.map(Math.abs)) / 127;
      values.forEach((value, i) => assert.isAtMost(Math.abs(weight.data[row * E + i] - value), scale / 2 + 1e-7));
    }
    const inputs = model.tokenize(texts);
    const before = model.forward(inputs);
    model.loadStateDict(floats.stateDict());
    assert.equal(model.weights, 'int8');
    assert.deepEqual(model.forward(inputs), before, 'the numbers of its file');
    const edited = { data: Float32Array.from(exact.data), dims: exact.dims };
    edited.data[5] = 100;
    model.loadStateDict({ [name]: edited }, { strict: false });
    const got = model.getParameter(name);
    assert.closeTo(got.data[5], 100, 1e-4);
    assert.isTrue(got.data.subarray(0, E).every((value, i) => i === 5 || Math.abs(value - edited.data[i]) <= 50 / 127));
    assertSameBits({ data: got.data.slice(E), dims: [E - 1, E] }, { data: weight.data.slice(E), dims: [E - 1, E] }, 'unedited rows');
    const file = attn.loadModel(await model.export());
    assertSameForward(await file, model, inputs, 'edited weights are written');

    const state = model.stateDict();
    edited.data[7] = NaN;
    const error = assertThrows(() => model.loadStateDict({ [name]: edited }, { strict: false }), 'FORMAT', [name, 'NaN']);
    assert.equal(error.detail['argument'], name);
    assert.deepEqual(model.stateDict(), state);
    model.loadStateDict({ 'bert.embeddings.LayerNorm.bias': { data: new Float32Array(E).fill(NaN), dims: [E] } }, { strict: false });
    model.dispose();
    floats.dispose();
  });
});
