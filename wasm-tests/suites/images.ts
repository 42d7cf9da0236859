/** Image models: forwards and preprocessing against transformers and PIL, attn/worker, wrong arguments. */
import type { Attn, ImageModel, Tensor } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { readGoldenFile } from '../support/golden.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';
import { tolerance } from '../support/model_cases.ts';
import { assertClose, assertDims, assertSameBits, slice, tensor } from '../support/tensors.ts';

const names = [
  'tiny-vit',
  'tiny-vit-model',
  'tiny-deit',
  'tiny-deit-teacher',
  'tiny-deit-model',
  'tiny-dinov2',
  'tiny-dinov2-gated',
  'tiny-dinov2-registers',
] as const;

const loadImages = (attn: Attn, name: string, options = {}) => attn.loadModel<'image'>(url(`testdata/vision/${name}`), { cache: 'none', ...options });

interface Processor {
  readonly rescale_factor: number;
  readonly image_std: readonly number[];
  readonly do_normalize: boolean;
  readonly do_rescale: boolean;
}
const processorOf = (c: object) => (c as { processor: Processor }).processor;

/** RGBA bytes, as ImageData has them. */
const picture = (width: number, height: number, seed = 1) => ({
  data: new Uint8ClampedArray(width * height * 4).map((_, i) => (i * 7 * seed + (i >> 5) * 13) % 256),
  width,
  height,
});

describe('image models, against transformers', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  for (const name of names)
    it(name, async () => {
      const { bytes: file, cases } = await readGoldenFile(`vision/${name}`);
      const tensors = attn.parseSafetensors(file);
      const model = await loadImages(attn, name);
      assert.lengthOf(cases, 2);
      for (const c of cases) {
        const pixelValues = tensors.get(`${c.name}/pixel_values`)!;
        const output = model.forward({ pixelValues }, { outputAttentions: true, outputHiddenStates: true });
        const got = new Map<string, Tensor | undefined>([
          ['lastHiddenState', output.lastHiddenState],
          ['logits', output.logits],
          ...output.hiddenStates!.map((x, i) => [`hiddenStates.${i}`, x] as const),
          ...output.attentions!.map((x, i) => [`attentions.${i}`, x] as const),
        ]);
        if (output.logits) got.set('probabilities', attn.softmax(output.logits));
        for (const [what, error] of Object.entries(c.expected as Record<string, number>))
          if (got.has(what)) assertClose(got.get(what), tensors.get(`${c.name}/expected.${what}`)!, tolerance(error), `${c.name}: ${what}`);
      }
      model.dispose();
    });

  it('classify, embed and preprocess agree with transformers from the bytes of an image', async () => {
    const { bytes: file, cases } = await readGoldenFile('vision/preprocessing');
    const tensors = attn.parseSafetensors(file);
    const [config, weights] = await Promise.all(['config.json', 'model.safetensors'].map((name) => bytes(`testdata/vision/tiny-vit/${name}`)));
    assert.isAtLeast(cases.length, 10);
    for (const c of cases) {
      const processor = JSON.stringify(processorOf(c));
      const files = { 'config.json': config, 'model.safetensors': weights, 'preprocessor_config.json': processor };
      const model = await attn.loadModel<'image'>(files);
      const image = tensors.get(`${c.name}/image`)!;
      const given = { data: Uint8Array.from(image.data), dims: image.dims as [number, number, number] };
      const { pixelValues } = await model.preprocess(given);
      const expected = tensors.get(`${c.name}/expected.pixelValues`)!;
      // One level of 255, after normalization.
      const { rescale_factor: factor, image_std: std, do_normalize: normalizes, do_rescale: rescales } = processorOf(c);
      const level = (rescales ? factor : 1) / (normalizes ? Math.min(...std) : 1);
      expected.data.forEach((value, i) => assert.closeTo(pixelValues.data[i], value, 1.001 * level, c.name));
      if (pixelValues.dims[2] >= 8 && pixelValues.dims[3] >= 8) {
        const { lastHiddenState, logits } = model.forward({ pixelValues });
        const [, length, width] = lastHiddenState.dims;
        const { data } = await model.embed([given]);
        assertClose({ data, dims: [width] }, { data: lastHiddenState.data.slice(0, width), dims: [width] }, 1e-4, c.name);
        const mean = Float32Array.from({ length: width }, (_, e) => {
          let sum = 0;
          for (let i = 1; i < length; i++) sum += lastHiddenState.data[i * width + e];
          return sum / (length - 1);
        });
        assertClose({ data: (await model.embed(given, { pooling: 'mean' })).data, dims: [width] }, { data: mean, dims: [width] }, 1e-4, c.name);
        const probabilities = attn.softmax(logits!).data;
        const [best] = await model.classify(given);
        assert.lengthOf(best, 5);
        for (const { label, score } of best) assert.closeTo(score, probabilities[model.labels.indexOf(label)], 1e-4, c.name);
        assert.deepEqual(
          best.map(({ score }) => score),
          best.map(({ score }) => score).sort((a, b) => b - a),
        );
      }
      model.dispose();
    }
  });
});

