/** Checkpoints whose weights are in several files: model.safetensors.index.json. */
import { readSafetensorsHeader, type Attn, type ModelOptions, type ModelSource, type Tensor } from 'attn';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { fakeCaches, withCaches } from '../support/fake_caches.ts';
import { bytes, host, loadHere, settledHeap } from '../support/host.ts';
import { assertSameBits } from '../support/tensors.ts';

type Progress = Parameters<NonNullable<ModelOptions['onProgress']>>[0];
type Files = Record<string, Uint8Array<ArrayBuffer>>;
interface Stored {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

const name = 'tiny-llama-3';
const index = 'model.safetensors.index.json';
const shardName = (i: number) => `model-0000${i + 1}-of-00003.safetensors`;
const text = 'The old man and';
const encode = (value: unknown) => new TextEncoder().encode(typeof value === 'string' ? value : JSON.stringify(value));

function safetensors(tensors: readonly (readonly [string, Stored])[]): Uint8Array<ArrayBuffer> {
  let end = 0;
  const entries = tensors.map(([tensor, { dtype, shape, data }]) => [tensor, { dtype, shape, data_offsets: [end, (end += data.length)] }] as const);
  const header = encode({ __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) });
  const file = new Uint8Array(8 + header.length + end);
  new DataView(file.buffer).setBigUint64(0, BigInt(header.length), true);
  file.set(header, 8);
  tensors.forEach(([, { data }], i) => file.set(data, 8 + header.length + entries[i][1].data_offsets[0]));
  return file;
}

