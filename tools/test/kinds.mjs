/**
 * Kinds of steps: each function returns a step's run function, which resolves to { passed, failed } or { …, skipped:
 * reason }. `names` filters tests by a part of their names.
 */
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

/** Runs commands, each [program, ...arguments]: one test, which passes if all exit with 0. */
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

/** Runs tools/setup PART; if an `optional` part is missing on a user's machine, prints that and continues. */
export const setUp = (part, optional) => async () => {
  const { code, err } = await run('bash', ['tools/setup', part]);
  if (code === 0) return { passed: 0, failed: 0 };
  if (optional && !ci) return { passed: 0, failed: 0, skipped: err.trim().split('\n').at(-1) };
  return { passed: 0, failed: 1 };
};

/** Runs a Catch2 program. Skipped tests count as failed, because the set-up provides everything that they need. */
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

/** Runs the Python tests. On users' machines tests without the model or Chromium are skipped. */
export const pytest =
  (interpreter) =>
  async ({ names }) => {
    const junit = report('pytest');
    const chosen = names ? ['-k', names] : [];
    const { passed, failed, skips } = await countJunit(junit, () => run(interpreter, ['-m', 'pytest', '--quiet', `--junit-xml=${junit}`, ...chosen]));
    return { passed, failed: failed + (ci ? skips : 0) };
  };

/** Runs test files of node:test. */
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

/** Runs Vitest with the configuration of a folder. */
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

/** Runs the suites in Node on the built package, or on the package of a checked build. */
export const suites =
  ({ variant, threads, build = 'release' }) =>
  async (options) => {
    const folder = build === 'release' ? at('web/lib') : await checkedPackage(`wasm-${build}`);
    if (!folder) return { passed: 0, failed: 1 };
    const env = { ATTN_TEST_PACKAGE: folder, ATTN_TEST_VARIANT: variant, ATTN_TEST_THREADS: String(threads), ATTN_TEST_BUILD: build };
    return vitest(at('wasm-tests'), { env })(options);
  };

/** Makes the package with the single binary of a checked build; undefined on failure. */
async function checkedPackage(name) {
  const folder = at('build', name, 'package');
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const { code } = await run(process.execPath, [at('web/lib/build.mjs'), '--wasm', at('build', name), '--out', join(folder, 'dist')]);
  cpSync(at('web/lib/package.json'), join(folder, 'package.json'));
  return code === 0 ? folder : undefined;
}

/** Builds a project of examples separately and runs it by CTest. */
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

/**
 * Checks that threads, batches and repetitions change no bit of random forwards; `arch` is the instruction set that
 * must be in use.
 */
export const digest =
  (name, { env = {}, by = [], options = [], arch = '' } = {}) =>
  async () => {
    const [program, ...args] = [...by, at('build', name, 'native-tests/digest/attn_digest'), ...options];
    const { code, out } = await run(program, args, { env });
    const passed = code === 0 && out.includes(`On ${arch}`);
    return { passed: Number(passed), failed: Number(!passed) };
  };

/**
 * Runs `task` if the machine has these kernels and does not use them by default; otherwise the summary names them as
 * skipped.
 */
export const ifMachineHas = (arch, task) => async (options) => {
  const inUse = async (env) => (await run(at('build/native/native-tests/digest/attn_digest'), ['--arch'], { env })).out.trim();
  if ((await inUse({ ATTN_MAX_ARCH: arch })) !== arch) return { passed: 0, failed: 0, skipped: `this machine has no ${arch}` };
  if ((await inUse({ ATTN_MAX_ARCH: '' })) === arch) return { passed: 0, failed: 0, skipped: 'the native steps before took it' };
  return task(options);
};
