/** Tests attn/cache: listing, measuring and deleting cached model files. */
import type { Attn } from 'attn';
import { AttnError, cache } from 'attn/cache';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { cacheKinds, withCaches } from '../support/fake_caches.ts';
import { host, loadHere, url } from '../support/host.ts';
import { assertSameBits } from '../support/tensors.ts';

const weights = 'model.safetensors';
let lastRun = 0;

for (const [kind, makeCaches] of Object.entries(cacheKinds))
  describe(`attn/cache, with caches ${kind}`, () => {
    const { storage, within: withKind } = makeCaches();
    const within = (title: string, body: () => Promise<void>) => it(title, () => withKind(body));
    let attn: Attn;
    before(async () => {
      attn = await loadHere();
    });
    after(() => attn.dispose());

    /** A folder of models that no other test uses. */
    const folder = (how: string) => url(`model/${how}/run-cache-${Date.now()}-${host.variant}-${++lastRun}`);
    const load = async (address: string) => (await attn.loadModel(address)).dispose();
    const listed = async (place: string) => (await cache.list()).filter((file) => file.url.startsWith(`${place}/`));
    const namesIn = async (place: string) => (await listed(place)).map((file) => file.url.slice(place.length + 1));
    const served = async (address: string) => (await (await fetch(address)).arrayBuffer()).byteLength;

    within('list() gives the URL without its query, the bytes and the date of each file, in the order of URLs', async () => {
      const place = folder('good');
      const before = Date.now();
      await load(`${place}/tiny-bert?signature=one`);
      const files = await listed(place);
      const addresses = files.map((file) => file.url);
      assert.includeMembers(
        addresses,
        ['config.json', 'tokenizer.json', weights].map((name) => `${place}/tiny-bert/${name}`),
      );
      assert.deepEqual(addresses, [...addresses].sort());
      for (const { url: address, bytes, complete, date } of files) {
        assert.equal(bytes, await served(address), address);
        assert.isTrue(complete);
        assert.isAtLeast(date!.getTime(), before - 1000); // HTTP dates have seconds
        assert.isAtMost(date!.getTime(), Date.now());
      }
    });

    within('size() is the sum of the bytes in the list', async () => {
      const before = await cache.size();
      const place = folder('good');
      await load(`${place}/tiny-bert`);
      const sum = (await listed(place)).reduce((all, { bytes }) => all + bytes, 0);
      assert.isAbove(sum, 10000);
      assert.equal((await cache.size()) - before, sum);
    });

    within('delete() takes a file or a folder, as a string or URL with any query, and leaves folders with a longer name', async () => {
      const place = folder('good');
      await load(`${place}/tiny-bert`);
      await load(`${place}/tiny-bert-cls`);
      const before = (await listed(place)).length;
      assert.equal(await cache.delete(`${place}/tiny-bert/config.json?signature=two#x`), 1);
      assert.equal(await cache.delete(`${place}/tiny-bert/config.json`), 0);
      assert.equal(await cache.delete(`${place}/tiny-bert/config`), 0, 'no prefix of a name');
      const left = await namesIn(place);
      assert.lengthOf(left, before - 1);
      const other = left.filter((name) => name.startsWith('tiny-bert-cls/'));
      assert.equal(await cache.delete(new URL(`${place}/tiny-bert`)), left.length - other.length);
      assert.deepEqual(await namesIn(place), other);
      assert.equal(await cache.delete(`${place}/tiny-bert-cls/`), other.length);
      assert.isEmpty(await listed(place));
    });

    within('a loaded model remains usable without its files, and the next load downloads them again', async () => {
      const place = folder('good');
      const model = await attn.loadModel(`${place}/tiny-bert`);
      assert.isAbove(await cache.delete(), 0);
      assert.isEmpty(await cache.list());
      assert.equal(await cache.size(), 0);
      assert.equal(await cache.delete(), 0);
      assert.isAbove((await model.embed('It was good')).data.length, 0);
      model.dispose();
      const phases = new Set<string>();
      (await attn.loadModel(`${place}/tiny-bert`, { onProgress: ({ phase }) => phases.add(phase) })).dispose();
      assert.deepEqual([...phases], ['download']);
    });

    within('a model of which a file was deleted is downloaded again, also if the file is optional', async () => {
      const place = folder('good');
      const address = `${place}/tiny-bert-cls`;
      const model = await attn.loadModel(address);
      const expected = await model.embed('It was good');
      model.dispose();
      const names = await namesIn(place);
      assert.include(names, 'tiny-bert-cls/1_Pooling/config.json');
      for (const name of names) {
        assert.equal(await cache.delete(`${place}/${name}`), 1);
        const again = await attn.loadModel(address);
        assertSameBits(await again.embed('It was good'), expected);
        again.dispose();
        assert.deepEqual(await namesIn(place), names, name);
      }
    });

    within('an interrupted download is one entry that is not complete', async () => {
      const place = folder('breaks');
      const address = `${place}/large-tiny-bert`;
      await assertRejects(attn.loadModel(`${address}?signature=one`), 'NETWORK', [weights]);
      // WebKit may drop what came before a break.
      if (host.engine === 'webkit' && (await listed(place)).length === 0) return;
      const [part, ...others] = await listed(place);
      assert.isEmpty(others);
      assert.equal(part.url, `${address}/${weights}`);
      assert.isFalse(part.complete);
      assert.isBelow(part.bytes, 5e6);
      assert.isAbove(part.bytes, 0);
      assert.isAtMost(part.date!.getTime(), Date.now());
      assert.equal(await cache.delete(address), 1);
      assert.isEmpty(await listed(place));
      assert.isEmpty((await (await storage.open('attn-models-parts')).keys()).filter((key) => key.url.startsWith(place)));
    });

    within('files that an older version stored with the digest of the query can be listed and deleted', async () => {
      const place = folder('good');
      const files = await storage.open('attn-models');
      const address = `${place}/old/${weights}`;
      for (const query of ['', '?attn-query=1234', '?attn-query=5678'])
        await files.put(address + query, new Response('abc', { headers: { 'content-length': '3' } }));
      assert.deepEqual(await listed(place), [{ url: address, bytes: 9, complete: true }]);
      assert.equal(await cache.delete(address), 1);
      assert.isEmpty(await listed(place));
    });

    within('wrong arguments are refused, and nothing is deleted', async () => {
      await load(`${folder('good')}/tiny-bert`);
      const before = await cache.list();
      const wrong = cache as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>;
      const refused = async (name: string, given: unknown[], words: string[]) =>
        assertRejects(wrong[name](...given), 'ARGUMENT', [`cache.${name}`, ...words]);
      for (const name of ['list', 'size', 'delete']) {
        await refused(name, [{ cachedir: 'a' }], ['option "cachedir" is unknown', 'Did you mean cacheDir?']);
        for (const cacheDir of ['', 1, null]) await refused(name, [{ cacheDir }], ['cacheDir is', 'the path of a folder']);
      }
      for (const name of ['list', 'size']) await refused(name, ['a'], ['options is "a"', 'an object']);
      for (const source of [undefined, null, '', 3, 'http://']) await refused('delete', [source, {}], ['source is', 'the URL of a file or folder']);
      await refused('delete', [undefined], ['source is missing', 'delete() deletes all']);
      await refused('delete', [null], ['source is null']);
      await refused('delete', ['http://a.test', 1], ['options is 1']);
      assert.deepEqual(await cache.list(), before);
    });
  });

