/**
 * Tests starting workers and detecting the environment on pages, with fake hosts, because no tested engine covers all
 * cases.
 */
import { assert } from 'chai';
import { AttnError } from '../../web/lib/src/args/error.ts';
import { threads } from '../../web/lib/src/load/thread.ts';
import { pageUrl, assetUrl, scriptsFailed } from '../../web/lib/src/platform/asset_urls.ts';
import { startWorker } from '../../web/lib/src/platform/start_worker.ts';
import { web } from '../../web/lib/src/load/web.ts';
import { yieldToEventLoop } from '../../web/lib/src/platform/event_loop.ts';
import { remoteLoader } from '../../web/lib/src/worker/worker_client.ts';
import type { Host } from '../../web/lib/src/worker/worker_protocol.ts';
import * as Comlink from '../../web/lib/src/worker/comlink.js';
import type { Endpoint } from '../../web/lib/src/worker/comlink.js';
import { serve } from '../../web/lib/src/worker/worker_server.ts';
import type { load as Load, LoadOptions } from '../../web/lib/src/attn.js';
import { assertRejects, assertThrows } from '../support/errors.ts';
import { withGlobal, withMember } from '../support/fake_caches.ts';

const here = 'https://here.test';

/** Records calls of the fake host. */
const log: string[] = [];
const taken = () => log.splice(0);

class FakeWorker {
  readonly listeners = new Map<string, { once: boolean; call: (event: object) => void }>();
  constructor(
    readonly url: unknown,
    readonly options?: WorkerOptions,
  ) {
    log.push(`worker ${JSON.stringify(url)} ${JSON.stringify(options)}`);
  }
  addEventListener(type: string, call: (event: object) => void, options?: { once?: boolean }): void {
    this.listeners.set(type, { once: options?.once === true, call });
  }
}

/** Runs `body` as on a page of this origin. */
const onPage = <T>(origin: string, body: () => T, trustedTypes?: unknown): Promise<T> =>
  withGlobal('origin', origin, () => withGlobal('trustedTypes', trustedTypes, () => withGlobal('Worker', FakeWorker, async () => body())));
const options = { type: 'module', name: 'x' } as const;
const start = (url: string | URL) => startWorker(() => new Worker(url, options));
const said = (url: unknown) => `worker ${JSON.stringify(url)} {"type":"module","name":"x"}`;

