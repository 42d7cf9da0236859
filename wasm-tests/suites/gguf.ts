/** GGUF files: block types, tiny checkpoints against their safetensors folders, sources and damaged files. */
import { readSafetensorsHeader, type Attn, type ModelOptions, type ModelSource, type TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { blockTypeOf } from '../../web/lib/src/model/gguf/block_types.ts';
import { readHeader } from '../../web/lib/src/model/gguf/header.ts';
import * as sentencePiece from '../../web/lib/src/model/gguf/sentencepiece.ts';
import { readTokenizerFiles } from '../../web/lib/src/model/gguf/tokenizer_files.ts';
import { Tokenizer } from '../../web/lib/src/tokenizer/text_tokenizer.ts';
import { assertIsError, assertRejects } from '../support/errors.ts';
import { fakeCaches, withCaches } from '../support/fake_caches.ts';
import { bytes, host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { joined, numbers, pair, real, reals, SmallGguf, string, strings, u32, u64, whole } from '../support/small_gguf.ts';
import { assertSameBits } from '../support/tensors.ts';

type Code = Parameters<typeof assertRejects>[1];
type Progress = Parameters<NonNullable<ModelOptions['onProgress']>>[0];
type Bytes = Uint8Array<ArrayBuffer>;

const texts = ['The cat sat on the mat.', 'a', "Hello  world, it's 1234!", 'naïve 日本 🙂\n'];
const checkpoints = [
  ...['tiny-gpt2', 'tiny-llama', 'tiny-llama-3', 'tiny-llama-yarn', 'tiny-qwen2', 'tiny-qwen3'],
  ...['tiny-gemma-2', 'tiny-gemma-3', 'tiny-neox', 'tiny-neox-serial'],
];
const readJson = async (path: string) => JSON.parse(new TextDecoder().decode(await bytes(path))) as never;
const hex = (all: Uint8Array) => Array.from(all, (byte) => byte.toString(16).padStart(2, '0')).join('');

function crc32(values: Float32Array): number {
  let sum = ~0;
  for (const byte of new Uint8Array(values.buffer, values.byteOffset, values.byteLength)) {
    sum ^= byte;
    for (let bit = 0; bit < 8; ++bit) sum = (sum >>> 1) ^ (0xedb88320 & -(sum & 1));
  }
  return ~sum >>> 0;
}

describe('GGUF files', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  const logitsOf = (model: TextModel) => model.forward(model.tokenize(texts)).logits;

  it('all block types have the values of the gguf package bit for bit', async () => {
    const file = await bytes('testdata/gguf/types.gguf');
    const expected = await bytes('testdata/gguf/types.safetensors');
    const { tensors: entries, dataStart } = readSafetensorsHeader(expected);
    const { tensors } = readHeader(file, file.length);
    assert.lengthOf(tensors, 8);
    for (const { name, type, first, bytes: size } of tensors) {
      assert.equal(type.name, name);
      const values = new Float32Array(1024);
      type.expand(file.subarray(first, first + size), values);
      const [from, to] = entries[name].data_offsets.map((offset) => dataStart + offset);
      assert.deepEqual(new Uint8Array(values.buffer), expected.slice(from, to), name);
    }
    assert.isUndefined(blockTypeOf(6), 'Q5_0');
  });

  for (const name of checkpoints)
    it(`${name} gives the same tokens, logits and texts as its safetensors folder`, async () => {
      const names = ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'];
      const files: Record<string, Bytes | string> = {};
      for (const file of names) files[file] = await bytes(`testdata/models/${name}/${file}`);
      // Settings that GGUF cannot express.
      const changes = (await readJson('testdata/gguf/configs.json')) as Record<string, object>;
      const config = JSON.parse(new TextDecoder().decode(files['config.json'] as Bytes)) as object;
      files['config.json'] = JSON.stringify({ ...config, ...changes[name] });
      const expected = await attn.loadModel(files);
      const model = await attn.loadModel(url(`testdata/gguf/${name}.gguf`), { cache: 'none' });
      assert.equal(model.task, 'text-generation');
      assert.deepEqual(model.tokenize(texts), expected.tokenize(texts));
      assertSameBits(logitsOf(model), logitsOf(expected));
      const options = { maxNewTokens: 12 };
      assert.deepEqual((await model.generate(texts[0], options)).ids, (await expected.generate(texts[0], options)).ids);
      model.dispose();
      expected.dispose();
    });

  it('tensors of different block types in one file have the values of the gguf package, also as an exported folder', async () => {
    const expected = (await readJson('testdata/gguf/mixed.json')) as Record<string, number>;
    const model = await attn.loadModel({ 'mixed.gguf': await bytes('testdata/gguf/mixed.gguf') });
    assert.sameMembers([...model.parameterShapes().keys()], Object.keys(expected));
    for (const [name, sum] of Object.entries(expected)) assert.equal(crc32(model.getParameter(name).data as Float32Array), sum, name);
    const files = await model.export();
    assert.includeMembers(Object.keys(files), ['config.json', 'generation_config.json', 'tokenizer.json', 'model.safetensors']);
    const again = await attn.loadModel(files);
    assertSameBits(logitsOf(again), logitsOf(model));
    again.dispose();
    model.dispose();
  });

  it('every kind of pre-tokenizer gives the ids of the tokenizers library', async () => {
    const expected = (await readJson('testdata/gguf/tokens.json')) as Record<string, readonly { text: string; ids: number[] }[]>;
    const file = await bytes('testdata/gguf/tiny-gpt2.gguf');
    assert.lengthOf(Object.keys(expected), 4);
    for (const [kind, cases] of Object.entries(expected)) {
      const { metadata } = readHeader(file, file.length);
      const { find } = metadata;
      metadata.find = (key) => (key === 'tokenizer.ggml.pre' ? { kind: 'a string', value: kind } : find.call(metadata, key));
      metadata.string = (key) => metadata.find(key)?.value as string | undefined;
      // The tokens' own ids are compared, without the token that Llama adds.
      const { tokenizer, tokenizerConfig } = readTokenizerFiles(metadata);
      const made = Tokenizer.fromFiles({ 'tokenizer.json': tokenizer, 'tokenizer_config.json': tokenizerConfig });
      for (const { text, ids } of cases) assert.deepEqual([...made.encode(text).inputIds], ids, `${kind}: ${JSON.stringify(text)}`);
    }
  });

  it('SentencePiece vocabularies give the ids of the sentencepiece library', async () => {
    interface Case {
      readonly text: string;
      readonly ids: readonly number[];
      readonly plain: readonly number[];
    }
    const cases = (await readJson('testdata/gguf/sentencepiece.json')) as readonly Case[];
    assert.isAbove(cases.length, 300);
    const file = await bytes('testdata/gguf/sentencepiece.gguf');
    for (const kind of ['ids', 'plain'] as const) {
      const { metadata } = readHeader(file, file.length);
      if (kind === 'plain') metadata.add('tokenizer.ggml.add_space_prefix', { kind: 'true or false', value: false });
      const { tokenizer, tokenizerConfig } = readTokenizerFiles(metadata, sentencePiece);
      const made = Tokenizer.fromFiles({ 'tokenizer.json': tokenizer, 'tokenizer_config.json': tokenizerConfig });
      for (const { text, [kind]: ids } of cases) {
        assert.deepEqual([...made.encode(text).inputIds], [...ids], `${kind}: ${JSON.stringify(text)}`);
        if (!/[▁<]/.test(text)) assert.equal(made.decode(ids.slice(1)), text);
      }
    }
    const model = await attn.loadModel({ 'a.gguf': file });
    assert.deepEqual([...model.tokenize('Hello world').inputIds], [...cases.find(({ text }) => text === 'Hello world')!.ids]);
    assert.equal(model.task, 'text-generation');
    assert.lengthOf((await model.generate('Hello world', { maxNewTokens: 4 })).ids, 4);
    model.dispose();
  });

  describe('sources', () => {
    let file: Bytes;
    let expected: ReturnType<typeof logitsOf>;
    before(async () => {
      file = await bytes('testdata/gguf/mixed.gguf');
      const model = await attn.loadModel({ 'a.gguf': file });
      expected = logitsOf(model);
      model.dispose();
    });
    async function works(source: ModelSource, options: ModelOptions = { cache: 'none' }): Promise<void> {
      const start = settledHeap(attn);
      const model = await attn.loadModel(source, options);
      assertSameBits(logitsOf(model), expected);
      model.dispose();
      assert.equal(settledHeap(attn), start);
    }
    const address = 'http://localhost/models/a.gguf';
    const answering =
      (headers: Record<string, string>, content: BodyInit = file, status = 200): typeof fetch =>
      (at) =>
        Promise.resolve(String(at).startsWith(address) ? new Response(content, { headers, status }) : new Response(null, { status: 404 }));

    it('a URL with a query, bytes, a Blob, a file in a folder, and attn/worker', async () => {
      await works(`${url('testdata/gguf/mixed.gguf')}?download=true`);
      await works({ 'a.gguf': file.slice().buffer });
      await works({ 'downloads/a.gguf': new Blob([file]), 'downloads/README.md': 'words' });
      await works(address, { cache: 'none', fetch: answering({}) });
      await assertRejects(attn.loadModel({ 'a.gguf': file, 'b.gguf': file }), 'ARGUMENT', ['no config.json', 'a.gguf']);
      await assertRejects(attn.loadModel(address, { cache: 'none', fetch: answering({}, '', 404) }), 'NETWORK', ['404', address]);
      await assertRejects(attn.loadModel(address, { cache: 'none', fetch: answering({}, '<!doctype html>') }), 'FORMAT', ['HTML', 'GGUF']);
      await assertRejects(attn.loadModel({ 'a.gguf': 'version https://git-lfs.github.com/spec/v1\n' }), 'FORMAT', ['LFS']);
      const remote = await loadWorker(setup);
      const model = await remote.loadModel(url('testdata/gguf/mixed.gguf'), { cache: 'none' });
      assertSameBits((await model.forward(await model.tokenize(texts))).logits, expected);
      await remote.dispose();
    });

    if (host.engine === 'node')
      it('the path of a file on the disk', async () => {
        const location = new URL('../../testdata/gguf/mixed.gguf', import.meta.url);
        await works(location);
        await works(location.pathname);
        await assertRejects(attn.loadModel('no/such.gguf'), 'NETWORK', ['such.gguf is not there']);
      });

    it('progress counts the bytes of the file, and its digest is verified', async () => {
      const seen: Progress[] = [];
      const sha256 = { 'a.gguf': hex(new Uint8Array(await crypto.subtle.digest('SHA-256', file))) };
      const fetch = answering({ 'content-length': String(file.length) });
      await works(address, { cache: 'none', fetch, sha256, onProgress: (p) => seen.push(p) });
      const last = { phase: 'download', file: 'a.gguf', loaded: file.length, total: file.length, progress: 1 };
      assert.deepEqual(seen.at(-1), last);
      await assertRejects(attn.loadModel({ 'a.gguf': file }, { sha256: { 'a.gguf': '0'.repeat(64) } }), 'FORMAT', ['SHA-256', sha256['a.gguf']]);
      await assertRejects(attn.loadModel({ 'a.gguf': file }, { sha256: { 'b.gguf': '0'.repeat(64) } }), 'FORMAT', ['b.gguf', 'is missing']);
    });

    it('the file is cached as it is, and an aborted load frees its memory', () =>
      withCaches(fakeCaches(), async () => {
        const fetch = answering({ etag: '"1"', 'content-length': String(file.length) });
        const phases: string[] = [];
        const onProgress = ({ phase }: Progress) => phases.push(phase);
        await works(address, { fetch, onProgress });
        assert.deepEqual([...new Set(phases.splice(0))], ['download']);
        await works(address, { fetch, onProgress });
        assert.deepEqual([...new Set(phases)], ['cache']);
        const start = settledHeap(attn);
        const controller = new AbortController();
        const loading = attn.loadModel(address, { fetch, signal: controller.signal, onProgress: () => controller.abort() });
        await assertRejects(loading, 'ABORTED');
        assert.equal(settledHeap(attn), start);
      }));
  });

  describe('damage', () => {
    async function refused(code: Code, words: string, change: (file: SmallGguf) => void): Promise<void> {
      const small = new SmallGguf();
      change(small);
      await assertRejects(attn.loadModel({ 'small.gguf': small.file() }), code, [words]);
    }

    it('a small file without damage is read, of known and unknown size', async () => {
      const file = new SmallGguf().file();
      const fetch = () => Promise.resolve(new Response(file));
      for (const [source, options] of [
        [{ 'small.gguf': file }, {}],
        ['http://localhost/small.gguf', { fetch, cache: 'none' }],
      ] as const) {
        const model = await attn.loadModel(source, options);
        assert.deepEqual([...model.tokenize('ab').inputIds], [3]);
        assert.deepInclude(model.config, { rms_norm_eps: 1e-5, tie_word_embeddings: true, attention_bias: false });
        model.dispose();
      }
    });

    it('a file that is cut off anywhere or goes on after its end is refused, of known and unknown size', async () => {
      const start = settledHeap(attn);
      const file = new SmallGguf().file();
      for (let size = 0; size <= file.length - 32; size += 61) {
        const cut = file.slice(0, size);
        await assertRejects(attn.loadModel({ 'a.gguf': cut }), 'FORMAT', size === 0 ? [] : ['gguf: the']);
        const fetch = () => Promise.resolve(new Response(cut));
        await assertRejects(attn.loadModel('http://localhost/a.gguf', { fetch, cache: 'none' }), 'FORMAT', ['gguf: the']);
      }
      const longer = joined(file, new Uint8Array(32));
      await assertRejects(attn.loadModel({ 'a.gguf': longer }), 'FORMAT', ['the file is', 'the end of the last tensor']);
      const fetch = () => Promise.resolve(new Response(longer));
      await assertRejects(attn.loadModel('http://localhost/a.gguf', { fetch, cache: 'none' }), 'FORMAT', [
        'the file is',
        'the end of the last tensor',
      ]);
      assert.equal(settledHeap(attn), start);
    });

    it('no mutated header does more than raise a typed error', async () => {
      const file = new SmallGguf().file();
      const size = new SmallGguf().header().length;
      const start = settledHeap(attn);
      let [seed, refusals] = [20261127, 0];
      const random = (below: number) => {
        seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
        return seed % below;
      };
      for (let round = 0; round < 300; ++round) {
        const damaged = file.slice();
        for (let i = random(3); i >= 0; --i) damaged[random(size)] ^= [1, 128, 255][random(3)];
        try {
          (await attn.loadModel({ 'a.gguf': damaged })).dispose();
        } catch (error) {
          assertIsError(error, ['FORMAT', 'UNSUPPORTED', 'MISMATCH', 'CONFIG', 'MEMORY', 'OUT_OF_RANGE', 'SHAPE']);
          ++refusals;
        }
      }
      assert.isAbove(refusals, 200);
      assert.equal(settledHeap(attn), start);
    });

    it('damaged fields of the header are named', async () => {
      await refused('FORMAT', 'the magic', (file) => void (file.magic = 'GGML'));
      await refused('UNSUPPORTED', 'gguf: the version is 1, expected 2 or 3', (file) => void (file.version = 1));
      await refused('UNSUPPORTED', 'big-endian', (file) => void (file.version = 2 ** 24 * 3));
      for (const count of [1000n, 2n ** 33n, 2n ** 61n, 2n ** 64n - 1n]) {
        await refused('FORMAT', 'the number of tensors', (file) => void (file.tensorCount = count));
        await refused('FORMAT', 'the number of metadata keys', (file) => void (file.keyCount = count));
        const list = 'tokenizer.ggml.tokens';
        await refused('FORMAT', `the length of ${list}`, (file) => void file.set(list, pair(list, 9, joined(u32(8), u64(count)))));
      }
      await refused('FORMAT', 'the type of x is 13', (file) => void file.set('x', pair('x', 13, new Uint8Array(0))));
      await refused('UNSUPPORTED', 'an array of arrays', (file) => void file.set('x', pair('x', 9, joined(u32(9), u64(0)))));
      await refused('FORMAT', 'x is 2, expected 0 or 1', (file) => void file.set('x', pair('x', 7, Uint8Array.of(2))));
      await refused('FORMAT', 'below 2^63', (file) => void file.set('x', pair('x', 10, u64(2n ** 64n - 1n))));
      await refused('FORMAT', 'general.architecture is given twice', (file) => void file.keys.push(file.keys[0]));
      for (const alignment of [0, 4, 33, 2 ** 20])
        await refused('FORMAT', 'general.alignment', (file) => void file.set('general.alignment', whole('general.alignment', alignment)));
    });

    it('damaged tensor entries are named', async () => {
      const tensor = (i: number, change: object) => (file: SmallGguf) => void Object.assign(file.tensors[i], change);
      await refused('FORMAT', 'output_norm.weight is given twice', tensor(2, { name: 'output_norm.weight' }));
      await refused('FORMAT', 'the rank of token_embd.weight is 0', tensor(0, { dims: [] }));
      await refused('FORMAT', 'the rank of token_embd.weight is 5', tensor(0, { dims: [1, 1, 1, 1, 1] }));
      for (const dims of [
        [4, 0],
        [0, 4],
      ])
        await refused('FORMAT', 'the shape of token_embd.weight', tensor(0, { dims }));
      for (const dims of [[2n ** 32n, 2n ** 32n], [2n ** 64n - 1n]]) await refused('FORMAT', 'at most 2^48', tensor(0, { dims }));
      await refused('FORMAT', 'the file is', tensor(10, { dims: [2, 2 ** 20] }));
      for (const type of [4, 6, 13, 24, 2 ** 32 - 1]) await refused('UNSUPPORTED', 'expected one of F32, F16, BF16, Q4_0', tensor(0, { type }));
      await refused('FORMAT', 'expected a multiple of 256, the block size of Q4_K', tensor(0, { type: 12 }));
      for (const offset of [68, 32]) await refused('FORMAT', 'the offset of output_norm.weight', tensor(1, { offset }));
      await refused('FORMAT', 'the offset of blk.0.attn_norm.weight is 96, expected 64', tensor(1, { offset: 2n ** 64n - 1n }));
      await refused('UNSUPPORTED', 'blk.0.attn_sinks.weight', tensor(2, { name: 'blk.0.attn_sinks.weight' }));
      const divisors = tensor(2, { name: 'rope_freqs.weight' });
      await refused('FORMAT', 'the length of rope_freqs.weight is 4, expected 1', divisors);
      await refused('FORMAT', 'rope_freqs.weight is another tensor', tensor(3, { name: 'rope_freqs.weight' }));
      await refused('UNSUPPORTED', 'rope_freqs.weight is a list of other numbers, expected divisors by the formula of Llama 3.1', (file) => {
        divisors(file); // 0.125, 0.25, 0.375, 0.5
        for (const [key, value] of [
          ['attention.head_count', 1],
          ['attention.key_length', 8],
          ['rope.dimension_count', 8],
        ] as const)
          file.set(`llama.${key}`, whole(`llama.${key}`, value));
      });
      await refused('UNSUPPORTED', 'the type of blk.0.attn_q.bias is Q4_0', tensor(2, { name: 'blk.0.attn_q.bias', dims: [32], type: 2 }));
      await refused('FORMAT', 'token_embd.weight is missing', tensor(0, { name: 'other.weight' }));
      await refused('UNSUPPORTED', 'blk.1.attn_q.weight is unknown, expected a tensor of llama', tensor(3, { name: 'blk.1.attn_q.weight' }));
    });

    it('settings and tokenizers that attn does not have are refused', async () => {
      const cases: readonly (readonly [Code, string, string, (key: string) => Uint8Array])[] = [
        ['UNSUPPORTED', 'expected one of gpt2, llama, qwen2, qwen3, gemma2, gemma3, gptneox', 'general.architecture', (key) => string(key, 'mamba')],
        ['FORMAT', 'llama.block_count is a string', 'llama.block_count', (key) => string(key, '1')],
        ['FORMAT', 'llama.attention.head_count', 'llama.attention.head_count', (key) => whole(key, 0)],
        ['UNSUPPORTED', 'llama.rope.dimension_count', 'llama.rope.dimension_count', (key) => whole(key, 1)],
        ['UNSUPPORTED', 'llama.attention.value_length', 'llama.attention.value_length', (key) => whole(key, 4)],
        ['UNSUPPORTED', 'split.count is 3, expected 1', 'split.count', (key) => whole(key, 3)],
        ['UNSUPPORTED', 'llama.expert_count', 'llama.expert_count', (key) => whole(key, 8)],
        ['UNSUPPORTED', 'type is longrope, expected linear, none or yarn', 'llama.rope.scaling.type', (key) => string(key, 'longrope')],
        ['FORMAT', 'finite', 'llama.rope.freq_base', (key) => real(key, Infinity)],
        ['MISMATCH', 'layers.1.', 'llama.block_count', (key) => whole(key, 2)],
        ['CONFIG', 'num_key_value_heads', 'llama.attention.head_count_kv', (key) => whole(key, 7)],
        ['UNSUPPORTED', 'tokenizer.ggml.model is t5, expected gpt2', 'tokenizer.ggml.model', (key) => string(key, 't5')],
        ['UNSUPPORTED', 'add_space_prefix is true', 'tokenizer.ggml.add_space_prefix', (key) => pair(key, 7, Uint8Array.of(1))],
        ['UNSUPPORTED', 'tokenizer.ggml.pre is tekken', 'tokenizer.ggml.pre', (key) => string(key, 'tekken')],
        ['UNSUPPORTED', '5000 bytes', 'tokenizer.ggml.tokens', (key) => strings(key, ['<e>', 'a', 'b', 'x'.repeat(5000)])],
        ['FORMAT', 'one for each token', 'tokenizer.ggml.token_type', (key) => numbers(key, [3, 1])],
        ['FORMAT', '"a" twice', 'tokenizer.ggml.tokens', (key) => strings(key, ['a', 'a', 'b', 'c'])],
        ['FORMAT', 'expected valid UTF-8', 'tokenizer.ggml.tokens', (key) => strings(key, [Uint8Array.of(255), 'a', 'b', 'c'])],
        ['FORMAT', 'expected an id below 4', 'tokenizer.ggml.eos_token_id', (key) => whole(key, 4)],
        [
          'FORMAT',
          'add_bos_token is true, expected false. The file has no id for this token.',
          'tokenizer.ggml.add_bos_token',
          (key) => pair(key, 7, Uint8Array.of(1)),
        ],
      ];
      for (const [code, words, key, make] of cases) await refused(code, words, (file) => void file.set(key, make(key)));
      for (const key of ['general.architecture', 'llama.block_count', 'tokenizer.ggml.tokens', 'tokenizer.ggml.merges'])
        await refused('FORMAT', `gguf: ${key} is missing`, (file) => file.remove(key));
    });

    it('damaged SentencePiece vocabularies are refused', async () => {
      const scores = 'tokenizer.ggml.scores';
      const model = 'tokenizer.ggml.model';
      const bos = 'tokenizer.ggml.bos_token_id';
      const withScores = (file: SmallGguf, values: readonly number[]) =>
        file.set(model, string(model, 'llama')).set(bos, whole(bos, 0)).set(scores, reals(scores, values));
      const small = await attn.loadModel({ 'a.gguf': withScores(new SmallGguf(), [0, 0, 0, 1]).file() });
      // Token 0 also stands for the space in front, which this vocabulary lacks.
      assert.deepEqual([...small.tokenize('ab').inputIds], [0, 0, 3]);
      small.dispose();
      await refused('FORMAT', `${scores} is missing`, (file) => void file.set(model, string(model, 'llama')));
      await refused('FORMAT', `the length of ${scores} is 1, expected 4`, (file) => void withScores(file, [1]));
      await refused('FORMAT', `${scores} is NaN, expected finite numbers`, (file) => void withScores(file, [0, NaN, 0, 0]));
      const tokens = 'tokenizer.ggml.tokens';
      const long = Array.from({ length: 40 }, (_, i) => String(i).padEnd(2048, 'é').slice(0, 2047));
      await refused('UNSUPPORTED', 'the sum of the squared lengths in tokenizer.ggml.tokens', (file) => {
        withScores(
          file,
          long.map(() => 0),
        ).set(tokens, strings(tokens, long));
        file.set(
          'tokenizer.ggml.token_type',
          numbers(
            'tokenizer.ggml.token_type',
            long.map(() => 1),
          ),
        );
      });
    });

    it('linear RoPE scaling and biases reach config.json', async () => {
      const configOf = async (small: SmallGguf) => {
        const model = await attn.loadModel({ 'small.gguf': small.file() });
        const { config } = model;
        model.dispose();
        return config;
      };
      const linear = { rope_theta: 10000, rope_type: 'linear', factor: 2.5 };
      const key = 'llama.rope.scaling.factor';
      assert.deepEqual((await configOf(new SmallGguf().set(key, real(key, 2.5))))['rope_parameters'], linear);
      const old = 'llama.rope.scale_linear';
      assert.deepEqual((await configOf(new SmallGguf().set(old, real(old, 2.5))))['rope_parameters'], linear);
      const type = 'llama.rope.scaling.type';
      const none = new SmallGguf().set(old, real(old, 2.5)).set(type, string(type, 'none'));
      assert.deepInclude((await configOf(none))['rope_parameters'] as object, { rope_type: 'default' });
    });
  });
});
