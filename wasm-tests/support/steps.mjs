/** The test steps by name, in the order of tools/test.mjs. Each resolves to { passed, failed } or { skipped: why }. */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
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

/** The test files of a folder in tests/. */
const testFiles = (folder) =>
  readdirSync(at('tests', folder))
    .filter((name) => name.endsWith('.test.mjs'))
    .map((name) => join('tests', folder, name));

/** Runs test files by `node --test`, all their tests or those whose names match the pattern; counts by the JUnit report. */
async function nodeTests(files, pattern) {
  const temporary = mkdtempSync(join(tmpdir(), 'attn-tests-'));
  const report = join(temporary, 'junit.xml');
  try {
    const reporters = [
      '--test-reporter=spec',
      '--test-reporter-destination=stdout',
      '--test-reporter=junit',
      `--test-reporter-destination=${report}`,
    ];
    const code = await run(process.execPath, ['--test', ...reporters, ...(pattern ? [`--test-name-pattern=${pattern}`] : []), ...files], {
      seconds: 3600,
    });
    const cases = readFileSync(report, 'utf8').match(/<testcase\b[^>]*?(\/>|>[\s\S]*?<\/testcase>)/g) ?? [];
    const [counts, entities] = [
      { passed: 0, failed: 0 },
      { quot: '"', apos: "'", lt: '<', gt: '>', amp: '&' },
    ];
    const unescaped = (text) => text.replace(/&(quot|apos|lt|gt|amp);/g, (_, name) => entities[name]);
    for (const each of cases) {
      const [, name, seconds] = /\bname="([^"]*)" time="([^"]*)"/.exec(each);
      const [, why] = /<failure [^>]*message="([^"]*)"/.exec(each) ?? [];
      took(unescaped(name), Number(seconds));
      if (why !== undefined) failed(unescaped(name), unescaped(why));
      if (!each.includes('<skipped')) counts[why === undefined ? 'passed' : 'failed']++;
    }
    if (code !== 0 && counts.failed === 0) counts.failed = 1;
    return counts;
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const browserSuites = async (engine, which) => (await import('./browser_steps.mjs')).browserSuites(engine, which);

const pageTests = async (engine) => (await import('../page/tests.mjs')).pageTests(engine);

export const steps = {
  'page-chromium': () => pageTests('chromium'),
  'page-firefox': () => pageTests('firefox'),
  'page-webkit': () => pageTests('webkit'),
  'page-unit': pageUnits,
  packaging: () => nodeTests(testFiles('packaging')),
  matrix: () => nodeTests(testFiles('bundlers'), '^(Vite 8, build|webpack|esbuild|Vitest|Node 22.12.0): '),
  examples: () => nodeTests(testFiles('examples')),
  'code-blocks': () => nodeTests(['tests/docs/code_blocks.test.mjs']),
  docs: () => nodeTests(['tests/docs/site.test.mjs']),
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