describe('attn/cache without a cache', () => {
  const all = () => [() => cache.list(), () => cache.size(), () => cache.delete(), () => cache.delete('https://a.test/model')];
  const [remedy] = host.engine === 'node' ? ['Pass cacheDir'] : ['https'];

  it('a host without Cache Storage is an error with a remedy', () =>
    withCaches(undefined, async () => {
      for (const call of all()) {
        const error = await assertRejects(call(), 'ENVIRONMENT', ['this host has no Cache Storage', remedy]);
        assert.instanceOf(error, AttnError);
        assert.include(error.help!, remedy);
      }
    }));

  it('a page that may not use Cache Storage is an error with the reason', async () => {
    const refusal = new DOMException('The operation is insecure.', 'SecurityError');
    const refusing = { open: () => Promise.reject(refusal) } as unknown as CacheStorage;
    for (const call of all()) {
      const error = await withCaches(refusing, () => assertRejects(call(), 'ENVIRONMENT', ['The operation is insecure.', 'Sandboxed frames']));
      assert.equal(error.cause, refusal);
    }
  });

  if (host.engine !== 'node')
    it('a browser has no cacheDir', async () => {
      const options = { cacheDir: 'cache' };
      for (const call of [cache.list(options), cache.size(options), cache.delete(options), cache.delete('a', options)])
        await assertRejects(call, 'ENVIRONMENT', ['cacheDir is "cache"', 'A browser has its own cache']);
      const attn = await loadHere();
      await assertRejects(attn.loadModel(url('testdata/models/tiny-bert'), options), 'ENVIRONMENT', [
        'loadModel: cacheDir is "cache"',
        'A browser has its own cache',
      ]);
      await assertRejects(attn.loadModel(url('testdata/models/tiny-bert'), { cacheDir: '' }), 'ARGUMENT', ['cacheDir is ""']);
      attn.dispose();
    });
});
