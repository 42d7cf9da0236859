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

/** Runs in the page: elements with other attributes, and what their status and their first link are. */
async function otherElements() {
  const made = (attributes) => {
    const search = document.createElement('attn-search');
    for (const [name, value] of Object.entries(attributes)) search.setAttribute(name, value);
    document.body.append(search);
    return search;
  };
  const part = (search, name) => search.shadowRoot.querySelector(`[part=${name}]`);
  const shown = async (search, pattern) => {
    for (let i = 0; i < 600 && !pattern.test(part(search, 'status').textContent); ++i) await new Promise((resolve) => setTimeout(resolve, 50));
    return part(search, 'status').textContent;
  };
  const type = (search, text) => {
    part(search, 'input').value = text;
    part(search, 'input').dispatchEvent(new Event('input'));
  };
  const failure = async (attributes) => {
    const search = made(attributes);
    let said;
    search.addEventListener('error', ({ message }) => (said = message));
    await search.load().catch(() => {});
    const texts = [part(search, 'status').textContent, said];
    search.remove();
    return texts;
  };
  const good = { src: 'index.safetensors', model: 'model', base: 'pages' };
  const found = {};
  found['without a model'] = await failure({ src: 'index.safetensors' });
  found['without an index'] = (await failure({ ...good, src: 'nothing.safetensors' })).map(
    (text) => /nothing.safetensors answered (404)/.exec(text)?.[1],
  );
  const search = made({ ...good, k: 3 });
  search.hrefOf = ({ document: { path } }) => `#${path}`;
  type(search, 'E1047');
  await shown(search, /^3 results/);
  found['another link'] = [part(search, 'link').getAttribute('href'), /E1047/.exec(part(search, 'text').textContent)?.[0]];
  // Moved, it keeps its model.
  document.querySelector('main').append(search);
  type(search, 'disc');
  await shown(search, /^3 results/);
  found['in another place'] = document.querySelector('main').contains(search);
  search.remove();
  const other = made({ ...good, k: 3 });
  await other.load();
  for (const text of ['E1047', 'E', 'warranty invoice']) type(other, text);
  const status = await shown(other, /result/);
  found['the last of several queries'] = [part(other, 'link').getAttribute('href').replace(/#.*/, ''), status];
  other.remove();
  const early = made({ ...good, k: 'many' });
  type(early, 'disc');
  found['a query while it loads'] = await shown(early, /result/);
  early.remove();
  const changed = made({ ...good, k: 3, src: 'nothing.safetensors' });
  type(changed, 'warranty invoice');
  changed.setAttribute('src', 'index.safetensors');
  found['other attributes while it loads'] = await shown(changed, /result|answered/);
  changed.setAttribute('src', 'nothing.safetensors');
  found['other attributes with results'] = /answered 404/.test(await shown(changed, /answered/)) && changed.shadowRoot.querySelector('li') === null;
  changed.remove();

  // Properties that were set before the elements were defined.
  const [map, link] = ['late-map', 'late-search'].map((name) => document.createElement(name));
  map.tokens = ['a', 'b'];
  link.hrefOf = () => '#late';
  const [{ defineAttentionMap }, { defineAttnSearch }] = await Promise.all(['element', 'search-element'].map((name) => import(`/attn/${name}.js`)));
  defineAttentionMap('late-map');
  defineAttnSearch('late-search');
  for (const each of [map, link]) document.body.append(each);
  found['set before'] = [map.tokens.join(), map.weights.length, link.hrefOf()];
  for (const each of [map, link]) each.remove();

  const plain = made({ ...good, base: '/' });
  const place = (path, anchor) => plain.hrefOf({ document: { path, anchor } });
  found['hostile paths'] = [place('/evil.example/x', ''), place('javascript:alert(1)', 'a b'), place('\ud800', '\udc00'), place(5)];
  plain.setAttribute('base', '');
  found['hostile paths'].push(place('a/b.html', 'c'));
  plain.remove();
  return found;
}

test('examples/site is searched in Chromium, and still once its server has stopped', limit, async (t) => {
  await output(process.execPath, [at('examples/site/build.mjs'), out]);
  const parts = missing('chromium');
  if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
  const server = await startServer({ root: out, policy: null });
  const driver = await launch('chromium');
  const page = `${server.url}index.html`;
  const field = () => driver.evaluate(() => document.querySelector('attn-search').focus());
  const status = async (pattern, what) => {
    let text;
    for (let i = 0; i < 1200; ++i) {
      text = await driver.evaluate(() => document.querySelector('attn-search').shadowRoot?.querySelector('[role=status]').textContent);
      if (pattern.test(text)) return;
      await sleep(50);
    }
    throw new Error(`${what}: ${text}`);
  };
  const type = (query) =>
    driver.evaluate((text) => {
      const input = document.querySelector('attn-search').shadowRoot.querySelector('input');
      input.value = text;
      input.dispatchEvent(new Event('input'));
    }, query);
  const focused = () => driver.evaluate(() => document.querySelector('attn-search').shadowRoot.activeElement.textContent);
  const search = async (query) => {
    await status(/^$/, 'the element');
    await field();
    await type(query);
    await status(/^3 results$/, 'results');
    return driver.evaluate(() => {
      const [link, passage] = document.querySelector('attn-search').shadowRoot.querySelector('li').children;
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
    await driver.press('ArrowDown');
    assert.equal(await focused(), link);
    await driver.press('Escape');
    await status(/^$/, 'the cleared field');
    assert.equal(await driver.evaluate(() => document.querySelector('attn-search').shadowRoot.querySelector('li')), null);
    assert.deepEqual(await driver.evaluate(otherElements), {
      'without a model': ['attn-search: the attribute model is missing', 'attn-search: the attribute model is missing'],
      'without an index': ['404', '404'],
      'another link': ['#care.html', 'E1047'],
      'the last of several queries': ['pages/orders.html', '3 results'],
      'a query while it loads': '5 results',
      'in another place': true,
      'other attributes while it loads': '3 results',
      'other attributes with results': true,
      'set before': ['a,b', 0, '#late'],
      'hostile paths': ['/evil.example/x', '/javascript%3Aalert(1)#a%20b', '/%EF%BF%BD#%EF%BF%BD', '/', './a/b.html#c'],
    });
    assert.deepEqual(driver.messages().filter((text) => !absentFile.test(text) && !/404.*nothing\.safetensors/.test(text)), [], 'messages in the console'); // prettier-ignore
    await server.close();
    isOpen = false;
    await within(driver.open(page), 30_000, 'the page did not open without its server');
    assert.deepEqual((await search('E1047')).slice(0, 2), disc);
  } finally {
    await within(driver.close(), 20_000, 'Chromium did not close').catch((error) => console.log(error.message));
    if (isOpen) await server.close();
  }
});