describe('weights in several files', () => {
  let attn: Attn;
  let small: Files;
  let whole: Uint8Array<ArrayBuffer>;
  let tensors: (readonly [string, Stored])[];
  let expected: Tensor;
  before(async () => {
    attn = await loadHere();
    const names = ['config.json', 'tokenizer.json', 'tokenizer_config.json'];
    small = Object.fromEntries(await Promise.all(names.map(async (file) => [file, await bytes(`testdata/models/${name}/${file}`)])));
    whole = await bytes(`testdata/models/${name}/model.safetensors`);
    const { tensors: entries, dataStart } = readSafetensorsHeader(whole);
    tensors = Object.entries(entries).map(([tensor, { dtype, shape, data_offsets }]) => {
      const [from, to] = data_offsets.map((offset) => dataStart + offset);
      return [tensor, { dtype, shape, data: whole.subarray(from, to) }];
    });
    expected = await logitsOf({ ...small, 'model.safetensors': whole });
  });
  after(() => attn.dispose());

  async function logitsOf(source: ModelSource, options: ModelOptions = { cache: 'none' }): Promise<Tensor> {
    const model = await attn.loadModel(source, options);
    const logits = model.forward(model.tokenize(text)).logits!;
    model.dispose();
    return logits;
  }
  const shardOf = (i: number) => tensors.filter((_, at) => at % 3 === i);
  const weightMap = () => Object.fromEntries(tensors.map(([tensor], i) => [tensor, shardName(i % 3)]));
  const sharded = (change: Record<string, unknown> = {}): Files =>
    ({
      ...small,
      [index]: encode({ metadata: { total_size: 1 }, weight_map: weightMap() }),
      ...Object.fromEntries([0, 1, 2].map((i) => [shardName(i), safetensors(shardOf(i))])),
      ...change,
    }) as Files;

  const address = 'http://localhost/sharded';
  /** `change` may replace an answer. */
  function server(files: Files, change: (file: string, method: string) => Response | undefined = () => undefined) {
    const requests: [file: string, method: string][] = [];
    const fetch = (at: RequestInfo | URL, init?: RequestInit) => {
      const file = String(at).slice(address.length + 1);
      const method = init?.method ?? 'GET';
      requests.push([file, method]);
      const body = files[file];
      const headers = { etag: `"${file}"`, 'content-length': String(body?.length) };
      return Promise.resolve(change(file, method) ?? (body ? new Response(body, { headers }) : new Response(null, { status: 404 })));
    };
    return { fetch, requests };
  }

  it('files by name, a folder on a server and Blobs give the bits of one file', async () => {
    const files = sharded();
    assertSameBits(await logitsOf(files), expected);
    assertSameBits(
      await logitsOf(Object.fromEntries(Object.entries(files).map(([file, content]) => [`dropped/${file}`, new Blob([content])]))),
      expected,
    );
    assertSameBits(await logitsOf(address, { cache: 'none', fetch: server(files).fetch }), expected);
    const model = await attn.loadModel(files, { weights: 'int8' });
    assert.equal(model.weights, 'int8');
    assert.sameMembers(Object.keys(await model.export()), [...Object.keys(small), 'model.safetensors'], 'an export is one file');
    model.dispose();
    assertSameBits(await logitsOf({ ...files, 'model.safetensors': whole, [index]: encode('not read if there is one file') }), expected);
  });

  if (host.engine === 'node')
    it('a folder on the disk gives the bits of one file, and a missing file is named', async () => {
      // Names in variables, so that bundlers for browsers do not follow the imports.
      const [disk, system, paths] = ['node:fs/promises', 'node:os', 'node:path'];
      const { mkdtemp, rm, writeFile } = (await import(/* @vite-ignore */ disk!)) as {
        mkdtemp(prefix: string): Promise<string>;
        rm(path: string, options?: { recursive: boolean }): Promise<void>;
        writeFile(path: string, content: Uint8Array): Promise<void>;
      };
      const { tmpdir } = (await import(/* @vite-ignore */ system!)) as { tmpdir(): string };
      const { join } = (await import(/* @vite-ignore */ paths!)) as { join(...parts: string[]): string };
      const folder = await mkdtemp(join(tmpdir(), 'attn-shards-'));
      try {
        for (const [file, content] of Object.entries(sharded())) await writeFile(join(folder, file), content);
        assertSameBits(await logitsOf(folder), expected);
        await rm(join(folder, shardName(1)));
        await assertRejects(attn.loadModel(folder), 'NETWORK', [join(folder, shardName(1)), 'is not there']);
      } finally {
        await rm(folder, { recursive: true });
      }
    });

  it('one progress counts the bytes of all files, and a server without lengths is no error', async () => {
    const seen: Progress[] = [];
    await logitsOf(address, { cache: 'none', fetch: server(sharded()).fetch, onProgress: (p) => seen.push(p) });
    const shares = seen.map(({ progress }) => progress);
    assert.deepEqual(
      shares,
      [...shares].sort((a, b) => a - b),
    );
    const { file, phase, loaded, total, progress } = seen.at(-1)!;
    assert.deepEqual({ file, phase, progress }, { file: 'model.safetensors', phase: 'download', progress: 1 });
    assert.equal(loaded, total);
    assert.isAtLeast(
      loaded,
      tensors.reduce((sum, [, { data }]) => sum + data.length, 0),
    );
    const files = sharded();
    const silent = server(files, (file) => (file.startsWith('model-') ? new Response(files[file]) : undefined));
    assertSameBits(await logitsOf(address, { cache: 'none', fetch: silent.fetch }), expected);
  });

  it('the files are cached as one, and downloaded again if one of them has changed', () =>
    withCaches(fakeCaches(), async () => {
      const files = sharded();
      let tag = 'old';
      const { fetch, requests } = server(files, (file) =>
        file === shardName(2) ? new Response(files[file], { headers: { etag: `"${tag}"` } }) : undefined,
      );
      const load = async () => {
        requests.length = 0;
        const phases = new Set<string>();
        assertSameBits(await logitsOf(address, { fetch, onProgress: ({ phase }) => phases.add(phase) }), expected);
        return [...phases];
      };
      assert.deepEqual(await load(), ['download']);
      assert.deepEqual(await load(), ['cache']);
      assert.isTrue(requests.every(([, method]) => method === 'HEAD'));
      assert.includeMembers(
        requests.map(([file]) => file),
        [0, 1, 2].map(shardName),
      );
      tag = 'new';
      assert.deepEqual(await load(), ['download']);
      assert.deepEqual(await load(), ['cache']);
    }));

  /** Answers Range requests; each answer of `breaks` ends early, as if the connection broke off. Counts the bytes of each shard. */
  function resumable(files: Files, breaks: Record<string, number>) {
    const asked: [file: string, range: string | undefined][] = [];
    const tags: Record<string, string> = {};
    const { fetch } = server(files);
    const answer = (at: RequestInfo | URL, init?: RequestInit) => {
      const file = String(at).slice(address.length + 1);
      if (!file.startsWith('model-')) return fetch(at, init);
      const range = (init?.headers as Record<string, string> | undefined)?.['range'];
      if (init?.method !== 'HEAD') asked.push([file, range]);
      const body = files[file];
      const from = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? 0);
      const end = range !== undefined && file in breaks ? from + breaks[file] : body.length;
      const headers = {
        etag: tags[file] ?? `"${file}"`,
        'content-length': String(body.length - from),
        ...(range && { 'content-range': `bytes ${from}-${body.length - 1}/${body.length}` }),
      };
      return Promise.resolve(new Response(body.subarray(from, end), { status: range ? 206 : 200, headers }));
    };
    return { fetch: answer, asked, tags };
  }
  const headerEnd = (file: Uint8Array<ArrayBuffer>) => 8 + Number(new DataView(file.buffer).getBigUint64(0, true));

  it('headers are downloaded once if the server continues a file', async () => {
    const files = sharded();
    const { fetch, asked } = resumable(files, {});
    assertSameBits(await logitsOf(address, { cache: 'none', fetch }), expected);
    const names = [0, 1, 2].map(shardName);
    assert.deepEqual(asked, [
      ...names.map((file) => [file, undefined] as [string, undefined]),
      ...names.map((file) => [file, `bytes=${headerEnd(files[file])}-`] as [string, string]),
    ]);
  });

  it('an interrupted download continues in the file that broke off, without the ones before', () =>
    withCaches(fakeCaches(), async () => {
      const files = sharded();
      const breaks: Record<string, number> = { [shardName(1)]: 100 };
      const { fetch, asked } = resumable(files, breaks);
      const load = () => logitsOf(address, { fetch });
      await assertRejects(attn.loadModel(address, { fetch }), 'NETWORK', [shardName(1), 'broke off']);
      asked.length = 0;
      breaks[shardName(1)] = 50;
      await assertRejects(attn.loadModel(address, { fetch }), 'NETWORK', [shardName(1), 'broke off']);
      const at = headerEnd(files[shardName(1)]);
      const resumed = () => asked.filter(([, range]) => range !== undefined);
      assert.deepEqual(resumed(), [[shardName(1), `bytes=${at + 100}-`]]);
      asked.length = 0;
      delete breaks[shardName(1)];
      assertSameBits(await load(), expected);
      assert.deepEqual(resumed(), [
        [shardName(1), `bytes=${at + 150}-`],
        [shardName(2), `bytes=${headerEnd(files[shardName(2)])}-`],
      ]);
      asked.length = 0;
      assertSameBits(await load(), expected);
      assert.isEmpty(asked, 'all is cached');
    }));

  it('an interrupted download starts again if one of the files has changed', () =>
    withCaches(fakeCaches(), async () => {
      const files = sharded();
      const breaks: Record<string, number> = { [shardName(2)]: 10 };
      const { fetch, asked, tags } = resumable(files, breaks);
      await assertRejects(attn.loadModel(address, { fetch }), 'NETWORK', ['broke off']);
      tags[shardName(0)] = '"new"';
      delete breaks[shardName(2)];
      asked.length = 0;
      assertSameBits(await logitsOf(address, { fetch }), expected);
      assert.lengthOf(asked, 6);
      // With the same header, so that only the validator shows it.
      const other = safetensors(shardOf(1).map(([tensor, stored]) => [tensor, { ...stored, data: stored.data.map((byte) => byte ^ 1) }] as const));
      let requests = 0;
      const changing = (at: RequestInfo | URL, init?: RequestInit) => {
        const file = String(at).slice(address.length + 1);
        if (file === shardName(1) && requests++ > 0) [files[file], tags[file]] = [other, '"other"'];
        return fetch(at, init);
      };
      await assertRejects(attn.loadModel(address, { cache: 'none', fetch: changing }), 'FORMAT', [shardName(1), 'changed while']);
    }));

  it('an aborted load frees its memory, and digests of single files are verified', async () => {
    const files = sharded();
    const start = settledHeap(attn);
    const controller = new AbortController();
    const aborting = server(files, (file) => {
      if (file === shardName(1)) controller.abort();
      return undefined;
    });
    await assertRejects(attn.loadModel(address, { cache: 'none', fetch: aborting.fetch, signal: controller.signal }), 'ABORTED');
    const digest = async (content: Uint8Array<ArrayBuffer>) =>
      Array.from(new Uint8Array(await crypto.subtle.digest('SHA-256', content)), (byte) => byte.toString(16).padStart(2, '0')).join('');
    const sha256 = { [shardName(1)]: await digest(files[shardName(1)]) };
    assertSameBits(await logitsOf(files, { sha256 }), expected);
    await assertRejects(attn.loadModel(files, { sha256: { [shardName(1)]: '0'.repeat(64) } }), 'FORMAT', ['SHA-256', shardName(1)]);
    await assertRejects(attn.loadModel(files, { sha256: { 'model-00009-of-00009.safetensors': '0'.repeat(64) } }), 'FORMAT', ['is missing']);
    assert.equal(settledHeap(attn), start);
  });

  it('an index that is no index is refused', async () => {
    const refused = (content: unknown, words: string[]) =>
      assertRejects(attn.loadModel(sharded({ [index]: encode(content) })), 'FORMAT', [index, ...words]);
    for (const content of ['{', '[1]\u0001', '[]']) await refused(content, []);
    for (const content of ['{}', '{"weight_map": []}', '{"weight_map": {}}']) await refused(content, ['weight_map']);
    for (const file of ['../x.safetensors', '/etc/passwd', 'a/b.safetensors', '..', '.hidden', '', 'a\\b', 'C:x', 3, null])
      await refused({ weight_map: { ...weightMap(), 'lm_head.weight': file } }, ['lm_head.weight', 'same folder']);
    const twice = JSON.stringify({ weight_map: weightMap() }).replace('{"weight_map":{', `{"weight_map":{"${tensors[0][0]}":"${shardName(1)}",`);
    await refused(twice, ['a name twice']);
    await assertRejects(attn.loadModel(sharded({ [index]: new Uint8Array(2 ** 24 + 1) })), 'FORMAT', ['at most 16777216']);
  });

  it('a missing or damaged file of several, and tensors in the wrong file, are named', async () => {
    const start = settledHeap(attn);
    const refused = (change: Record<string, unknown>, code: Parameters<typeof assertRejects>[1], words: string[]) =>
      assertRejects(attn.loadModel(sharded(change)), code, words);
    const [first] = tensors;
    const [moved] = first;
    const second = [...shardOf(1), first];
    await refused({ [shardName(1)]: safetensors(second) }, 'FORMAT', [shardName(1), moved, shardName(0), 'each tensor in one file']);
    await refused({ [shardName(0)]: safetensors(shardOf(0).slice(1)) }, 'FORMAT', [shardName(0), 'has no', moved]);
    const { [moved]: _, ...others } = weightMap();
    await refused({ [shardName(0)]: safetensors(shardOf(0).slice(1)), [index]: encode({ weight_map: others }) }, 'MISMATCH', [
      'model.safetensors: the file',
    ]);
    const full = safetensors(shardOf(2));
    const huge = full.slice();
    huge.fill(255, 0, 8);
    for (const content of [full.subarray(0, 100), full.subarray(0, 3), new Uint8Array(0), full.subarray(0, -1), huge, new Uint8Array([...full, 0])]) {
      await refused({ [shardName(2)]: content.slice() }, 'FORMAT', [shardName(2)]);
      // Without lengths damage is noticed while the data are read.
      const files = sharded({ [shardName(2)]: content.slice() });
      const silent = server(files, (file) => (file.startsWith('model-') ? new Response(files[file]) : undefined));
      await assertRejects(attn.loadModel(address, { cache: 'none', fetch: silent.fetch }), 'FORMAT', [shardName(2)]);
    }
    await refused({ [shardName(1)]: new Blob(['version https://git-lfs.github.com/spec/v1\n']) }, 'FORMAT', ['LFS', shardName(1)]);
    const { [shardName(1)]: gone, ...left } = sharded();
    await assertRejects(attn.loadModel(left), 'ARGUMENT', [`no ${shardName(1)}`]);
    await assertRejects(attn.loadModel(address, { cache: 'none', fetch: server(left).fetch }), 'NETWORK', ['404', shardName(1)]);
    let times = 0;
    const changing = server(sharded(), (file) => (file === shardName(1) && ++times > 1 ? new Response(full) : undefined));
    await assertRejects(attn.loadModel(address, { cache: 'none', fetch: changing.fetch }), 'FORMAT', ['changed while']);
    assert.isAbove(gone.length, 0);
    assert.equal(settledHeap(attn), start);
  });
});
