import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { after, before, test } from 'node:test';
import { serve } from '../../tools/serve.mjs';
import { launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { axeFindings } from '../../wasm-tests/support/axe.mjs';
import { limit, skipUnlessCi } from '../../wasm-tests/support/node_tests.mjs';
import { at } from '../../wasm-tests/support/paths.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { blocksOf } from './blocks.mjs';
import { filesOf, faultyLinks } from './links.mjs';
import { Browser } from './site_browser.mjs';

/** The page with the documentation in it; ATTN_PAGE selects another folder than build/page. */
const root = resolve(process.env.ATTN_PAGE ?? at('build/page'));
const docs = join(root, 'docs');

const pages = [
  'index.html',
  ...readdirSync(at('docs/guide'))
    .sort()
    .map((name) => `guide/${name.replace(/md$/, 'html')}`),
  ...[
    'reference/index.html',
    'reference/js/attn/interfaces/Attn.html',
    'reference/js/element/functions/mapFigure.html',
    'reference/cpp/layers.html',
    'reference/python/models.html',
  ],
];

function pythonMembers() {
  const program = `
import attn, json
def members(thing):
    return sorted({name for name in [*vars(thing), *getattr(thing, "__annotations__", {})] if not name.startswith("_")})
things = {}
for name in attn.__all__:
    thing = getattr(attn, name)
    is_module = type(thing) is type(attn)
    things.update({each: getattr(thing, each) for each in thing.__all__} if is_module else {name: thing})
print(json.dumps({name: members(thing) if isinstance(thing, type) else [] for name, thing in things.items()}))`;
  return JSON.parse(execFileSync(at('.setup/python-venv/bin/python'), ['-c', program], { encoding: 'utf8' }));
}

const livePrograms = (name) => blocksOf(readFileSync(at('docs', name), 'utf8')).filter(({ words }) => words === 'live');

let html;
let driver;
let servers = [];
let [asDemo, inFolder] = [];
before(async () => {
  // The latest build of the site, independent of the page's build.
  rmSync(docs, { recursive: true, force: true });
  cpSync(at('build/docs'), docs, { recursive: true });
  html = filesOf(docs).filter((name) => name.endsWith('.html'));
  if (missing('chromium').length > 0) return;
  driver = await launch('chromium');
  servers = [await serve({ port: 0, root }), await startServer({ root: dirname(root), policy: null })];
  asDemo = new Browser(driver, `${servers[0].url}docs/`);
  inFolder = new Browser(driver, `${servers[1].url}${basename(root)}/docs/`);
});
after(async () => {
  await within(driver?.close() ?? Promise.resolve(), 20000, 'Chromium did not close').catch((error) => console.log(error.message));
  for (const server of servers) await server.close();
});

test('every link is relative and leads to an existing file and anchor, and nothing is loaded from other hosts', limit, (t) => {
  t.diagnostic(`${html.length} pages`);
  assert.ok(html.length > 80);
  assert.deepEqual(faultyLinks(docs, root), []);
});

test('every page has a content security policy and no inline styles or handlers', limit, () => {
  for (const name of html) {
    const text = readFileSync(join(docs, name), 'utf8');
    const [, policy] = /<meta\s+http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(text) ?? assert.fail(`${name} has no policy`);
    assert.ok(!policy.includes('unsafe-inline') && !policy.includes("'unsafe-eval'"), name);
    assert.doesNotMatch(text, /<[^>]* (style|on\w+)="/, name);
    assert.equal(/script-src [^;]*blob:/.test(policy), name === 'run.html', `${name} runs programs of readers`);
  }
});

test('the reference lists functions and classes of JavaScript, C++ and C', limit, () => {
  const text = html.map((name) => (name.startsWith('reference') ? readFileSync(join(docs, name), 'utf8') : '')).join('');
  for (const name of [
    'scaledDotProductAttention',
    'AttnError',
    'fineTune',
    'transfer',
    'mapFigure',
    'scaled_dot_product_attention',
    'TextModel',
    'clip_grad_norm',
    'attn_text_model_load',
  ])
    assert.ok(text.includes(name), name);
});

test('the Python reference lists every name that the installed package exports', limit, (t) => {
  const sections = new Map();
  for (const name of html.filter((each) => each.startsWith('reference/python/')))
    for (const section of readFileSync(join(docs, name), 'utf8').split('<h2 ').slice(1))
      sections.set(/^[^>]*>(?:<code>)?(\w+)/.exec(section)[1], section);
  const members = pythonMembers();
  t.diagnostic(`${Object.keys(members).length} names, ${Object.values(members).flat().length} members`);
  for (const [name, list] of Object.entries(members)) {
    assert.ok(sections.has(name), `${name} has no entry`);
    for (const member of list) assert.match(sections.get(name), new RegExp(`<(h3|td|p)\\b[^>]*>(<code>)?${member}\\b`), `${name}.${member}`);
  }
});

const testIn = (engine, name, run) =>
  test(name, limit, (t) => {
    const parts = missing(engine);
    if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
    return run();
  });
const testInChromium = (name, run) => testIn('chromium', name, run);

async function look(path, { dark = false, width = 1280 } = {}) {
  await inFolder.open(path, { dark, width });
  assert.equal(await driver.evaluate(() => document.documentElement.classList.contains('dark')), dark);
  assert.deepEqual(await axeFindings(driver), [], 'axe-core');
  assert.ok((await driver.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, 'nothing is wider than the screen');
  inFolder.assertQuiet();
}
for (const path of pages) testInChromium(`${path} is accessible, fits the screen and logs nothing`, () => look(path));
for (const path of pages.filter((_, i) => i % 4 === 1 || i >= pages.length - 2)) {
  testInChromium(`${path} in dark mode is accessible, fits the screen and logs nothing`, () => look(path, { dark: true }));
  testInChromium(`${path} on a phone is accessible, fits the screen and logs nothing`, () => look(path, { width: 375 }));
}

for (const name of ['index.md', ...readdirSync(at('docs/guide')).map((each) => `guide/${each}`)]) {
  const programs = livePrograms(name);
  const path = name.replace(/md$/, 'html');
  if (programs.length > 0) testInChromium(`the programs of ${path} print the documented output`, () => asDemo.runPrograms(path, programs));
}

testInChromium('a program that the reader changes runs as changed and shows its error', async () => {
  await inFolder.open('guide/exactness.html');
  await driver.evaluate(() => {
    const element = document.querySelector('live-code');
    [...element.querySelectorAll('button')].find(({ textContent }) => textContent === 'Change it').click();
    const field = element.querySelector('textarea');
    field.value = `${field.value.replace('seed: 7', 'seed: 8')}\nthrow new Error("on purpose");`;
    element.querySelector('.live-bar button').click();
  });
  await inFolder.until('a program with an error ends', () => document.querySelector('live-code').dataset.state === 'failed');
  const printed = await driver.evaluate(() => document.querySelector('live-code iframe').contentDocument.body.innerText);
  assert.match(printed, /^[0-9a-f]{6,8}\s+Error: on purpose/);
  assert.ok(!printed.includes('955ccc46'), 'another seed, another hash');
});

testInChromium('the search finds guides and reference pages, and Enter opens the first result', async () => {
  await inFolder.open('guide/start.html');
  await driver.press('/');
  await inFolder.until('the search has the keyboard', () => document.activeElement?.matches('.search-input'));
  for (const [words, wanted] of [
    ['softcap', /AttentionOptions/],
    ['dot product', /scaledDotProductAttention/i],
    ['set_num_threads', /set_num_threads/],
    ['pinning files of a model sha256', /Which model|Security/],
    ['RoPE', /Glossary/],
    ['NER', /Tasks|Entities|Glossary/],
    ['semantic search', /Embeddings|Coming from another library/],
    ['macOS', /Troubleshooting/],
    ['limitations', /Troubleshooting/],
    ['tokenizer alone', /The tokenizer alone/],
    ['OUT_OF_RANGE', /Troubleshooting/],
  ]) {
    await driver.fill('.search-input', words);
    await inFolder.until(
      `“${words}” finds ${wanted}`,
      (pattern) => pattern.test([...document.querySelectorAll('.VPLocalSearchBox .result')].map((each) => each.innerText).join('\n')),
      wanted,
    );
  }
  assert.deepEqual(await axeFindings(driver), [], 'axe-core');
  await driver.press('Enter');
  await inFolder.until('Enter goes there', () => !document.querySelector('.VPLocalSearchBox') && !location.pathname.endsWith('start.html'));
  assert.ok(await driver.evaluate(() => document.querySelector('main h1') !== null));
  inFolder.assertQuiet();
});

testInChromium('the keyboard alone reaches the text and runs a program', async () => {
  await asDemo.open('guide/exactness.html');
  await driver.press('Tab');
  assert.equal(await driver.evaluate(() => document.activeElement.textContent.trim()), 'Skip to content');
  await driver.press('Enter');
  for (let i = 0; i < 40 && (await driver.evaluate(() => document.activeElement?.textContent !== 'Run')); ++i) await driver.press('Tab');
  await driver.press('Enter');
  await asDemo.until('Enter runs the program', () => document.querySelector('live-code').dataset.state === 'done');
});

testInChromium('the page and the documentation link to each other', async () => {
  await inFolder.open('guide/start.html');
  const linked = await driver.evaluate(() => {
    const link = [...document.querySelectorAll('.VPNavBarMenu a')].find(({ textContent }) => textContent.trim() === 'The page');
    setTimeout(() => link.click());
    return link.href;
  });
  assert.equal(linked, inFolder.url.replace(/docs\/$/, ''));
  await inFolder.until('the page links to the documentation', () => document.querySelector('footer a[href="./docs/"]') !== null);
  await driver.click('footer a[href="./docs/"]');
  await inFolder.until('the documentation opens', () => document.documentElement?.dataset.ready !== undefined && location.pathname.endsWith('docs/'));
  // Navigation within the site requests no new page.
  await driver.click('main a[href*="guide/start"]');
  await inFolder.until('a guide opens', () => document.querySelector('h1')?.textContent.startsWith('Attention in five minutes'));
  assert.ok(await driver.evaluate(() => location.href.endsWith('/docs/guide/start.html')));
});

for (const engine of ['firefox', 'webkit'])
  testIn(engine, `the programs of guide/exactness.html print the documented hashes in ${engine}`, async () => {
    const server = await serve({ port: 0, root });
    const other = await launch(engine);
    try {
      await new Browser(other, `${server.url}docs/`).runPrograms('guide/exactness.html', livePrograms('guide/exactness.md'));
    } finally {
      await within(other.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
      await server.close();
    }
  });
