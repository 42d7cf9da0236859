/** The kinds of steps: each function returns what runs one, and resolves to { passed, failed } or { …, skipped: why }. `names`: a part of tests' names. */
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { countJunit } from './junit.mjs';
import { current, root, run } from './processes.mjs';

export const ci = process.env.CI === 'true';
export const at = (...parts) => join(root, ...parts);
const jobs = String(availableParallelism());
const report = (name) => at('build/reports', `${name.replaceAll(/\W+/g, '_')}.xml`);
const literally = (text) => text.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&');

/** Commands in turn, each [program, ...arguments]: one test, passed when all exit with 0. */
export const commands =
  (...list) =>
  async () => {
    for (const [program, ...args] of list) {
      const { code } = await run(program, args);
      if (code !== 0) {
        current.getStore().say(`exit ${code}: ${[program, ...args].join(' ')}\n`);
        return { passed: 0, failed: 1 };
      }
    }
    return { passed: 1, failed: 0 };
  };

export const build = (...args) => ['cmake', '--build', ...args, '--parallel', jobs];
export const preset = (name) => commands(['cmake', '--preset', name], build('--preset', name));

/** tools/setup PART: a user who lacks an `optional` part is told so and goes on. */
export const setUp = (part, optional) => async () => {
  const { code, err } = await run('bash', ['tools/setup', part]);
  if (code === 0) return { passed: 0, failed: 0 };
  if (optional && !ci) return { passed: 0, failed: 0, skipped: err.trim().split('\n').at(-1) };
  return { passed: 0, failed: 1 };
};

/** A Catch2 program. What is skipped there has failed, as the machine has everything that they need. */
export const catch2 =
  (name, { tests = 'attn_tests', filter = [], env = {}, by = [] } = {}) =>
  async ({ names }) => {
    const junit = report(`${current.getStore().name}_${tests}`);
    const [program, ...args] = [...by, at('build', name, 'native-tests', tests)];
    const chosen = names ? [`*${names.replaceAll(/[[\],*"]/g, '?')}*`] : filter;
    const reporters = [
      '--reporter',
      'console',
      '--reporter',
      `junit::out=${junit}`,
      '--rng-seed',
      '1',
      ...(names ? ['--allow-running-no-tests'] : []),
    ];
    const { passed, failed, skips } = await countJunit(junit, () => run(program, [...args, ...chosen, ...reporters], { env }), {
      maybeNone: !!names,
    });
    return { passed, failed: failed + skips };
  };

/** The Python tests. What a user's machine lacks (the model, Chromium) may be left out there. */
export const pytest =
  (interpreter) =>
  async ({ names }) => {
    const junit = report('pytest');
    const chosen = names ? ['-k', names] : [];
    const { passed, failed, skips } = await countJunit(junit, () => run(interpreter, ['-m', 'pytest', '--quiet', `--junit-xml=${junit}`, ...chosen]));
    return { passed, failed: failed + (ci ? skips : 0) };
  };

/** Test files of node:test. */
export const nodeTests =
  (files, { env = {} } = {}) =>
  async ({ names }) => {
    const junit = report(current.getStore().name);
    const chosen = names ? [`--test-name-pattern=${literally(names)}`] : [];
    const reporters = ['spec', 'junit'].flatMap((name, i) => [`--test-reporter=${name}`, `--test-reporter-destination=${i ? junit : 'stdout'}`]);
    const args = ['--test', '--test-concurrency=1', ...reporters, ...chosen, ...files()];
    const all = { ...env, ...(names && { ATTN_NAMES: literally(names) }) };
    const { passed, failed, skips } = await countJunit(junit, () => run(process.execPath, args, { env: all }), { maybeNone: !!names });
    return { passed, failed: failed + (ci ? skips : 0), ...(skips > 0 && passed + failed === 0 && { skipped: 'see above' }) };
  };

/** Vitest with the configuration of a folder. */
export const vitest =
  (folder, { env = {} } = {}) =>
  async ({ names }) => {
    const junit = report(current.getStore().name);
    const args = ['run', '--root', folder, '--reporter=default', '--reporter=junit', `--outputFile.junit=${junit}`];
    const chosen = names ? ['-t', literally(names), '--passWithNoTests'] : [];
    const start = () => run(process.execPath, [at('node_modules/vitest/vitest.mjs'), ...args, ...chosen], { env });
    const { passed, failed, skips } = await countJunit(junit, start, { maybeNone: !!names });
    return { passed, failed: failed + (names ? 0 : skips) };
  };

/** The suites in Node on the built package, or on that of a checked build. */
export const suites =
  ({ variant, threads, build = 'release' }) =>
  async (options) => {
    const folder = build === 'release' ? at('web/lib') : await checkedPackage(`wasm-${build}`);
    if (!folder) return { passed: 0, failed: 1 };
    const env = { ATTN_TEST_PACKAGE: folder, ATTN_TEST_VARIANT: variant, ATTN_TEST_THREADS: String(threads), ATTN_TEST_BUILD: build };
    return vitest(at('wasm-tests'), { env })(options);
  };

/** The package made with the one binary of a checked build; undefined if that failed. */
async function checkedPackage(name) {
  const folder = at('build', name, 'package');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { code } = await run(process.execPath, [at('web/lib/build.mjs'), '--wasm', at('build', name), '--out', join(folder, 'dist')]);
  cpSync(at('web/lib/package.json'), join(folder, 'package.json'));
  return code === 0 ? folder : undefined;
}

/** A project of examples, built on its own and run by CTest. */
export const examples =
  (source, folder, ...options) =>
  async () => {
    const built = await commands(['cmake', '-S', source, '-B', folder, ...options], build(folder))();
    if (built.failed) return built;
    const junit = report(folder);
    const start = () => run('ctest', ['--test-dir', folder, '--output-on-failure', '--no-tests=error', '--output-junit', junit]);
    const { passed, failed } = await countJunit(junit, start);
    return { passed, failed };
  };

/** Random forwards: threads, batches and repetitions change no bit. On `arch`: these are the kernels that it has to choose. */
export const digest =
  (name, { env = {}, by = [], options = [], arch = '' } = {}) =>
  async () => {
    const [program, ...args] = [...by, at('build', name, 'native-tests/digest/attn_digest'), ...options];
    const { code, out } = await run(program, args, { env });
    const passed = code === 0 && out.includes(`On ${arch}`);
    return { passed: Number(passed), failed: Number(!passed) };
  };

/** `task` on kernels that the machine may not have: the summary names those. What it takes by itself has been tested. */
export const ifMachineHas = (arch, task) => async (options) => {
  const inUse = async (env) => (await run(at('build/native/native-tests/digest/attn_digest'), ['--arch'], { env })).out.trim();
  if ((await inUse({ ATTN_MAX_ARCH: arch })) !== arch) return { passed: 0, failed: 0, skipped: `this machine has no ${arch}` };
  if ((await inUse({ ATTN_MAX_ARCH: '' })) === arch) return { passed: 0, failed: 0, skipped: 'the native steps before took it' };
  return task(options);
};
