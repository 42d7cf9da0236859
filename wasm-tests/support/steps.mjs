/** The test steps by name, in the order of tools/test.mjs. Each resolves to { passed, failed } or { skipped: why }. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { missing } from '../browser/drivers.mjs';
import { isComplete } from '../suites/table.mjs';
import { nativeDigest } from './native_digest.mjs';
import { at, repository } from './paths.mjs';
import { run } from './run.mjs';
import { startServer } from './server.mjs';
import { failed, took } from './report.mjs';

/** The package made with the one binary of a checked build. */
async function checkedPackage(preset) {
  const folder = at('build', preset, 'package');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const code = await run(process.execPath, [at('web/lib/build.mjs'), '--wasm', at('build', preset), '--out', join(folder, 'dist')]);
  if (code !== 0) throw new Error(`the package of ${preset} could not be made`);
  cpSync(at('web/lib/package.json'), join(folder, 'package.json'));
  return folder;
}

/** Counts of a Vitest JSON report. */
function countVitest(output) {
  const results = JSON.parse(readFileSync(output, 'utf8'));
  for (const file of results.testResults) {
    for (const { fullName, duration, status, failureMessages } of file.assertionResults) {
      took(fullName, (duration ?? 0) / 1000);
      if (status === 'failed') failed(fullName, failureMessages[0]);
    }
  }
  // A file that fails as a whole (it could not be imported) holds no failed test.
  const broken = results.testResults.filter((f) => f.status === 'failed' && !f.assertionResults.some((a) => a.status === 'failed'));
  for (const { name, message } of broken) failed(relative(repository, name), message);
  return { passed: results.numPassedTests, failed: results.numFailedTests + broken.length + results.numPendingTests };
}

/** All suites in Node, in one set-up. */
async function node({ variant, threads, build = 'release' }) {
  if (variant === 'simd' && build === 'release') nativeDigest();
  const folder = build === 'release' ? process.env.ATTN_TEST_PACKAGE : await checkedPackage(`wasm-${build}`);
  const server = await startServer(folder ? { wasm: join(folder, 'dist') } : {});
  const temporary = mkdtempSync(join(tmpdir(), 'attn-node-'));
  const [output, notes] = [join(temporary, 'results.json'), join(temporary, 'notes.txt')];
  try {
    const complete = build === 'release' && isComplete({ engine: 'node', variant, threads });
    const host = { engine: 'node', variant, threads, canThread: true, takesRelaxed: variant === 'relaxed', build, complete, server: server.url };
    await run(process.execPath, [at('node_modules/vitest/vitest.mjs'), 'run', '--config', at('wasm-tests/node/vitest.config.mjs')], {
      seconds: 1700,
      env: { ATTN_TEST_HOST: JSON.stringify(host), ATTN_TEST_OUTPUT: output, ATTN_TEST_NOTES: notes, ...(folder && { ATTN_TEST_PACKAGE: folder }) },
    });
    if (existsSync(notes)) console.log(readFileSync(notes, 'utf8').trim());
    return countVitest(output);
  } finally {
    await server.close();
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** What the page does without a browser: parsing and printing of numbers. */
async function pageUnits() {
  const temporary = mkdtempSync(join(tmpdir(), 'attn-page-'));
  const output = join(temporary, 'results.json');
  try {
    await run(process.execPath, [
      at('node_modules/vitest/vitest.mjs'),
      'run',
      '--root',
      at('web/page'),
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${output}`,
    ]);
    return countVitest(output);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const browserSuites = async (engine, which) => (await import('./browser_steps.mjs')).browserSuites(engine, which);

/** The page's tests in one browser, counted from their JUnit report. */
async function pageTests(engine) {
  const parts = missing(engine);
  if (parts.length) return { passed: 0, failed: 0, skipped: `${parts.join(', ')} not found` };
  const temporary = mkdtempSync(join(tmpdir(), 'attn-page-'));
  const output = join(temporary, 'results.xml');
  const files = readdirSync(at('wasm-tests/page')).filter((name) => name.endsWith('.test.mjs'));
  const reports = ['--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=junit', `--test-reporter-destination=${output}`];
  try {
    const args = ['--test', '--test-concurrency=1', ...reports, ...files.map((name) => at('wasm-tests/page', name))];
    const code = await run(process.execPath, args, { env: { ATTN_ENGINE: engine }, seconds: 7200 });
    const [, ...cases] = readFileSync(output, 'utf8').split('<testcase ');
    const failures = cases.filter((each) => each.includes('<failure'));
    for (const each of cases) took(/name="([^"]*)"/.exec(each)[1], Number(/time="([^"]*)"/.exec(each)[1]));
    for (const each of failures) failed(/name="([^"]*)"/.exec(each)[1], /<failure[^>]*>([\s\S]*?)<\/failure>/.exec(each)[1].trim());
    const skips = cases.filter((each) => each.includes('<skipped')).length;
    const passed = cases.length - failures.length - skips;
    // A file that cannot be imported has no test that failed.
    return { passed, failed: failures.length + (failures.length === 0 && (code !== 0 || passed === 0) ? 1 : 0) };
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

export const steps = {
  'page-chromium': () => pageTests('chromium'),
  'page-firefox': () => pageTests('firefox'),
  'page-webkit': () => pageTests('webkit'),
  'page-unit': pageUnits,
  packaging: async () => (await import('../packaging/tests.mjs')).packaging(),
  matrix: async () => (await import('../packaging/matrix/run.mjs')).matrixStep(),
  examples: async () => (await import('../packaging/examples.mjs')).examples(),
  'code-blocks': async () => (await import('../docs/programs.mjs')).programs(),
  docs: async () => (await import('../docs/site.mjs')).site(),
  'node-simd': () => node({ variant: 'simd', threads: 1 }),
  'node-relaxed': () => node({ variant: 'relaxed', threads: 1 }),
  'node-simd-threads': () => node({ variant: 'simd', threads: 2 }),
  'node-relaxed-threads': () => node({ variant: 'relaxed', threads: 2 }),
  'node-debug': () => node({ variant: 'simd', threads: 1, build: 'debug' }),
  'node-asan': () => node({ variant: 'simd', threads: 1, build: 'asan' }),
  chromium: () => browserSuites('chromium', isComplete),
  firefox: () => browserSuites('firefox', isComplete),
  webkit: () => browserSuites('webkit', isComplete),
  'chromium-others': () => browserSuites('chromium', (each) => !isComplete(each)),
  'firefox-others': () => browserSuites('firefox', (each) => !isComplete(each)),
  'webkit-others': () => browserSuites('webkit', (each) => !isComplete(each)),
};
