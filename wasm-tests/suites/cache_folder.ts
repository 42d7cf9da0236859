/** Tests the folder that caches model files in Node: names, crashes, locks between processes, and the option cacheDir. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Attn, ModelOptions } from 'attn';
import { cache } from 'attn/cache';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { folderStorage } from '../../web/lib/src/platform/node_cache.ts';
import { assertRejects } from '../support/errors.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';

const weights = 'model.safetensors';
const address = url('testdata/models/tiny-bert');

describe('the cache folder', () => {
  let attn: Attn;
  let root: string;
  let lastFolder = 0;
  before(async () => {
    attn = await loadHere();
    root = mkdtempSync(join(tmpdir(), 'attn-cache-'));
  });
  after(() => {
    attn.dispose();
    rmSync(root, { recursive: true, force: true });
  });

  const fresh = () => join(root, String(++lastFolder), 'cache');
  const filesIn = (folder: string) => (existsSync(folder) ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).sort() : []);
  async function phases(cacheDir: string | undefined, options: ModelOptions = {}, source: string = address): Promise<string[]> {
    const seen = new Set<string>();
    (await attn.loadModel(source, { cacheDir, ...options, onProgress: ({ phase }) => seen.add(phase) })).dispose();
    return [...seen];
  }
  const storageIn = async (cacheDir: string) => (await folderStorage('test', cacheDir, false))!;
  const store = async (cacheDir: string) => (await storageIn(cacheDir)).files;
  const reply = (text: string, length = text.length) => new Response(text, { headers: { 'content-length': String(length) } });
  const textOf = async (response: Response | undefined) => response && (await response.text());
  const age = (path: string, seconds: number) => utimesSync(path, Date.now() / 1000 - seconds, Date.now() / 1000 - seconds);

  describe('cacheDir', () => {
    it('stores the files that loadModel() downloads, here and in a worker, for attn/cache', async () => {
      const cacheDir = fresh();
      assert.deepEqual(await phases(cacheDir), ['download']);
      assert.deepEqual(await phases(cacheDir), ['cache']);
      const names = (await cache.list({ cacheDir })).map((file) => file.url);
      assert.includeMembers(names, [`${address}/config.json`, `${address}/tokenizer.json`, `${address}/${weights}`]);
      assert.isAbove(await cache.size({ cacheDir }), 10000);
      assert.equal(await cache.delete(`${address}/${weights}`, { cacheDir }), 1);
      assert.equal(await cache.delete({ cacheDir }), names.length - 1);
      assert.equal(await cache.size({ cacheDir }), 0);
      const worker = await loadWorker(setup);
      await (await worker.loadModel(address, { cacheDir })).dispose();
      await worker.dispose();
      assert.deepEqual(
        (await cache.list({ cacheDir })).map((file) => file.url),
        names,
      );
    });

    it('takes precedence over ATTN_CACHE_DIR, and without either nothing is stored', async () => {
      const [mine, named] = [fresh(), fresh()];
      process.env.ATTN_CACHE_DIR = named;
      try {
        assert.deepEqual(await phases(mine), ['download']);
        assert.deepEqual(filesIn(named), []);
        assert.deepEqual(await phases(undefined), ['download']);
        assert.deepEqual(await phases(undefined), ['cache']);
        assert.deepEqual(await cache.list(), await cache.list({ cacheDir: named }));
        process.env.ATTN_CACHE_DIR = '';
        assert.deepEqual(await phases(undefined), ['download']);
        await assertRejects(cache.list(), 'ENVIRONMENT', ['ATTN_CACHE_DIR']);
      } finally {
        delete process.env.ATTN_CACHE_DIR;
      }
    });

    it("is not created for a model that is not fetched, by cache: 'none', or by attn/cache", async () => {
      const cacheDir = fresh();
      await phases(cacheDir, { cache: 'none' });
      const names = ['config.json', 'tokenizer.json', weights];
      const files = Object.fromEntries(
        await Promise.all(names.map(async (name) => [name, await bytes(`testdata/models/tiny-bert/${name}`)] as const)),
      );
      (await attn.loadModel(files, { cacheDir })).dispose();
      assert.deepEqual(await cache.list({ cacheDir }), []);
      assert.equal(await cache.delete({ cacheDir }), 0);
      assert.isFalse(existsSync(cacheDir));
    });

    it('must be a folder', async () => {
      const cacheDir = fresh();
      mkdirSync(dirname(cacheDir));
      writeFileSync(cacheDir, 'a file');
      await assertRejects(attn.loadModel(address, { cacheDir }), 'ARGUMENT', [`cacheDir is ${JSON.stringify(cacheDir)}`, 'EEXIST']);
      await assertRejects(attn.loadModel(address, { cacheDir: join(cacheDir, 'a') }), 'ARGUMENT', ['ENOTDIR']);
      for (const wrong of ['', 3, null]) await assertRejects(attn.loadModel(address, { cacheDir: wrong as string }), 'ARGUMENT', ['cacheDir is']);
      await assertRejects(cache.list({ cacheDir }), 'ARGUMENT', ['cache.list: cacheDir is', 'ENOTDIR']);
    });

    it('may be read-only: then cached files are read, and others are not stored', async () => {
      const cacheDir = fresh();
      await phases(cacheDir);
      // Tests may run as root, who can write anywhere.
      rmSync(join(cacheDir, 'attn-models-locks'), { recursive: true });
      writeFileSync(join(cacheDir, 'attn-models-locks'), '');
      assert.deepEqual(await phases(cacheDir), ['cache']);
      const other = url('testdata/models/tiny-bert-cls');
      const before = filesIn(cacheDir);
      assert.deepEqual(await phases(cacheDir, {}, other), ['download']);
      assert.deepEqual(filesIn(cacheDir), before);
    });
  });

  describe('names', () => {
    const hostile = [
      ...['../../../outside', '%2e%2e/%2e%2e/outside', '..%2f..%2f..%2foutside', '..%5c..%5coutside', 'C:%5coutside', '%2fetc%2foutside'],
      ...['CON', 'nul.json', 'a%00b', 'a%0ab', 'A', 'a', `${'long/'.repeat(1000)}x`, '%f0%9f%98%80', '-rf', '.', ''],
    ].map((path) => new URL(`http://host.test/${path}`).href);

    it('no URL leads out of the folder, and different URLs have different files', async () => {
      const cacheDir = fresh();
      const files = await store(cacheDir);
      const all = [...new Set(hostile)];
      for (const each of all) await files.put(each, reply(each));
      for (const each of all) assert.equal(await textOf(await files.match(each)), each);
      assert.sameMembers(
        (await files.keys()).map((request) => request.url),
        all,
      );
      const names = filesIn(dirname(cacheDir));
      assert.lengthOf(names, all.length + 2);
      for (const name of names) assert.match(name, /^cache(\/attn-models(\/[0-9a-f]{64})?)?$/);
      for (const each of all) assert.isTrue(await files.delete(each));
      assert.isEmpty(await files.keys());
    });

    it('also not through loadModel()', async () => {
      const cacheDir = fresh();
      const serve: typeof fetch = (asked) => fetch(`${address}/${/[^/]*$/.exec(new URL(String(asked)).pathname)![0]}`);
      for (const each of ['http://host.test/..%2f..%2foutside', 'http://host.test/..%5c..%5c/', 'http://host.test/a%00b'])
        assert.deepEqual(await phases(cacheDir, { fetch: serve }, each), ['download']);
      for (const name of filesIn(dirname(cacheDir))) assert.match(name, /^cache(\/attn-models(-parts|-locks)?(\/[0-9a-f]{64})?)?$/);
    });

    it('a file that somebody else has put there is ignored', async () => {
      const cacheDir = fresh();
      const files = await store(cacheDir);
      await files.put('http://host.test/a', reply('abc'));
      const folder = join(cacheDir, 'attn-models');
      const [name] = readdirSync(folder);
      const other = createHash('sha256').update('http://host.test/b').digest('hex');
      writeFileSync(join(folder, other), readFileSync(join(folder, name)));
      writeFileSync(join(folder, '0'.repeat(64)), 'not JSON\nabc');
      writeFileSync(join(folder, '1'.repeat(64)), '{"url":"http://host.test/c","headers":3}\nabc');
      writeFileSync(join(folder, '2'.repeat(64)), 'x'.repeat(100_000));
      mkdirSync(join(folder, '3'.repeat(64)));
      writeFileSync(join(folder, 'README'), '');
      assert.deepEqual(
        (await files.keys()).map((request) => request.url),
        ['http://host.test/a'],
      );
      assert.isUndefined(await files.match('http://host.test/b'));
    });
  });

  describe('crashes', () => {
    it('a file is replaced as a whole or not at all', async () => {
      const cacheDir = fresh();
      const files = await store(cacheDir);
      await files.put('http://host.test/a', reply('old'));
      let pulls = 0;
      const breaking = new ReadableStream({
        pull(controller) {
          if (++pulls > 3) throw new Error('broken');
          controller.enqueue(new Uint8Array(2 ** 20));
        },
      });
      for (const response of [new Response(breaking), reply('new', 4), reply('new', 2)]) {
        const error = await files.put('http://host.test/a', response).then(() => undefined, String);
        assert.match(error!, /broken|content-length/);
        assert.equal(await textOf(await files.match('http://host.test/a')), 'old');
        assert.lengthOf(readdirSync(join(cacheDir, 'attn-models')), 1);
      }
      const reading = await files.match('http://host.test/a');
      await files.put('http://host.test/a', reply('new'));
      assert.equal(await textOf(reading), 'old', 'what is being read does not change');
      assert.equal(await textOf(await files.match('http://host.test/a')), 'new');
    });

    it('a truncated file is downloaded again', async () => {
      const cacheDir = fresh();
      await phases(cacheDir);
      const before = await cache.list({ cacheDir });
      for (const name of filesIn(join(cacheDir, 'attn-models'))) {
        const path = join(cacheDir, 'attn-models', name);
        const { size } = statSync(path);
        truncateSync(path, size - 1);
        assert.lengthOf(await cache.list({ cacheDir }), before.length - 1);
        assert.include(await phases(cacheDir), 'download', name);
        assert.equal(statSync(path).size, size);
        assert.deepEqual(await phases(cacheDir), ['cache']);
      }
    });

    it('temporary files of processes that have ended are removed after an hour', async () => {
      const cacheDir = fresh();
      await phases(cacheDir);
      const paths = ['attn-models', 'attn-models-parts'].flatMap((folder) => ['old.tmp', 'new.tmp'].map((name) => join(cacheDir, folder, name)));
      mkdirSync(join(cacheDir, 'attn-models-parts'));
      for (const path of paths) {
        writeFileSync(path, 'abc');
        if (path.includes('old')) age(path, 3700);
      }
      assert.deepEqual(await phases(cacheDir), ['cache']);
      assert.deepEqual(paths.map(existsSync), [false, true, false, true]);
    });

    it('no file stays open', async () => {
      if (!existsSync('/proc/self/fd')) return;
      const cacheDir = fresh();
      await assertRejects(attn.loadModel(url('model/half/tiny-bert'), { cacheDir }), 'FORMAT');
      await phases(cacheDir);
      const open = () => readdirSync('/proc/self/fd').length;
      const before = open();
      for (let i = 0; i < 3; ++i) {
        await phases(cacheDir);
        await cache.list({ cacheDir });
        await assertRejects(attn.loadModel(url('model/half/tiny-bert'), { cacheDir }), 'FORMAT');
        const files = await store(cacheDir);
        await (await files.match(`${address}/${weights}`))!.body!.cancel();
        assert.isUndefined(await files.match('http://host.test/missing'));
      }
      // Connections to the server come and go.
      assert.isAtMost(open(), before + 3);
    });
  });

  describe('locks', () => {
    const pathOf = (cacheDir: string, name: string) => join(cacheDir, 'attn-models-locks', createHash('sha256').update(name).digest('hex'));
    const locksOf = async (cacheDir: string) => (await storageIn(cacheDir)).locks!;
    /** Whether a lock that another process left as `text` can be taken. */
    async function isFree(text: string, seconds = 0): Promise<boolean> {
      const cacheDir = fresh();
      const path = pathOf(cacheDir, 'a');
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      age(path, seconds);
      return (await (await locksOf(cacheDir)).request('a', { ifAvailable: true }, (lock) => lock !== null)) as boolean;
    }

    it('are held by one at a time, and waiting ends with an abort', async () => {
      const cacheDir = fresh();
      const [one, two] = [await locksOf(cacheDir), await locksOf(cacheDir)];
      const log: string[] = [];
      let release = () => {};
      const first = one.request('a', {}, async () => {
        log.push('first');
        await new Promise<void>((resolve) => (release = resolve));
        log.push('end of first');
      });
      while (log.length === 0) await sleep(10);
      assert.isNull(await two.request('a', { ifAvailable: true }, (lock) => lock));
      assert.isNotNull(await two.request('b', { ifAvailable: true }, (lock) => lock));
      const second = two.request('a', {}, () => log.push('second'));
      const controller = new AbortController();
      const third = two.request('a', { signal: controller.signal }, () => log.push('third'));
      controller.abort();
      assert.match(await third.then(() => '', String), /abort/i);
      await sleep(250);
      assert.deepEqual(log, ['first']);
      release();
      await Promise.all([first, second]);
      assert.deepEqual(log, ['first', 'end of first', 'second']);
      assert.isEmpty(readdirSync(join(cacheDir, 'attn-models-locks')));
    });

    it('are taken over from a process that has ended, or has not touched them for half a minute', async () => {
      const { pid } = spawnSync(process.execPath, ['-e', '']);
      assert.isTrue(await isFree(`${hostname()} ${pid} x`), 'ended');
      assert.isFalse(await isFree(`${hostname()} ${process.pid} x`), 'alive');
      assert.isTrue(await isFree(`${hostname()} ${process.pid} x`, 40), 'stopped');
      assert.isFalse(await isFree(`other.${hostname()} ${pid} x`), 'another host');
      assert.isTrue(await isFree(`other.${hostname()} ${pid} x`, 40), 'another host, long ago');
      assert.isFalse(await isFree(''), 'being written');
    });

    it('are touched while they are held, and another that has taken one over keeps it', async () => {
      const cacheDir = fresh();
      await (
        await locksOf(cacheDir)
      ).request('a', {}, async () => {
        const path = pathOf(cacheDir, 'a');
        age(path, 20);
        await sleep(5500);
        assert.isBelow(Date.now() - statSync(path).mtimeMs, 2000);
        writeFileSync(path, 'of another');
      });
      assert.equal(readFileSync(pathOf(cacheDir, 'a'), 'utf8'), 'of another');
    });

    it('are released if the work fails', async () => {
      const cacheDir = fresh();
      const locks = await locksOf(cacheDir);
      const error = await locks.request('a', {}, () => Promise.reject(new Error('mine'))).then(() => '', String);
      assert.include(error, 'mine');
      assert.isNotNull(await locks.request('a', { ifAvailable: true }, (lock) => lock));
    });
  });
});
