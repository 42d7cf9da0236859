/** The suites in real browsers: one build of the page, then each set-up in fresh browsers. */
import { existsSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { missing, show, version, within } from '../browser/drivers.mjs';
import { nativeDigest } from './native_digest.mjs';
import { repository } from './paths.mjs';
import { run } from './run.mjs';
import { startServer } from './server.mjs';
import { pagesOf } from '../suites/table.mjs';
import { failed, took } from './report.mjs';

const built = join(repository, 'build/wasm-tests/browser');

/** Built once for the browsers of one run. */
let building;
function buildPage() {
  building ??= (async () => {
    rmSync(built, { recursive: true, force: true });
    const code = await run(process.execPath, [
      join(repository, 'node_modules/vite/bin/vite.js'),
      'build',
      '--config',
      join(repository, 'wasm-tests/browser/vite.config.mjs'),
    ]);
    if (code !== 0 || !existsSync(join(built, 'index.html'))) throw new Error('the page of the suites could not be built');
  })();
  return building;
}

/** WebKitGTK has no relaxed SIMD: there load() must refuse it, and both set-ups run the simd suites. */
const takesRelaxed = { chromium: true, firefox: true, webkit: false };

async function runPage(engine, { variant, threads }, suites) {
  const where = threads > 1 ? `${threads} threads, isolated, in a worker` : 'single, not isolated, main thread';
  const name = `${engine} ${variant} ${where}${suites.length === 1 ? `, ${suites[0]}` : ''}`;
  let results;
  let fatal;
  const server = await startServer({ root: built, isolated: threads > 1, onResults: (r) => (r.fatal ? (fatal ??= r.fatal) : (results = r)) });
  const query = new URLSearchParams({
    engine,
    variant,
    threads: String(threads),
    suites: suites.join(),
    relaxed: takesRelaxed[engine] ? 'yes' : 'no',
    ...(threads > 1 && { worker: '' }),
  });
  let browser;
  try {
    browser = await show(engine, `${server.url}?${query}`);
    if (browser.version) console.log(browser.version);
    // Slow is fine, silent is not: the count has to grow. One test keeps the thread for a minute where others want the processor, too.
    let [seen, since] = ['', Date.now()];
    while (!results?.done) {
      if (fatal) throw new Error(fatal);
      const now = JSON.stringify(results ?? '');
      if (now !== seen) [seen, since] = [now, Date.now()];
      if (Date.now() - since > 300000) throw new Error(`no news for 300 s; last was: ${results?.current ?? 'nothing'}`);
      await sleep(50);
    }
    if (fatal) throw new Error(fatal);
    if (results.isolated !== threads > 1) throw new Error(`crossOriginIsolated is ${results.isolated}`);
    if (results.passed === 0) throw new Error('no test ran');
  } catch (error) {
    console.log(`${name}: ${error.message}`);
    results = { passed: results?.passed ?? 0, failed: (results?.failed ?? 0) + 1, failures: results?.failures ?? [], notes: [], ended: true };
  } finally {
    await within(browser?.close() ?? Promise.resolve(), 20000, `${engine} did not close`).catch((error) => console.log(error.message));
    await server.close();
  }
  for (const { title, error } of results.failures) {
    console.log(`FAILED ${name}: ${title}\n  ${error.replaceAll('\n', '\n  ')}`);
    failed(`${name}: ${title}`, error);
  }
  for (const [title, seconds] of results.slowest ?? []) took(`${name}: ${title}`, seconds);
  for (const note of results.notes) console.log(`${name}: ${note}`);
  console.log(`${name}: ${results.passed} passed, ${results.failed} failed`);
  return results;
}

/**
 * WebKitGTK 2.50 fails by itself now and then: its web process ends in an assertion of its compiler (JSC::IPInt::jitCompileSIMDFunction), or a call
 * traps that runs in the next browser. Such a page gets a second browser; what fails there too is ours. Other failures get none.
 */
const brokeDown = ({ ended, failures }) => ended || failures.some(({ error }) => error.includes('Out of bounds memory access'));

/** The set-ups of one browser, or some of them. */
export async function browserSuites(engine, wanted = () => true) {
  const parts = missing(engine);
  if (parts.length) return { passed: 0, failed: 0, skipped: `${parts.join(', ')} not found` };
  nativeDigest();
  await buildPage();
  console.log(version(engine));
  const total = { passed: 0, failed: 0 };
  const variants = takesRelaxed[engine] ? ['simd', 'relaxed'] : ['simd'];
  for (const variant of variants)
    for (const threads of [1, 2]) {
      if (!wanted({ engine, variant, threads })) continue;
      for (const suites of pagesOf({ engine, variant, threads, build: 'release' })) {
        let results = await runPage(engine, { variant, threads }, suites);
        if (engine === 'webkit' && brokeDown(results)) {
          console.log(`${engine}: the browser broke down; once more in a new one`);
          results = await runPage(engine, { variant, threads }, suites);
        }
        total.passed += results.passed;
        total.failed += results.failed;
      }
    }
  return total;
}
