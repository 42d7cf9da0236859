import { AttnError, hub, type Attn, type ModelOptions, type ModelSource, type TextModel } from 'attn';
import { load as loadWorker, transfer, AttnError as WorkerError } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { cacheKinds, fakeCaches, keyOf, withCaches, withGlobal } from '../support/fake_caches.ts';
import { bytes, host, loadHere, settledHeap, setup, url } from '../support/host.ts';
import { assertSameBits } from '../support/tensors.ts';

type Progress = Parameters<NonNullable<ModelOptions['onProgress']>>[0];

const name = 'tiny-bert-cls';
const fileNames = [
  ...['config.json', 'tokenizer.json', 'model.safetensors', 'tokenizer_config.json', 'modules.json'],
  ...['1_Pooling/config.json', 'sentence_bert_config.json', 'config_sentence_transformers.json'],
];
/** Requested if tokenizer_config.json has no added_tokens_decoder; these models lack them. */
const oldFiles = ['special_tokens_map.json', 'added_tokens.json'];
const weights = 'model.safetensors';
const texts = ['The film was good.', 'It was bad'];

let lastRun = 0;
const folder = (how: string, of = name) => url(`model/${how}/run-${Date.now()}-${host.variant}-${++lastRun}/${of}`);
interface Asked {
  readonly method: string;
  readonly file: string;
  readonly range?: string;
  readonly ifRange?: string;
  readonly authorization?: string;
}
async function asked(location: string): Promise<Asked[]> {
  return (await fetch(url(`asked?run=${/\/run-([^/]+)\//.exec(location)![1]}`))).json();
}
const fileOf = (location: string, file: string) => {
  const address = new URL(location);
  address.pathname += `/${file}`;
  return address.href;
};

const later = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds));

