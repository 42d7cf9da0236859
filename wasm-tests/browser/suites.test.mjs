/**
 * The suites in a real browser, each set-up in a fresh one. Environment: ATTN_ENGINE=chromium (default), firefox or
 * webkit; ATTN_SETUPS=complete for the complete set-up, short for its suites about browsers, others for the other set-ups
 * (default: all); ATTN_NAMES, a regular expression for test names.
 */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { isComplete, pagesOf } from '../suites/suite_matrix.mjs';
import { nativeDigest } from '../support/native_digest.mjs';
import { skipUnlessCi } from '../support/node_tests.mjs';
import { at } from '../support/paths.mjs';
import { run } from '../support/run.mjs';
import { startServer } from '../support/server.mjs';
import { missing, show, version, within } from './drivers.mjs';

const { ATTN_ENGINE: engine = 'chromium', ATTN_SETUPS: wanted = '', ATTN_NAMES: names } = process.env;
const built = at('build/wasm-tests', `browser-${engine}-${wanted || 'all'}`);
/** WebKitGTK has no relaxed SIMD: load() must refuse it, and both set-ups run the simd suites. */
const takesRelaxed = engine !== 'webkit';
/** The longest time in ms without progress; slow tests are acceptable. */
const silence = 600_000;

async function buildPage() {
  rmSync(built, { recursive: true, force: true });
  const vite = [at('node_modules/vite/bin/vite.js'), 'build', '--config', at('wasm-tests/browser/vite.config.mjs'), '--outDir', built];
  const code = await run(process.execPath, vite);
  if (code !== 0 || !existsSync(join(built, 'index.html'))) throw new Error('the page of the suites could not be built');
}

async function resultsOf({ variant, threads }, suites) {
  let results;
  let fatal;
  const server = await startServer({ root: built, isolated: threads > 1, onResults: (r) => (r.fatal ? (fatal ??= r.fatal) : (results = r)) });
  const query = new URLSearchParams({
    engine,
    variant,
    threads: String(threads),
    suites: suites.join(),
    relaxed: takesRelaxed ? 'yes' : 'no',
    ...(threads > 1 && { worker: '' }),
    ...(names && { names }),
  });
  let browser;
  try {
    browser = await show(engine, `${server.url}?${query}`);
    let [seen, since] = ['', Date.now()];
    while (!results?.done) {
      if (fatal) throw new Error(fatal);
      const now = JSON.stringify(results ?? '');
      if (now !== seen) [seen, since] = [now, Date.now()];
      if (Date.now() - since > silence) throw new Error(`no progress for ${silence / 1000} s; last: ${results?.current ?? 'nothing'}`);
      await sleep(50);
    }
    if (fatal) throw new Error(fatal);
    if (results.isolated !== threads > 1) throw new Error(`crossOriginIsolated is ${results.isolated}`);
    if (results.tests.length === 0 && !names) throw new Error('no test ran');
    return results;
  } catch (error) {
    return { tests: [], notes: [], ...results, ended: error.message };
  } finally {
    await within(browser?.close() ?? Promise.resolve(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
}

/**
 * WebKitGTK 2.50 sometimes fails on its own (docs/dev/builds.md): its web process ends, a call traps, or a 64-bit number
 * is 2³² too large. A page of suites with a failure is therefore opened once more, in a new browser, where every test
 * counts; the failures of the first are reported.
 */
const failuresOf = ({ ended, tests }) => [
  ...(ended ? [ended] : []),
  ...tests.filter(({ error }) => error).map(({ title, error }) => `${title}: ${error}`),
];

async function runPage(t, setup, suites) {
  let results = await resultsOf(setup, suites);
  if (engine === 'webkit' && failuresOf(results).length > 0) {
    for (const failure of failuresOf(results)) t.diagnostic(`${engine}, first browser: ${failure}`);
    results = await resultsOf(setup, suites);
  }
  for (const note of results.notes) t.diagnostic(note);
  for (const { title, seconds, error } of results.tests)
    await t.test(`${title}${seconds >= 2 ? ` (${seconds.toFixed(0)} s)` : ''}`, () => {
      if (error) throw new Error(error);
    });
  if (results.ended) throw new Error(results.ended);
}

const parts = missing(engine);
for (const variant of takesRelaxed ? ['simd', 'relaxed'] : ['simd'])
  for (const threads of [1, 2]) {
    const setup = { engine, variant, threads };
    if (wanted && isComplete(setup) !== (wanted !== 'others')) continue;
    const where = threads > 1 ? `${threads} threads, isolated, in a worker` : 'one thread, not isolated, main thread';
    test(`the suites in ${engine}, ${variant}, ${where}`, { timeout: 7_200_000 }, async (t) => {
      if (parts.length > 0) return skipUnlessCi(t, `${parts.join(', ')} not found`);
      t.diagnostic(version(engine));
      nativeDigest();
      await (buildPage.once ??= buildPage());
      for (const suites of pagesOf({ ...setup, build: 'release' }, { short: wanted === 'short' })) await runPage(t, setup, suites);
    });
  }
