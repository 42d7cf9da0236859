/**
 * Declares a test of the page, node:test's. In the environment: ATTN_ENGINE (chromium, firefox or webkit), and ATTN_PAGE, a folder with the built page instead
 * of build/page. A file's browser starts with the first of its tests that runs.
 */
import test, { after } from 'node:test';
import { resolve } from 'node:path';
import { strict as assert } from 'node:assert';
import { launch, missing, version, within } from '../browser/drivers.mjs';
import { at } from '../support/paths.mjs';
import { startServer } from '../support/server.mjs';
import { Page } from './page.mjs';

export const engine = process.env.ATTN_ENGINE ?? 'chromium';
/** The folder of the page. */
export const root = resolve(process.env.ATTN_PAGE ?? at('build/page'));
/** A test that takes longer hangs. */
const longest = 10 * 60_000;

let driver;
/** By whether their pages are isolated; `before` is the server of the last test. */
const servers = { before: undefined };

/** What a test lacks, as the reason to skip it; with CI=true nothing may be lacking, so it runs and fails. */
export const skipWithout = (lacking) => (lacking && process.env.CI !== 'true' ? `${lacking} not found` : false);
const skip = skipWithout(missing(engine).join(', '));

async function closeBrowser() {
  const closing = driver;
  driver = undefined;
  await within(closing?.close() ?? Promise.resolve(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
}

/** The icon of a page of another server of a test, which Chromium may ask for when that page has been left and its server has ended. */
const isLateIcon = (text) => /\bhttp:\/\/127\.0\.0\.1:\d+\/favicon\.svg\)?$/.test(text);

/** Since the page was opened the console is empty, nothing violates the CSP, and all requests go to `own`. */
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
  // A request of the page before may come late.
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
    // What a failed test has left does not meet the next one.
    await closeBrowser();
    throw error;
  }
}

const isFor = (engines) => engines === 'all' || engines === engine;

/**
 * Registers a test. `engines`: 'all', or the only one in which it runs. `isolated`: where it runs a second time, on a page that is cross-origin isolated: 'none',
 * 'all' or one engine. `run` gets { page, t, engine, isolated }: a Page that is not open yet, node:test's context.
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
