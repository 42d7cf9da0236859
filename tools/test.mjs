// node tools/test.mjs [--all] [--only TEXT]: builds what is needed and runs every kind of test once; --all the whole matrix (other
// instruction sets, sanitizers, fuzzing, Firefox and WebKitGTK, every set-up of the package). --only takes the steps whose names hold TEXT,
// with what was built before. Each step says what it counted; one that cannot run counts as a failure, and the others go on.
// After the set-ups two lanes run side by side, what a C++ compiler makes and what JavaScript is; the output of a step stays together.
// At the end come the slowest steps and tests, what failed, and last "N passed, N failed" over all of them.
// With CI=true a missing browser is a failure too.
//
// It needs nothing but Node itself at first: the packages come with the step "set-up: node".
import { AsyncLocalStorage } from 'node:async_hooks';
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, stripVTControlCharacters } from 'node:util';
import { steps as packageSteps } from '../wasm-tests/support/steps.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...parts) => join(root, ...parts);
const ci = process.env.CI === 'true';
const { only, all } = parseArgs({ options: { only: { type: 'string' }, all: { type: 'boolean' } } }).values;
const jobs = String(availableParallelism());

// Started by make, the builds inside would take its flags for theirs.
for (const name of ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL']) delete process.env[name];

const reports = mkdtempSync(join(tmpdir(), 'attn-test-'));

/** The step whose code runs. */
const current = new AsyncLocalStorage();
/** Steps that are not wholly shown, in the order of their starts: the first writes at once, the others when it has ended. */
const shown = [];

function show() {
  while (shown.length > 0) {
    for (const [stream, text] of shown[0].said.splice(0)) stream.write(text);
    if (!shown[0].ended) return;
    shown.shift();
  }
}

function say(text, stream = process.stderr, step = current.getStore()) {
  step.said.push([stream, text]);
  step.last = (step.last + text).slice(-2000);
  show();
}

/** Runs a program with its output passed on and kept: resolves to { code, out, err }. */
function run(program, args, { env = {}, minutes = 30 } = {}) {
  const step = current.getStore();
  return new Promise((done) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ATTN_TEST_REPORT: step.report, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const said = { out: '', err: '' };
    for (const [name, from, to] of [
      ['out', child.stdout, process.stdout],
      ['err', child.stderr, process.stderr],
    ])
      from.setEncoding('utf8').on('data', (text) => {
        said[name] += text;
        say(text, to, step);
      });
    const timer = setTimeout(() => {
      say(`${program} ${args.join(' ')}: not done within ${minutes} minutes\n`, process.stderr, step);
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
      say(`${error.message}\n`, process.stderr, step);
      end(127);
    });
    child.on('close', (code, signal) => {
      if (signal) say(`${program} ${args.join(' ')}: ended by ${signal}\n`, process.stderr, step);
      end(code ?? 1);
    });
  });
}

/** Commands in turn, each [program, ...arguments]: one test, passed when all exit with 0. */
const commands =
  (...list) =>
  async () => {
    for (const [program, ...args] of list) {
      const { code } = await run(program, args);
      if (code !== 0) {
        say(`exit ${code}: ${[program, ...args].join(' ')}\n`);
        return { passed: 0, failed: 1 };
      }
    }
    return { passed: 1, failed: 0 };
  };

/** Builds take what the tests beside them leave. */
const build = (...args) => ['nice', '-n', '10', 'cmake', '--build', ...args, '--parallel', jobs];

const preset = (name) => commands(['cmake', '--preset', name], build('--preset', name));

/** Words before a program for arm64: QEMU as that processor. */
const qemu = (cpu) => ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-cpu', cpu];

