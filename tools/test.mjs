// node tools/test.mjs [--only TEXT]: builds everything and runs every test; --only takes the steps whose names hold TEXT, with
// what was built before. Each step says what it counted; one that cannot run counts as a failure, and the others go on.
// The last line is "N passed, N failed" over all of them. With CI=true a missing browser is a failure too.
//
// It needs nothing but Node itself at first: the packages come with the step "set-up: node".
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...parts) => join(root, ...parts);
const ci = process.env.CI === 'true';
const only = process.argv[2] === '--only' ? process.argv[3] : undefined;
const jobs = String(availableParallelism());

// Started by make, the builds inside would take its flags for theirs.
for (const name of ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL']) delete process.env[name];

/** Runs a program with its output passed on and kept: resolves to { code, out, err }. */
function run(program, args, { env = {}, minutes = 15 } = {}) {
  return new Promise((done) => {
    const child = spawn(program, args, { cwd: root, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
    const said = { out: '', err: '' };
    child.stdout.on('data', (bytes) => {
      said.out += bytes;
      process.stdout.write(bytes);
    });
    child.stderr.on('data', (bytes) => {
      said.err += bytes;
      process.stderr.write(bytes);
    });
    const timer = setTimeout(() => {
      console.error(`${program} ${args.join(' ')}: not done within ${minutes} minutes`);
      try {
        process.kill(-child.pid, 'SIGKILL'); // with the browsers it has started
      } catch {
        // It has just ended.
      }
    }, minutes * 60_000);
    const end = (code) => {
      clearTimeout(timer);
      done({ code, ...said });
    };
    child.on('error', (error) => {
      console.error(error.message);
      end(127);
    });
    child.on('close', (code) => end(code ?? 1));
  });
}

/** Commands in turn, each [program, ...arguments]: one test, passed when all exit with 0. */
const commands =
  (...list) =>
  async () => {
    for (const [program, ...args] of list) {
      const { code } = await run(program, args);
      if (code !== 0) {
        console.error(`exit ${code}: ${[program, ...args].join(' ')}`);
        return { passed: 0, failed: 1 };
      }
    }
    return { passed: 1, failed: 0 };
  };

const preset = (name) => commands(['cmake', '--preset', name], ['cmake', '--build', '--preset', name, '--parallel', jobs]);

/** A Catch2 program: its JUnit report is counted, and a crash that leaves none is a failure. */
const catch2 =
  (name, { tests = 'attn_tests', filter = [], env = {} } = {}) =>
  async () => {
    const report = at('build', name, `${tests}.xml`);
    rmSync(report, { force: true });
    const program = at('build', name, 'native-tests', tests);
    const { code } = await run(program, [...filter, '--reporter', 'console', '--reporter', `junit::out=${report}`, '--rng-seed', '1'], { env });
    if (!existsSync(report)) return { passed: 0, failed: 1 };
    // One <testcase> for each test case and section, with a <failure> or <error> inside when it failed.
    const xml = readFileSync(report, 'utf8');
    const cases = xml.match(/<testcase\b[^>]*?(\/>|>[\s\S]*?<\/testcase>)/g) ?? [];
    const failed = cases.filter((each) => /<(failure|error)\b/.test(each)).length;
    const skipped = cases.filter((each) => /<skipped\b/.test(each)).length;
    const passed = cases.length - failed - skipped;
    // A sanitizer speaks through the exit code, after or without a report.
    return { passed, failed: failed + skipped + (code !== 0 && failed === 0) + (passed + failed === 0) };
  };

/** Random forwards: threads, batches and repetitions change no bit. */
const digest =
  (name, env = {}) =>
  async () => {
    const { code } = await run(at('build', name, 'native-tests/digest/attn_digest'), [], { env });
    return { passed: Number(code === 0), failed: Number(code !== 0) };
  };

/** The C++ examples, built as a project of their own and run by CTest. */
const examples =
  (source, build, ...options) =>
  async () => {
    const built = await commands(['cmake', '-S', source, '-B', build, ...options], ['cmake', '--build', build, '--parallel', jobs])();
    if (built.failed) return built;
    const { code, out } = await run('ctest', ['--test-dir', build, '--output-on-failure', '--no-tests=error']);
    const [, failed, all] = /(\d+) tests? failed out of (\d+)/.exec(out) ?? [0, 1, 1];
    return { passed: all - failed, failed: Number(failed) + (code !== 0 && failed === '0') };
  };

/** A step of the package's and the page's tests, which prints its totals as its last line. */
const packageStep = (name) => async () => {
  const { code, out } = await run('node', ['wasm-tests/run.mjs', name]);
  const skipped = new RegExp(`^${name}: skipped, (.*)$`, 'm').exec(out);
  if (skipped && !ci) return { passed: 0, failed: 0, skipped: skipped[1] };
  const totals = /^(\d+) passed, (\d+) failed$/.exec(out.trimEnd().split('\n').at(-1));
  if (!totals) return { passed: 0, failed: 1 };
  const [passed, failed] = [Number(totals[1]), Number(totals[2])];
  return { passed, failed: failed + ((code !== 0 || passed === 0) && failed === 0) };
};

/** tools/setup PART. A user without the browsers is told so and goes on; everything else is needed. */
const setup = (part) => async () => {
  const { code, err } = await run('bash', ['tools/setup', part]);
  if (code === 0) return { passed: 0, failed: 0 };
  if (part === 'browsers' && !ci) return { passed: 0, failed: 0, skipped: err.trim().split('\n').at(-1) };
  return { passed: 0, failed: 1 };
};

const results = [];
const failedSteps = new Set();

/** Runs one step unless one that it needs has failed; a failure of any kind counts. */
async function step(name, task, needs = []) {
  if (only !== undefined && !name.includes(only)) return;
  const started = Date.now();
  console.log(`\n== ${name}`);
  const broken = needs.find((each) => failedSteps.has(each));
  let result;
  if (broken) {
    console.error(`not run: ${broken} failed`);
    result = { passed: 0, failed: 1 };
  } else {
    try {
      result = await task();
    } catch (error) {
      console.error(error);
      result = { passed: 0, failed: 1 };
    }
  }
  if (result.failed > 0) failedSteps.add(name);
  results.push({ name, seconds: (Date.now() - started) / 1000, ...result });
}

mkdirSync(at('build'), { recursive: true });
for (const part of ['node', 'native', 'wasm', 'browsers']) await step(`set-up: ${part}`, setup(part));

await step('include rule', commands(['node', 'tools/check-includes.mjs']));

// The library as its README says to build it, and the programs that use it.
const needsNative = ['set-up: native'];
await step(
  'native: plain build',
  commands(
    ['cmake', '-S', '.', '-B', 'build/release'],
    ['cmake', '--build', 'build/release', '--parallel', jobs],
    ['cmake', '--install', 'build/release', '--prefix', 'build/installed'],
  ),
  needsNative,
);
await step('C++ examples by find_package', examples('examples/cpp', 'build/examples-installed', `-DCMAKE_PREFIX_PATH=${at('build/installed')}`), [
  'native: plain build',
]);
await step('a C++ example by FetchContent', examples('cmake/fetch-content-test', 'build/examples-fetched'), needsNative);

for (const name of ['native', 'native-emulated', 'native-asan', 'native-tsan']) {
  await step(`${name}: build`, preset(name), needsNative);
  // ThreadSanitizer watches threads, and everything costs ten times as much under it: the tests without threads stay out.
  await step(`${name}: tests`, catch2(name, name === 'native-tsan' ? { filter: ['[threads]'] } : {}), [`${name}: build`]);
  if (name === 'native') await step('native: every allocation fails once', catch2(name, { tests: 'attn_allocation_tests' }), ['native: build']);
  if (['native', 'native-emulated'].includes(name)) await step(`${name}: bits`, digest(name), [`${name}: build`]);
}
// The same again on narrower instruction sets, which this machine would not choose by itself.
for (const arch of process.arch === 'x64' ? ['sse4_2', 'avx2_fma'] : []) {
  await step(`native on ${arch}: tests`, catch2('native', { filter: ['~[kernels]'], env: { ATTN_MAX_ARCH: arch } }), ['native: build']);
  await step(`native on ${arch}: bits`, digest('native', { ATTN_MAX_ARCH: arch }), ['native: build']);
}

const needsWasm = ['set-up: wasm', 'set-up: node'];
await step('wasm: build', preset('wasm'), needsWasm);
await step('package: build', commands(['node', 'web/lib/build.mjs'], ['node', 'tools/package.mjs']), ['wasm: build']);
await step(
  'bindings and package agree',
  commands([
    'node_modules/.bin/tsc',
    '--noEmit',
    '--strict',
    '--skipLibCheck',
    '--target',
    'es2022',
    '--lib',
    'es2023,esnext.disposable,dom',
    '--module',
    'nodenext',
    '--types',
    'node',
    'tools/check-embind.ts',
  ]),
  ['wasm: build'],
);
await step('package: wire size', commands(['node', 'tools/check-size.mjs']), ['package: build']);
await step(
  'page: build',
  commands(['node_modules/.bin/tsc', '--noEmit', '-p', 'web/page'], ['node_modules/.bin/vite', 'build', '--logLevel', 'warn', 'web/page']),
  ['package: build'],
);
for (const name of ['wasm-debug', 'wasm-asan']) await step(`${name}: build`, preset(name), needsWasm);

let packageSteps = {};
await step(
  'package and page: steps',
  async () => {
    ({ steps: packageSteps } = await import(at('wasm-tests/support/steps.mjs')));
    return { passed: 0, failed: Object.keys(packageSteps).length === 0 };
  },
  ['set-up: node'],
);
for (const name of Object.keys(packageSteps)) {
  const needs = ['package: build'];
  if (name.endsWith('-debug') || name.endsWith('-asan')) needs.push(`wasm-${name.split('-').at(-1)}: build`);
  if (name.startsWith('page')) needs.push('page: build');
  await step(name, packageStep(name), needs);
}

console.log('\n== summary');
let [passed, failed] = [0, 0];
for (const result of results) {
  passed += result.passed;
  failed += Number(result.failed);
  const counted = result.skipped ? `skipped: ${result.skipped}` : `${result.passed} passed, ${Number(result.failed)} failed`;
  console.log(`${result.seconds.toFixed(0).padStart(5)} s  ${result.name.padEnd(32)} ${counted}`);
}
if (passed + failed === 0) failed = 1; // nothing ran
console.log(
  `${results
    .reduce((sum, { seconds }) => sum + seconds, 0)
    .toFixed(0)
    .padStart(5)} s  in all`,
);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