describe('the model of digits', () => {
  it('reads drawn digits, with logits of PyTorch, also as int8 and from light ink on dark paper', async () => {
    const attn = await loadHere();
    const address = url('testdata/vision/digits');
    const model = await attn.loadModel<'image'>(address, { cache: 'none' });
    const int8 = await attn.loadModel<'image'>(address, { cache: 'none', weights: 'int8' });
    const cases = JSON.parse(new TextDecoder().decode(await bytes('testdata/vision/digits.json'))) as {
      digit: number;
      image: string;
      logits: number[];
    }[];
    assert.lengthOf(cases, 10);
    for (const { digit, image, logits } of cases) {
      const data = Uint8Array.from(atob(image), (letter) => letter.charCodeAt(0));
      const given = { data, dims: [32, 32, 1] as const };
      const { pixelValues, grid } = await model.preprocess(given);
      assert.deepEqual(grid, [8, 8]);
      assertClose(model.forward({ pixelValues }).logits, { data: Float32Array.from(logits), dims: [1, 10] }, 1e-4, `digit ${digit}`);
      const [[best]] = await int8.classify(given, { topK: 1 });
      assert.equal(best.label, String(digit), 'int8');
      const [[light]] = await model.classify({ ...given, data: data.map((each) => 255 - each) }, { topK: 1 });
      assert.equal(light.label, String(digit), 'light on dark');
    }
    attn.dispose();
  });
});

