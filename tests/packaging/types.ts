// Compiled with tsc --strict against the packed package: typical user code type-checks.
import type * as Package from 'attn';
import { AttnError, load } from 'attn';
import wasm from 'attn/attn-simd.wasm';
import { load as loadStatic } from 'attn/service-worker';
import type * as Worker from 'attn/worker';
import { AttnError as WorkerError, load as loadWorker } from 'attn/worker';

export async function direct(): Promise<number> {
  using attn = await load({
    variant: 'simd',
    threads: 'auto',
    onProgress: ({ phase, loaded, total }) => console.log(phase.toUpperCase(), loaded.toFixed(), total?.toFixed()),
  });
  const x: Package.Tensor = { data: new Float32Array(8), dims: [1, 2, 4] };
  using mha = new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2, kdim: 4, bias: false });
  mha.initialize({ scheme: 'kaiming_normal', seed: 1 });
  mha.loadStateDict(mha.stateDict(), { strict: false });
  const mask = { kind: 'attend', data: new Uint8Array([1, 1]), dims: [2] } as const;
  const { output, weights, trace } = mha.forward(x, undefined, undefined, {
    mask,
    isCausal: true,
    needWeights: true,
    fullyMasked: 'nan',
    trace: ['q', 'weighted_values'],
  });
  const state: Map<string, Package.Tensor> = attn.parseSafetensors(new Uint8Array());
  try {
    attn.softmax(output, -1);
  } catch (error) {
    if (error instanceof AttnError && error.code === 'SHAPE') console.log(error.detail['expected']);
  }
  // @ts-expect-error a bare array is not a mask
  attn.scaledDotProductAttention(x, x, x, { mask: new Uint8Array(2) });
  // @ts-expect-error a mask needs a kind
  attn.scaledDotProductAttention(x, x, x, { mask: { data: new Uint8Array(2), dims: [2] } });
  // @ts-expect-error no such trace
  mha.forward(x, x, x, { trace: ['score'] });
  // @ts-expect-error numHeads is required
  new attn.MultiHeadAttention({ embedDim: 4 });
  // @ts-expect-error weights are optional without needWeights
  weights.dims;
  const encoder: Package.Encoder = new attn.TransformerEncoder({
    dModel: 4,
    nhead: 2,
    numLayers: 2,
    activation: 'gelu',
    norm: 'rms_norm',
    gated: true,
  });
  encoder.train({ seed: 3 });
  encoder.eval();
  const passed = encoder.forward(x, { outputAttentions: true, outputHiddenStates: true, trace: { layers: [1], names: ['norm1', 'weights'] } });
  console.log(passed.attentions?.[0]?.dims, passed.hiddenStates?.length, passed.trace?.get(1)?.ff_hidden?.data);
  const logits: Package.Tensor = new attn.TransformerClassifier({ dModel: 4, nhead: 2, numLayers: 1, numClasses: 2, pooling: 'cls' }).forward(
    x,
  ).logits;
  const words = new attn.Embedding({ numEmbeddings: 5, embeddingDim: 4, paddingIdx: 0 });
  const near: number[] = words.nearest(new Float32Array(4), 2).map(({ id, similarity }) => id + similarity);
  console.log(words.forward(new BigInt64Array(2), [1, 2]), words.forward([1, 2]), near, words.similarity(1, 2), words.analogy(1, 2, 3, 1)[0]?.id);
  const file: Uint8Array = attn.writeSafetensors(new Map([['a', attn.layerNorm(logits, undefined, undefined, 1e-6)]]), { made: 'here' });
  attn.additiveAttention(x, x, x, { queryWeight: x, keyWeight: x, scoreWeight: x }, { dropout: 0.1, seed: 2, scale: 1 });
  attn.scaledDotProductAttention(x, x, x, { mask: { kind: 'additive', ...attn.alibiBias(2, 3) } });
  console.log(file.length, attn.applyRotary(x, { interleaved: true }), attn.sinusoidalPositions(2, 4), attn.activation(x, 'gelu_tanh'));
  // @ts-expect-error no such activation
  attn.activation(x, 'swish');
  // @ts-expect-error traces of an encoder
  mha.forward(x, x, x, { trace: ['norm1'] });
  // @ts-expect-error numLayers is required
  new attn.TransformerEncoder({ dModel: 4, nhead: 2 });
  return (weights?.dims.length ?? 0) + (trace?.weighted_values?.data.length ?? 0) + state.size + attn.info.heap.used;
}