/** A program's JUnit report: one <testcase> for each test, with a <failure> or <error> inside when it failed. Where there is none it has crashed. */
async function countJunit(junit, start) {
  rmSync(junit, { force: true });
  const { code } = await start();
  if (!existsSync(junit)) return { passed: 0, failed: 1, skips: 0 };
  const xml = readFileSync(junit, 'utf8');
  const cases = xml.match(/<testcase\b[^>]*?(\/>|>[\s\S]*?<\/testcase>)/g) ?? [];
  for (const each of cases) {
    const [, title, seconds] = /\bname="([^"]*)"[^>]*\btime="([^"]*)"/.exec(each) ?? [];
    const [, why] = /<(?:failure|error)\b[^>]*>([\s\S]*?)<\//.exec(each) ?? [];
    current.getStore().tests.push({ name: title, seconds: Number(seconds), why });
  }
  const failed = cases.filter((each) => /<(failure|error)\b/.test(each)).length;
  const skips = cases.filter((each) => /<skipped\b/.test(each)).length;
  const passed = cases.length - failed - skips;
  // A sanitizer speaks through the exit code, after or without a report.
  return { passed, failed: failed + (code !== 0 && failed === 0) + (passed + failed === 0), skips };
}

/** A Catch2 program. */
const catch2 =
  (name, { tests = 'attn_tests', filter = [], env = {}, by = [] } = {}) =>
  async () => {
    const junit = at('build', name, `${tests}.xml`);
    const [program, ...args] = [...by, at('build', name, 'native-tests', tests), ...filter];
    const report = ['--reporter', 'console', '--reporter', `junit::out=${junit}`, '--rng-seed', '1'];
    const { passed, failed, skips } = await countJunit(junit, () => run(program, [...args, ...report], { env }));
    return { passed, failed: failed + skips };
  };

/** The Python tests. What a user's machine has not (the model, Chromium) may be left out there. */
const pytest = (interpreter) => async () => {
  const junit = at('build/pytest.xml');
  const { passed, failed, skips } = await countJunit(junit, () => run(interpreter, ['-m', 'pytest', '--quiet', `--junit-xml=${junit}`]));
  return { passed, failed: failed + (ci ? skips : 0) };
};

/** Random forwards: threads, batches and repetitions change no bit. On `arch`: these are the kernels that it has to choose. */
const digest =
  (name, { env = {}, by = [], options = [], arch = '' } = {}) =>
  async () => {
    const [program, ...args] = [...by, at('build', name, 'native-tests/digest/attn_digest'), ...options];
    const { code, out } = await run(program, args, { env });
    const passed = code === 0 && out.includes(`On ${arch}`);
    return { passed: Number(passed), failed: Number(!passed) };
  };

/** `task` on kernels that the machine may not have: the summary names those. What it takes by itself has been tested. */
const ifMachineHas = (arch, task) => async () => {
  const inUse = async (env) => (await run(at('build/native/native-tests/digest/attn_digest'), ['--arch'], { env })).out.trim();
  if ((await inUse({ ATTN_MAX_ARCH: arch })) !== arch) return { passed: 0, failed: 0, skipped: `this machine has no ${arch}` };
  if ((await inUse({ ATTN_MAX_ARCH: '' })) === arch) return { passed: 0, failed: 0, skipped: 'the native steps before took it' };
  return task();
};

