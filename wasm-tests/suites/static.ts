/** attn/static: vectors of model2vec and WordLlama, number formats of the matrix, sources, refused files, an index. */
import { AttnError, hub, readSafetensorsHeader } from 'attn';
import { Index } from 'attn/search';
import { loadStaticModel, type StaticModel } from 'attn/static';
import { assert } from 'chai';
import { assertIsError, assertRejects, assertThrows } from '../support/errors.ts';
import { Generator } from '../support/generator.ts';
import { bytes, url } from '../support/host.ts';

const folders = ['tiny-model2vec', 'tiny-model2vec-clusters', 'tiny-wordllama'] as const;
const pathOf = (name: string) => `testdata/models/static/${name}`;
const load = (name: string, options?: Parameters<typeof loadStaticModel>[1]) => loadStaticModel(url(pathOf(name)), options);

type Files = Record<string, Uint8Array<ArrayBuffer> | string>;

async function filesOf(name: string): Promise<Files> {
  const names = name === 'tiny-wordllama' ? ['tokenizer.json', 'model.safetensors'] : ['tokenizer.json', 'model.safetensors', 'config.json'];
  return Object.fromEntries(await Promise.all(names.map(async (file) => [file, await bytes(`${pathOf(name)}/${file}`)] as const)));
}

const ofBytes = (each: Uint8Array<ArrayBuffer>, start: number, end: number) => each.slice(start, end).buffer;

interface Part {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: ArrayBufferView<ArrayBuffer>;
}

