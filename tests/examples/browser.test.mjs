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

/** Opens an example, uses it, and checks accessibility, the console, and that nothing asks another host. */
async function usePage(engine, name, use) {
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
    await within(driver.open(`${server.url}examples/browser/${name}`), 30000, 'the page did not open');
    await use(driver, status);
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

async function useSentiment(driver, status) {
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
}

async function useSearch(driver, status) {
  await status(/^Ready$/, 'the index');
  await driver.fill('#query', 'E1047');
  await status(/^3 hits$/, 'hits');
  const key = (name) =>
    driver.evaluate((key) => {
      const field = document.querySelector('#query');
      field.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
      const active = document.getElementById(field.getAttribute('aria-activedescendant'));
      return { expanded: field.getAttribute('aria-expanded'), active: active?.textContent, selected: active?.ariaSelected };
    }, name);
  const { active, ...down } = await key('ArrowDown');
  assert.match(active, /^Error E1047/);
  assert.deepEqual(down, { expanded: 'true', selected: 'true' });
  assert.doesNotMatch((await key('ArrowUp')).active, /E1047/);
  assert.deepEqual(await axeFindings(driver), [], 'axe-core with open hits');
  assert.equal((await key('ArrowDown')).active, active);
  assert.equal((await key('Escape')).expanded, 'false');
  await driver.fill('#query', ' ');
  await status(/^0 hits$/, 'no hits');
  await driver.fill('#query', 'E1047 disc');
  await status(/^3 hits$/, 'hits');
  await key('ArrowDown');
  await key('Enter');
  await status(/^Opened: Error E1047/, 'a hit');
  assert.equal(await driver.evaluate(() => document.activeElement.id), 'e1047');
}

test('Vite builds examples/browser', limit, () => buildExample('example'));

for (const [name, about, use] of [
  ['sentiment.html', 'classifies what is typed', useSentiment],
  ['search.html', 'finds answers by keyboard', useSearch],
])
  for (const engine of engines)
    test(`examples/browser/${name} ${about}, in ${engine}`, limit, (t) => {
      const parts = missing(engine);
      if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
      return usePage(engine, name, use);
    });
