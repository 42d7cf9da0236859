/** The page in one browser: every test opens it anew. */
import { join } from 'node:path';
import { strict as assert } from 'node:assert';
import { launch, missing, version, within } from '../browser/drivers.mjs';
import { Checks } from '../support/checks.mjs';
import { startServer } from '../support/server.mjs';
import { repository } from '../support/paths.mjs';
import { buildExample } from '../support/run.mjs';
import { packageNumbers } from './data.mjs';
import { tests as figures } from './figures.mjs';
import { tests as lab } from './lab.mjs';
import { tests as map } from './map.mjs';
import { tests as models } from './models.mjs';
import { Page } from './page.mjs';
import { tests as steps } from './steps.mjs';
import { tests as long } from './long.mjs';
import { tests as screen } from './screen.mjs';
import { tests as outside } from './outside.mjs';
import { tests as tasks } from './tasks.mjs';
import { tests as train } from './train.mjs';
import { tests as use } from './use.mjs';
import { tests as whole } from './whole.mjs';

/** Name -> what has to hold. They run in this order; each opens the page. */
const tests = { ...whole, ...screen, ...long, ...outside, ...models, ...map, ...steps, ...lab, ...train, ...figures, ...use, ...tasks };

/** Isolation changes where the module runs its threads, not what the page does: there the main points are enough, and fewer where Chromium has seen them. */
const whereIsolated = {
  chromium:
    /first map|for each layer and head|a number of a weight|lab computes attention|heads off|PyTorch|comes back|sends nothing|learns to reverse/,
  others: /first map|for each layer and head|learns to reverse/,
};
/** What does not depend on the engine, and takes long: parts of names. */
const inChromiumAlone = new RegExp(
  [
    'the layouts in which|cannot be loaded|files that are no model|int8',
    'what strangers type|has a card|links lead|too long is an alert|makes no sense',
    'picture of the page|are pasted|results are saved|wrong shape',
    'example opens|one link carries|written over|no number is refused',
    'question is answered|puts lines in order|texts of tasks',
    'classifier opens above|too few and too many|not one token|speed is measured|memory stays flat|two fingers',
  ].join('|'),
);
const isFor = (engine, name, isolated) => {
  if (isolated) return whereIsolated[engine === 'chromium' ? engine : 'others'].test(name);
  return engine === 'chromium' || !inChromiumAlone.test(name);
};

/** The icon of a page of another server of a test, which Chromium may ask for when that page has been left and its server has ended. */
const isLateIcon = (text) => /\bhttp:\/\/127\.0\.0\.1:\d+\/favicon\.svg\)?$/.test(text);

/**
 * Nothing is said in the console, nothing is against the CSP, and all requests stay here: since the page was opened. `servers` has the page from a server
 * before, too, whose last request may come late.
 */
async function assertQuiet(page, servers) {
  const { driver } = page;
  const { messages, requests } = await driver.evaluate('({ messages: attnProbe.messages, requests: attnProbe.requests })');
  const said = [...messages, ...(driver.messages() ?? [])].filter((each) => !isLateIcon(each));
  assert.deepEqual(said, [], 'messages in the console');
  const all = [...requests, ...(driver.requests() ?? [])];
  assert.ok(all.length > 5, 'requests were seen');
  assert.deepEqual(
    all.filter((url) => ![...servers, 'data:', 'about:'].some((own) => url.replace(/^blob:/, '').startsWith(own)) && !isLateIcon(url)),
    [],
    'requests to other hosts',
  );
}

/** The examples/browser page as Vite builds it. */
async function example(driver, isolated) {
  const server = await startServer({ root: join(repository, 'build/wasm-tests/example'), isolated, withProbe: true });
  try {
    const page = new Page(driver, server.url);
    await within(driver.open(server.url), 30000, 'the example did not open');
    const text = await page.until(
      "/head 1/.test(document.querySelector('#weights').textContent) && document.querySelector('#weights').textContent",
      'the example shows weights',
    );
    assert.match(text, /1\.0000 {2}0\.0000 {2}0\.0000/);
    assert.deepEqual(await driver.evaluate('attnProbe.messages'), []);
  } finally {
    await server.close();
  }
}

/** All page tests in one browser; `only` leaves out those whose names do not match. */
export async function pageTests(engine, { page: root = join(repository, 'build/page'), only = /(?:)/ } = {}) {
  const parts = missing(engine);
  if (parts.length) return { passed: 0, failed: 0, skipped: `${parts.join(', ')} not found` };
  console.log(version(engine));
  const withExample = only.test('examples/browser');
  if (withExample) await buildExample();
  const data = await packageNumbers();
  const checks = new Checks(engine);
  const driver = await launch(engine);
  const servers = [];
  try {
    for (const isolated of [false, true]) {
      const server = await startServer({ root, isolated, withProbe: true, asDemo: isolated });
      servers.push(server.url);
      try {
        for (const [name, run] of Object.entries(tests).filter(([name]) => only.test(name) && isFor(engine, name, isolated)))
          await checks.check(
            name + (isolated ? ', isolated' : ''),
            async (note) => {
              await driver.resize(1280, 900);
              const page = new Page(driver, server.url);
              await run({ page, data, note, engine });
              assert.equal(await driver.evaluate('crossOriginIsolated'), isolated);
              await assertQuiet(page, servers);
            },
            240,
          );
      } finally {
        await server.close();
      }
    }
    for (const isolated of [false, true])
      if (withExample) await checks.check(`examples/browser${isolated ? ', isolated' : ''}`, () => example(driver, isolated));
  } finally {
    await within(driver.close(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    data.attn.dispose();
  }
  return checks.counts;
}