/** The C++ examples, built as a project of their own and run by CTest. */
const examples =
  (source, folder, ...options) =>
  async () => {
    const built = await commands(['cmake', '-S', source, '-B', folder, ...options], build(folder))();
    if (built.failed) return built;
    const { code, out } = await run('ctest', ['--test-dir', folder, '--output-on-failure', '--no-tests=error']);
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

/** Test files for `node --test`. */
const nodeTests =
  (...files) =>
  async () => {
    const junit = `${current.getStore().report}.xml`;
    const reporters = ['--test-reporter=spec', '--test-reporter-destination=stdout', '--test-reporter=junit', `--test-reporter-destination=${junit}`];
    const { passed, failed } = await countJunit(junit, () => run('node', ['--test', ...reporters, ...files]));
    return { passed, failed };
  };

/** tools/setup PART. A user without the browsers, the model, Doxygen, Python, clang or what makes and runs programs for arm64 is told so and goes on; everything
 *  else is needed. */
const setup = (part) => async () => {
  const { code, err } = await run('bash', ['tools/setup', part]);
  if (code === 0) return { passed: 0, failed: 0 };
  if (['browsers', 'models', 'docs', 'python', 'fuzz', 'arm', 'release'].includes(part) && !ci)
    return { passed: 0, failed: 0, skipped: err.trim().split('\n').at(-1) };
  return { passed: 0, failed: 1 };
};

const began = Date.now();
const results = [];
/** All steps by name. */
const steps = new Map();

function plan(lane, name, task, needs = []) {
  if (only !== undefined && !name.includes(only)) return;
  const step = { name, task, needs, said: [], last: '', report: join(reports, `${steps.size}.jsonl`), tests: [], ended: false };
  step.passed = new Promise((done) => (step.done = done));
  steps.set(name, step);
  lane.push(step);
}

/** Runs the steps of a lane in turn, each when those that it needs have ended and unless one of them has failed; a failure of any kind counts. */
async function runLane(lane) {
  for (const step of lane) {
    const passed = await Promise.all(step.needs.map((need) => steps.get(need)?.passed));
    const broken = step.needs.find((_, i) => passed[i] === false);
    const started = Date.now();
    let result = { passed: 0, failed: 1 };
    shown.push(step);
    await current.run(step, async () => {
      say(`\n== ${step.name}\n`, process.stdout);
      if (broken) return say(`not run: ${broken} failed\n`);
      try {
        result = await step.task();
      } catch (error) {
        say(`${error.stack ?? error}\n`);
      }
    });
    step.ended = true;
    show();
    step.done(Number(result.failed) === 0);
    if (existsSync(step.report))
      step.tests.push(
        ...readFileSync(step.report, 'utf8')
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line)),
      );
    results.push({ step, name: step.name, seconds: (Date.now() - started) / 1000, ...result });
  }
}

mkdirSync(at('build'), { recursive: true });
/** What the whole matrix has beyond one of each kind. A step that is asked for by name may be any. */
const whole = all || only !== undefined;
/** On arm64 the tests of the native library are those of its kernels, and int8 vectors of texts. */
const arm = whole && process.arch !== 'arm64';
const setups = [];
for (const part of ['node', 'native', 'wasm', 'browsers', 'models', 'python', ...(whole ? ['docs', 'fuzz', 'release'] : []), ...(arm ? ['arm'] : [])])
  plan(setups, `set-up: ${part}`, setup(part));
await runLane(setups);

// Both lanes begin with what the other one waits for.
const [compiled, packaged] = [[], []];
const needsNative = ['set-up: native'];
const needsWasm = ['set-up: wasm', 'set-up: node'];
plan(compiled, 'wasm: build', preset('wasm'), needsWasm);
plan(compiled, 'native: build', preset('native'), needsNative);

// What programs that use the library find installed: built as the README says, or what is there already.
const install = (folder) => ['cmake', '--install', folder, '--prefix', 'build/installed'];
const installed = whole ? 'native: plain build' : 'native: install';
if (whole)
  plan(
    compiled,
    installed,
    // With warnings as errors its kernels are those of the preset native: ccache has them.
    commands(['cmake', '-S', '.', '-B', 'build/release', '-DATTN_WERROR=ON'], build('build/release'), install('build/release')),
    ['native: build'],
  );
else plan(compiled, installed, commands(install('build/native')), ['native: build']);
if (whole) for (const name of ['wasm-debug', 'wasm-asan']) plan(compiled, `${name}: build`, preset(name), needsWasm);

