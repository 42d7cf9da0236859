/** Tests what an abort stops, and that calls with a signal leave nothing behind. */
import type { Attn } from 'attn';
import { load as loadWorker, AttnError as WorkerError, type Attn as WorkerAttn } from 'attn/worker';
import { assert } from 'chai';
import { assertRejects } from '../support/errors.ts';
import { bytes, loadHere, setup, url } from '../support/host.ts';

const name = 'tiny-bert-multilabel';
const location = () => url(`testdata/models/${name}`);
const texts = ['The film was good.', 'It was bad'];

/** Creates a signal that counts its listeners. */
function counting(): { signal: AbortSignal; listeners: () => number; controller: AbortController } {
  const controller = new AbortController();
  const { signal } = controller;
  const listening = new Set<unknown>();
  const [add, remove] = [signal.addEventListener, signal.removeEventListener];
  signal.addEventListener = (type: string, listener: EventListenerOrEventListenerObject, ...rest: unknown[]) => {
    listening.add(listener);
    add.call(signal, type, listener, ...(rest as []));
  };
  signal.removeEventListener = (type: string, listener: EventListenerOrEventListenerObject, ...rest: unknown[]) => {
    if (type === 'abort') listening.delete(listener);
    remove.call(signal, type, listener, ...(rest as []));
  };
  return { signal, listeners: () => listening.size, controller };
}

describe('aborting', () => {
  let attn: Attn;
  let remote: WorkerAttn;
  before(async () => {
    attn = await loadHere();
    remote = await loadWorker(setup);
  });
  after(async () => {
    attn.dispose();
    await remote.dispose();
  });

  it('a signal that outlives its calls retains no listeners, whether they succeed or fail', async () => {
    const { signal, listeners } = counting();
    const wasm = await bytes('wasm/attn-simd.wasm');
    (await loadHere({ signal })).dispose();
    (await loadHere({ signal, wasm: url('wasm/attn-simd.wasm'), variant: 'simd', threads: 1 })).dispose();
    (await loadHere({ signal, wasm, variant: 'simd', threads: 1 })).dispose();
    await assertRejects(loadHere({ signal, wasm: url('nothing.wasm'), variant: 'simd' }), ['NETWORK', 'FORMAT']);
    await (await loadWorker({ ...setup, signal })).dispose();
    await assertRejects(loadWorker({ signal, wasm: url('nothing.wasm'), variant: 'simd' }), ['NETWORK', 'FORMAT'], [], WorkerError);
    assert.equal(listeners(), 0, 'of load');
    for (const module of [attn, remote]) {
      await assertRejects(
        module.loadModel(url('testdata/models/nothing'), { signal, cache: 'none' }),
        'NETWORK',
        [],
        module === attn ? undefined : WorkerError,
      );
      const model = await module.loadModel(location(), { signal, cache: 'none' });
      assert.equal(listeners(), 0, 'of loadModel');
      await model.embed(texts, { signal });
      await model.classify(texts, { signal });
      const throwing = model.embed(texts, {
        signal,
        onProgress: () => {
          throw new Error('mine');
        },
      });
      await assertRejects(throwing, 'ARGUMENT', [], module === attn ? undefined : WorkerError);
      assert.equal(listeners(), 0, 'of embed and classify');
      await model.dispose();
    }
  });

  it('an abort stops the computation in the worker, not only the waiting', async () => {
    const model = await remote.loadModel(location(), { cache: 'none' });
    const many = Array<string>(3000).fill('good, and then some more of the same words');
    const time = async () => {
      const began = performance.now();
      await model.embed(many, { batchSize: 1 });
      return performance.now() - began;
    };
    await time();
    // Another program may use the processor once, but not each time.
    let isShort = false;
    for (let tries = 5; tries > 0 && !isShort; --tries) {
      const whole = await time();
      const controller = new AbortController();
      const aborting = model.embed(many, { batchSize: 1, signal: controller.signal, onProgress: () => controller.abort() });
      await assertRejects(aborting, 'ABORTED', [], WorkerError);
      // A change of weights waits for all calls that read them.
      const from = performance.now();
      await model.loadStateDict(await model.stateDict());
      isShort = performance.now() - from < whole / 3;
    }
    assert.isTrue(isShort, 'the worker continued');
    await model.dispose();
  });

  it('a load that fails in the middle of a file cancels its stream', async () => {
    const files = Object.fromEntries(
      await Promise.all(
        ['config.json', 'tokenizer.json', 'model.safetensors'].map(async (file) => [file, await bytes(`testdata/models/${name}/${file}`)]),
      ),
    ) as Record<string, Uint8Array<ArrayBuffer>>;
    const weights = files['model.safetensors']!;
    for (const how of ['an invalid header', 'aborted'] as const) {
      let [canceled, given] = [false, 0];
      const controller = new AbortController();
      const fetching = (address: RequestInfo | URL) => {
        const file = new URL(address as string).pathname.split('/').at(-1)!;
        if (file !== 'model.safetensors') return Promise.resolve(new Response(files[file] ?? null, { status: files[file] ? 200 : 404 }));
        const body = new ReadableStream<Uint8Array>({
          pull(stream) {
            // Never the last chunk, so that only cancelling ends the stream.
            const piece = how === 'aborted' ? weights.slice(given, given + 64) : new Uint8Array(64).fill(255);
            given += piece.length;
            if (given > 640 && how === 'aborted') controller.abort();
            if (piece.length > 0) stream.enqueue(piece);
          },
          cancel() {
            canceled = true;
          },
        });
        return Promise.resolve(new Response(body));
      };
      await assertRejects(
        attn.loadModel('http://localhost/folder/', { cache: 'none', fetch: fetching as typeof fetch, signal: controller.signal }),
        how === 'aborted' ? 'ABORTED' : 'FORMAT',
      );
      for (let turn = 0; turn < 1000 && !canceled; turn++) await new Promise((resolve) => setTimeout(resolve, 10));
      assert.isTrue(canceled, how);
    }
  });
});
