/** Tests that cached models follow the server: when and how it is asked, and what happens if it does not answer. */
import { type Attn, type ModelOptions, type TextModel } from 'attn';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { cacheKinds, keyOf, withCaches, withMember } from '../support/fake_caches.ts';
import { host, loadHere, url } from '../support/host.ts';
import { assertSameBits } from '../support/tensors.ts';

type Progress = Parameters<NonNullable<ModelOptions['onProgress']>>[0];

const name = 'tiny-bert-cls';
const weights = 'model.safetensors';
const fileNames = [
  ...['config.json', 'tokenizer.json', weights, 'tokenizer_config.json', 'modules.json'],
  ...['1_Pooling/config.json', 'sentence_bert_config.json', 'config_sentence_transformers.json'],
];
/** Requested if tokenizer_config.json has no added_tokens_decoder; these models lack them. */
const oldFiles = ['special_tokens_map.json', 'added_tokens.json'];

let lastRun = 0;
const folder = (how: string) => url(`model/${how}/run-kept-${Date.now()}-${host.variant}-${++lastRun}/${name}`);
const runOf = (location: string) => /\/run-([^/]+)\//.exec(location)![1];
const fileOf = (location: string, file: string) => {
  const address = new URL(location);
  address.pathname += `/${file}`;
  return address.href;
};

/** Gives a file on the server another ETag and date, with equivalent content. */
const renew = (location: string, file: string) => fetch(url(`renew?run=${runOf(location)}&file=${encodeURIComponent(file)}`));

interface Asked {
  readonly method: string;
  readonly file: string;
  readonly search: string;
  readonly range?: string;
}
const seenOf = new Map<string, number>();
async function asked(location: string): Promise<Asked[]> {
  const all: Asked[] = await (await fetch(url(`asked?run=${runOf(location)}`))).json();
  const news = all.slice(seenOf.get(location) ?? 0);
  seenOf.set(location, all.length);
  return news;
}
const filesAsked = (list: readonly Asked[], method: string) => list.filter((each) => each.method === method).map(({ file }) => file);