plan(compiled, 'native: tests', catch2('native'), ['native: build']);
plan(compiled, 'native: every allocation fails once', catch2('native', { tests: 'attn_allocation_tests' }), ['native: build']);
plan(compiled, 'native: bits', digest('native'), ['native: build']);
const symbols = ['node', 'tools/check-symbols.mjs'];
plan(
  compiled,
  'native: symbols',
  commands([...symbols, 'build/native/libattn.a'], [...symbols, '--kernels', 'build/native'], [...symbols, '--c', 'build/native/libattn_c.so']),
  ['native: build'],
);
// The widest kernels take minutes to compile; what flags do to the others they do to them.
const narrow = process.arch === 'x64' ? ['-DATTN_MAX_ARCH=avx2_fma'] : [];
if (whole) {
  const debug = ['cmake', '-S', '.', '-B', 'build/debug', '-DCMAKE_BUILD_TYPE=Debug', ...narrow];
  const built = build('build/debug', '--target', 'attn_kernels');
  plan(compiled, 'native: kernels of a Debug build', commands(debug, built, [...symbols, '--kernels', 'build/debug']), needsNative);
}
plan(compiled, 'native: another xtensor', commands(['build/native/native-tests/attn_xtensor_xsimd_test']), ['native: build']);
// The same again on the four lanes of the simd WebAssembly, and on all the instruction sets, which this machine would not choose by itself or has not.
const sets = { x64: ['sse4_2', 'avx2_fma', 'avx_vnni', 'avx512f', 'avx512_vnni'], arm64: ['default_arch', 'neon_dotprod'] };
for (const arch of ['emulated', ...((whole && sets[process.arch]) || [])]) {
  const env = { ATTN_MAX_ARCH: arch };
  plan(compiled, `native on ${arch}: tests`, ifMachineHas(arch, catch2('native', { filter: ['~[kernels]'], env })), ['native: build']);
  plan(compiled, `native on ${arch}: bits`, ifMachineHas(arch, digest('native', { env, arch })), ['native: build']);
}

// The wheel, with the flags of the preset native, whose objects ccache has, and by the name that CMake has for the compiler there.
if (!results.some(({ name, skipped }) => name === 'set-up: python' && skipped)) {
  const interpreter = at('.setup/python-venv/bin/python');
  const pip = (...args) => ['env', `CXX=${process.env.CXX ?? 'c++'}`, interpreter, '-m', 'pip', '--disable-pip-version-check', '--quiet', ...args];
  const asNative = ['ATTN_WERROR', 'ATTN_PRECOMPILE'].map((option) => `--config-settings=cmake.define.${option}=ON`);
  plan(
    compiled,
    'python: wheel',
    commands(
      pip('wheel', '--no-build-isolation', '--no-deps', '--wheel-dir', 'build', ...asNative, '.'),
      pip('install', '--no-index', '--find-links', 'build', '--no-deps', '--force-reinstall', 'attn'),
    ),
    ['native: build', 'set-up: python', 'set-up: node'],
  );
  plan(compiled, 'python: tests', pytest(interpreter), ['python: wheel']);
}

// NEON: QEMU's greatest processor and one without the products of four. It takes ten times as long: a part of the forwards of float32, whose bits
// nothing on this machine can say.
if (arm && !results.some(({ name, skipped }) => name === 'set-up: arm' && skipped)) {
  const built = 'native-arm64: build';
  plan(compiled, built, preset('native-arm64'), ['set-up: native', 'set-up: arm']);
  plan(compiled, 'native-arm64: symbols', commands([...symbols, '--kernels', 'build/native-arm64']), [built]);
  for (const [cpu, arch, tests] of [
    ['max', 'neon_dotprod', '[kernels]~[large],[minilm]'],
    ['cortex-a53', 'default_arch', '[int8]'],
  ]) {
    const by = qemu(cpu);
    plan(compiled, `native-arm64 on ${arch}: tests`, catch2('native-arm64', { filter: [tests], by }), [built]);
    plan(compiled, `native-arm64 on ${arch}: bits`, digest('native-arm64', { by, options: ['--float32', '1000'], arch }), [built]);
  }
  const asked = { filter: ['the table in use is*'], by: qemu('max'), env: { ATTN_MAX_ARCH: 'default_arch' } };
  plan(compiled, 'native-arm64 on default_arch, asked for: tests', catch2('native-arm64', asked), [built]);
}