describe('starting workers on a page', () => {
  const { createObjectURL, revokeObjectURL } = URL;
  let texts: Promise<string>[] = [];
  before(() => {
    Object.assign(URL, {
      createObjectURL(blob: Blob) {
        texts.push(blob.text());
        log.push(`blob ${blob.type}`);
        return `blob:${here}/${texts.length}`;
      },
      revokeObjectURL: (url: string) => void log.push(`revoke ${url}`),
    });
  });
  after(() => void Object.assign(URL, { createObjectURL, revokeObjectURL }));

  it('of the same origin, or from no web server: directly and once', async () => {
    for (const url of [new URL(`${here}/a/worker.js`), `${here}/b.js`, 'worker.js', 'file:///a/worker.js', `blob:${here}/5`]) {
      const { worker, help } = await onPage(here, () => start(url));
      assert.instanceOf(worker, FakeWorker);
      assert.deepEqual(taken(), [said(String(url))]);
      assert.include(help, 'attn/dist/worker-host.js');
      assert.equal((worker as unknown as FakeWorker).listeners.size, 0);
    }
    await onPage(here, () => start(`${here}/node_modules/.vite/deps/worker.js?v=1`));
    assert.deepEqual(taken(), [said(`${here}/node_modules/attn/dist/worker.js?v=1`)]);
  });

  it('of another origin: through a one-line script that imports them, whose URL is revoked afterwards', async () => {
    for (const [origin, url] of [
      [here, 'https://other.test/a"b.js'],
      [here, 'http://here.test/a.js'],
      ['http://here.test', 'https://here.test/a.js'],
    ]) {
      texts = [];
      const { worker, help } = await onPage(origin, () => start(url));
      assert.deepEqual(await Promise.all(texts), [`import ${JSON.stringify(url)};`]);
      assert.deepEqual(taken(), ['blob text/javascript', said(`blob:${here}/1`)]);
      for (const word of ['worker-src', 'blob:', 'CORS']) assert.include(help, word);
      const { listeners } = worker as unknown as FakeWorker;
      assert.sameMembers([...listeners.keys()], ['message', 'error']);
      for (const { once, call } of listeners.values()) {
        assert.isTrue(once);
        call({});
        assert.deepEqual(taken(), [`revoke blob:${here}/1`]);
      }
    }
    // A frame without an origin.
    await onPage('null', () => start('https://other.test/a b.js'));
    assert.deepEqual(taken(), [said('data:text/javascript,import%20%22https%3A%2F%2Fother.test%2Fa%20b.js%22%3B')]);
  });

  it('with trusted types: through one policy, or directly if the page allows no policy', async () => {
    let refuses = true;
    const types = {
      createPolicy(name: string, { createScriptURL }: { createScriptURL(url: string): string }) {
        log.push(`policy ${name}`);
        if (refuses) throw new TypeError('the policy is not allowed');
        const mark = 'trusted';
        return {
          mark,
          createScriptURL(this: { mark: string }, url: string) {
            return { [this.mark]: createScriptURL(url) };
          },
        };
      },
    };
    await onPage(here, () => start(`${here}/a.js`), types);
    assert.deepEqual(taken(), ['policy attn#worker', said(`${here}/a.js`)]);
    refuses = false;
    await onPage(here, () => start(`${here}/a.js`), types);
    assert.deepEqual(taken(), ['policy attn#worker', said({ trusted: `${here}/a.js` })]);
    texts = [];
    await onPage(here, () => start('https://other.test/a.js'), types);
    assert.deepEqual(taken(), ['blob text/javascript', said({ trusted: `blob:${here}/1` })]);
    await onPage(here, () => start(`${here}/a.js`));
    assert.deepEqual(taken(), [said(`${here}/a.js`)], 'a page that trusts all URLs');
  });

  it('without workers: ENVIRONMENT; an error of the Worker constructor is rethrown, and the global Worker is unchanged', async () => {
    const none = await withGlobal('Worker', undefined, async () => assertThrows(() => start('a.js'), 'ENVIRONMENT', [], AttnError));
    assert.deepEqual({ ...none.detail }, { op: 'load' });
    const mine = new RangeError('mine');
    const after = await onPage(here, () => {
      try {
        return startWorker(() => {
          throw mine;
        });
      } catch (error) {
        return [error, globalThis.Worker];
      }
    });
    assert.deepEqual(after as unknown, [mine, FakeWorker]);
    assert.equal((await onPage(here, () => (start('a.js'), globalThis.Worker))) as unknown, FakeWorker);
    assert.lengthOf(taken(), 1);
    // Read-only globals, as some bundlers define them.
    await onPage(here, () => {
      Object.defineProperty(globalThis, 'Worker', { value: FakeWorker, writable: false, configurable: true });
      return start('https://other.test/a.js');
    });
    assert.deepEqual(taken(), [said('https://other.test/a.js')]);
  });

  if (threads)
    it('threads are named, and their errors do not reach the page', async () => {
      const errors: string[] = [];
      const worker = (await onPage(here, () => (threads || undefined)!.createThread!((why) => errors.push(why)))) as unknown as FakeWorker;
      const [line] = taken().slice(-1);
      assert.match(line, /^worker "[^"]*attn-threads\.mjs" \{"type":"module","name":"em-pthread"\}$|^worker "(blob|data):/);
      let prevented = 0;
      const preventDefault = () => void prevented++;
      for (const message of ['mine', '']) worker.listeners.get('error')!.call({ message, preventDefault });
      assert.deepEqual(errors, ['mine', 'its script could not be loaded']);
      assert.equal(prevented, 2);
    });
});

