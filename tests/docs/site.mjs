/** The documentation as it is served: its links, its policy, and its pages and programs in Chromium. */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { serve } from '../../tools/serve.mjs';
import { isLeaving, launch, missing, within } from '../../wasm-tests/browser/drivers.mjs';
import { Checks } from '../../wasm-tests/support/checks.mjs';
import { absentFile } from '../../wasm-tests/support/model_folders.mjs';
import { startServer } from '../../wasm-tests/support/server.mjs';
import { repository } from '../../wasm-tests/support/paths.mjs';
import { blocksOf, prints } from './blocks.mjs';

const at = (...parts) => join(repository, ...parts);
/** The page, with the documentation in it. */
const root = at('build/page');
const docs = join(root, 'docs');

const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((each) => each.isFile())
    .map((each) => relative(folder, join(each.parentPath, each.name)));

const unescaped = (text) => text.replaceAll('&amp;', '&');

/** What is wrong with the addresses in the pages of a folder: files that are not there, parts that a page does not have, and what is loaded from elsewhere. */
export function faultyLinks(folder, outside) {
  const pages = new Map(
    filesOf(folder).flatMap((name) => (name.endsWith('.html') ? [[join(folder, name), readFileSync(join(folder, name), 'utf8')]] : [])),
  );
  const ids = new Map([...pages].map(([file, html]) => [file, new Set([...html.matchAll(/\bid="([^"]+)"/g)].map(([, id]) => unescaped(id)))]));
  const faults = [];
  for (const [file, html] of pages) {
    const say = (what) => faults.push(`${relative(folder, file)}: ${what}`);
    for (const [tag, name, address] of html.matchAll(/<(?:a|link|script|img|iframe)\b[^>]*?\b(href|src)="([^"]*)"[^>]*>/g)) {
      if (/^(https?:)?\/\//.test(address)) {
        if (!tag.startsWith('<a ')) say(`${address} is loaded from elsewhere`);
        continue;
      }
      const [path, id] = unescaped(address).split('#');
      let target = path === '' ? file : resolve(dirname(file), decodeURIComponent(path));
      if (path !== '' && (path.endsWith('/') || (existsSync(target) && statSync(target).isDirectory()))) target = join(target, 'index.html');
      if (path.startsWith('/')) say(`${name}="${address}" holds under one path alone`);
      else if (!target.startsWith(join(outside, '/')) || !existsSync(target)) say(`${address} is not there`);
      else if (id && ids.has(target) && !ids.get(target).has(decodeURIComponent(id))) say(`${address}: there is no such part`);
    }
  }
  return faults;
}

/** Every page of the guides, and of the reference one of each kind. */
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

/** { name: members } of what the installed Python package exports. */
function pythonMembers() {
  const program = `
import attn, json
def members(thing):
    return sorted({name for name in [*vars(thing), *getattr(thing, "__annotations__", {})] if not name.startswith("_")})
things = {name: getattr(attn, name) for name in attn.__all__}
print(json.dumps({name: members(thing) if isinstance(thing, type) else [] for name, thing in things.items()}))`;
  return JSON.parse(execFileSync(at('.setup/python-venv/bin/python'), ['-c', program], { encoding: 'utf8' }));
}

const axe = readFileSync(at('node_modules/axe-core/axe.min.js'), 'utf8');
const findings =
  "axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.map((v) => `${v.id}: ${v.nodes[0].html.slice(0, 120)}`))";

class Browser {
  constructor(driver, url) {
    this.driver = driver;
    this.url = url;
  }
  async open(path) {
    await within(this.driver.open(this.url + path), 30000, `${path} did not open`);
    // The scripts have taken the page over when elements of theirs are there.
    await this.until("document.documentElement.dataset.ready !== undefined || location.pathname.endsWith('run.html')", `${path} is alive`);
  }
  async until(expression, what, seconds = 20) {
    for (let i = 0; i < seconds * 20; ++i) {
      const value = await this.driver.evaluate(expression).catch((error) => {
        if (!isLeaving(error)) throw error;
      });
      if (value) return value;
      await sleep(50);
    }
    throw new Error(`not within ${seconds} s: ${what}`);
  }
  assertQuiet() {
    // Programs print, and folders of models may lack a file.
    const messages = (this.driver.messages() ?? []).filter((text) => !text.startsWith('log: ') && !absentFile.test(text));
    assert.deepEqual(messages, [], 'messages in the console');
    // What the page before fetched ahead may come late, from the other server.
    const elsewhere = (this.driver.requests() ?? []).filter((url) => !/^(blob:)?http:\/\/(localhost|127\.0\.0\.1):\d+\/|^(data|about):/.test(url));
    assert.deepEqual(elsewhere, [], 'requests to other hosts');
  }
}

/** axe-core finds nothing, nothing is wider than the screen, and the console is empty. */
async function look(browser, path, { dark = false, width = 1280 } = {}) {
  const { driver } = browser;
  await driver.dark(dark);
  await driver.resize(width, 900);
  await browser.open(path);
  assert.equal(await driver.evaluate("document.documentElement.classList.contains('dark')"), dark);
  await driver.evaluate(`(() => { ${axe} })(), undefined`);
  assert.deepEqual(await driver.evaluate(findings), [], 'axe-core');
  assert.ok((await driver.evaluate('document.documentElement.scrollWidth - innerWidth')) <= 0, 'nothing is wider than the screen');
  browser.assertQuiet();
}

/** Every program on a page that readers run, one after the other; those with an output beside them print it. */
async function runPrograms(browser, path, blocks) {
  const { driver } = browser;
  await browser.open(path);
  assert.equal(await driver.evaluate("document.querySelectorAll('live-code').length"), blocks.length, 'every program has its buttons');
  for (const [i, { output, text }] of blocks.entries()) {
    const element = `document.querySelectorAll('live-code')[${i}]`;
    assert.equal(await driver.evaluate(`${element}.dataset.code`), text, 'what runs is what is shown');
    await driver.evaluate(`${element}.querySelector('.live-bar button').click()`);
    await browser.until(`['done', 'failed'].includes(${element}.dataset.state)`, `program ${i + 1} ends`, 60);
    const printed = await driver.evaluate(`${element}.querySelector('iframe').contentDocument.body.innerText`);
    assert.equal(await driver.evaluate(`${element}.dataset.state`), 'done', printed);
    assert.ok(printed.trim() !== '' || /attention-map/.test(text), 'it shows something');
    if (output !== undefined) assert.ok(prints(printed, output), `it printed ${printed} instead of ${output}`);
    await browser.until(
      `((frame) => frame.offsetHeight >= frame.contentDocument.body.offsetHeight && frame.offsetHeight > 20)(${element}.querySelector('iframe'))`,
      'all that it shows is seen',
    );
  }
  browser.assertQuiet();
}

async function changeProgram(browser) {
  const { driver } = browser;
  await browser.open('guide/exactness.html');
  const element = "document.querySelector('live-code')";
  await driver.evaluate(`[...${element}.querySelectorAll('button')].find((b) => b.textContent === 'Change it').click()`);
  await driver.evaluate(
    `(() => { const t = ${element}.querySelector('textarea'); t.value = t.value.replace('seed: 7', 'seed: 8') + '\\nthrow new Error("on purpose");'; })()`,
  );
  await driver.evaluate(`${element}.querySelector('.live-bar button').click()`);
  await browser.until(`${element}.dataset.state === 'failed'`, 'a program with an error');
  const printed = await driver.evaluate(`${element}.querySelector('iframe').contentDocument.body.innerText`);
  assert.match(printed, /^[0-9a-f]{6,8}\s+Error: on purpose/);
  assert.ok(!printed.includes('955ccc46'), 'another seed, another hash');
}

async function search(browser) {
  const { driver } = browser;
  await browser.open('guide/start.html');
  await driver.press('/');
  await browser.until("document.activeElement?.matches('.search-input')", 'the search has the keyboard');
  for (const [words, wanted] of [
    ['softcap', /AttentionOptions/],
    ['dot product', /scaledDotProductAttention/i],
    ['set_num_threads', /set_num_threads/],
    ['pinning files of a model sha256', /Which model|Security/],
  ]) {
    await driver.fill('.search-input', words);
    await browser.until(
      `${wanted}.test([...document.querySelectorAll('.VPLocalSearchBox .result')].map((each) => each.innerText).join('\\n'))`,
      `“${words}” finds ${wanted}`,
    );
  }
  await driver.evaluate(`(() => { ${axe} })(), undefined`);
  assert.deepEqual(await driver.evaluate(findings), [], 'axe-core');
  await driver.press('Enter');
  await browser.until("!document.querySelector('.VPLocalSearchBox') && !/start\\.html$/.test(location.pathname)", 'Enter goes there');
  assert.ok(await driver.evaluate("document.querySelector('main h1') !== null"));
  browser.assertQuiet();
}

/** By keys alone: past the navigation into the text, and the button of a program. */
async function keyboard(browser) {
  const { driver } = browser;
  await driver.resize(1280, 900);
  await browser.open('guide/exactness.html');
  await driver.press('Tab');
  assert.equal(await driver.evaluate('document.activeElement.textContent.trim()'), 'Skip to content');
  await driver.press('Enter');
  for (let i = 0; i < 40 && (await driver.evaluate("document.activeElement?.textContent !== 'Run'")); ++i) await driver.press('Tab');
  await driver.press('Enter');
  await browser.until("document.querySelector('live-code').dataset.state === 'done'", 'Enter runs the program');
}

async function links(browser) {
  const { driver } = browser;
  await browser.open('guide/start.html');
  const nav = "[...document.querySelectorAll('.VPNavBarMenu a')].find((a) => a.textContent.trim() === 'The page')";
  assert.equal(await driver.evaluate(`${nav}.href`), browser.url.replace(/docs\/$/, ''));
  await driver.evaluate(`${nav}.click()`);
  await browser.until('document.querySelector(\'footer a[href="./docs/"]\')', 'the page links to the documentation');
  await driver.evaluate('document.querySelector(\'footer a[href="./docs/"]\').click()');
  await browser.until('document.documentElement?.dataset.ready !== undefined && /docs\\/$/.test(location.pathname)', 'the documentation');
  // Within the site without a request for another page.
  await driver.evaluate('document.querySelector(\'main a[href*="guide/start"]\').click()');
  await browser.until("document.querySelector('h1')?.textContent.startsWith('Attention in five minutes')", 'a guide');
  assert.ok(await driver.evaluate("location.href.endsWith('/docs/guide/start.html')"));
}

/** The same hash as in Node (the guide has it beside the program), under the page's policy. */
async function elsewhere(engine) {
  const server = await serve({ port: 0, root });
  const driver = await launch(engine);
  try {
    const browser = new Browser(driver, `${server.url}docs/`);
    const blocks = blocksOf(readFileSync(at('docs/guide/exactness.md'), 'utf8')).filter(({ words }) => words === 'live');
    await runPrograms(browser, 'guide/exactness.html', blocks);
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
}

export async function site() {
  const parts = missing('chromium');
  if (parts.length > 0) return { passed: 0, failed: 0, skipped: `${parts.join(', ')} not found` };
  const checks = new Checks('docs');
  // As it was built last, whatever the page was built with.
  rmSync(docs, { recursive: true, force: true });
  cpSync(at('build/docs'), docs, { recursive: true });
  const html = filesOf(docs).filter((name) => name.endsWith('.html'));
  await checks.check('no link leads nowhere, none holds under one path alone, and nothing is loaded from elsewhere', (note) => {
    note(`${html.length} pages`);
    assert.ok(html.length > 80);
    assert.deepEqual(faultyLinks(docs, root), []);
  });
  await checks.check('every page has a policy, and no style or handler in an element', () => {
    for (const name of html) {
      const text = readFileSync(join(docs, name), 'utf8');
      const [, policy] = /<meta\s+http-equiv="Content-Security-Policy"\s+content="([^"]*)"/.exec(text) ?? assert.fail(`${name} has no policy`);
      assert.ok(!policy.includes('unsafe-inline') && !policy.includes("'unsafe-eval'"), name);
      assert.doesNotMatch(text, /<[^>]* (style|on\w+)="/, name);
      assert.equal(/script-src [^;]*blob:/.test(policy), name === 'run.html', `${name} runs programs of readers`);
    }
  });
  await checks.check('the reference has the names of the package and of the library', () => {
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
  await checks.check('the Python reference has all that the package has', (note) => {
    const sections = new Map();
    for (const name of html.filter((each) => each.startsWith('reference/python/')))
      for (const section of readFileSync(join(docs, name), 'utf8').split('<h2 ').slice(1))
        sections.set(/^[^>]*>(?:<code>)?(\w+)/.exec(section)[1], section);
    const members = pythonMembers();
    note(`${Object.keys(members).length} names, ${Object.values(members).flat().length} members`);
    for (const [name, list] of Object.entries(members)) {
      assert.ok(sections.has(name), `${name} has no entry`);
      for (const member of list) assert.match(sections.get(name), new RegExp(`<(h3|td|p)\\b[^>]*>(<code>)?${member}\\b`), `${name}.${member}`);
    }
  });

  const driver = await launch('chromium');
  const servers = [await serve({ port: 0, root }), await startServer({ root: at('build'), policy: null })];
  try {
    const asDemo = new Browser(driver, `${servers[0].url}docs/`);
    // As a host of files has it, in a folder.
    const inFolder = new Browser(driver, `${servers[1].url}page/docs/`);
    for (const path of pages) await checks.check(path, () => look(inFolder, path));
    for (const path of pages.filter((_, i) => i % 4 === 1 || i >= pages.length - 2)) {
      await checks.check(`${path}, dark`, () => look(inFolder, path, { dark: true }));
      await checks.check(`${path}, on a phone`, () => look(inFolder, path, { width: 375 }));
    }
    await driver.dark(false);
    await driver.resize(1280, 900);
    for (const name of ['index.md', ...readdirSync(at('docs/guide')).map((each) => `guide/${each}`)]) {
      const blocks = blocksOf(readFileSync(at('docs', name), 'utf8')).filter(({ words }) => words === 'live');
      if (blocks.length > 0) await checks.check(`programs of ${name}`, () => runPrograms(asDemo, name.replace(/md$/, 'html'), blocks));
    }
    await checks.check('a program that is changed runs as it is changed, and says its error', () => changeProgram(inFolder));
    await checks.check('search', () => search(inFolder));
    await checks.check('by keys alone', () => keyboard(asDemo));
    await checks.check('the page and the documentation link to each other', () => links(inFolder));
    for (const engine of ['firefox', 'webkit'])
      if (missing(engine).length === 0 || process.env.CI === 'true') await checks.check(`a program in ${engine}`, () => elsewhere(engine));
  } finally {
    await within(driver.close(), 20000, 'Chromium did not close').catch((error) => console.log(error.message));
    for (const server of servers) await server.close();
  }
  return checks.counts;
}