const prefix = `-DCMAKE_PREFIX_PATH=${at('build/installed')}`;
plan(compiled, 'C++ examples by find_package', examples('examples/cpp', 'build/examples-installed', prefix), [installed]);
plan(compiled, 'a C example by pkg-config', examples('examples/c', 'build/examples-c', prefix), [installed]);
// The whole library once more, with the flags of the preset native: ccache has it.
const asNative = ['-DATTN_WERROR=ON', '-DATTN_PRECOMPILE=ON', `-DFETCHCONTENT_BASE_DIR=${at('build')}`];
plan(compiled, 'a C++ example by FetchContent', examples('cmake/fetch-content-test', 'build/examples-fetched', ...asNative), needsNative);
if (whole) {
  const options = [...narrow, '-DATTN_PRECOMPILE=ON', '-DCMAKE_CXX_FLAGS=-ffast-math'];
  const fast = examples('cmake/fetch-content-test', 'build/examples-fast-math', ...options);
  plan(compiled, 'a C++ example by FetchContent, -ffast-math', fast, needsNative);
}

// Of what is committed, as a user gets it. ccache has it from the plain build. Debian's packages are compiled with other flags, all of it: make deb.
const release = whole && existsSync(at('.git')) && !results.some(({ name, skipped }) => name === 'set-up: release' && skipped);
if (release) plan(compiled, 'release: the source archive', commands(['nice', '-n', '10', 'node', 'tools/release/source.mjs']), [installed]);

// ThreadSanitizer watches threads, and everything costs ten times as much under it: the tests without threads stay out.
// AddressSanitizer costs ten times as much, too, and sees on tiny checkpoints, and of few texts, what there is to see of large ones and of many.
if (whole)
  for (const [name, filter] of [
    ['native-asan', '~[minilm]~[sentiment]~[large]'],
    ['native-tsan', '[threads]'],
  ]) {
    plan(compiled, `${name}: build`, preset(name), needsNative);
    plan(compiled, `${name}: tests`, catch2(name, { filter: [filter] }), [`${name}: build`]);
  }
if (whole && !results.some(({ name, skipped }) => name === 'set-up: fuzz' && skipped)) {
  plan(compiled, 'native-fuzz: build', preset('native-fuzz'), ['set-up: native', 'set-up: fuzz']);
  plan(compiled, 'native-fuzz: 30 s a target', nodeTests('native-tests/fuzz/targets.test.mjs'), ['native-fuzz: build']);
}

