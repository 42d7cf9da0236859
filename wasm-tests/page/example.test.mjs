import { strict as assert } from 'node:assert';
import { buildExample } from '../support/run.mjs';
import { startServer } from '../support/server.mjs';
import { Page } from './page.mjs';
import { engine, pageTest } from './fixture.mjs';

let building;

pageTest('examples/browser shows the weights of its heads', { isolated: 'all' }, async ({ page, isolated }) => {
  const root = await (building ??= buildExample(`example-${engine}`));
  const server = await startServer({ root, isolated, withProbe: true });
  try {
    const example = new Page(page.driver, server.url);
    await example.go('');
    const shown = await example.until(({ text }) => /head 1/.test(text('#weights')) && document.querySelector('#weights').textContent, 'its weights');
    assert.match(shown, /1\.0000 {2}0\.0000 {2}0\.0000/);
    assert.deepEqual(await example.evaluate(() => attnProbe.messages), []);
    await page.open();
  } finally {
    await server.close();
  }
});
