/** Tests examples/browser: built by Vite, and the page without a build step in every browser. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../../tools/serve.mjs';
import { engines, launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { axeFindings } from '../../wasm-tests/support/axe.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { buildExample } from '../../wasm-tests/support/run.mjs';

/** Opens examples/browser/sentiment.html, served by tools/serve.mjs, and types texts. */
async function sentimentPage(engine) {
  const server = await serve({ port: 0, root: at('examples/browser') });
  const driver = await launch(engine);
  const shown = () => document.querySelector('[role=status]').textContent;
  const status = async (pattern, what) => {
    for (let i = 0; i < 1200; ++i) {
      const text = await driver.evaluate(shown);
      if (pattern.test(text)) return text;
      await sleep(50);
    }
    throw new Error(`${what}: ${await driver.evaluate(shown)}`);
  };
  try {
    await within(driver.open(`${server.url}examples/browser/sentiment.html`), 30000, 'the page did not open');
    await status(/^positive, \d\d\.\d % sure, in \d+\.\d ms$/, 'the first answer');
    await driver.fill('#text', 'The plot is dull, and the acting is dreadful.');
    await status(/^negative, \d\d\.\d % sure/, 'a text that was typed');
    assert.ok((await driver.evaluate(() => document.querySelector('meter').value)) < 0.3, 'the bar shows the probability of positive');
    await driver.evaluate(() => {
      const field = document.querySelector('#text');
      field.value = ' ';
      field.dispatchEvent(new Event('input'));
    });
    await status(/^Write something\.$/, 'no text');
    assert.deepEqual(await axeFindings(driver), [], 'axe-core');
    const messages = (driver.messages() ?? []).filter((text) => !absentFile.test(text));
    assert.deepEqual(messages, [], 'messages in the console');
    const elsewhere = (driver.requests() ?? []).filter((url) => !url.startsWith(server.url) && !/^(data|about|blob):/.test(url));
    assert.deepEqual(elsewhere, [], 'requests to other hosts');
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
}

// The page tests open this build.
test('Vite builds examples/browser', limit, () => buildExample('example'));

for (const engine of engines)
  test(`examples/browser/sentiment.html classifies what is typed, in ${engine}`, limit, (t) => {
    const parts = missing(engine);
    if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
    return sentimentPage(engine);
  });
