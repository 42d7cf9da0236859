/**
 * Declares tests of the page for node:test. Environment: ATTN_ENGINE (chromium, firefox or webkit), and ATTN_PAGE, a
 * folder with the built page (default build/page). Each file starts one browser with its first test.
 */
import test, { after } from 'node:test';
import { resolve } from 'node:path';
import { strict as assert } from 'node:assert';
import { launch, missing, version, within } from '../browser/drivers.mjs';
import { at } from '../support/paths.mjs';
import { startServer } from '../support/server.mjs';
import { Page } from './page.mjs';

export const engine = process.env.ATTN_ENGINE ?? 'chromium';
export const root = resolve(process.env.ATTN_PAGE ?? at('build/page'));
/** Stops hanging tests. */
const longest = 10 * 60_000;

let driver;
/** Servers by isolation; `before` is the server of the previous test. */
const servers = { before: undefined };

/** The reason to skip the test if something is missing; with CI=true it runs and fails. */
export const skipWithout = (lacking) => (lacking && process.env.CI !== 'true' ? `${lacking} not found` : false);
const skip = skipWithout(missing(engine).join(', '));

async function closeBrowser() {
  const closing = driver;
  driver = undefined;
  await within(closing?.close() ?? Promise.resolve(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
}

/** Chromium may request the icon of an earlier test's page after that page and its server are gone. */
const isLateIcon = (text) => /\bhttp:\/\/127\.0\.0\.1:\d+\/favicon\.svg\)?$/.test(text);

/** Checks that the console is empty, the CSP is not violated, and all requests go to `own`. */
async function assertQuiet(page, own) {
  const probe = await page.evaluate(() => ({ messages: attnProbe.messages, requests: attnProbe.requests }));
  const messages = [...probe.messages, ...(page.driver.messages() ?? [])].filter((each) => !isLateIcon(each));
  assert.deepEqual(messages, [], 'messages in the console');
  const requests = [...probe.requests, ...(page.driver.requests() ?? [])];
  assert.ok(requests.length > 5, 'requests were seen');
  assert.deepEqual(
    requests.filter((url) => ![...own, 'data:', 'about:'].some((each) => url.replace(/^blob:/, '').startsWith(each)) && !isLateIcon(url)),
    [],
    'requests to other hosts',
  );
}

async function runOn(t, isolated, run) {
  if (!driver) {
    assert.deepEqual(missing(engine), [], 'programs that were not found');
    driver = await launch(engine);
    t.diagnostic(driver.version ?? version(engine));
  }
  servers[isolated] ??= await startServer({ root, isolated, withProbe: true, asDemo: isolated });
  const { url } = servers[isolated];
  // Requests of the previous page may arrive late.
  const own = [url, servers.before ?? url];
  servers.before = url;
  await driver.resize(1280, 900);
  const page = new Page(driver, url);
  const whole = async () => {
    await run({ page, t, engine, isolated });
    assert.equal(await page.evaluate(() => crossOriginIsolated), isolated);
    await assertQuiet(page, own);
  };
  try {
    await within(whole(), longest, 'the test did not end');
  } catch (error) {
    // Discards the state of a failed test.
    await closeBrowser();
    throw error;
  }
}

const isFor = (engines) => engines === 'all' || engines === engine;

/**
 * Registers a test. `engines`: 'all', or the only engine. `isolated`: engines that repeat it on a cross-origin isolated
 * page: 'none', 'all' or one. `run` gets { page, t, engine, isolated }: an unopened Page and node:test's context.
 */
export function pageTest(name, options, run) {
  if (typeof options === 'function') return pageTest(name, {}, options);
  const { engines = 'all', isolated = 'none' } = options;
  const given = { skip: skip || (options.skip ?? false) };
  if (isFor(engines)) test(name, given, (t) => runOn(t, false, run));
  if (isFor(isolated)) test(`${name}, isolated`, given, (t) => runOn(t, true, run));
}

after(async () => {
  await closeBrowser();
  await Promise.all([servers[false], servers[true]].map((each) => each?.close()));
});
