/** Builds examples/site and searches it, with and without its server. Needs web/lib/dist. */
import { strict as assert } from 'node:assert';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { axeFindings } from '../../wasm-tests/support/axe.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { output } from './run.mjs';

const out = mkdtempSync(join(tmpdir(), 'attn-site-'));
after(() => rmSync(out, { recursive: true }));

test('examples/site is searched in Chromium, and still once its server has stopped', limit, async (t) => {
  await output(process.execPath, [at('examples/site/build.mjs'), out]);
  const parts = missing('chromium');
  if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
  const server = await startServer({ root: out, policy: null });
  const driver = await launch('chromium');
  const page = `${server.url}index.html`;
  const status = async (pattern, what) => {
    let text;
    for (let i = 0; i < 1200; ++i) {
      text = await driver.evaluate(() => document.querySelector('[role=status]').textContent);
      if (pattern.test(text)) return;
      await sleep(50);
    }
    throw new Error(`${what}: ${text}`);
  };
  const search = async (query) => {
    await status(/^Ready$/, 'the index');
    await driver.fill('#query', query);
    await status(/^3 hits$/, 'hits');
    return driver.evaluate(() => {
      const [link, passage] = document.querySelector('#hits li').children;
      return [link.getAttribute('href'), link.textContent, passage.textContent];
    });
  };
  const disc = ['pages/care.html#disc', 'Care › Dirty discs'];
  let isOpen = true;
  try {
    await within(driver.open(page), 30_000, 'the page did not open');
    const [href, link, passage] = await search('E1047');
    assert.deepEqual([href, link], disc);
    assert.match(passage, /^Dirty discs\s+Error E1047/);
    assert.deepEqual(await axeFindings(driver), [], 'axe-core');
    assert.deepEqual(driver.messages().filter((text) => !absentFile.test(text)), [], 'messages in the console'); // prettier-ignore
    await server.close();
    isOpen = false;
    await within(driver.open(page), 30_000, 'the page did not open without its server');
    assert.deepEqual((await search('E1047')).slice(0, 2), disc);
  } finally {
    await within(driver.close(), 20_000, 'Chromium did not close').catch((error) => console.log(error.message));
    if (isOpen) await server.close();
  }
});
