/** Tests the division of texts into batches, and the order of concurrent calls. */
import type { Attn, TextModel } from 'attn';
import { load as loadWorker } from 'attn/worker';
import { assert } from 'chai';
import { AttnError as WorkerError } from 'attn/worker';
import { assertRejects } from '../support/errors.ts';
import { host, loadHere, setup, url } from '../support/host.ts';
import { loadCheckpoint } from '../support/model_cases.ts';
import { assertSameBits } from '../support/tensors.ts';

describe('batches', () => {
  let attn: Attn;
  before(async () => void (attn = await loadHere()));
  after(() => attn.dispose());

  it('the default batch has at most as many tokens as take about 30 ms, and at least one text', async () => {
    const mostWork = { float32: 5e7, int8: 1e8 };
    for (const weights of ['float32', 'int8'] as const) {
      const model = await loadCheckpoint(attn, 'entities', weights);
      const { hidden_size: width, num_hidden_layers: layers } = model.config as Record<string, number>;
      const texts = Array.from({ length: 64 }, (_, i) => 'Anna lives in Paris. '.repeat(1 + (i % 30)));
      const longest = texts.map((text) => model.tokenize(text).dims[1]).sort((a, b) => b - a);
      const done: number[] = [];
      const vectors = await model.embed(texts, { onProgress: (p) => done.push(p.done) });
      const sizes = done.slice(1).map((each, i) => each - done[i]!);
      assert.isAbove(sizes.length, 2, 'batches of 32 texts would be two');
      sizes.forEach((size, i) => {
        const work = (texts: number) => texts * longest[done[i]!]! * layers * width ** 2;
        const limit = mostWork[weights] * attn.info.threads;
        assert.isTrue(size === 1 || work(size) <= limit, `${size} texts of ${longest[done[i]!]} tokens`);
        assert.isTrue(size === 32 || done[i + 1] === texts.length || work(size + 1) > limit, `${size} texts, though there is room for more`);
      });
      assertSameBits(await model.embed(texts, { batchSize: 1 }), vectors);
      model.dispose();
    }
  });

  /**
   * Counts the batches of other calls between a query and its result, while ten calls of 20 batches each are running.
   */
  async function waited(model: Pick<TextModel, 'embed'>, priority: 'user' | 'background'): Promise<number> {
    let batches = 0;
    let begun: () => void;
    const running = new Promise<void>((resolve) => (begun = resolve));
    const texts = Array<string>(20).fill('A happy person smiles.');
    const onProgress = ({ done }: { done: number }) => {
      if (done > 0) ++batches;
      if (batches === 15) begun();
    };
    const calls = Array.from({ length: 10 }, () => model.embed(texts, { batchSize: 1, onProgress }));
    await running;
    const before = batches;
    await model.embed('Who smiles?', { priority });
    const between = batches - before;
    await Promise.all(calls);
    assert.equal(batches, 200);
    return between;
  }

  it("a call with priority 'user' overtakes earlier calls", async () => {
    const model = await loadCheckpoint(attn, 'tiny-bert');
    const urgent = await waited(model, 'user');
    const other = await waited(model, 'background');
    host.note(`batches of other calls before the result: ${urgent}, without priority ${other}`);
    assert.isAtMost(urgent, 3);
    assert.isAtLeast(other, 10, 'one of each call, because calls take turns');
    await assertRejects(model.embed('a', { priority: 'high' as never }), 'CONFIG', ['priority', 'user, background']);
    model.dispose();
  });

  it("a call with priority 'user' overtakes in attn/worker, although its message arrives after those of other calls", async () => {
    const remote = await loadWorker(setup);
    const model = await remote.loadModel(url('testdata/models/tiny-bert'), { cache: 'none' });
    const controller = new AbortController();
    const { signal } = controller;
    const long = Array.from({ length: 10 }, () => model.embed(Array<string>(2000).fill('A happy person smiles.'), { batchSize: 1, signal }));
    const order: string[] = [];
    const query = async (priority: 'user' | 'background') => {
      await model.embed('Who smiles?', { priority });
      order.push(priority);
    };
    await Promise.all([query('background'), query('user')]);
    assert.deepEqual(order, ['user', 'background']);
    controller.abort();
    for (const each of long) await assertRejects(each, 'ABORTED', [], WorkerError);
    await remote.dispose();
  });
});