describe('detecting the environment of a page', () => {
  it('the URL of the page, and of files of the package', async () => {
    const page = (document: unknown, location: unknown) =>
      withGlobal('document', document, () => withGlobal('location', location, async () => pageUrl()));
    assert.equal(await page({ baseURI: `${here}/base/` }, { href: `${here}/a` }), `${here}/base/`);
    assert.equal(await page(undefined, { href: `${here}/a` }), `${here}/a`);
    assert.isUndefined(await page(undefined, undefined));
    assert.equal(assetUrl(`${here}/node_modules/.vite/deps/a.wasm`), `${here}/node_modules/attn/dist/a.wasm`);
    assert.equal(assetUrl(`${here}/a.wasm`), `${here}/a.wasm`);
    const { urls } = threads || web;
    for (const [build, address] of Object.entries(urls)) assert.match(address().href, new RegExp(`/attn-${build}\\.wasm$`));
    assert.sameMembers(Object.keys(urls), ['simd', 'relaxed', ...(threads ? ['simd-threads', 'relaxed-threads'] : [])]);
  });

  it('the number of cores, whether memory may be shared, and whether the thread may block', async () => {
    for (const [navigator, cores] of [
      [{ hardwareConcurrency: 6 }, 6],
      [{}, 1],
      [undefined, 1],
    ] as const)
      assert.equal(await withGlobal('navigator', navigator, async () => web.cores()), cores);
    const sharing = (worker: unknown, isIsolated: boolean, buffer: unknown) =>
      withGlobal('Worker', worker, () =>
        withGlobal('crossOriginIsolated', isIsolated, () => withGlobal('SharedArrayBuffer', buffer, async () => web.sharingRefusal())),
      );
    assert.isUndefined(await sharing(FakeWorker, true, ArrayBuffer));
    assert.match((await sharing(undefined, true, ArrayBuffer))!, /workers/);
    assert.match((await sharing(FakeWorker, false, ArrayBuffer))!, /cross-origin isolated/);
    assert.match((await sharing(FakeWorker, true, undefined))!, /SharedArrayBuffer/);
    const waiting = (value: unknown) => withGlobal('WorkerGlobalScope', value, async () => web.waitingRefusal());
    const callable = (isOne: boolean) => Object.defineProperty(class {}, Symbol.hasInstance, { value: () => isOne });
    assert.isUndefined(await waiting(callable(true)));
    for (const none of [undefined, callable(false)]) assert.match((await waiting(none))!, /main thread/);
  });

  it('scripts that do not load are ENVIRONMENT, with the entry that needs none', () => {
    const cause = new TypeError('no import()');
    const error = assertThrows(() => scriptsFailed(cause), 'ENVIRONMENT', ['no import()', 'attn/service-worker'], AttnError);
    assert.deepEqual([error.detail.op, error.cause], ['loadModel', cause]);
  });
});

describe('communication of attn/worker', () => {
  it('a worker that never answers is terminated after a timeout: ENVIRONMENT', async () => {
    const timers: (() => void)[] = [];
    let ended = false;
    const endpoint = { postMessage() {}, addEventListener() {}, removeEventListener() {}, start() {} };
    const load = remoteLoader({
      connect: () => ({ endpoint, help: 'copy it', onDeath() {}, terminate: () => (ended = true), setWaiting() {} }),
      models: () => Promise.reject(new Error()),
      locate: (location) => location,
      locks: () => undefined,
    });
    const loading = withGlobal(
      'setTimeout',
      (call: () => void) => timers.push(call),
      async () => load(),
    );
    const rejected = assertRejects(loading, 'ENVIRONMENT', ['did not start', 'copy it']);
    await yieldToEventLoop();
    assert.isFalse(ended);
    assert.lengthOf(timers, 1);
    timers[0]!();
    await rejected;
    assert.isTrue(ended);
  });

  it('answered progress reports are not retained', async () => {
    const { port1, port2 } = new MessageChannel();
    const reports = 500;
    const reporting = (async ({ onProgress }: LoadOptions) => {
      for (let i = 0; i < reports; ++i) {
        onProgress!({ phase: 'download', loaded: i });
        // Lets their answers arrive.
        if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 1));
      }
      throw new AttnError('NETWORK', 'load: the end');
    }) as unknown as typeof Load;
    serve(reporting, () => Promise.reject(new Error()), port2 as Endpoint);
    port2.start();
    const host = Comlink.wrap<Host>(port1);
    let [seen, most] = [0, 0];
    const { allSettled } = Promise;
    const spying = (list: Iterable<unknown>) => {
      const all = [...list];
      most = Math.max(most, all.length);
      return allSettled.call(Promise, all);
    };
    await withMember(Promise, 'allSettled', spying, () =>
      assertRejects(
        host.load(
          {},
          Comlink.proxy(() => void ++seen),
        ),
        'NETWORK',
      ),
    );
    assert.equal(seen, reports);
    assert.isBelow(most, reports / 2);
    port1.close();
    port2.close();
  });
});