describe('image models, in use', () => {
  let attn: Attn;
  let model: ImageModel;
  before(async () => {
    attn = await loadHere();
    model = await loadImages(attn, 'tiny-vit');
  });
  after(() => attn.dispose());

  it('has the facts of the checkpoint', () => {
    assert.equal(model.task, 'image-classification');
    assert.deepEqual(model.labels, ['ant', 'bee', 'cat', 'dog', 'emu']);
    assert.equal(model.weights, 'float32');
    assert.equal(model.config['model_type'], 'vit');
    assert.deepEqual(model.parameterShapes().get('vit.embeddings.patch_embeddings.projection.weight'), [32, 3, 8, 8]);
    assertDims(model.stateDict().get('vit.embeddings.position_embeddings'), [1, 17, 32]);
  });

  it('loads no files of tokenizers, but for those that are asked for before config.json is there', async () => {
    const asked: string[] = [];
    const own = (address: RequestInfo | URL, init?: RequestInit) => {
      asked.push(String(address).replace(/^.*[/]/, ''));
      return fetch(address as string, init);
    };
    (await loadImages(attn, 'tiny-vit', { fetch: own })).dispose();
    const needed = ['config.json', 'model.safetensors', 'preprocessor_config.json'];
    assert.sameMembers(asked, [...needed, 'modules.json', 'tokenizer.json', 'tokenizer_config.json']);
  });

  it('the other images of a call change no bit', async () => {
    const images = [picture(50, 40), picture(20, 31, 3)];
    const { pixelValues, grid } = await model.preprocess(images);
    assertDims(pixelValues, [2, 3, 32, 32]);
    assert.deepEqual(grid, [4, 4]);
    const together = model.forward({ pixelValues });
    const reports: number[] = [];
    const vectors = await model.embed(images, { onProgress: ({ done, total }) => reports.push(done, total) });
    assert.deepEqual(reports, [1, 2, 2, 2]);
    for (const i of [0, 1]) {
      const { pixelValues: alone } = await model.preprocess(images[i]);
      assertSameBits(alone, slice(pixelValues, 0, i, i + 1));
      assertSameBits(model.forward({ pixelValues: alone }).logits, slice(together.logits!, 0, i, i + 1));
      assertSameBits(await model.embed(images[i]), slice(vectors, 0, i, i + 1));
    }
  });

  it('crops are the part of each image that the model sees', async () => {
    const read = async (name: string) => bytes(`testdata/vision/tiny-vit/${name}`);
    const files = { 'config.json': await read('config.json'), 'model.safetensors': await read('model.safetensors') };
    const withProcessor = (processor: object) => attn.loadModel<'image'>({ ...files, 'preprocessor_config.json': JSON.stringify(processor) });
    const cropped = await withProcessor({
      image_processor_type: 'BitImageProcessor',
      size: { shortest_edge: 16 },
      crop_size: 8,
      do_normalize: false,
    });
    // Resized to 16 x 32; the crop of 8 x 8 begins in row 4 and column 12. Only it is white.
    const isInside = (i: number) => i % 40 >= 15 && i % 40 < 25 && i >= 5 * 40 && i < 15 * 40;
    const photo = { data: new Uint8Array(20 * 40).map((_, i) => (isInside(i) ? 255 : 0)), dims: [20, 40, 1] as const };
    const { pixelValues, crops } = await cropped.preprocess([photo, picture(20, 40)]);
    assert.deepEqual(crops, [
      { left: 15, top: 5, width: 10, height: 10 },
      { left: 5, top: 15, width: 10, height: 10 },
    ]);
    assert.isAbove(Math.min(...pixelValues.data.subarray(0, 3 * 64)), 0.8);
    const padded = await withProcessor({ do_resize: false, do_center_crop: true, crop_size: 8 });
    assert.deepEqual((await padded.preprocess(picture(6, 4))).crops, [{ left: -1, top: -2, width: 8, height: 8 }]);
    const uneven = await withProcessor({ size: { height: 30, width: 24 } });
    assert.deepEqual((await uneven.preprocess(picture(20, 40))).crops, [{ left: 0, top: 0, width: 20, height: 32 }], '3 x 3 patches of 8 pixels');
    assert.deepEqual((await model.preprocess(picture(50, 40))).crops, [{ left: 0, top: 0, width: 50, height: 40 }]);
  });

  it('removes heads, patches values and traces layers', async () => {
    const inputs = await model.preprocess(picture(50, 40));
    const plain = model.forward(inputs, { outputHiddenStates: true, trace: { layers: [1], names: ['merged'] } });
    assertDims(plain.trace!.get(1)!.merged, [1, 17, 32]);
    const none = model.forward(inputs, { headMask: tensor([2, 4], () => 0), outputLogits: false });
    assert.isUndefined(none.logits);
    assert.notDeepEqual(none.lastHiddenState.data, plain.lastHiddenState.data);
    const other = model.forward(await model.preprocess(picture(9, 9, 5)), { patch: { layer: 0, hiddenState: plain.hiddenStates![0] } });
    assertSameBits(other.logits, plain.logits);
  });

  it('int8 weights are close to float32', async () => {
    for (const name of ['tiny-vit', 'tiny-dinov2']) {
      const [float, int8] = [await loadImages(attn, name), await loadImages(attn, name, { weights: 'int8' })];
      assert.equal(int8.weights, 'int8');
      const inputs = await float.preprocess(picture(50, 40));
      assertClose(int8.forward(inputs).logits, float.forward(inputs).logits!, 0.05, name);
    }
  });

  it('gives the same results in a worker', async () => {
    const remote = await loadWorker(setup);
    const there = await remote.loadModel<'image'>(url('testdata/vision/tiny-vit'), { cache: 'none' });
    const image = picture(50, 40);
    assert.equal(await there.task, 'image-classification');
    assert.deepEqual(await there.labels, model.labels);
    const [inputs, expected] = [await there.preprocess([image]), await model.preprocess([image])];
    assert.deepEqual(inputs.grid, expected.grid);
    assert.deepEqual(inputs.crops, expected.crops);
    assertSameBits(inputs.pixelValues, expected.pixelValues);
    assertSameBits((await there.forward(inputs)).logits, model.forward(expected).logits);
    assertSameBits(await there.embed(image, { normalize: true }), await model.embed(image, { normalize: true }));
    assert.deepEqual(await there.classify(image, { topK: 2 }), await model.classify(image, { topK: 2 }));
    assert.lengthOf(image.data, 50 * 40 * 4, 'the image is copied');
    await assertRejects(there.embed({ data: new Uint8Array(3), width: 0, height: 1 }), 'CONFIG', ['embed', 'width']);
    await assertRejects(there.forward({ pixelValues: tensor([1, 3, 4, 4], () => 0) }), 'SHAPE', ['pixelValues']);
    await there.dispose();
    await assertRejects(there.embed(image), 'DISPOSED', ['embed']);
    await remote.dispose();
  });

  it('refuses images without pixels, of other sizes, and values that are no images', async () => {
    const data = new Uint8Array(12);
    const wrong = [
      [{ data, width: 0, height: 4 }, 'CONFIG', 'width is 0'],
      [{ data, width: NaN, height: 4 }, 'ARGUMENT', 'width is NaN'],
      [{ data, width: 2, height: -2 }, 'CONFIG', 'height'],
      [{ data, width: 2 ** 30, height: 2 ** 30 }, 'CONFIG', 'height'],
      [{ data, width: 5, height: 1 }, 'SHAPE', '1, 3 or 4 bytes for each of 1 x 5 pixels'],
      [{ data, width: 3, height: 2 }, 'SHAPE', 'has 12 bytes'],
      [{ data: new Uint8Array(), width: 1, height: 1 }, 'SHAPE', 'has 0 bytes'],
      [{ data, dims: [2, 2] }, 'SHAPE', 'dims has 2 elements'],
      [{ data, dims: [2, 2, 4] }, 'SHAPE', 'has 12 bytes'],
      [{ data, dims: [2, 2, '3'] }, 'SHAPE', 'data'],
      [{ data: [1, 2, 3], width: 1, height: 1 }, 'DTYPE', 'data'],
      [{ data: new Float32Array(3), width: 1, height: 1 }, 'DTYPE', 'data'],
      ['cat.png', 'ARGUMENT', 'an ImageData'],
      [data, 'ARGUMENT', 'an ImageData'],
      [null, 'ARGUMENT', 'an ImageData'],
      [[], 'ARGUMENT', 'at least one image'],
      [[{ data, width: 2, height: 2 }, 3], 'ARGUMENT', 'images[1]'],
    ] as const;
    for (const [image, code, words] of wrong)
      for (const method of ['preprocess', 'embed', 'classify'] as const)
        await assertRejects(model[method](image as never) as Promise<unknown>, code, [method, words]);
    const good = picture(8, 8);
    await assertRejects(model.embed(good, { pooling: 'max' as never }), 'CONFIG', ['pooling', 'cls, mean, pooler']);
    await assertRejects(model.embed(good, { pooling: 'pooler' }), 'UNSUPPORTED', ['embed', 'cls or mean']);
    await assertRejects(model.classify(good, { topK: 0 }), 'CONFIG', ['topK']);
    await assertRejects(model.classify(good, { top: 1 } as never), 'ARGUMENT', ['topK']);
    await assertRejects(model.embed(good, { signal: AbortSignal.abort() }), 'ABORTED', ['embed']);
    const plain = await loadImages(attn, 'tiny-vit-model');
    assert.equal(plain.task, 'embedding');
    assertDims(await plain.embed(good, { pooling: 'pooler' }), [1, 24]);
    await assertRejects(plain.classify(good), 'UNSUPPORTED', ['classify', 'image-classification']);
  });

  it('decodes Blobs and ImageBitmaps if the host can', async () => {
    const png =
      'iVBORw0KGgoAAAANSUhEUgAAAAQAAAADCAIAAAA7ljmRAAAAMklEQVR42gEnANj/AAswVXqfxOkOM1h9ogDH7BE2W4Clyu8UOV4Ag6jN8hc8YYar0PUaQtARm0FHnOEAAAAASUVORK5CYII=';
    const blob = new Blob([Uint8Array.from(atob(png), (letter) => letter.charCodeAt(0))], { type: 'image/png' });
    if (typeof createImageBitmap !== 'function') {
      await assertRejects(model.preprocess(blob), 'ENVIRONMENT', ['preprocess', 'an object with data and dims', 'cannot decode images']);
      return;
    }
    const { pixelValues } = await model.preprocess({ data: new Uint8Array(36).map((_, i) => i * 37 + 11), dims: [3, 4, 3] });
    assertSameBits((await model.preprocess(blob)).pixelValues, pixelValues);
    const bitmap = await createImageBitmap(blob);
    assertSameBits((await model.preprocess([bitmap])).pixelValues, pixelValues);
    assert.equal(bitmap.width, 4, 'it is still open');
    await assertRejects(model.preprocess(new Blob(['no image'])), 'FORMAT', ['preprocess', 'images']);
  });

  it('refuses pixel values of other shapes', () => {
    const forward = (dims: readonly number[]) => model.forward({ pixelValues: tensor(dims, () => 0) });
    for (const dims of [
      [3, 32, 32],
      [1, 1, 32, 32],
      [1, 3, 7, 32],
      [1, 3, 32, 0],
      [1, 32, 32, 3],
    ])
      assertThrows(() => forward(dims), 'SHAPE', ['ImageModel', 'pixelValues']);
    assertDims(forward([0, 3, 32, 32]).logits, [0, 5]);
    assertThrows(() => model.forward(undefined as never), 'ARGUMENT', ['inputs']);
    assertThrows(() => model.forward({} as never), 'ARGUMENT', ['pixelValues']);
    assertThrows(() => model.forward({ pixelValues: tensor([1, 3, 32, 32], () => 0) }, { mask: 1 } as never), 'ARGUMENT', ['mask']);
  });

  it('refuses hostile preprocessor configurations when it loads', async () => {
    const read = async (name: string) => bytes(`testdata/vision/tiny-vit/${name}`);
    const files = { 'config.json': await read('config.json'), 'model.safetensors': await read('model.safetensors') };
    const wrong = [
      ['{', 'FORMAT', 'JSON'],
      ['[]', 'FORMAT', 'an object'],
      ['{"size": {"height": 0, "width": 1}}', 'CONFIG', 'size.height of'],
      ['{"size": {"height": 3}}', 'CONFIG', 'size.width'],
      ['{"size": 1e300}', 'CONFIG', 'size'],
      ['{"size": [1, 2, 3]}', 'CONFIG', 'size'],
      ['{"size": [1, "2"]}', 'CONFIG', 'size[1]'],
      ['{"size": {"shortest_edge": -1}}', 'CONFIG', 'size.shortest_edge'],
      ['{"size": {"shortest_edge": 5, "longest_edge": 9}}', 'UNSUPPORTED', 'longest_edge'],
      ['{"crop_size": {"shortest_edge": 5}, "do_center_crop": true}', 'CONFIG', 'crop_size'],
      ['{"image_std": [0, 0, 0]}', 'CONFIG', 'other than 0'],
      ['{"image_mean": [1, 2]}', 'CONFIG', 'image_mean'],
      ['{"image_mean": [1, 2, NaN]}', 'CONFIG', 'image_mean'],
      ['{"rescale_factor": 0}', 'CONFIG', 'rescale_factor'],
      ['{"resample": 5}', 'UNSUPPORTED', '2 (bilinear) or 3 (bicubic)'],
      ['{"resample": "bicubic"}', 'CONFIG', 'resample'],
      ['{"do_resize": "yes"}', 'CONFIG', 'do_resize'],
      ['{"do_pad": true}', 'UNSUPPORTED', 'do_pad'],
      ['{"resample": 6}', 'UNSUPPORTED', '2 (bilinear) or 3 (bicubic)'],
      ['{"image_processor_type": ""}', 'UNSUPPORTED', 'image_processor_type'],
      ['{"image_processor_type": "Other"}', 'UNSUPPORTED', 'image_processor_type'],
      ['{"image_processor_type": 3}', 'UNSUPPORTED', 'image_processor_type'],
    ] as const;
    for (const [text, code, words] of wrong)
      await assertRejects(attn.loadModel({ ...files, 'preprocessor_config.json': text }), code, ['loadModel', 'preprocessor_config.json', words]);
    const off = '{"do_normalize": false, "image_std": [0, 0, 0], "do_center_crop": false, "crop_size": {"shortest_edge": 5}}';
    (await attn.loadModel({ ...files, 'preprocessor_config.json': off })).dispose();
    const without = await attn.loadModel<'image'>(files);
    await assertRejects(without.preprocess(picture(8, 8)), 'FORMAT', ['preprocess', 'preprocessor_config.json']);
    assertDims(without.forward({ pixelValues: tensor([1, 3, 32, 32], () => 0) }).logits, [1, 5]);
    const state = Object.fromEntries(without.stateDict());
    const patches = 'vit.embeddings.patch_embeddings.projection.weight';
    const { data, dims } = state[patches] as Tensor;
    const size = dims[2]! * dims[3]!;
    const grey = { ...state, [patches]: tensor([dims[0]!, 1, dims[2]!, dims[3]!], (i) => data[3 * size * Math.floor(i / size) + (i % size)]!) };
    const one = await attn.loadModel<'image'>({
      'config.json': JSON.stringify({ ...(without.config as object), num_channels: 1 }),
      'model.safetensors': attn.writeSafetensors(grey),
      'preprocessor_config.json': '{"image_mean": [0.5], "image_std": [0.5]}',
    });
    assertDims(one.forward({ pixelValues: tensor([1, 1, 32, 32], () => 0) }).logits, [1, 5]);
    await assertRejects(one.embed(picture(8, 8)), 'UNSUPPORTED', ['embed', '3 channels']);
    // The longer side would have 2^34 pixels.
    const thin = await attn.loadModel<'image'>({ ...files, 'preprocessor_config.json': '{"size": {"shortest_edge": 16384}}' });
    await assertRejects(thin.preprocess({ data: new Uint8Array(2 ** 20), dims: [1, 2 ** 20, 1] }), 'MEMORY', ['preprocess']);
  });
});
