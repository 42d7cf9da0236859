import { setTimeout as sleep } from 'node:timers/promises';
import { strict as assert } from 'node:assert';
import { loadFrom, shows } from './models.mjs';
import { factsOf, json, measureAgain, settled } from './page.mjs';
import { pageTest } from './fixture.mjs';

pageTest('Back works: the page that is left holds no lock, and hears of its worker again after it has returned', async ({ page }) => {
  await page.open();
  const locks = () =>
    page.evaluate(async () => {
      const { held, pending } = await navigator.locks.query();
      return [held.length, pending.length];
    });
  const are = (expected) => page.eventually(async () => assert.deepEqual(await locks(), expected));
  await are([1, 1]);
  await page.evaluate(() => void globalThis.dispatchEvent(new globalThis.PageTransitionEvent('pagehide', { persisted: true })));
  await are([0, 0]);
  await page.fill('Sentence', 'Left and still here.');
  await page.says(/over 7 tokens/, 'status');
  await page.evaluate(() => void globalThis.dispatchEvent(new globalThis.PageTransitionEvent('pageshow', { persisted: true })));
  await are([1, 1]);
  await page.evaluate(() => attnProbe.workers.forEach((worker) => worker.terminate()));
  await page.fill('Sentence', 'Gone.');
  await page.says(/the worker is gone/, 'alert', undefined, '#sentence .model');
});

pageTest('memory stays flat over many edits and model changes', { engines: 'chromium' }, async ({ page, t }) => {
  const [least, most, changes] = [100, 500, 20];
  await page.open('step=2&numbers=1');
  await page.shows('table', 'W_Q');
  const used = async () => {
    await settled(page);
    await measureAgain(page);
    const facts = await factsOf(page);
    let held = await page.driver.memory();
    for (let last; held && held.nodes !== last?.nodes; held = await page.driver.memory()) {
      last = held;
      await sleep(1000);
    }
    return { wasm: Number.parseFloat(facts['WASM heap in use']), ...held };
  };
  const edit = (count) =>
    page.tool(async ({ find, choose, text, all }, count) => {
      const until = async (condition, what) => {
        for (const end = performance.now() + 30000; !condition(); await new Promise((done) => setTimeout(done, 4)))
          if (performance.now() > end) throw new Error(what);
      };
      for (let i = 0; i < count; ++i) {
        // Every fourth edit changes a weight, regularly undone; the others are texts of different length.
        if (i % 40 === 39) find('button', 'Undo all').click();
        else if (i % 4 === 0) {
          const table = find('table', 'W_Q');
          table.tBodies[0].rows[i % 16].querySelectorAll('td button')[i % 12].click();
          await until(() => table.querySelector('input'), 'no field in the cell');
          table.querySelector('input').value = String(i / 100);
          table.querySelector('input').dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true }));
          await until(() => document.querySelector('.changed') && !table.querySelector('input'), 'the edit of a weight');
        }
        const words = 1 + (i % 7);
        choose(find('textbox', 'Sentence'), 'good '.repeat(words));
        await until(() => text(find('status')).includes('over ' + (words + 2) + ' tokens'), 'edit ' + i + ' was not computed');
      }
      for (const button of all('button', 'Undo all')) button.click();
      choose(find('textbox', 'Sentence'), 'Good.');
      await until(() => text(find('status')).includes('over 4 tokens'), 'the last text');
    }, count);
  const change = async (model) => {
    await loadFrom(page, `model/plain/${model}`);
    await shows(page, model);
  };
  const back = async () => {
    await page.click('button', 'Back to the sentiment classifier', '#sentence');
    await shows(page, 'sentiment classifier');
    await page.fill('Sentence', 'Good.');
    await page.says(/over 4 tokens/, 'status');
  };
  const models = ['tiny-bert', 'tiny-distilbert', 'tiny-mpnet', 'tiny-roberta'];
  // Fills the buffers for the largest text, and for each model.
  await edit(10);
  for (const model of models) await change(model);
  await back();
  const before = await used();
  // As many edits as fit in 20 s, within limits.
  let edits = 0;
  for (const start = Date.now(); edits < least || (edits < most && Date.now() - start < 20000); edits += 50) await edit(50);
  for (let i = 0; i < changes; ++i) await change(models[i % models.length]);
  await back();
  const after = await used();
  const said = `${edits} edits, ${changes + 1} changes: ${json(before)}, then ${json(after)}`;
  t.diagnostic(said);
  assert.ok(after.wasm <= before.wasm + 0.1, said);
  // Memory of the page itself, which only Chromium reports, varies by 1.5 MB and some 300 nodes.
  assert.ok(after.bytes <= before.bytes + 3e6, said);
  assert.ok(after.nodes <= before.nodes + 500 && after.listeners <= before.listeners + 100, said);
});