async function digest(of: Uint8Array<ArrayBuffer>): Promise<string> {
  const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', of));
  return Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function assertGrowing(reports: readonly Progress[], message?: string): void {
  const shares = reports.map(({ progress }) => progress);
  assert.deepEqual(
    shares,
    [...shares].sort((a, b) => a - b),
    message,
  );
  assert.isAtLeast(shares[0], 0, message);
  assert.isTrue(
    shares.every((share, i) => share < 1 || i === shares.length - 1 || reports[i].loaded === reports[i].total),
    message,
  );
  assert.equal(shares.at(-1), 1, message);
}

describe('loading models', () => {
  let attn: Attn;
  let files: Record<string, Uint8Array<ArrayBuffer>>;
  let expected: Awaited<ReturnType<TextModel['embed']>>;
  const text = (file: string) => new TextDecoder().decode(files[file]);
  before(async () => {
    attn = await loadHere();
    files = Object.fromEntries(await Promise.all(fileNames.map(async (file) => [file, await bytes(`testdata/models/${name}/${file}`)])));
    const model = await attn.loadModel(files);
    expected = await model.embed(texts);
    model.dispose();
  });
  after(() => attn.dispose());

  async function works(source: ModelSource, options: ModelOptions = { cache: 'none' }): Promise<void> {
    const start = settledHeap(attn);
    const model = await attn.loadModel(source, options);
    assertSameBits(await model.embed(texts), expected);
    model.dispose();
    assert.equal(settledHeap(attn), start);
  }
  async function refused(
    source: unknown,
    code: Parameters<typeof assertRejects>[1],
    words: (string | RegExp)[] = [],
    options: unknown = { cache: 'none' },
  ) {
    const start = settledHeap(attn);
    const error = await assertRejects(attn.loadModel(source as ModelSource, options as ModelOptions), code, words);
    assert.equal(settledHeap(attn), start, 'no memory is left behind');
    return error;
  }

  describe('sources', () => {
    const renamed = (change: (file: string) => string) => Object.fromEntries(fileNames.map((file) => [change(file), files[file]]));
    const sources: Record<string, () => ModelSource> = {
      'a string': () => url(`testdata/models/${name}`),
      'a string with a trailing slash': () => url(`testdata/models/${name}/`),
      'a URL': () => new URL(url(`testdata/models/${name}`)),
      'a URL with a fragment': () => new URL(url(`testdata/models/${name}#readme`)),
      'a URL with a query': () => folder('good'),
      'files by name: Uint8Array': () => files,
      'files by name: ArrayBuffer': () => Object.fromEntries(fileNames.map((file) => [file, files[file].slice().buffer])),
      'files by name: Blob': () => Object.fromEntries(fileNames.map((file) => [file, new Blob([files[file]])])),
      'files by name: views into larger buffers': () =>
        Object.fromEntries(
          fileNames.map((file) => {
            const larger = new Uint8Array(files[file].length + 9);
            larger.set(files[file], 5);
            return [file, larger.subarray(5, 5 + files[file].length)];
          }),
        ),
      'files by name: JSON as strings': () => Object.fromEntries(fileNames.map((file) => [file, file === weights ? files[file] : text(file)])),
      'files with a folder prefix, as dropped files have it': () => renamed((file) => `downloads/all of it/${file}`),
      'files in any order, one in a folder first': () =>
        Object.fromEntries(
          [...fileNames]
            .reverse()
            .map((file) => [`a/b/${file}`, files[file]] as const)
            .sort(([a], [b]) => (a < b ? -1 : 1)),
        ),
      'files with a ./ prefix': () => renamed((file) => `./${file}`),
      'additional files that are not needed': () => ({
        ...files,
        'README.md': '# A model',
        'onnx/model.onnx': new Uint8Array(3),
        'vocab.txt': 'a',
      }),
    };
    for (const [what, source] of Object.entries(sources)) it(what, () => works(source()));

    it('a Response body in chunks of any size', async () => {
      for (const size of [1, 7, 1000, 1e6]) {
        const inPieces: typeof fetch = async (address, init) => {
          const response = await fetch(address, init);
          if (!String(address).includes(weights)) return response;
          const all = new Uint8Array(await response.arrayBuffer());
          let at = 0;
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              if (at >= all.length) return void controller.close();
              const end = at < 3000 ? at + size : at + Math.max(size, 5000);
              controller.enqueue(all.slice(at, end));
              at = end;
            },
          });
          return new Response(body);
        };
        await works(url(`testdata/models/${name}`), { fetch: inPieces, cache: 'none' });
      }
    });

    it("the caller's fetch is called for every file, with the query of the folder", async () => {
      const seen: string[] = [];
      const mine: typeof fetch = (address, init) => {
        seen.push(String(address));
        return fetch(address, init);
      };
      const location = folder('good');
      await works(location, { fetch: mine });
      assert.sameMembers(
        seen,
        [...fileNames, ...oldFiles].map((file) => fileOf(location, file)),
      );
    });

    it('the given bytes stay with the caller, who must not detach them while loading', async () => {
      const copies = Object.fromEntries(fileNames.map((file) => [file, files[file].slice()]));
      await works(copies);
      for (const file of fileNames) assert.deepEqual(copies[file], files[file], file);
      const loading = attn.loadModel(copies);
      structuredClone(copies[weights].buffer, { transfer: [copies[weights].buffer] });
      await assertRejects(loading, 'DETACHED', [weights]);
    });

    it('required and optional files: the model differs without the optional ones', async () => {
      const three = Object.fromEntries(['config.json', 'tokenizer.json', weights].map((file) => [file, files[file]]));
      const model = await attn.loadModel(three);
      const { data } = await model.embed(texts);
      assert.notDeepEqual(data, expected.data, 'mean pooling without normalisation');
      const cls = await model.embed(texts, { pooling: 'cls', normalize: true });
      assertSameBits(cls, expected);
      assert.equal(model.tokenize('good '.repeat(100)).dims[1], 64);
      model.dispose();
    });

    it('a server that returns a page for every unknown name', async () => {
      const model = await attn.loadModel(url('model/one-page/tiny-bert'), { cache: 'none' });
      assert.equal(model.labels?.length, 3);
      model.dispose();
    });

    it('compressed transfer, and transfer without a length', async () => {
      await works(url(`model/encoded/${name}`));
      await works(url(`model/silent/${name}`));
    });
  });

  describe('refused sources and options', () => {
    const odd: readonly (readonly [string, 'FORMAT' | 'NETWORK' | 'UNSUPPORTED', readonly (string | RegExp)[]])[] = [
      ['html', 'FORMAT', ['HTML', weights]],
      ['pointer', 'FORMAT', ['LFS']],
      ['gzip', 'FORMAT', ['gzip']],
      ['zip', 'UNSUPPORTED', ['a zip', 'save_pretrained']],
      ['old-pickle', 'UNSUPPORTED', ['a pickle', 'save_pretrained']],
      ['empty', 'FORMAT', []],
      ['half', 'FORMAT', [/\d+/]],
      ['long', 'FORMAT', [/\d+/]],
      ['cut', 'NETWORK', [weights]],
      ['broken', 'NETWORK', ['503']],
      ['forbidden', 'NETWORK', ['403']],
      ['gone', 'NETWORK', ['404']],
      ['pickle', 'UNSUPPORTED', ['pytorch_model.bin', 'save_pretrained']],
      ['sharded', 'FORMAT', ['model.safetensors.index.json', 'weight_map']],
      ['onnx', 'UNSUPPORTED', ['onnx/model.onnx', 'exported']],
      ['vocabulary', 'UNSUPPORTED', ['vocab.txt', 'tokenizer.json', 'save_pretrained']],
      ['html-config', 'FORMAT', ['HTML', 'config.json']],
    ];
    for (const [how, code, words] of odd)
      it(`a server: ${how}`, async () => {
        const error = await refused(url(`model/${how}/${name}`), code, [...words]);
        if (code === 'NETWORK' && how !== 'cut') assert.isNumber(error.detail.status);
        if (how === 'cut')
          assert.match(
            error.message,
            new RegExp(`\\b${files[weights].length >> 1}\\b|\\b${files[weights].length}\\b`),
            'the received and the expected length',
          );
      });

    it('a Hub id that is not a local folder: the message suggests hub()', async () => {
      const advice = [/config\.json/, /Hub id/, 'pass hub("sentence-transformers/all-MiniLM-L6-v2")'];
      const id = 'sentence-transformers/all-MiniLM-L6-v2';
      const page: typeof fetch = () => Promise.resolve(new Response('<!doctype html>', { headers: { 'content-type': 'text/html' } }));
      const inNode = host.engine === 'node';
      const error = await refused(id, inNode ? 'NETWORK' : ['NETWORK', 'FORMAT'], advice);
      if (!inNode) await refused(id, 'FORMAT', advice, { cache: 'none', fetch: page });
      assert.equal(error.detail.op, 'loadModel');
      await refused('bert-base-uncased', ['NETWORK', 'FORMAT'], ['hub("bert-base-uncased")']);
      for (const path of ['./models/none', 'some/models/none', url('model/good/no-model')])
        assert.notInclude((await refused(path, ['NETWORK', 'FORMAT'])).message, 'Hub', path);
      const most = 'm'.repeat(96);
      for (const like of ['x', '-x_y.z', 'No.Body/x-1', `${most}/${most}`]) await refused(like, ['NETWORK', 'FORMAT'], [`hub("${like}")`]);
      for (const unlike of ['.x', '~x', 'no body', '.nobody/x', 'nobody/.x', `${most}m`, `${most}m/x`, `x/${most}m`])
        assert.notInclude((await refused(unlike, ['NETWORK', 'FORMAT'])).message, 'Hub', unlike);
      if (host.build !== 'release') return;
      const remote = await loadWorker(setup);
      const fromThere = await assertRejects(remote.loadModel(id, { cache: 'none' }), ['NETWORK', 'FORMAT'], advice, WorkerError);
      assert.include(fromThere.help, 'Hub id');
      await remote.dispose();
    });

    it('hub() returns the URL of a Hub model, here and in a worker, and refuses what is no id', async () => {
      assert.strictEqual(hub('owner/some-name.v2').pathname, '/owner/some-name.v2/resolve/main');
      assert.strictEqual(hub('gpt2', { revision: 'refs/pr/3' }).pathname, '/gpt2/resolve/refs%2Fpr%2F3');
      assert.strictEqual(hub('a/b', {}).origin, hub('a/b', { revision: 'v1.0' }).origin);
      const asked: string[] = [];
      const fetched: typeof fetch = (input) => {
        asked.push(String(input));
        const file = String(input).split('/resolve/v1/')[1];
        return Promise.resolve(file in files ? new Response(files[file]) : new Response(null, { status: 404 }));
      };
      await works(hub('owner/name', { revision: 'v1' }), { cache: 'none', fetch: fetched });
      assert.include(asked, `${hub('owner/name').origin}/owner/name/resolve/v1/config.json`);
      for (const id of [
        '',
        '/',
        'a/',
        '/b',
        'a/b/c',
        'a b',
        '../b',
        'a/..',
        'a/b..c',
        'a/b?c',
        'a/b#c',
        'a\\b',
        'ä/b',
        'https://x/y',
        'a/b.git',
        'a/' + 'b'.repeat(97),
      ])
        assertThrows(() => hub(id), 'CONFIG', ['hub: id is', 'expected owner/name']);
      for (const id of [undefined, 1, null, ['a/b'], new URL('https://a/b')])
        assertThrows(() => hub(id as unknown as string), 'ARGUMENT', ['hub: id is']);
      for (const revision of ['', '/', 'a/', '..', 'a/../b', 'a?b', 'a#b', 'a b', 'x'.repeat(256)])
        assertThrows(() => hub('a/b', { revision }), 'CONFIG', ['hub: revision is']);
      assertThrows(() => hub('a/b', { revision: 1 as never }), 'ARGUMENT', ['revision is 1']);
      assertThrows(() => hub('a/b', { revison: 'x' } as never), 'ARGUMENT', ['Did you mean revision?']);
    });

    it('the path or URL of a file: the message asks for its folder', async () => {
      for (const path of [`testdata/models/${name}/${weights}`, url(`model/good/${name}/config.json`), weights, 'other.bin'])
        assert.notInclude((await refused(path, ['NETWORK', 'FORMAT'], ['pass the folder that contains it'])).message, 'Hub');
    });

    it('a missing folder, and an unreachable server', async () => {
      await refused(url('model/good/no-model'), 'NETWORK', ['404', 'config.json']);
      await refused('http://127.0.0.1:9/model', 'NETWORK', ['127.0.0.1:9/model/']);
    });

    const given: Record<
      string,
      readonly [() => unknown, 'FORMAT' | 'UNSUPPORTED' | 'ARGUMENT' | 'DTYPE' | 'CONFIG' | 'MISMATCH', readonly string[]]
    > = {
      'config.json undefined': [() => ({ ...files, 'config.json': undefined }), 'DTYPE', ['config.json']],
      'no config.json': [() => Object.fromEntries(Object.entries(files).filter(([file]) => file !== 'config.json')), 'ARGUMENT', ['config.json']],
      'only a pickle file': [
        () => ({ 'config.json': files['config.json'], 'tokenizer.json': files['tokenizer.json'], 'pytorch_model.bin': new Uint8Array(9) }),
        'UNSUPPORTED',
        ['pytorch_model.bin', 'save_pretrained'],
      ],
      'only a .pt': [
        () => ({ 'config.json': files['config.json'], 'tokenizer.json': files['tokenizer.json'], 'best.pt': new Uint8Array(9) }),
        'UNSUPPORTED',
        ['best.pt'],
      ],
      'only ONNX graphs': [
        () => ({
          'config.json': files['config.json'],
          'tokenizer.json': files['tokenizer.json'],
          'onnx/model_quantized.onnx': new Uint8Array(9),
        }),
        'UNSUPPORTED',
        ['onnx/model_quantized.onnx', 'exported'],
      ],
      'only shards': [
        () => ({
          'config.json': files['config.json'],
          'tokenizer.json': files['tokenizer.json'],
          'model-00001-of-00002.safetensors': files[weights],
        }),
        'UNSUPPORTED',
        ['Add the others'],
      ],
      'truncated weights': [() => ({ ...files, [weights]: files[weights].subarray(0, -1) }), 'FORMAT', []],
      'weights with an extra byte': [() => ({ ...files, [weights]: new Blob([files[weights], new Uint8Array(1)]) }), 'FORMAT', []],
      'weights given as text': [() => ({ ...files, [weights]: 'hello, I am no model' }), 'FORMAT', []],
      'an LFS pointer': [() => ({ ...files, [weights]: new Blob(['version https://git-lfs.github.com/spec/v1\n']) }), 'FORMAT', ['LFS']],
      'HTML as config.json': [() => ({ ...files, 'config.json': '<!doctype html>' }), 'FORMAT', ['HTML', 'config.json']],
      'HTML as another file': [() => ({ ...files, 'modules.json': '<!doctype html>' }), 'FORMAT', ['HTML', 'modules.json']],
      'half of config.json': [() => ({ ...files, 'config.json': text('config.json').slice(0, 100) }), 'FORMAT', ['config.json']],
      'config.json as a list': [() => ({ ...files, 'config.json': '[]' }), 'FORMAT', ['config.json']],
      'bytes that are not UTF-8': [() => ({ ...files, 'config.json': Uint8Array.of(0x7b, 0xff, 0x7d) }), 'FORMAT', ['config.json']],
      'a config.json of 2 MB': [() => ({ ...files, 'config.json': text('config.json') + ' '.repeat(2 ** 21) }), 'FORMAT', ['1048576']],
      'half of tokenizer.json': [() => ({ ...files, 'tokenizer.json': text('tokenizer.json').slice(0, 1000) }), 'FORMAT', ['tokenizer.json']],
      'an unsupported kind of model': [
        () => ({ ...files, 'config.json': text('config.json').replace('"model_type": "bert"', '"model_type": "t5"') }),
        'UNSUPPORTED',
        ['t5'],
      ],
      'an unsupported kind of tokenizer': [
        () => ({ ...files, 'tokenizer.json': text('tokenizer.json').replaceAll('"type": "WordPiece"', '"type": "Lattice"') }),
        'UNSUPPORTED',
        ['Lattice'],
      ],
      'sizes out of range': [
        () => ({ ...files, 'config.json': text('config.json').replace('"num_hidden_layers": 2', '"num_hidden_layers": -2') }),
        'CONFIG',
        ['num_hidden_layers'],
      ],
      'one more layer than there are weights': [
        () => ({ ...files, 'config.json': text('config.json').replace('"num_hidden_layers": 2', '"num_hidden_layers": 3') }),
        'MISMATCH',
        ['encoder.layer.2.'],
      ],
      'lowercase requested of a tokenizer that keeps capitals': [
        () => ({
          ...files,
          'tokenizer.json': text('tokenizer.json').replace('"lowercase": true', '"lowercase": false'),
          'tokenizer_config.json': '{"tokenizer_class": "TokenizersBackend"}',
          'sentence_bert_config.json': '{"max_seq_length": 16, "do_lower_case": true}',
        }),
        'UNSUPPORTED',
        ['do_lower_case'],
      ],
      'lowercase requested of a tokenizer without letters': [
        () => ({
          ...files,
          'tokenizer.json': text('tokenizer.json')
            .replace('"lowercase": true', '"lowercase": false')
            .replace(/"[aA]":/g, (letter) => `"${letter.codePointAt(1)}":`),
          'tokenizer_config.json': '{"tokenizer_class": "TokenizersBackend"}',
          'sentence_bert_config.json': '{"max_seq_length": 16, "do_lower_case": true}',
        }),
        'UNSUPPORTED',
        ['do_lower_case'],
      ],
      'an empty string': [() => '', 'ARGUMENT', ['source']],
      'an invalid URL': [() => 'http://[', 'ARGUMENT', ['source']],
      'a number': [() => 7, 'ARGUMENT', ['source']],
      'a list of files': [() => [new Blob()], 'ARGUMENT', ['source']],
      'no files': [() => ({}), 'ARGUMENT', ['config.json']],
      'a Map': [() => new Map(Object.entries(files)), 'ARGUMENT', ['source']],
      'floats as weights': [() => ({ ...files, [weights]: new Float32Array(4) }), 'DTYPE', [weights]],
    };
    for (const [what, [source, code, words]] of Object.entries(given))
      it(`files: ${what} is ${code}`, () => refused(source(), code, [...words]).then(() => {}));

    const options: Record<string, readonly [unknown, 'ARGUMENT' | 'CONFIG', string]> = {
      'an unknown option': [{ cahce: 'none' }, 'ARGUMENT', 'cache'],
      'an unknown cache mode': [{ cache: 'yes' }, 'CONFIG', 'cache'],
      'a fetch that is not a function': [{ fetch: 5 }, 'ARGUMENT', 'fetch'],
      'a signal that is not an AbortSignal': [{ signal: {} }, 'ARGUMENT', 'signal'],
      'an onProgress that is not a function': [{ onProgress: 5 }, 'ARGUMENT', 'onProgress'],
      'a sha256 that is not an object': [{ sha256: 'abc' }, 'ARGUMENT', 'sha256'],
      'an invalid digest': [{ sha256: { [weights]: 'abc' } }, 'ARGUMENT', weights],
      'a digest for a file that is not read': [{ sha256: { 'model.safetensor': '0'.repeat(64) } }, 'ARGUMENT', weights],
      'options that are not an object': [5, 'ARGUMENT', 'options'],
    };
    for (const [what, [value, code, word]] of Object.entries(options))
      it(`options: ${what} is ${code}`, () => refused(files, code, [word], value).then(() => {}));

    it("errors and invalid results of the caller's fetch", async () => {
      const location = url(`testdata/models/${name}`);
      const mine = new RangeError('mine');
      const error = await refused(location, 'NETWORK', ['mine'], { fetch: () => Promise.reject(mine) });
      assert.equal(error.cause, mine);
      assert.deepEqual(error.detail, { op: 'loadModel', url: `${location}/modules.json` });
      await refused(location, 'ARGUMENT', ['Response'], { fetch: () => Promise.resolve('text') });
      const used = async (address: string) => {
        const response = await fetch(address);
        await response.text();
        return response;
      };
      const { detail } = await refused(location, 'ARGUMENT', ['Response'], { fetch: used, cache: 'none' });
      assert.deepEqual([detail.op, detail.argument], ['loadModel', 'fetch']);
    });
  });

  it('any changed byte of a file gives a typed error or a model, and leaves the heap unchanged', async () => {
    const flips = host.engine === 'node' && host.complete ? 300 : 30;
    await works(files);
    const start = settledHeap(attn);
    const codes = new Map<string, number>();
    for (const file of fileNames) {
      // Only the header of the weights: changes of numbers are valid.
      const length = file === weights ? 4000 : files[file].length;
      for (let i = 0; i < flips; i++) {
        const changed = files[file].slice();
        changed[Math.floor((i * length) / flips)] ^= [0x01, 0x20, 0xff][i % 3];
        let code = 'none';
        try {
          const model = await attn.loadModel({ ...files, [file]: changed });
          await model.embed(texts);
          model.dispose();
        } catch (error) {
          if (!(error instanceof AttnError)) throw error;
          code = error.code;
        }
        codes.set(code, (codes.get(code) ?? 0) + 1);
      }
    }
    assert.includeMembers(['FORMAT', 'CONFIG', 'UNSUPPORTED', 'MISMATCH', 'none'], [...codes.keys()]);
    assert.isAbove(codes.get('FORMAT') ?? 0, flips);
    assert.equal(settledHeap(attn), start);
    assert.isBelow(attn.info.heap.peak, 2 ** 23);
  });

  describe('digests', () => {
    it('pinned files are verified, also with uppercase digests', async () => {
      const sha256: Record<string, string> = {};
      for (const file of fileNames) sha256[file] = await digest(files[file]);
      await works(files, { sha256 });
      await works(url(`testdata/models/${name}`), { sha256, cache: 'none' });
      await works(files, { sha256: { [weights]: sha256[weights].toUpperCase() } });
      for (const file of fileNames) {
        const wrong = sha256[file].replace(/^./, (digit) => (digit === '0' ? '1' : '0'));
        const error = await refused(files, 'FORMAT', [file, sha256[file], wrong], { sha256: { ...sha256, [file]: wrong } });
        assert.equal(error.detail.got, sha256[file]);
      }
    });

    it('a missing pinned file is an error', async () => {
      const { 'modules.json': _, ...others } = files;
      await refused(others, 'FORMAT', ['modules.json'], { sha256: { 'modules.json': await digest(files['modules.json']) } });
    });

    it('digests of files of every length around a block', async () => {
      for (const spaces of [0, 1, 40, 50, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128]) {
        const config = new TextEncoder().encode(text('config.json') + ' '.repeat(spaces));
        await works({ ...files, 'config.json': config }, { sha256: { 'config.json': await digest(config) } });
      }
    });

    it('digests of files that arrive in chunks of any size', async () => {
      const config = files['config.json'];
      const sha256 = { 'config.json': await digest(config) };
      for (const sizes of [[1], [63, 1], [64], [65], [63, 2, 127], [40, 24, 128], [7, 200, 0, 57]]) {
        const inPieces: typeof fetch = async (address, init) => {
          if (new URL(String(address)).pathname !== `/testdata/models/${name}/config.json`) return fetch(address, init);
          let [at, turn] = [0, 0];
          const body = new ReadableStream<Uint8Array>({
            pull(controller) {
              if (at >= config.length) return void controller.close();
              const piece = config.slice(at, at + sizes[turn++ % sizes.length]!);
              at += piece.length;
              controller.enqueue(piece);
            },
          });
          return new Response(body);
        };
        await works(url(`testdata/models/${name}`), { cache: 'none', fetch: inPieces, sha256 });
      }
    });
  });

  describe('progress and abort', () => {
    it('progress counts the bytes of each file up to its size', async () => {
      for (const [source, phase] of [
        [folder('good'), 'download'],
        [files, 'read'],
      ] as const) {
        const seen = new Map<string, Progress[]>();
        await works(source, {
          cache: 'none',
          onProgress: (p) => seen.set(p.file!, [...(seen.get(p.file!) ?? []), { ...p }]),
        });
        assert.sameMembers([...seen.keys()], fileNames);
        for (const [file, reports] of seen) {
          const total = files[file].length;
          assert.deepInclude(reports[0], { phase, file, loaded: 0, total });
          assert.deepInclude(reports.at(-1), { phase, file, loaded: total, total });
          reports.forEach((p, i) => i > 0 && assert.isAtLeast(p.loaded, reports[i - 1].loaded));
        }
      }
    });

    it('progress grows from 0 to 1 over all files, also if the server states no sizes', async () => {
      const chunked = (content: Uint8Array<ArrayBuffer>) =>
        new ReadableStream({
          start(controller) {
            for (let at = 0; at < content.length; at += 10_000) controller.enqueue(content.subarray(at, at + 10_000));
            controller.close();
          },
        });
      const unsized: typeof fetch = async (address) => {
        const file = fileNames.filter((each) => new URL(String(address)).pathname.endsWith(`/${each}`)).at(-1);
        return file ? new Response(chunked(files[file])) : new Response(null, { status: 404 });
      };
      const sources: [ModelSource, ModelOptions][] = [
        [folder('good'), {}],
        [folder('good'), { fetch: unsized }],
        [files, {}],
      ];
      for (const [source, options] of sources) {
        const seen: Progress[] = [];
        await works(source, { ...options, cache: 'none', onProgress: (p) => seen.push(p) });
        assertGrowing(seen);
      }
    });

    it('the end is reported once, however slow the machine is', async () => {
      const { now } = Date;
      let time = now();
      Date.now = () => (time += 100);
      try {
        const seen: Progress[] = [];
        await works(files, { onProgress: (p) => seen.push(p) });
        assert.strictEqual(seen.filter(({ progress }) => progress === 1).length, 1);
      } finally {
        Date.now = now;
      }
    });

    it('files from the cache report the same growing progress', async () => {
      const kept = fakeCaches();
      await withCaches(kept, async () => {
        const location = folder('good');
        for (const phase of ['download', 'cache']) {
          const seen: Progress[] = [];
          await works(location, { onProgress: (p) => seen.push(p) });
          assert.isTrue(seen.every((p) => p.phase === phase));
          assertGrowing(seen);
        }
      });
    });

    if (host.engine === 'node')
      it('many calls at once add one listener to an AbortSignal, so that Node does not warn', async () => {
        const warnings: string[] = [];
        const { process } = globalThis as unknown as {
          process: { on(name: string, listener: (warning: Error) => void): void; off(name: string, listener: (warning: Error) => void): void };
        };
        const onWarning = ({ name: kind, message }: Error) => void warnings.push(`${kind}: ${message}`);
        process.on('warning', onWarning);
        // Other implementations of fetch listen to the signal until the response has come.
        const listening: typeof fetch = (address, init) => {
          const onAbort = () => {};
          init!.signal!.addEventListener('abort', onAbort);
          return fetch(address).finally(() => init!.signal!.removeEventListener('abort', onAbort));
        };
        const { signal } = new AbortController();
        const twelve = <T>(work: () => Promise<T>) => Promise.all(Array.from({ length: 12 }, work));
        const remote = await loadWorker(setup);
        try {
          await works(url(`testdata/models/${name}`), { fetch: listening, cache: 'none' });
          for (const instance of [attn, remote]) {
            const models = await twelve(async () => instance.loadModel(files, { signal }));
            await twelve(async () => models[0].embed(texts, { signal }));
            for (const model of models) await model.dispose();
          }
          await later(20);
        } finally {
          process.off('warning', onWarning);
          await remote.dispose();
        }
        assert.deepEqual(warnings, []);
      });

    it('an error thrown by onProgress stops loading and becomes the cause', async () => {
      for (const file of ['config.json', weights])
        for (const source of [files, url(`testdata/models/${name}`)]) {
          const mine = new RangeError('mine');
          const error = await refused(source, 'ARGUMENT', ['onProgress', 'mine'], {
            cache: 'none',
            onProgress: (p: Progress) => {
              if (p.file === file) throw mine;
            },
          });
          assert.equal(error.cause, mine);
        }
    });

    it('no progress is reported after loading has ended', async () => {
      const late: Progress[] = [];
      let ended = false;
      // One file fails at once; another continues for ever and ignores the signal.
      const endless = () => new ReadableStream({ pull: (controller) => later(20).then(() => controller.enqueue(Uint8Array.of(0x20))) });
      const mine: typeof fetch = async (address) =>
        String(address).includes('tokenizer.json') ? new Response(endless()) : (await later(100), new Response(null, { status: 503 }));
      await refused(url(`testdata/models/${name}`), 'NETWORK', ['503'], {
        fetch: mine,
        cache: 'none',
        onProgress: (p: Progress) => ended && late.push(p),
      });
      ended = true;
      await later(300);
      assert.isEmpty(late);
    });

    it('a signal that is aborted before loading, and during every file', async () => {
      await refused(files, 'ABORTED', [], { signal: AbortSignal.abort() });
      for (const source of [files, url(`testdata/models/${name}`)])
        for (const file of fileNames) {
          const controller = new AbortController();
          const error = await refused(source, 'ABORTED', [], {
            cache: 'none',
            signal: controller.signal,
            onProgress: (p: Progress) => p.file === file && controller.abort(new Error('mine')),
          });
          assert.equal((error.cause as Error).message, 'mine');
        }
      await works(files);
    });

    it('a signal that is aborted while the server sends nothing, or slowly', async () => {
      for (const how of ['hang', 'endless']) {
        const controller = new AbortController();
        setTimeout(() => controller.abort(), 100);
        const started = Date.now();
        await refused(url(`model/${how}/${name}`), 'ABORTED', [], { cache: 'none', signal: controller.signal });
        assert.isBelow(Date.now() - started, 3000);
      }
    });

    it("a caller's fetch that ignores the signal", async () => {
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 50);
      await refused(url(`testdata/models/${name}`), 'ABORTED', [], { signal: controller.signal, fetch: () => new Promise(() => {}) });
    });

    it('an abort after loading has no effect', async () => {
      const controller = new AbortController();
      const model = await attn.loadModel(files, { signal: controller.signal });
      controller.abort();
      assertSameBits(await model.embed(texts), expected);
      model.dispose();
    });

    it('an instance that is disposed of while it loads', async () => {
      const own = await loadHere();
      const onProgress = ({ file }: Progress) => file === weights && own.dispose();
      await assertRejects(own.loadModel(url(`model/endless/${name}`), { cache: 'none', onProgress: (p) => void onProgress(p) }), 'DISPOSED');
    });

    it('several loads at once', async () => {
      const start = settledHeap(attn);
      const models = await Promise.all([
        attn.loadModel(files),
        attn.loadModel(url(`testdata/models/${name}`), { cache: 'none' }),
        attn.loadModel(files),
      ]);
      for (const model of models) assertSameBits(await model.embed(texts), expected);
      for (const model of models) model.dispose();
      assert.equal(settledHeap(attn), start);
    });
  });

  for (const [kind, makeCaches] of Object.entries(cacheKinds))
    describe(`caching, with caches ${kind}`, () => {
      const { storage, locks, within: withKind } = makeCaches();
      const within = (title: string, body: () => Promise<void>) => it(title, () => withKind(body));
      const kept = async (location: string, file: string) => storage.match(keyOf(fileOf(location, file)));
      const partsOf = async (location: string) => {
        const requests = await (await storage.open('attn-models-parts')).keys();
        return requests.filter((request) => request.url.startsWith(location));
      };
      /**
       * Returns whether the part received before a break is cached. WebKit may drop it, and then there is nothing to
       * resume.
       */
      const keepsWhatCame = async (location: string) => host.engine !== 'webkit' || (await partsOf(location)).length > 0;
      async function assertNothingKept(location: string) {
        for (const file of fileNames) assert.isUndefined(await kept(location, file), `${file} is not cached`);
        assert.isEmpty(await partsOf(location), 'nor parts');
      }
      async function assertAllKept(location: string) {
        for (const file of fileNames) {
          const response = await kept(location, file);
          if (!response) return assert.fail(`${file} is not cached`);
          assert.deepEqual(new Uint8Array(await response.arrayBuffer()), files[file], file);
        }
        assert.isEmpty(await partsOf(location), 'no partial downloads are left');
      }
      const phases = async (location: string, options: ModelOptions = {}) => {
        const seen = new Set<string>();
        await works(location, { ...options, onProgress: ({ phase }) => seen.add(phase) });
        return [...seen];
      };

      within('all files are cached under their URL once the model has loaded', async () => {
        const location = folder('good');
        assert.deepEqual(await phases(location), ['download']);
        await assertAllKept(location);
        assert.deepEqual(await phases(location), ['cache']);
      });

      within("missing files are not requested again, and cache: 'none' does not use the cache", async () => {
        const location = folder('good', 'tiny-bert');
        for (const _ of [1, 2]) {
          (await attn.loadModel(location)).dispose();
          const got = (await asked(location)).filter(({ method }) => method === 'GET');
          assert.sameMembers(
            got.map(({ file }) => file),
            ['modules.json', 'config.json', 'tokenizer.json', 'tokenizer_config.json', ...oldFiles, weights],
          );
        }
        const other = folder('good');
        assert.deepEqual(await phases(other, { cache: 'none' }), ['download']);
        await assertNothingKept(other);
        assert.deepEqual(await phases(other, { cache: 'none' }), ['download']);
      });

      within('nothing is cached after a failure', async () => {
        for (const [how, code] of [
          ['html', 'FORMAT'],
          ['pointer', 'FORMAT'],
          ['half', 'FORMAT'],
          ['long', 'FORMAT'],
          ['broken', 'NETWORK'],
          ['gone', 'NETWORK'],
        ] as const) {
          const location = folder(how);
          await refused(location, code, [], {});
          await assertNothingKept(location);
        }
        const location = folder('good');
        await refused(location, 'FORMAT', ['SHA-256'], { sha256: { [weights]: '0'.repeat(64) } });
        await assertNothingKept(location);
        await refused(location, 'FORMAT', ['SHA-256'], { sha256: { 'tokenizer.json': '0'.repeat(64) } });
        await assertNothingKept(location);
      });

      within('the next load resumes an interrupted download', async () => {
        for (const [how, validator] of [
          ['breaks', '"one"'],
          ['dated', 'Sat, 21 Nov 2026 12:00:00 GMT'],
        ]) {
          const location = folder(how);
          await refused(location, 'NETWORK', [weights], {});
          for (const file of fileNames) assert.isUndefined(await kept(location, file), `${file} is not cached`);
          const goesOn = await keepsWhatCame(location);
          if (goesOn) assert.lengthOf(await partsOf(location), 1);
          assert.deepEqual(await phases(location, { sha256: { [weights]: await digest(files[weights]) } }), ['download']);
          const last = (await asked(location)).filter(({ file }) => file === weights).at(-1)!;
          await assertAllKept(location);
          if (!goesOn) continue;
          const from = Number(/^bytes=(\d+)-$/.exec(last.range ?? '')?.[1]);
          assert.isAbove(from, 0);
          assert.isAtMost(from, files[weights].length / 2);
          if (kind === 'of the host') assert.equal(last.ifRange, validator);
        }
      });

      within('the download restarts if the file has changed, or the server cannot resume or resumes incorrectly', async () => {
        for (const how of ['changes', 'no-range', 'lies', 'swaps', 'refuses', 'weak']) {
          const location = folder(how);
          await refused(location, 'NETWORK', [weights], {});
          if (await keepsWhatCame(location)) assert.lengthOf(await partsOf(location), how === 'weak' ? 0 : 1, how);
          await works(location, {});
          await assertAllKept(location);
        }
      });

      within('the next load also resumes after an abort', async () => {
        const location = folder('endless');
        const controller = new AbortController();
        await refused(location, 'ABORTED', [], {
          signal: controller.signal,
          onProgress: (p: Progress) => p.file === weights && p.loaded > 10000 && controller.abort(),
        });
        assert.lengthOf(await partsOf(location), 1);
        await works(location, {});
        const last = (await asked(location)).filter(({ file }) => file === weights).at(-1)!;
        assert.match(last.range!, /^bytes=\d+-$/);
        await assertAllKept(location);
      });

      within('a partial download is retained until the server answers', async () => {
        const location = folder('breaks');
        await refused(location, 'NETWORK', [weights], {});
        if (!(await keepsWhatCame(location))) return;
        const busy: typeof fetch = (address, init) =>
          String(address).includes(weights) ? Promise.resolve(new Response(null, { status: 503 })) : fetch(address, init);
        await refused(location, 'NETWORK', ['503'], { fetch: busy });
        assert.lengthOf(await partsOf(location), 1);
        await works(location, {});
        assert.match((await asked(location)).filter(({ file }) => file === weights).at(-1)!.range!, /^bytes=\d+-$/);
        await assertAllKept(location);
      });

      within('files that an interrupted load received completely are used if the server still has the same', async () => {
        for (const [how, seen, asks] of [
          ['stays', ['download', 'cache'], 2],
          ['updates', ['download'], 3],
        ] as const) {
          const location = folder(how);
          const controller = new AbortController();
          const onProgress = (p: Progress) => p.file === weights && p.loaded === files[weights].length && controller.abort();
          await refused(location, 'ABORTED', [], { signal: controller.signal, onProgress });
          assert.lengthOf(await partsOf(location), 1);
          assert.deepEqual(await phases(location), [...seen], how);
          const ranges = (await asked(location)).filter(({ file }) => file === weights).map(({ range }) => range);
          assert.lengthOf(ranges, asks);
          assert.equal(ranges[1], `bytes=${files[weights].length - 1}-`);
          await assertAllKept(location);
        }
      });

      const besides = async (location: string, body: () => Promise<void>) =>
        (locks ?? navigator.locks).request(`attn-model ${keyOf(fileOf(location, ''))}`, { ifAvailable: true }, async (lock) => {
          assert.isNotNull(lock);
          await body();
        });

      within('during another load of the same folder cached files are read, but none is repaired or deleted', async () => {
        const location = folder('good');
        assert.deepEqual(await phases(location), ['download']);
        await assertAllKept(location);
        const damaged = files[weights].slice(0, 5000);
        await besides(location, async () => {
          assert.deepEqual(await phases(location), ['cache']);
          await (await storage.open('attn-models')).put(keyOf(fileOf(location, weights)), new Response(damaged));
          assert.deepEqual(await phases(location), ['cache', 'download']);
        });
        assert.equal((await (await kept(location, weights))!.arrayBuffer()).byteLength, damaged.length);
        await works(location, {});
        await assertAllKept(location);
      });

      within('of several loads at once one downloads, and the others wait for its cached files', async () => {
        const location = folder('good');
        const models = await Promise.all([attn.loadModel(location), attn.loadModel(location), attn.loadModel(location)]);
        for (const model of models) model.dispose();
        assert.lengthOf(
          (await asked(location)).filter(({ file, method }) => file === weights && method === 'GET'),
          1,
        );
        await assertAllKept(location);
        await besides(location, async () => {});
        assert.deepEqual(await phases(location), ['cache']);
      });

      within('a waiting load continues if the other one fails, and stops waiting if its signal is aborted', async () => {
        const location = folder('breaks');
        // Either may be first: each derives the name of the lock asynchronously.
        const loads = await Promise.allSettled([attn.loadModel(location), attn.loadModel(location)]);
        const loaded = loads.filter((load) => load.status === 'fulfilled');
        assert.lengthOf(loaded, 1);
        loaded[0].value.dispose();
        const other = folder('good');
        await besides(other, async () => {
          const controller = new AbortController();
          const waiting = attn.loadModel(other, { signal: controller.signal });
          await later(20);
          controller.abort();
          await assertRejects(waiting, 'ABORTED');
          await assertRejects(attn.loadModel(other, { signal: AbortSignal.abort() }), 'ABORTED');
          assert.isEmpty(await asked(other));
          assert.deepEqual(await phases(other, { cache: 'none' }), ['download']);
        });
      });

      within('an engine without the Web Locks API also caches files', async () => {
        const location = folder('good');
        await withGlobal('navigator', {}, () => works(location, {}));
        await assertAllKept(location);
      });

      within('a large file is interrupted twice, and is downloaded in parts', async () => {
        const location = folder('breaks-twice', `large-${name}`);
        await refused(location, 'NETWORK', [], {});
        const goesOn = await keepsWhatCame(location);
        if (goesOn) assert.lengthOf(await partsOf(location), 1);
        await refused(location, 'NETWORK', [], {});
        const goesOnAgain = host.engine !== 'webkit';
        if (goesOnAgain) assert.isAtLeast((await partsOf(location)).length, 2);
        await works(location, {});
        assert.isEmpty(await partsOf(location));
        const ranges = (await asked(location)).filter(({ file }) => file === weights).map(({ range }) => range);
        const size = (await (await kept(location, weights))!.arrayBuffer()).byteLength;
        assert.lengthOf(ranges, 3);
        const [, second, third] = ranges.map((range) => Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1]));
        if (goesOn) {
          assert.isAbove(second, 0);
          assert.isAtMost(second, size / 3);
        }
        if (goesOnAgain) {
          assert.isAbove(third, second);
          assert.isAtMost(third, (2 * size) / 3);
        }
        assert.deepEqual(await phases(location), ['cache']);
      });

      within('a damaged cached file is downloaded again', async () => {
        for (const [file, damaged] of [
          [weights, files[weights].slice(0, 5000)],
          ['config.json', new TextEncoder().encode('{')],
          ['tokenizer.json', new TextEncoder().encode('<!doctype html>')],
        ] as const) {
          const location = folder('good');
          await works(location, {});
          await (await storage.open('attn-models')).put(keyOf(fileOf(location, file)), new Response(damaged));
          await works(location, {});
          await assertAllKept(location);
        }
        const location = folder('good');
        await works(location, {});
        await (await storage.open('attn-models')).delete(keyOf(fileOf(location, 'config.json')));
        await works(location, {});
        await assertAllKept(location);
      });

      within('digests are also verified for cached files', async () => {
        const location = folder('good');
        await works(location, {});
        const other = files[weights].slice();
        other[other.length - 1] ^= 1;
        await (await storage.open('attn-models')).put(keyOf(fileOf(location, weights)), new Response(other));
        await works(location, { sha256: { [weights]: await digest(files[weights]) } });
        await assertAllKept(location);
        await refused(location, 'FORMAT', ['SHA-256'], { sha256: { [weights]: '0'.repeat(64) } });
        await assertNothingKept(location);
      });
    });

  it('a load that is stopped while it caches files leaves them to the next one', async () => {
    const storage = fakeCaches();
    await withCaches(storage, async () => {
      const location = folder('stays', `large-${name}`);
      const cache = await storage.open('attn-models');
      const controller = new AbortController();
      const { put } = cache;
      cache.put = (...args) => (controller.abort(), put.apply(cache, args));
      await refused(location, 'ABORTED', [], { signal: controller.signal });
      cache.put = put;
      await later(100);
      assert.isUndefined(await storage.match(keyOf(fileOf(location, weights))));
      const phases = new Set<string>();
      await works(location, { onProgress: ({ phase }) => phases.add(phase) });
      assert.deepEqual([...phases], ['download', 'cache']);
      assert.isDefined(await storage.match(keyOf(fileOf(location, weights))));
      assert.isEmpty(await (await storage.open('attn-models-parts')).keys());
    });
  });

  describe('unsupported files in place of the required ones', () => {
    const three = () => ({ 'config.json': files['config.json'], 'tokenizer.json': files['tokenizer.json'], [weights]: files[weights] });
    const without = (absent: string, ...others: string[]) => {
      const { [absent]: _, ...left } = three() as Record<string, Uint8Array<ArrayBuffer>>;
      return { ...left, ...Object.fromEntries(others.map((file) => [file, 'x'])) };
    };
    const stand: Record<string, readonly [absent: string, help: string, files: readonly string[]]> = {
      shards: [weights, 'Add the others', ['model-00001-of-00002.safetensors']],
      pickles: [
        weights,
        'use the class with the head',
        ['pytorch_model.bin', 'pytorch_model.bin.index.json', 'weights.pt', 'weights.pth', 'best.ckpt', 'old/weights.pt'],
      ],
      'of other frameworks': [weights, 'from_tf=True', ['tf_model.h5', 'flax_model.msgpack']],
      GGUF: [weights, 'Pass this file alone', ['model.Q4.gguf']],
      graphs: [weights, 'exported from', ['onnx/model.onnx', 'model.onnx', 'onnx/model_quantized.onnx']],
      vocabularies: [
        'tokenizer.json',
        'AutoTokenizer',
        ['vocab.txt', 'vocab.json', 'merges.txt', 'spiece.model', 'sentencepiece.bpe.model', 'old/vocab.txt'],
      ],
    };
    for (const [what, [absent, help, names]] of Object.entries(stand))
      it(`${what}: UNSUPPORTED, with the file and the remedy`, async () => {
        for (const file of names) {
          const error = await refused(without(absent, file), 'UNSUPPORTED', [`there is no ${absent}, but source["${file}"]`, help]);
          assert.deepInclude({ ...error.detail }, { op: 'loadModel', expected: absent, got: file });
          assert.include(error.help, help);
        }
      });

    it('files with unrelated names are not mentioned as substitutes', async () => {
      const odd = ['model.safetensors.index.json.bak', 'my-model.safetensors.index.json', 'model-1.safetensors', 'model-1-of-x.safetensors'];
      for (const file of [...odd, 'weights.bin.txt', 'weights.pt2', 'apt', 'a.h5.txt', 'agguf', 'model.onnx.txt', 'vocab.txt']) {
        const error = await refused(without(weights, file), 'ARGUMENT', [`source has no ${weights}`, file]);
        const got = ['config.json', 'tokenizer.json', file].join(', ');
        assert.deepEqual({ ...error.detail }, { op: 'loadModel', argument: 'source', expected: weights, got });
      }
      for (const file of ['my-vocab.txt', 'vocab.txt.bak', 'vocab_txt', 'a.models', 'tokenizer.json.txt'])
        await refused(without('tokenizer.json', file), 'ARGUMENT', ['source has no tokenizer.json', file]);
      const many = Array.from({ length: 12 }, (_, i) => `note-${i}.txt`);
      const { message } = await refused(without('config.json', ...many), 'ARGUMENT', ['note-7.txt, expected']);
      assert.notInclude(message, 'note-8.txt', 'ten names are enough');
    });

    it('a server is asked for the substitutes by HEAD, and pickles take precedence over graphs', async () => {
      const optional = [...oldFiles, `${weights}.index.json`];
      const asks = {
        [weights]: [
          ...['pytorch_model.bin', 'pytorch_model.bin.index.json'],
          ...['tf_model.h5', 'flax_model.msgpack', 'onnx/model.onnx', 'model.onnx'],
        ],
        'tokenizer.json': ['vocab.txt', 'vocab.json', 'sentencepiece.bpe.model', 'spiece.model'],
        'config.json': [],
      };
      for (const [absent, others] of Object.entries(asks))
        for (const there of [undefined, ...others]) {
          const seen: string[] = [];
          const fetch = (at: RequestInfo | URL, init?: RequestInit) => {
            const file = String(at).slice('http://localhost/b/'.length);
            seen.push(file);
            if (!files[file] && !optional.includes(file)) assert.equal(init?.method, 'HEAD', 'possibly large files are not downloaded');
            const content = file === absent ? undefined : file === there ? 'x' : files[file];
            return Promise.resolve(new Response(content ?? null, { status: content === undefined ? 404 : 200 }));
          };
          const error = await refused('http://localhost/b', there === undefined ? 'NETWORK' : 'UNSUPPORTED', [absent], { fetch, cache: 'none' });
          if (there !== undefined) assert.equal(error.detail.got, there);
          assert.sameMembers(
            seen.filter((file) => !files[file] && !optional.includes(file)),
            others,
          );
        }
      const headless = (at: RequestInfo | URL, init?: RequestInit) => {
        const there = String(at).endsWith('/tf_model.h5') || (files[String(at).slice('http://localhost/b/'.length)] && !String(at).endsWith(weights));
        return Promise.resolve(new Response(null, { status: init?.method === 'HEAD' ? 405 : there ? 200 : 404 }));
      };
      const answering = (at: RequestInfo | URL, init?: RequestInit) => {
        const file = String(at).slice('http://localhost/b/'.length);
        return file !== weights && files[file] ? Promise.resolve(new Response(files[file])) : headless(at, init);
      };
      const told = await refused('http://localhost/b', 'UNSUPPORTED', ['tf_model.h5'], { fetch: answering, cache: 'none' });
      assert.equal(told.detail.got, 'tf_model.h5', 'from a server that does not support HEAD');
      const all = await refused(without(weights, 'model.onnx', 'pytorch_model.bin'), 'UNSUPPORTED');
      assert.equal(all.detail.got, 'pytorch_model.bin');
    });

    it('a common folder prefix is removed from names, with the separators of any system', async () => {
      const renamed = (change: (file: string) => string) => Object.fromEntries(fileNames.map((file) => [change(file), files[file]]));
      for (const change of [
        (file: string) => `/${file}`,
        (file: string) => `././/${file}`,
        (file: string) => `a\\b\\${file.replaceAll('/', '\\')}`,
        (file: string) => `.\\a\\${file}`,
        (file: string) => `a/../${file}`,
      ])
        await works(renamed(change));
      for (const before of ['./', '././', '/', '//', './/./']) await works(renamed((file) => (file === weights ? file : `${before}${file}`)));
      const besides = { ...renamed((file) => `model/${file}`), 'models.txt': 'x' };
      await refused(besides, 'ARGUMENT', ['source has no config.json', 'model/config.json']);
      await refused({ ...renamed((file) => `ab/${file}`), 'ac/x': 'x' }, 'ARGUMENT', ['source has no config.json']);
      await refused(
        renamed((file) => `a/b/${file}`),
        'FORMAT',
        ['source["a/b/config.json"]'],
        { sha256: { 'config.json': '0'.repeat(64) } },
      );
    });
  });

  describe('large files', () => {
    let large: Uint8Array<ArrayBuffer>;
    before(async () => void (large = await bytes(`model/good/large-${name}/${weights}`)));

    it('every chunk is read, from bytes and from a Blob', async () => {
      const sha256 = { [weights]: await digest(large) };
      for (const content of [large, large.buffer, new Blob([large])]) {
        const seen: number[] = [];
        await works({ ...files, [weights]: content }, { sha256, onProgress: (p) => p.file === weights && seen.push(p.loaded) });
        assert.equal(seen.at(-1), large.length);
      }
    });

    it('files that are detached or become unreadable in the middle', async () => {
      const mine = large.slice();
      const taken = { ...files, [weights]: mine };
      const onProgress = (p: Progress) => {
        if (p.file === weights && p.loaded === 0) structuredClone(mine.buffer, { transfer: [mine.buffer] });
      };
      await refused(taken, 'DETACHED', [weights], { onProgress });
      const { arrayBuffer } = Blob.prototype;
      const gone = new DOMException('mine', 'NotReadableError');
      let left = 3;
      Blob.prototype.arrayBuffer = function () {
        return --left < 0 ? Promise.reject(gone) : arrayBuffer.call(this);
      };
      try {
        const error = await refused({ ...files, [weights]: new Blob([large]) }, 'NETWORK', [weights, 'could not be read', 'mine']);
        assert.equal(error.cause, gone);
      } finally {
        Blob.prototype.arrayBuffer = arrayBuffer;
      }
    });
  });

  if (host.engine === 'node')
    it('a folder on the disk, with present, missing and unreadable files', async () => {
      // Names in variables, so that bundlers for browsers do not follow the imports.
      const [disk, system, paths, urls, children] = ['node:fs/promises', 'node:os', 'node:path', 'node:url', 'node:child_process'];
      const { mkdtemp, mkdir, rm, writeFile } = (await import(/* @vite-ignore */ disk!)) as {
        mkdtemp(prefix: string): Promise<string>;
        mkdir(path: string): Promise<void>;
        rm(path: string, options?: { recursive: boolean }): Promise<void>;
        writeFile(path: string, content: Uint8Array | string): Promise<void>;
      };
      const { tmpdir } = (await import(/* @vite-ignore */ system!)) as { tmpdir(): string };
      const { join } = (await import(/* @vite-ignore */ paths!)) as { join(...parts: string[]): string };
      const { pathToFileURL } = (await import(/* @vite-ignore */ urls!)) as { pathToFileURL(path: string): URL };
      const path = await mkdtemp(join(tmpdir(), 'attn-model-'));
      try {
        for (const folder of ['1_Pooling', 'folder', 'empty']) await mkdir(join(path, folder));
        for (const file of fileNames) await writeFile(join(path, file), files[file]);
        for (const source of [path, `${path}/`, pathToFileURL(path), pathToFileURL(path).href]) {
          const seen = new Map<string, Progress>();
          await works(source, { onProgress: (p) => seen.set(p.file!, p) });
          assert.sameMembers([...seen.keys()], fileNames);
          for (const [file, p] of seen) assert.deepInclude(p, { phase: 'read', file, loaded: files[file].length, total: files[file].length });
        }
        for (const absent of [join(path, 'empty'), join(path, 'nowhere'), join(path, 'config.json')]) {
          const error = await refused(absent, 'NETWORK', [join(absent, 'config.json'), 'is not there']);
          const expected: object = {
            op: 'loadModel',
            file: 'config.json',
            path: join(absent, 'config.json'),
            ...(error.help && { help: error.help }),
          };
          assert.deepEqual({ ...error.detail }, expected);
          assert.equal(error.help !== undefined, absent.endsWith('.json'));
        }
        const unreadable = await refused(`${path}\0`, 'NETWORK', ['could not be read']);
        assert.equal(unreadable.detail.op, 'loadModel');
        assert.isDefined(unreadable.cause);
        assert.isDefined(unreadable.detail.path);
        await rm(join(path, weights));
        await writeFile(join(path, 'pytorch_model.bin'), 'PK');
        const pickled = await refused(path, 'UNSUPPORTED', [join(path, 'pytorch_model.bin'), 'save_pretrained']);
        assert.equal(pickled.detail.got, 'pytorch_model.bin');
        await mkdir(join(path, weights));
        const folder = await refused(path, 'FORMAT', [join(path, weights), 'is a folder, expected a regular file']);
        assert.equal(folder.detail.path, join(path, weights));
        await rm(join(path, weights), { recursive: true });
        if (host.engine !== 'node' || (globalThis as { process?: { platform: string } }).process?.platform === 'win32') return;
        const { execFileSync } = (await import(/* @vite-ignore */ children!)) as {
          execFileSync(file: string, args: string[]): void;
        };
        // Opening a pipe would block until it gets a writer; a device such as /dev/zero has no end.
        for (const [make, ...args] of [['mkfifo'], ['ln', '-s', '/dev/zero']] as const)
          for (const file of [weights, 'config.json']) {
            await rm(join(path, file)).catch(() => {});
            execFileSync(make, [...args, join(path, file)]);
            await refused(path, 'FORMAT', [join(path, file), 'expected a regular file']);
            await assertRejects(loadHere({ wasm: join(path, file) }), 'NETWORK', ['expected a regular file']);
            await rm(join(path, file));
            await writeFile(join(path, file), files[file]);
          }
      } finally {
        await rm(path, { recursive: true });
      }
    });

  describe('answers of servers', () => {
    const address = 'http://localhost/a/model';
    const fileOfUrl = (at: unknown) => new URL(String(at)).pathname.replace('/a/model/', '');
    interface Request {
      readonly address: string;
      readonly file: string;
      readonly init: RequestInit;
      readonly range: string | undefined;
    }

    function plain(file: string, headers: Record<string, string> = {}): Response {
      const content = files[file];
      if (!content) return new Response('not found', { status: 404 });
      return new Response(content, { headers: { 'content-length': String(content.length), ...headers } });
    }

    /** Creates a fetch that returns `answer`'s result, or the unchanged file if there is none. */
    function server(answer: (request: Request) => unknown = () => undefined) {
      const requests: Request[] = [];
      // A function called without an object has no `this`.
      const fetching = async function (this: unknown, at: unknown, init: RequestInit = {}) {
        assert.isUndefined(this);
        const range = (init.headers as Record<string, string> | undefined)?.['range'];
        const request = { address: String(at), file: fileOfUrl(at), init, range };
        requests.push(request);
        const given = answer(request);
        return given === undefined ? plain(request.file) : (given as Response);
      };
      return { fetch: fetching as typeof fetch, requests };
    }

    function cutOff(content: Uint8Array<ArrayBuffer>, error?: Error): ReadableStream<Uint8Array> {
      let isGiven = content.length === 0;
      return new ReadableStream<Uint8Array>({
        pull(controller) {
          if (!isGiven) controller.enqueue(content);
          else if (error) controller.error(error);
          else controller.close();
          isGiven = true;
        },
      });
    }

    it('each request is for a file in the folder, with the query of its address, and sets no header', async () => {
      for (const [location, end] of [
        [`${address}?token=1#part`, '?token=1'],
        [`${address}/`, ''],
      ] as const) {
        const { fetch, requests } = server();
        await works(location, { fetch, cache: 'none' });
        assert.sameMembers(
          requests.map((request) => request.address),
          [...fileNames, ...oldFiles].map((file) => `${address}/${file}${end}`),
        );
        for (const { init } of requests) {
          assert.equal(init.credentials, 'same-origin');
          assert.instanceOf(init.signal, AbortSignal);
          assert.doesNotHaveAnyKeys(init, ['headers', 'cache', 'method']);
        }
      }
    });

    it('all requests carry the headers and credentials of `request`, including HEAD and range requests', async () => {
      const request = { headers: { authorization: 'Bearer x' }, credentials: 'include' } as const;
      await withCaches(fakeCaches(), async () => {
        const said = { etag: '"1"' };
        const half = files[weights].slice(0, files[weights].length >> 1);
        const broken = server(({ file }) => (file === weights ? new Response(cutOff(half, new Error('broken')), { headers: said }) : undefined));
        await refused(address, 'NETWORK', [], { fetch: broken.fetch, request });
        const size = files[weights].length;
        const rest = () =>
          new Response(files[weights].slice(half.length), {
            status: 206,
            headers: { ...said, 'content-range': `bytes ${half.length}-${size - 1}/${size}` },
          });
        const whole = server(({ file, range }) => (file === weights && range ? rest() : plain(file, said)));
        await works(address, { fetch: whole.fetch, request });
        await works(address, { fetch: whole.fetch, request });
        const all = [...broken.requests, ...whole.requests];
        assert.includeMembers(
          all.map(({ init }) => init.method),
          [undefined, 'HEAD'],
        );
        for (const { init, file } of all) {
          assert.equal(init.credentials, 'include', file);
          assert.equal((init.headers as Record<string, string>)['authorization'], 'Bearer x', file);
        }
        assert.deepEqual(
          whole.requests.map(({ range }) => range).filter((range) => range),
          [`bytes=${half.length}-`],
        );
      });
      for (const [wrong, word] of [
        [5, 'request'],
        [{ header: {} }, 'headers'],
        [{ headers: ['x'] }, 'request.headers'],
        [{ headers: { a: 5 } }, 'request.headers'],
        [{ credentials: 'all' }, 'credentials'],
      ] as const)
        await refused(files, ['ARGUMENT', 'CONFIG'], [word], { request: wrong });
    });

    it('a missing optional file is ignored, a missing required file is NETWORK, and so is any other status', async () => {
      const needed = ['config.json', 'tokenizer.json', weights];
      for (const status of [404, 410, 403]) {
        const { fetch } = server(({ file }) => (needed.includes(file) ? undefined : new Response(null, { status })));
        (await attn.loadModel(address, { fetch, cache: 'none' })).dispose();
        for (const absent of needed) {
          const { fetch } = server(({ file }) => (file === absent ? new Response(null, { status }) : undefined));
          const error = await refused(address, 'NETWORK', [`${absent} answered ${status}`], { fetch, cache: 'none' });
          assert.deepEqual({ ...error.detail }, { op: 'loadModel', file: absent, url: `${address}/${absent}`, status });
        }
      }
      const late = server(({ file }) => later(file === 'config.json' ? 50 : 0).then(() => new Response(null, { status: 404 })));
      await refused(address, 'NETWORK', ['config.json answered 404'], { fetch: late.fetch, cache: 'none' });
      for (const status of [401, 500, 503])
        for (const bad of ['modules.json', 'config.json']) {
          for (const statusText of ['No', '']) {
            const { fetch } = server(({ file }) => (file === bad ? new Response('x', { status, statusText }) : undefined));
            const words = new RegExp(`${bad} answered ${status}${statusText && ' No'}$`);
            const error = await refused(address, 'NETWORK', [words], { fetch, cache: 'none' });
            assert.deepEqual({ ...error.detail }, { op: 'loadModel', url: `${address}/${bad}`, status });
          }
        }
    });

    it('a page returned for a substitute file does not count as one', async () => {
      const page = () => new Response('<!doctype html>', { headers: { 'content-type': 'text/html; charset=utf-8' } });
      const { fetch, requests } = server(({ file }) => {
        if (file === weights) return new Response(null, { status: 404 });
        return files[file] ? undefined : page();
      });
      await refused(address, 'NETWORK', ['404', weights], { fetch, cache: 'none' });
      assert.include(
        requests.map(({ file }) => file),
        'pytorch_model.bin',
      );
      const breaking = server(({ file }) => {
        if (files[file] && file !== weights) return undefined;
        return [weights, `${weights}.index.json`, ...oldFiles].includes(file)
          ? new Response(null, { status: 404 })
          : Promise.reject(new Error('offline'));
      });
      await refused(address, 'NETWORK', ['404', weights], { fetch: breaking.fetch, cache: 'none' });
    });

    it('an interrupted body: the error reports the received and the expected bytes', async () => {
      const mine = new RangeError('mine');
      const start = () => files[weights].slice(0, 10);
      for (const [headers, error, words, expected] of [
        [{ 'content-length': '100' }, mine, ['broke off after 10 bytes', 'mine'], 100],
        [{}, mine, ['broke off after 10 bytes', 'mine'], undefined],
        [{ 'content-length': '100', 'content-encoding': 'br' }, mine, ['broke off after 10 bytes', 'mine'], undefined],
        [{ 'content-length': '100' }, undefined, ['broke off after 10 of 100 bytes'], 100],
      ] as const) {
        const { fetch } = server(({ file }) => (file === weights ? new Response(cutOff(start(), error), { headers }) : undefined));
        const thrown = await refused(address, 'NETWORK', [...words], { fetch, cache: 'none' });
        assert.deepEqual({ ...thrown.detail }, { op: 'loadModel', url: `${address}/${weights}`, got: 10, expected });
        assert.equal(thrown.cause, error);
      }
    });

    it('a wrong content-length: progress reports no total that it cannot reach', async () => {
      const size = files[weights].length;
      for (const [headers, isTotal] of [
        [{ 'content-length': String(size) }, true],
        [{ 'content-length': '5' }, false],
        [{ 'content-length': '0' }, false],
        [{ 'content-length': 'long' }, false],
        [{ 'content-length': String(size * 9), 'content-encoding': 'br' }, false],
      ] as const) {
        const seen: Progress[] = [];
        const { fetch } = server(({ file }) => (file === weights ? new Response(files[weights], { headers }) : undefined));
        await works(address, { fetch, cache: 'none', onProgress: (p) => p.file === weights && seen.push(p) });
        const last = { phase: 'download', file: weights, loaded: size };
        const message = JSON.stringify(headers);
        assert.deepEqual(seen.at(-1), { ...last, ...(isTotal && { total: size }), progress: 1 }, message);
        assertGrowing(seen, message);
      }
    });

    it('a result that is not a Response, or whose members throw', async () => {
      for (const given of [
        'text',
        null,
        5,
        {},
        { ok: 1, headers: new Headers() },
        { ok: true },
        { ok: true, headers: {} },
        { headers: new Headers() },
      ])
        for (const odd of ['modules.json', weights]) {
          const { fetch } = server(({ file }) => (file === odd ? given : undefined));
          const error = await refused(address, 'ARGUMENT', ['fetch', 'a Response'], { fetch, cache: 'none' });
          assert.equal(error.detail.argument, 'fetch');
        }
      const mine = new RangeError('mine');
      const throwing = Object.defineProperty({ ok: true, headers: new Headers() }, 'status', {
        get: () => {
          throw mine;
        },
      });
      const { fetch } = server(({ file }) => (file === weights ? throwing : undefined));
      const error = await refused(address, 'NETWORK', ['could not be read', 'mine'], { fetch, cache: 'none' });
      assert.equal(error.cause, mine);
      assert.equal(error.detail.url, `${address}/${weights}`);
    });

    it("a browser extension's folder, whose missing files reject the fetch, is not cached", async () => {
      const storage = fakeCaches();
      await withCaches(storage, async () => {
        const location = 'chrome-extension://abcdef/a/model';
        const { fetch } = server(({ file }) => (files[file] ? undefined : Promise.reject(new TypeError('Failed to fetch'))));
        await works(location, { fetch });
        const { fetch: without } = server(({ file }) =>
          file === 'modules.json' || !files[file] ? Promise.reject(new TypeError('Failed to fetch')) : undefined,
        );
        (await attn.loadModel(location, { fetch: without })).dispose();
        const { fetch: nothing } = server(() => Promise.reject(new TypeError('Failed to fetch')));
        await refused(location, 'NETWORK', ['404', 'config.json'], { fetch: nothing });
        await refused(address, 'NETWORK', ['could not be fetched', 'Failed to fetch'], { fetch: nothing });
        assert.isUndefined(await storage.match(`${location}/config.json`));
      });
    });

    it('an address that cannot be a folder', async () => {
      for (const location of ['data:text/plain,model', 'mailto:model', 'blob:http://localhost/model'])
        await refused(location, 'ARGUMENT', ['source', 'the URL of a folder'], { fetch: server().fetch });
    });

    it('progress of cached files has their sizes, and an error status does not count as a change', async () => {
      await withCaches(fakeCaches(), async () => {
        const { fetch } = server();
        await works(address, { fetch });
        const seen: Progress[] = [];
        const refusing = server(({ init }) =>
          init.method === 'HEAD' ? new Response(null, { status: 404, headers: { etag: '"other"' } }) : undefined,
        );
        await works(address, { fetch: refusing.fetch, onProgress: (p) => seen.push(p) });
        for (const { file, phase, total } of seen) assert.deepEqual({ phase, total }, { phase: 'cache', total: files[file!].length }, file);
        assert.isTrue(refusing.requests.every(({ init }) => init.method === 'HEAD'));
      });
    });

    describe('answers to range requests', () => {
      const size = () => files[weights].length;
      const half = () => size() >> 1;
      const rest = () => files[weights].slice(half());
      const partial = (headers: Record<string, string>, body: BodyInit = rest(), status = 206) =>
        new Response(body, { status, headers: { 'content-length': String(size() - half()), ...headers } });
      const range = (from = half(), of = size()) => `bytes ${from}-${size() - 1}/${of}`;
      const tag = { etag: '"1"' };
      const date = { 'last-modified': 'Sat, 21 Nov 2026 12:00:00 GMT' };

      async function brokenOnce(said: Record<string, string>, answer: () => unknown): Promise<Request[]> {
        return withCaches(fakeCaches(), async () => {
          const first = server(({ file }) => {
            const headers = { 'content-length': String(size()), ...said };
            return file === weights ? new Response(cutOff(files[weights].slice(0, half()), new Error('broken')), { headers }) : undefined;
          });
          const broken = await refused(address, 'NETWORK', [`after ${half()} bytes`], { fetch: first.fetch });
          assert.equal(broken.detail.expected, size());
          const second = server((request) => {
            if (request.file !== weights) return undefined;
            return request.range === undefined ? plain(weights, said) : answer();
          });
          const seen: Progress[] = [];
          await works(address, { fetch: second.fetch, onProgress: (p) => p.file === weights && seen.push(p) });
          assert.deepEqual(seen.at(-1), { phase: 'download', file: weights, loaded: size(), total: size(), progress: 1 });
          const third = server(({ init }) => (init.method === 'HEAD' ? new Response(null, { status: 405 }) : assert.fail('all is kept')));
          await works(address, { fetch: third.fetch });
          return second.requests.filter(({ file }) => file === weights);
        });
      }

      const goOn: Record<string, readonly [Record<string, string>, () => Response]> = {
        'the rest': [tag, () => partial({ ...tag, 'content-range': range() })],
        'the rest, of unknown total size': [tag, () => partial({ ...tag, 'content-range': range().replace(/\d+$/, '*') })],
        'the rest, identified by its date': [date, () => partial({ ...date, 'content-range': range() })],
        'the rest, identified by its date although it also has a weak tag': [
          { etag: 'W/"1"', ...date },
          () => partial({ etag: 'W/"1"', ...date, 'content-range': range() }),
        ],
      };
      for (const [what, [said, answer]] of Object.entries(goOn))
        it(`${what}: it is accepted`, async () => {
          const requests = await brokenOnce(said, answer);
          assert.deepEqual(
            requests.map((request) => request.range),
            [`bytes=${half()}-`],
          );
          assert.deepEqual(
            Object.keys(requests[0]!.init.headers as object),
            ['range'],
            'the request stays simple, so that another origin need not allow its headers',
          );
        });

      const startAnew: Record<string, () => unknown> = {
        'the rest of another version': () => partial({ etag: '"2"', 'content-range': range() }),
        'the rest of an unknown version': () => partial({ 'content-range': range() }),
        'the rest, without its range': () => partial(tag),
        'another part, without its range': () => partial(tag, files[weights].slice(half() - 64, -64)),
        'another part': () => partial({ ...tag, 'content-range': range(half() - 1) }),
        'a part of a file of another size': () => partial({ ...tag, 'content-range': range(half(), size() + 1) }),
        'the rest, compressed': () => partial({ ...tag, 'content-encoding': 'br', 'content-range': range() }),
        'the rest, as a complete file': () => partial({ ...tag, 'content-range': range() }, rest(), 200),
        'a refused range': () => new Response(null, { status: 416, headers: tag }),
        nothing: () => Promise.reject(new TypeError('offline')),
      };
      for (const [what, answer] of Object.entries(startAnew))
        it(`${what}: the whole file is requested`, async () => {
          const requests = await brokenOnce(tag, answer);
          assert.deepEqual(
            requests.map((request) => request.range),
            [`bytes=${half()}-`, undefined],
          );
        });

      it('if the rest is also interrupted, the next load resumes after both parts', async () => {
        await withCaches(fakeCaches(), async () => {
          const said = { ...tag, 'content-length': String(size()) };
          const breakAt = (from: number, to: number, headers: Record<string, string>, status: number) =>
            new Response(cutOff(files[weights].slice(from, to), new Error('broken')), { status, headers });
          const first = server(({ file }) => (file === weights ? breakAt(0, half(), said, 200) : undefined));
          await refused(address, 'NETWORK', [`after ${half()} bytes`], { fetch: first.fetch });
          const headers = { ...tag, 'content-length': String(size() - half()), 'content-range': range() };
          const second = server(({ file }) => (file === weights ? breakAt(half(), half() + 100, headers, 206) : undefined));
          const { detail } = await refused(address, 'NETWORK', [`after ${half() + 100} bytes`], { fetch: second.fetch });
          assert.deepEqual([detail.got, detail.expected], [half() + 100, size()]);
          const third = server(({ file, range: asked }) =>
            file === weights && asked !== undefined
              ? partial(
                  { ...tag, 'content-length': String(size() - half() - 100), 'content-range': range(half() + 100) },
                  files[weights].slice(half() + 100),
                )
              : undefined,
          );
          await works(address, { fetch: third.fetch });
          assert.deepEqual(
            third.requests.filter(({ file }) => file === weights).map((request) => request.range),
            [`bytes=${half() + 100}-`],
          );
        });
      });

      it('a result that is not a Response is ARGUMENT, and the partial download is retained', async () => {
        await withCaches(fakeCaches(), async () => {
          const said = { ...tag, 'content-length': String(size()) };
          const first = server(({ file }) =>
            file === weights ? new Response(cutOff(files[weights].slice(0, half()), new Error('broken')), { headers: said }) : undefined,
          );
          await refused(address, 'NETWORK', [], { fetch: first.fetch });
          await refused(address, 'ARGUMENT', ['a Response'], { fetch: server(({ file }) => (file === weights ? {} : undefined)).fetch });
        });
      });
    });
  });

  describe('without usable storage', () => {
    it('full storage is not an error', async () => {
      for (const room of [0, 1000, 20000]) {
        const full = fakeCaches(() => room);
        await withCaches(full, async () => {
          const location = folder('good');
          await works(location, {});
          assert.isUndefined(await full.match(keyOf(fileOf(location, weights))));
          await works(location, {});
          const large = folder('good', `large-${name}`);
          await works(large, {});
          assert.isUndefined(await full.match(keyOf(fileOf(large, weights))));
        });
      }
    });

    it('with storage for one copy only, the next load uses the partial or complete download', async () => {
      // Parts are 4 MB long; the file has more than two.
      for (const [quota, next, seen] of [
        [13e6, 'last byte', ['download', 'cache']],
        [5e6, 'rest', ['download']],
      ] as const)
        await withCaches(fakeCaches(undefined, quota), async () => {
          const location = folder('stays', `large-${name}`);
          await works(location, {});
          const phases = new Set<string>();
          await works(location, { onProgress: ({ phase }) => phases.add(phase) });
          assert.deepEqual([...phases], [...seen], next);
          const ranges = (await asked(location)).filter(({ file, method }) => file === weights && method === 'GET').map(({ range }) => range);
          assert.lengthOf(ranges, 2, next);
          const from = Number(/^bytes=(\d+)-$/.exec(ranges[1] ?? '')?.[1]);
          if (next === 'rest') assert.equal(from, 4 * 2 ** 20);
          else assert.isAbove(from, 8 * 2 ** 20);
        });
    });

    it('a missing or blocked Cache API', async () => {
      await withCaches(undefined, () => works(folder('good'), {}));
      const blocked = { open: () => Promise.reject(new DOMException('blocked', 'SecurityError')) } as unknown as CacheStorage;
      await withCaches(blocked, () => works(folder('good'), {}));
    });
  });

  if (host.build === 'release')
    it('attn/worker has the same sources, progress, digests, errors and abort', async () => {
      const remote = await loadWorker(setup);
      const start = (await remote.info).heap.used;
      const moved = files[weights].slice();
      for (const source of [
        url(`testdata/models/${name}`),
        new URL(url(`testdata/models/${name}`)),
        files,
        Object.fromEntries(fileNames.map((file) => [file, new Blob([files[file]])])),
        { ...files, [weights]: transfer(moved), 'config.json': text('config.json') },
      ]) {
        const seen: Progress[] = [];
        const sha256 = { [weights]: await digest(files[weights]) };
        const model = await remote.loadModel(source, { sha256, cache: 'none', onProgress: (p) => seen.push(p) });
        assert.equal(seen.at(-1)!.loaded, files[weights].length);
        assertGrowing(seen);
        assertSameBits(await model.embed(texts), expected);
        await model.dispose();
      }
      assert.equal(moved.length, 0, 'moved');
      assert.isAbove(files[weights].length, 0, 'copied');
      const closed = folder('good');
      await (await remote.loadModel(closed, { cache: 'none', request: { headers: { authorization: 'Bearer x' } } })).dispose();
      assert.isTrue((await asked(closed)).every(({ authorization }) => authorization === 'Bearer x'));
      const refusedThere = async (
        source: unknown,
        code: Parameters<typeof assertRejects>[1],
        words: string[],
        options: unknown = { cache: 'none' },
      ) => assertRejects(remote.loadModel(source as ModelSource, options as ModelOptions), code, words, WorkerError);
      await refusedThere(url(`model/html/${name}`), 'FORMAT', ['HTML']);
      await refusedThere(url(`model/gone/${name}`), 'NETWORK', ['404']);
      await refusedThere(url(`model/pickle/${name}`), 'UNSUPPORTED', ['pytorch_model.bin']);
      await refusedThere(files, 'FORMAT', ['SHA-256'], { sha256: { [weights]: '0'.repeat(64) } });
      await refusedThere(files, 'ARGUMENT', ['fetch'], { fetch });
      await refusedThere(5, 'ARGUMENT', ['source']);
      const mine = () => {
        throw new Error('mine');
      };
      await refusedThere(files, 'ARGUMENT', ['onProgress', 'mine'], { onProgress: mine });
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 100);
      await refusedThere(url(`model/endless/${name}`), 'ABORTED', [], { cache: 'none', signal: controller.signal });
      await refusedThere(files, 'ABORTED', [], { signal: AbortSignal.abort() });
      // An aborted load ends in the worker after the caller has been notified.
      if (host.threads === 1) {
        const used = async () => (await remote.info).heap.used;
        for (let turn = 0; turn < 100 && (await used()) !== start; turn++) await later(50);
        assert.equal(await used(), start, 'the heap is unchanged');
      }
      await remote.dispose();
    });
});