plan(packaged, 'include rule', commands(['node', 'tools/check-includes.mjs']));
plan(packaged, 'package: build', commands(['node', 'web/lib/build.mjs'], ['node', 'tools/package.mjs']), ['wasm: build']);
plan(
  packaged,
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
plan(packaged, 'lint', commands(['node_modules/.bin/eslint', '.']), ['package: build']);
plan(packaged, 'package: wire size', commands(['node', 'tools/check-size.mjs']), ['package: build']);
// Made of the wheel, too, so the site comes late; the page is built again for it, with a link to it.
const withDocs = whole && !results.some(({ name, skipped }) => ['set-up: docs', 'set-up: python'].includes(name) && skipped);
const page = ['node_modules/.bin/vite', 'build', '--logLevel', 'warn', 'web/page'];
plan(packaged, 'page: build', commands(['node_modules/.bin/tsc', '--noEmit', '-p', 'web/page'], ['node', 'tools/converted_models.mjs'], page), [
  'package: build',
]);
/** What the matrix has once each: the others are more engines, binaries and set-ups of the same. */
const once = ['page-chromium', 'page-unit', 'packaging', 'examples', 'code-blocks', 'node-simd', 'node-relaxed-threads', 'chromium'];
// The page first: the suites compare bits with the native build, and its checked builds come later.
for (const name of Object.keys(packageSteps)) {
  if ((!whole && !once.includes(name)) || (name === 'docs' && !withDocs)) continue;
  if (name === 'docs')
    plan(packaged, 'docs: build', commands(['node', 'docs/tools/site.mjs'], page), ['page: build', 'set-up: docs', 'python: wheel']);
  const needs = ['package: build'];
  if (name.endsWith('-debug') || name.endsWith('-asan')) needs.push(`wasm-${name.split('-').at(-1)}: build`);
  else if (name.startsWith('page')) needs.push('page: build');
  else if (name === 'code-blocks') needs.push(installed, 'python: wheel');
  else if (name === 'docs') needs.push('docs: build');
  else if (!['packaging', 'matrix', 'examples'].includes(name)) needs.push('native: build');
  plan(packaged, name, packageStep(name), needs);
}
plan(packaged, 'what tokenizers cost, 20 s', nodeTests('wasm-tests/fuzz/cost.test.mjs'), ['set-up: node']);
const rules = ['tools/release/rules.test.mjs', 'tools/release/interfaces.test.mjs'];
if (release) plan(packaged, 'release: its rules', nodeTests(...rules), ['set-up: node', 'set-up: release']);
const command = ['tests/command/convert.test.mjs', 'tests/command/texts.test.mjs'];
plan(packaged, 'the command', nodeTests(...command), ['package: build', 'native: build']);
plan(packaged, "the lab's programs", nodeTests('tests/lab/lab.test.mjs'), ['package: build', installed]);
if (only !== undefined && steps.size === 0) console.error(`no step's name holds '${only}'; every name is in the summary of 'make test ALL=1'`);
await Promise.all([compiled, packaged].map(runLane));

console.log('\n== summary');
let [passed, failed] = [0, 0];
for (const result of results) {
  passed += result.passed;
  failed += Number(result.failed);
  const counted = result.skipped ? `skipped: ${result.skipped}` : `${result.passed} passed, ${Number(result.failed)} failed`;
  console.log(`${result.seconds.toFixed(0).padStart(5)} s  ${result.name.padEnd(32)} ${counted}`);
}
if (passed + failed === 0) failed = 1; // nothing ran
const slowest = (title, all) => {
  console.log(`\n== the slowest ${title}`);
  for (const [name, seconds] of all.sort((a, b) => b[1] - a[1]).slice(0, 10)) console.log(`${seconds.toFixed(0).padStart(5)} s  ${name}`);
};
slowest(
  'steps',
  results.map(({ name, seconds }) => [name, seconds]),
);
slowest(
  'tests',
  results.flatMap(({ name, step }) =>
    step.tests.filter(({ seconds }) => seconds !== undefined).map((test) => [`${name}: ${test.name}`, test.seconds]),
  ),
);
if (failed > 0) {
  console.log('\n== what failed');
  const indent = (text) => `        ${stripVTControlCharacters(text).trim().replaceAll('\n', '\n        ')}`;
  for (const { name, failed, step } of results) {
    if (Number(failed) === 0) continue;
    const known = step.tests.filter(({ why }) => why !== undefined);
    for (const { name: test, why } of known) console.log(`FAILED  ${name}: ${test}\n${indent(why.split('\n').slice(0, 4).join('\n'))}`);
    // No test of the step said so: what it printed last.
    if (known.length === 0) console.log(`FAILED  ${name}\n${indent(step.last.trimEnd().split('\n').slice(-12).join('\n'))}`);
  }
}
console.log();
console.log(`${((Date.now() - began) / 1000).toFixed(0).padStart(5)} s  in all`);
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed ? 1 : 0;