export async function aModel(files: FileList, signal: AbortSignal): Promise<number> {
  const attn = await load();
  const source: Package.ModelSource = Object.fromEntries(Array.from(files, (file) => [file.webkitRelativePath, file]));
  using model: Package.TextModel = await attn.loadModel(source, {
    cache: 'none',
    sha256: { 'model.safetensors': '0' },
    signal,
    onProgress: ({ phase, file, loaded, total }) => console.log(phase, file?.length, loaded / (total ?? 1)),
  });
  const inputs: Package.Encoding = model.tokenize([['a', 'b']], { maxLength: 8, truncation: false });
  const output: Package.TextModelOutput = model.forward(inputs, { outputAttentions: true });
  const { ff_hidden } = model.traceLayer(inputs, 0, ['ff_hidden']);
  const vectors = await model.embed('a', {
    pooling: 'cls',
    normalize: false,
    batchSize: 4,
    signal,
    onProgress: ({ done, total }) => console.log(done / total),
  });
  const [[best]] = await model.classify([['a', 'b']], { batchSize: 2 });
  const changed: Package.TextForwardOptions = {
    mask: { kind: 'attend', data: new Uint8Array(4), dims: [1, 1, 1, 4] },
    isCausal: true,
    headMask: { data: new Float32Array(24), dims: [2, 12] },
    patch: { layer: 0, hiddenState: output.lastHiddenState, merged: output.lastHiddenState },
    trace: { layers: [1], names: ['merged'] },
  };
  const trace: Package.EncoderTrace | undefined = model.forward(inputs, changed).trace?.get(1);
  const weights: Map<string, Package.Tensor> = model.stateDict();
  const shape: Package.Dims | undefined = model.parameterShapes().get('a');
  model.loadStateDict({ a: model.getParameter('a') }, { strict: false });
  model.loadStateDict(weights);
  // @ts-expect-error a patch needs a layer
  model.forward(inputs, { patch: { merged: output.lastHiddenState } });
  const patch: Package.LayerPatch = { layer: 0, merged: output.lastHiddenState };
  model.forward(inputs, { patch: [patch, { layer: 1, hiddenState: output.lastHiddenState }] });
  // @ts-expect-error each patch needs a layer
  model.forward(inputs, { patch: [patch, { merged: output.lastHiddenState }] });
  console.log(trace?.merged?.dims, shape?.[0]);
  // @ts-expect-error a model may have no head
  output.logits.dims;
  // @ts-expect-error embed() takes no pairs
  await model.embed([['a', 'b']]);
  // @ts-expect-error no such pooling
  await model.embed('a', { pooling: 'sum' });
  // @ts-expect-error config.json is frozen
  model.config.hidden_size = 3;
  const [near] = model.wordEmbeddings.nearest(model.tokenToId('king') ?? 0, 1);
  console.log(ff_hidden?.dims, best?.label.length, model.idToToken(near?.id ?? 0), model.labels?.length, inputs.offsets[0]?.[0]?.[1]);
  return vectors.data.length + (output.attentions?.length ?? 0);
}

export async function aModelInAWorker(): Promise<number> {
  const attn = await loadWorker();
  await using model: Worker.TextModel = await attn.loadModel(new URL('https://example.org/model'), { sha256: {} });
  const words: Worker.Embedding = await model.wordEmbeddings;
  const labels: readonly string[] | undefined = await model.labels;
  // @ts-expect-error attn/worker does not accept fetch
  await attn.loadModel('model', { fetch });
  // @ts-expect-error all results are promises
  model.tokenize('a').dims;
  const { dims } = await model.embed(['a']);
  const inputs = await model.tokenize('a');
  const options: Worker.TextForwardOptions = { headMask: await model.getParameter('a') };
  await model.loadStateDict(await model.stateDict(), { strict: true });
  console.log((await model.forward(inputs, options)).trace?.size, (await model.parameterShapes()).size);
  return (await words.nearest(1, 2)).length + (labels?.length ?? 0) + dims.length;
}

export async function anImageModel(attn: Package.Attn, either: Package.Attn | Worker.Attn, image: ImageData): Promise<number> {
  using model: Package.ImageModel = await attn.loadModel<'image'>('model');
  const inputs: Package.ImageInputs = await model.preprocess([image, { data: new Uint8Array(3), dims: [1, 1, 3] }]);
  const [{ left, width }]: Package.ImageCrop[] = inputs.crops;
  const { attentions, logits } = model.forward(inputs, { outputAttentions: true, outputLogits: false, trace: { layers: [0] } });
  // @ts-expect-error a text is no image
  await model.embed('a');
  // @ts-expect-error an image model has no tokenizer
  model.tokenize('a');
  // @ts-expect-error no such kind of model
  await attn.loadModel<'audio'>('model');
  const [text, there] = [await either.loadModel('model', { cache: 'none' }), await either.loadModel<'image'>('model')];
  const [[best]] = await there.classify(image, { topK: 1 });
  const { dims } = await text.embed(['a']);
  await there.dispose();
  return dims.length + (attentions?.length ?? 0) + (logits?.dims.length ?? 0) + (best?.score ?? 0) + inputs.grid[0];
}

export async function inWorker(): Promise<number> {
  const attn = await loadWorker({ threads: 2 });
  const x: Package.Tensor = { data: new Float32Array(8), dims: [1, 2, 4] };
  const mha = await new attn.MultiHeadAttention({ embedDim: 4, numHeads: 2 });
  await mha.loadStateDict(await mha.stateDict());
  const { output } = await mha.forward(x);
  const count: number = await mha.parameterCount;
  // @ts-expect-error all results are promises
  mha.parameterCount.toFixed();
  await using words: Worker.Embedding = await new attn.Embedding({ numEmbeddings: 3, embeddingDim: 2 });
  const [first] = await words.nearest(0, 1);
  const file: Uint8Array = await attn.writeSafetensors({ a: await attn.activation(x, 'silu') });
  console.log(first?.similarity, file.length, (await (await new attn.TransformerEncoder({ dModel: 4, nhead: 2, numLayers: 1 })).forward(x)).trace);
  const { heap } = await attn.info;
  try {
    await attn.linear(x, x);
  } catch (error) {
    if (error instanceof WorkerError) console.log(error.code);
  }
  await attn.dispose();
  return output.data.length + count + heap.peak;
}

export const given = async (): Promise<Package.Attn> => loadStatic({ wasm });