for (const [kind, makeCaches] of Object.entries(cacheKinds))
  describe(`cached models follow the server, with caches ${kind}`, () => {
    const { storage, locks, within: withKind } = makeCaches();
    const within = (title: string, body: () => Promise<void>) => it(title, () => withKind(body));
    let attn: Attn;
    let expected: Awaited<ReturnType<TextModel['embed']>>;
    before(async () => {
      attn = await loadHere();
      const model = await attn.loadModel(url(`testdata/models/${name}`), { cache: 'none' });
      expected = await model.embed('It was good');
      model.dispose();
    });
    after(() => attn.dispose());

    async function phases(location: string, options: ModelOptions = {}): Promise<string[]> {
      const seen = new Set<string>();
      const model = await attn.loadModel(location, { ...options, onProgress: ({ phase }: Progress) => seen.add(phase) });
      assertSameBits(await model.embed('It was good'), expected);
      model.dispose();
      return [...seen];
    }
    const kept = async (location: string, file: string) => new Uint8Array(await (await storage.match(keyOf(fileOf(location, file))))!.arrayBuffer());
    const served = async (location: string, file: string) => {
      const response = await fetch(fileOf(location, file));
      await asked(location);
      return new Uint8Array(await response.arrayBuffer());
    };
    async function assertKeptAsServed(location: string): Promise<void> {
      for (const file of fileNames) assert.deepEqual(await kept(location, file), await served(location, file), file);
      const parts = await (await storage.open('attn-models-parts')).keys();
      assert.isEmpty(parts.filter((request) => request.url.startsWith(location)));
    }

    within('loading a cached model sends one HEAD request per cached file, and downloads nothing', async () => {
      const location = folder('good');
      assert.deepEqual(await phases(location), ['download']);
      assert.sameMembers(filesAsked(await asked(location), 'GET'), [...fileNames, ...oldFiles]);
      assert.deepEqual(await phases(location), ['cache']);
      const again = await asked(location);
      assert.sameMembers(filesAsked(again, 'HEAD'), fileNames);
      assert.lengthOf(again, fileNames.length);
    });

    within('the query of the address is sent with each request, but is not part of a key or of the name of a lock', async () => {
      const location = folder('breaks');
      const signed = (signature: string) => `${location}?signature=${signature}&expires=1`;
      const names: string[] = [];
      const owner = (locks ?? navigator.locks) as { request: LockManager['request'] };
      const request = owner.request.bind(owner) as (...given: unknown[]) => Promise<never>;
      const spying = (name: string, ...rest: unknown[]) => (names.push(name), request(name, ...rest));
      const keys = async () =>
        (await Promise.all(['attn-models', 'attn-models-parts'].map(async (cache) => (await storage.open(cache)).keys())))
          .flat()
          .map((key) => key.url)
          .filter((key) => key.startsWith(location));
      const load = async () => {
        await assertRejects(attn.loadModel(signed('one')), 'NETWORK', [weights]);
        assert.deepEqual(await keys(), [`${fileOf(location, weights)}?attn-part=0`]);
        assert.deepEqual(await phases(signed('two')), ['download'], 'resumed');
        assert.sameMembers(
          await keys(),
          fileNames.map((file) => fileOf(location, file)),
        );
        const seen = await asked(location);
        for (const { search } of seen) assert.match(search, /^\?signature=(one|two)&expires=1$/);
        assert.match(seen.findLast(({ file }) => file === weights)!.range!, /^bytes=\d+-$/);
        assert.deepEqual(await phases(signed('three')), ['cache']);
        assert.deepEqual(await phases(location), ['cache']);
      };
      // A folder has its own locks.
      await (locks ? load() : withMember(globalThis, 'navigator', { locks: { request: spying } }, load));
      if (!locks) assert.isAtLeast(names.length, 4);
      for (const each of names) assert.equal(each, `attn-model ${location}/`);
    });

    // In a folder an open body is an open file, which the suite model_cache counts.
    if (!locks)
      within('no body of a cached response stays open', async () => {
        const location = folder('breaks');
        const answers: Response[] = [];
        const spying = {
          open: async (name: string) => {
            const cache = await storage.open(name);
            const match = async (key: string) => {
              const response = await cache.match(key);
              if (response) answers.push(response);
              return response;
            };
            return { match, put: cache.put.bind(cache), delete: cache.delete.bind(cache), keys: cache.keys.bind(cache) };
          },
        } as unknown as CacheStorage;
        await withCaches(spying, async () => {
          await assertRejects(attn.loadModel(location), 'NETWORK', [weights]);
          await phases(location);
          await phases(location);
        });
        assert.isAbove(answers.length, fileNames.length);
        for (const response of answers) assert.isTrue(response.bodyUsed, 'read or cancelled');
      });

    for (const how of ['good', 'weak-tags', 'dated-files', 'tagged-files'])
      within(`each file that changed on the server causes a new download, which is cached: ${how}`, async () => {
        const location = folder(how);
        await phases(location);
        for (const file of fileNames) {
          await renew(location, file);
          await asked(location);
          assert.deepEqual(await phases(location), ['download'], file);
          assert.sameMembers(filesAsked(await asked(location), 'GET'), [...fileNames, ...oldFiles], file);
          await assertKeptAsServed(location);
          assert.deepEqual(await phases(location), ['cache'], `${file}, again`);
        }
      });

    for (const how of ['unmarked', 'no-heads'])
      within(`if the server gives no ETag or date, the cached model is used until 'reload': ${how}`, async () => {
        const location = folder(how);
        await phases(location);
        for (const file of fileNames) await renew(location, file);
        assert.deepEqual(await phases(location), ['cache']);
        assert.deepEqual(await phases(location, { cache: 'reload' }), ['download']);
        await assertKeptAsServed(location);
        assert.deepEqual(await phases(location), ['cache']);
      });

    within('if the server is slow, the cached model is used after some seconds', async () => {
      const location = folder('hanging-heads');
      await phases(location);
      const started = Date.now();
      assert.deepEqual(await phases(location), ['cache']);
      assert.isAtLeast(Date.now() - started, 2900);
      const controller = new AbortController();
      setTimeout(() => controller.abort(), 100);
      const before = Date.now();
      await assertRejects(attn.loadModel(location, { signal: controller.signal }), 'ABORTED');
      assert.isBelow(Date.now() - before, 2500, 'an abort takes effect while waiting');
    });

    within('offline, the cached model is used', async () => {
      const location = folder('good');
      await phases(location);
      const offline: typeof fetch = () => Promise.reject(new TypeError('offline'));
      assert.deepEqual(await phases(location, { fetch: offline }), ['cache']);
      await assertRejects(attn.loadModel(location, { fetch: offline, cache: 'reload' }), 'NETWORK', ['offline']);
      assert.deepEqual(await phases(location, { fetch: offline }), ['cache'], 'a failed reload deletes nothing');
    });

    within('files with a given digest are not revalidated', async () => {
      const location = folder('good');
      await phases(location);
      const hash = new Uint8Array(await crypto.subtle.digest('SHA-256', await kept(location, weights)));
      const sha256 = { [weights]: Array.from(hash, (byte) => byte.toString(16).padStart(2, '0')).join('') };
      await asked(location);
      assert.deepEqual(await phases(location, { sha256 }), ['cache']);
      assert.sameMembers(
        filesAsked(await asked(location), 'HEAD'),
        fileNames.filter((file) => file !== weights),
      );
    });

    within("'reload' downloads everything, bypassing the browser's own cache, and ignores partial downloads", async () => {
      const location = folder('breaks');
      await assertRejects(attn.loadModel(location), 'NETWORK', [weights]);
      await asked(location);
      const modes = new Set<RequestCache | undefined>();
      const mine: typeof fetch = (address, init) => {
        modes.add(init?.cache);
        return fetch(address, init);
      };
      assert.deepEqual(await phases(location, { cache: 'reload', fetch: mine }), ['download']);
      assert.deepEqual([...modes], ['reload']);
      assert.isTrue((await asked(location)).every(({ range }) => range === undefined));
      await assertKeptAsServed(location);
      assert.deepEqual(await phases(location), ['cache']);
    });

    within("revalidation bypasses the browser's own cache", async () => {
      const location = folder('good');
      await phases(location);
      await renew(location, 'config.json');
      const modes = new Map<string, Set<RequestCache | undefined>>();
      const mine: typeof fetch = (address, init) => {
        const method = init?.method ?? 'GET';
        modes.set(method, (modes.get(method) ?? new Set()).add(init?.cache));
        return fetch(address, init);
      };
      assert.deepEqual(await phases(location, { fetch: mine }), ['download']);
      assert.deepEqual([...modes.get('HEAD')!], ['no-cache']);
      assert.deepEqual([...modes.get('GET')!], ['no-cache']);
    });

    within("a bad file found by 'reload' is not cached, and the good one remains", async () => {
      const location = folder('good');
      await phases(location);
      const before = await kept(location, weights);
      const html: typeof fetch = (address, init) =>
        String(address).includes(weights) ? Promise.resolve(new Response('<!doctype html>')) : fetch(address, init);
      await assertRejects(attn.loadModel(location, { cache: 'reload', fetch: html }), 'FORMAT', ['HTML']);
      assert.deepEqual(await kept(location, weights), before);
      assert.deepEqual(await phases(location), ['cache']);
    });

    within('files of two loads are not mixed', async () => {
      const location = folder('good');
      await phases(location);
      const files = await storage.open('attn-models');
      const first = (await files.match(keyOf(fileOf(location, 'config.json'))))!;
      await renew(location, weights);
      assert.deepEqual(await phases(location), ['download']);
      await files.put(keyOf(fileOf(location, 'config.json')), first);
      assert.include(await phases(location), 'download');
      await assertKeptAsServed(location);
    });
  });