function safetensors(parts: Readonly<Record<string, Part>>, padding = 0): Uint8Array<ArrayBuffer> {
  let at = 0;
  const header = Object.entries(parts).map(([name, { dtype, shape, data }]) => {
    const start = at;
    return [name, { dtype, shape, data_offsets: [start, (at += data.byteLength)] }] as const;
  });
  const head = new TextEncoder().encode(JSON.stringify(Object.fromEntries(header)) + ' '.repeat(padding));
  const file = new Uint8Array(8 + head.length + at);
  new DataView(file.buffer).setBigUint64(0, BigInt(head.length), true);
  file.set(head, 8);
  at = 8 + head.length;
  for (const { data } of Object.values(parts)) {
    file.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  return file;
}

describe('static', () => {
  let texts: readonly string[];
  const golden = new Map<string, { data: Float32Array; dims: readonly number[] }>();
  before(async () => {
    const file = await bytes('testdata/models/static/vectors.safetensors');
    const { tensors, metadata, dataStart } = readSafetensorsHeader(file);
    texts = JSON.parse(metadata['texts']!) as string[];
    for (const [name, { shape, data_offsets }] of Object.entries(tensors)) {
      const [start, end] = data_offsets;
      golden.set(name, { data: new Float32Array(ofBytes(file, dataStart + start, dataStart + end)), dims: shape });
    }
  });

  function assertGolden(name: string, { data, dims }: { data: Float32Array; dims: readonly number[] }, tolerance = 1e-6): void {
    const wanted = golden.get(name)!;
    assert.deepEqual(dims, wanted.dims);
    const E = dims[1]!;
    for (let i = 0; i < data.length; ++i) assert.approximately(data[i]!, wanted.data[i]!, tolerance, `${name}: text ${Math.floor(i / E)}`);
  }

  it('computes the vectors of model2vec', async () => {
    const model = await load('tiny-model2vec');
    assert.deepEqual([model.hiddenSize, model.maxLength, model.config['normalize']], [16, 16, true]);
    assertGolden('tiny-model2vec', model.embed(texts));
    assertGolden('tiny-model2vec.sum', model.embed(texts, { normalize: false }));
    const short = model.embed(texts, { normalize: false, maxLength: 4 });
    assertGolden('tiny-model2vec.short', short);
    const { truncated } = short;
    assert.deepEqual(
      [0, 2, 3, 9, 10, 11].map((i) => truncated[i]),
      [true, false, false, true, true, true],
    );
    for (const i of [2, 3, 4])
      assert.isTrue(
        model.embed(texts[i]!).data.every((value) => value === 0),
        'no known token',
      );
  });

  it('computes the vectors of a model with clusters of tokens and weights', async () => {
    const model = await load('tiny-model2vec-clusters');
    const result = model.embed(texts);
    assertGolden('tiny-model2vec-clusters', result);
    assertGolden('tiny-model2vec-clusters.float16', result, 2e-3);
    assert.isFalse(result.truncated.includes(true), 'max_length is null');
    assertGolden('tiny-model2vec-clusters.short', model.embed(texts, { maxLength: 4 }));
  });

  it('computes the vectors of WordLlama, also of its first dimensions', async () => {
    const model = await load('tiny-wordllama');
    assertGolden('tiny-wordllama', model.embed(texts));
    assertGolden('tiny-wordllama.unit', model.embed(texts, { normalize: true }));
    assertGolden('tiny-wordllama.dim8', (await load('tiny-wordllama', { dim: 8 })).embed(texts));
  });

  it('embeds a text alone as among others, and behind a prompt', async () => {
    for (const name of folders) {
      const model = await load(name);
      const all = model.embed(texts).data;
      texts.forEach((text, i) => assert.deepEqual(model.embed(text).data, all.subarray(i * 16, (i + 1) * 16)));
      assert.deepEqual(model.embed('film', { prompt: 'a warm ' }).data, model.embed('a warm film').data);
      assert.deepEqual(model.embed([]).dims, [0, 16]);
    }
  });

  it('looks up the row of each token, and none for padding and left out tokens', async () => {
    const model = await load('tiny-model2vec');
    const inputs = model.tokenize(['a zqx film', 'a']);
    assert.deepEqual(inputs.tokens, [['a', '[UNK]', 'film'], ['a', '[PAD]', '[PAD]']]); // prettier-ignore
    const { data, dims } = model.forward(inputs).lastHiddenState;
    assert.deepEqual(dims, [2, 3, 16]);
    const row = (i: number) => data.subarray(16 * i, 16 * (i + 1));
    const mean = row(0).map((value, e) => (value + row(2)[e]!) / 2);
    model.embed('a zqx film', { normalize: false }).data.forEach((value, e) => assert.approximately(value, mean[e]!, 1e-7));
    assert.deepEqual(row(3), row(0));
    for (const i of [1, 4, 5]) assert.isTrue(row(i).every((value) => value === 0));
  });

  it('reads matrices in every format, also at odd addresses', async () => {
    const files = await filesOf('tiny-model2vec');
    const { tensors, dataStart } = readSafetensorsHeader(files['model.safetensors'] as Uint8Array<ArrayBuffer>);
    const { shape, data_offsets } = tensors['embeddings']!;
    const floats = new Float32Array(ofBytes(files['model.safetensors'] as Uint8Array<ArrayBuffer>, dataStart, dataStart + data_offsets[1]));
    const upper = (data: Float32Array): Uint16Array<ArrayBuffer> => Uint16Array.from(new Uint32Array(data.slice().buffer), (word) => word >>> 16);
    const asBrain = (data: Float32Array): Float32Array<ArrayBuffer> => new Float32Array(Uint32Array.from(upper(data), (word) => word << 16).buffer);
    const small = Int8Array.from(floats, (value) => Math.round(value * 20));
    const kinds: Record<string, readonly [ArrayBufferView<ArrayBuffer>, Float32Array<ArrayBuffer>]> = {
      F32: [floats, floats],
      F64: [Float64Array.from(floats), floats],
      BF16: [upper(floats), asBrain(floats)],
      I8: [small, Float32Array.from(small)],
    };
    for (const [dtype, [data, plain]] of Object.entries(kinds)) {
      const wanted = await loadStaticModel({ ...files, 'model.safetensors': safetensors({ embeddings: { dtype: 'F32', shape, data: plain } }) });
      for (const padding of [0, 1, 2, 3]) {
        const model = await loadStaticModel({ ...files, 'model.safetensors': safetensors({ embeddings: { dtype, shape, data } }, padding) });
        assert.deepEqual(model.embed(texts).data, wanted.embed(texts).data, `${dtype}, ${padding} spaces`);
      }
    }
  });

  it('widens every float16 exactly', async () => {
    const codes = Uint16Array.from({ length: 2 ** 16 }, (_, code) => code);
    const tokens = Object.fromEntries(Array.from(codes, (code) => [`t${code}`, code]));
    const tokenizer = { model: { type: 'WordLevel', vocab: tokens, unk_token: 't0' }, pre_tokenizer: { type: 'WhitespaceSplit' } };
    const matrix = safetensors({ 'embedding.weight': { dtype: 'F16', shape: [2 ** 16, 1], data: codes } });
    const model = await loadStaticModel({ 'tokenizer.json': JSON.stringify(tokenizer), 'model.safetensors': matrix });
    const at = (code: number) => model.embed(`t${code}`).data[0]!;
    assert.deepEqual([0x3c00, 0xc000, 0x0001, 0x03ff, 0x0400, 0x7bff, 0x3555].map(at), [
      1,
      -2,
      2 ** -24,
      1023 * 2 ** -24,
      2 ** -14,
      65504,
      0.333251953125,
    ]);
    assert.deepEqual([at(0x7c00), at(0xfc00), at(0x7e00)], [Infinity, -Infinity, NaN]);
  });

  it('takes URLs, Blobs, bytes and files of a folder, and keeps its own copy', async () => {
    const wanted = (await load('tiny-model2vec')).embed(texts).data;
    const files = await filesOf('tiny-model2vec');
    const nested = Object.fromEntries(Object.entries(files).map(([name, content]) => [`any/folder/${name}`, new Blob([content])]));
    const sources = [new URL(url(pathOf('tiny-model2vec'))), `${url(pathOf('tiny-model2vec'))}/#part`, files, nested];
    for (const source of sources) assert.deepEqual((await loadStaticModel(source)).embed(texts).data, wanted);
    const model = await loadStaticModel(files);
    (files['model.safetensors'] as Uint8Array).fill(0);
    assert.deepEqual(model.embed(texts).data, wanted);
  });

  it("reads sentence-transformers' folder, with Normalize", async () => {
    const { 'tokenizer.json': tokenizer, 'model.safetensors': matrix } = await filesOf('tiny-wordllama');
    const inner: Files = { '0_StaticEmbedding/tokenizer.json': tokenizer!, '0_StaticEmbedding/model.safetensors': matrix! };
    const modules = JSON.stringify([{ type: 'sentence_transformers.models.StaticEmbedding' }, { type: 'sentence_transformers.models.Normalize' }]);
    const answer = (files: Files) => (location: unknown) => {
      const name = Object.keys(files).find((each) => String(location).endsWith(`model/${each}`));
      return Promise.resolve(name === undefined ? new Response('', { status: 404 }) : new Response(files[name]));
    };
    const from = (files: Files) => loadStaticModel('https://example.org/model', { fetch: answer(files) as typeof fetch });
    assertGolden('tiny-wordllama', (await from(inner)).embed(texts));
    assertGolden('tiny-wordllama.unit', (await from({ ...inner, 'modules.json': modules })).embed(texts));
  });

  it('refuses other files, sources and options with typed errors', async () => {
    const files = await filesOf('tiny-model2vec');
    const matrix = files['model.safetensors'] as Uint8Array<ArrayBuffer>;
    const data = new Float32Array(51 * 16);
    const { tensors } = readSafetensorsHeader(matrix);
    const [rows] = tensors['embeddings']!.shape as [number];
    const part = (dtype: string, shape: readonly number[], numbers: ArrayBufferView<ArrayBuffer> = data): Part => ({ dtype, shape, data: numbers });
    const whole = part('F32', [rows, 16], new Float32Array(rows * 16));
    const refused = [
      ['ARGUMENT', /no tokenizer.json/, { 'tokenizer.json': undefined }],
      ['ARGUMENT', /no model.safetensors/, { 'model.safetensors': undefined }],
      ['FORMAT', /tokenizer.json is not JSON/, { 'tokenizer.json': '{' }],
      ['FORMAT', /bytes/, { 'model.safetensors': new Uint8Array(3) }],
      ['FORMAT', /has an end at byte/, { 'model.safetensors': matrix.slice(0, -1) }],
      ['UNSUPPORTED', /loadModel\(\) loads Transformer models/, { 'model.safetensors': safetensors({ weight: part('F32', [51, 16]) }) }],
      ['FORMAT', /bytes for its shape/, { 'model.safetensors': safetensors({ embeddings: part('F32', [rows, 17], whole.data) }) }],
      ['FORMAT', /the shape \(tokens, dimensions\)/, { 'model.safetensors': safetensors({ embeddings: part('F32', [51 * 16]) }) }],
      ['MISMATCH', /one for each token/, { 'model.safetensors': safetensors({ embeddings: part('F32', [51, 16]) }) }],
      ['UNSUPPORTED', /U8/, { 'model.safetensors': safetensors({ embeddings: part('U8', [rows, 16], new Uint8Array(rows * 16)) }) }],
      [
        'FORMAT',
        /mapping\[3\]/,
        { 'model.safetensors': safetensors({ embeddings: whole, mapping: part('I32', [rows], new Int32Array(rows).fill(rows, 3)) }) },
      ],
      [
        'FORMAT',
        /mapping\[0\]/,
        { 'model.safetensors': safetensors({ embeddings: whole, mapping: part('I64', [rows], new BigInt64Array(rows).fill(-1n)) }) },
      ],
      ['MISMATCH', /mapping/, { 'model.safetensors': safetensors({ embeddings: whole, mapping: part('I32', [2], new Int32Array(2)) }) }],
      ['MISMATCH', /weights/, { 'model.safetensors': safetensors({ embeddings: whole, weights: part('F32', [2], new Float32Array(2)) }) }],
      ['FORMAT', /max_length/, { 'config.json': '{"max_length":0}' }],
      ['FORMAT', /normalize/, { 'config.json': '{"normalize":"yes"}' }],
    ] as const;
    for (const [code, words, change] of refused) {
      const source = Object.fromEntries(Object.entries({ ...files, ...change }).filter(([, content]) => content !== undefined));
      await assertRejects(loadStaticModel(source as Files), code, [/^loadStaticModel: /, words]);
    }
    await assertRejects(loadStaticModel(''), 'ARGUMENT', ['source']);
    await assertRejects(loadStaticModel({}), 'ARGUMENT', ['empty']);
    await assertRejects(load('nothing'), 'NETWORK', ['has no']);
    await assertRejects(load('tiny-model2vec', { dim: 17 }), 'CONFIG', ['at most 16']);
    await assertRejects(load('tiny-model2vec', { dim: 0 }), 'CONFIG', ['dim']);
    await assertRejects(load('tiny-model2vec', { width: 1 } as object), 'ARGUMENT', ['width']);
    const fails = (status: number) => () => Promise.resolve(new Response('', { status }));
    await assertRejects(load('tiny-model2vec', { fetch: fails(500) as typeof fetch }), 'NETWORK', ['answered 500']);
    await assertRejects(loadStaticModel(hub('owner/name'), { fetch: fails(404) as typeof fetch }), 'NETWORK', ['no tokenizer.json']);
    const model = await load('tiny-model2vec');
    assertThrows(() => model.embed(1 as never), 'ARGUMENT', [/^embed: texts/]);
    assertThrows(() => model.embed('a', { pooling: 'mean' } as object), 'ARGUMENT', ['pooling']);
    assertThrows(() => model.embed(texts[9]!, { truncation: false }), 'OUT_OF_RANGE', [/^embed: .*20 tokens/]);
    assertThrows(() => model.forward({} as never), 'ARGUMENT');
  });

  it('loads or refuses damaged files, and never fails otherwise', async () => {
    const g = new Generator(7);
    for (const name of folders) {
      const files = await filesOf(name);
      for (let i = 0; i < 150; ++i) {
        const file = Object.keys(files)[g.below(Object.keys(files).length)]!;
        const damaged = (files[file] as Uint8Array<ArrayBuffer>).slice();
        const most = file === 'model.safetensors' ? 300 : damaged.length;
        for (let k = 0; k < 3; ++k) damaged[g.below(most)] = g.below(256);
        const result = await loadStaticModel({ ...files, [file]: damaged }).catch((error: unknown) => error);
        if (result instanceof Error) assertIsError(result, ['FORMAT', 'MISMATCH', 'UNSUPPORTED'], [/^loadStaticModel: /]);
        else
          try {
            assert.strictEqual((result as StaticModel).embed(texts).dims[0], texts.length);
          } catch (error) {
            assertIsError(error, ['MISMATCH', 'UNSUPPORTED', 'OUT_OF_RANGE']);
          }
      }
    }
  });

  it('stops at its signal', async () => {
    await assertRejects(load('tiny-model2vec', { signal: AbortSignal.abort() }), 'ABORTED');
    const ending = new AbortController();
    const never = () => new Promise<Response>(() => {});
    const loading = load('tiny-model2vec', { signal: ending.signal, fetch: never as typeof fetch });
    ending.abort();
    await assertRejects(loading, 'ABORTED');
  });

  for (const vectors of ['int8', 'float32'] as const)
    it(`searches without WebAssembly, with vectors in ${vectors}`, async () => {
      const model: StaticModel = await load('tiny-model2vec');
      const seen: string[] = [];
      const documents = ['a warm film', 'the soup was cold', 'the battery lasts two days'];
      const onProgress = ({ done, total }: { done: number; total: number }) => void seen.push(`${done}/${total}`);
      const index = await Index.from(model, documents, { vectors, onProgress });
      assert.deepEqual(seen, ['0/3', '3/3']);
      const hits = await index.search('a film with good soup');
      const wanted = model.embed(['a film with good soup', ...documents], { normalize: true }).data;
      for (const { id, similarity } of hits) {
        const row = wanted.subarray(16 * (Number(id) + 1), 16 * (Number(id) + 2));
        const cosine = row.reduce((sum, value, e) => sum + value * wanted[e]!, 0);
        assert.approximately(similarity, cosine, vectors === 'int8' ? 0.01 : 1e-6);
      }
      assert.deepEqual(hits.map(({ similarity }) => similarity), [...hits.map(({ similarity }) => similarity)].sort((a, b) => b - a)); // prettier-ignore
      const { query } = await index.explain((await index.search('warm soup', { k: 1, hybrid: true }))[0]!);
      assert.deepEqual(query.map(({ text }) => text), ['warm', 'soup']); // prettier-ignore
      await index.remove(1);
      const [added] = await index.add(['soup and film']);
      const again = await Index.load(model, await index.save());
      assert.deepEqual((await again.search('soup and film', { k: 1 }))[0]!.id, added);
      assert.strictEqual(again.size, 3);
      const other = await load('tiny-wordllama');
      await assertRejects(Index.load(other, await index.save()), 'MISMATCH');
      index.dispose();
      assert.instanceOf(await index.search('a').catch((error: unknown) => error), AttnError);
    });

  it('ends the building of an index at its signal', async () => {
    const model = await load('tiny-model2vec');
    await assertRejects(Index.from(model, Array<string>(3000).fill('a film'), { signal: AbortSignal.abort() }), 'ABORTED');
  });
});
