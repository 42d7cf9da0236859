/**
 * All steps of the test run.
 * - `lane`: set-ups run first; then two steps at a time, if possible one that compiles C++ (`compiled`) and one of
 * JavaScript (`packaged`), and a third one that mostly waits for Chromium (`waiting`). Any three may run together, so
 * each writes into its own folder.
 * - `group`: undefined for the steps of `make test`; others run with ALL=1, or if a change can affect them
 * (affected.mjs). No change asks for the group `beforeRelease`: what is long in it and finds little that other steps
 * do not.
 * - `needs`: steps that must have passed.
 * - `files`: its test files or a pattern of them, to find tests by ONLY=part of a name.
 */
import { readFileSync } from 'node:fs';
import { globSync } from './glob.mjs';
import { at, catch2, commands, digest, examples, ifMachineHas, nodeTests, preset, build, pytest, setUp, suites, vitest } from './kinds.mjs';

const beforeRelease = 'before a release';
const steps = [];
const add =
  (lane) =>
  (name, run, needs = [], { group, files } = {}) =>
    steps.push({ lane, name, run, needs, group, files });
const [setUpStep, compiled, packaged, waiting] = [add('setUp'), add('compiled'), add('packaged'), add('waiting')];

for (const [part, optional, group] of [
  ['node'],
  ['native'],
  ['wasm'],
  ['browsers', true],
  ['models', true],
  ['python', true],
  ['docs', true],
  ['fuzz', true, 'sanitizers'],
  ['release', true, 'releases'],
  ...(process.arch === 'arm64' ? [] : [['arm', true, 'processors']]),
])
  setUpStep(`set-up: ${part}`, setUp(part, optional), [], { group });

const needsNative = ['set-up: native'];
const needsWasm = ['set-up: wasm', 'set-up: node'];
const nativeTests = { files: 'native-tests/**/*.cpp' };

// ---- C++ ----------------------------------------------------------------------------------------------------

compiled('wasm: build', preset('wasm-release'), needsWasm);
compiled('native: build', preset('native'), needsNative);
const install = (folder) => ['cmake', '--install', folder, '--prefix', 'build/installed'];
compiled('native: install', commands(install('build/native')), ['native: build']);
compiled('native: tests', catch2('native'), ['native: build'], nativeTests);
compiled('native: every allocation fails once', catch2('native', { tests: 'attn_allocation_tests' }), ['native: build'], {
  files: 'native-tests/memory/*.cpp',
});
compiled('native: bits', digest('native'), ['native: build']);
const symbols = ['node', 'tools/check-symbols.mjs'];
compiled(
  'native: symbols',
  commands([...symbols, 'build/native/libattn.a'], [...symbols, '--kernels', 'build/native'], [...symbols, '--c', 'build/native/libattn_c.so']),
  ['native: build'],
);
compiled('native: another xtensor', commands(['build/native/native-tests/attn_xtensor_xsimd_test']), ['native: build']);

// The emulated four lanes of WebAssembly, and instruction sets that this machine does not choose by default or lacks.
const processors = ['any', ...({ x64: ['x86_64'], arm64: ['other', 'aarch64'] }[process.arch] ?? [])];
const table = readFileSync(new URL('../../src/attn/kernels/architectures.def', import.meta.url), 'utf8');
const architectures = [...table.matchAll(/^ATTN_\w+\((\w+), (\w+)/gm)];
if (!architectures.some(([, arch]) => arch === 'emulated')) throw new Error('architectures.def has another form');
for (const [, arch, processor] of architectures) {
  if (!processors.includes(processor)) continue;
  const env = { ATTN_MAX_ARCH: arch };
  const group = arch === 'emulated' ? undefined : 'processors';
  compiled(`native on ${arch}: bits`, ifMachineHas(arch, digest('native', { env, arch })), ['native: build'], { group });
  // The tests of kernels call every instruction set, and equal bits show that the rest does not depend on it.
  compiled(`native on ${arch}: tests`, ifMachineHas(arch, catch2('native', { filter: ['~[kernels]'], env })), ['native: build'], {
    group: beforeRelease,
  });
}
// The widest kernels take minutes to compile, and flags affect all kernels alike.
const narrow = process.arch === 'x64' ? ['-DATTN_MAX_ARCH=avx2_fma'] : [];
for (const type of ['Debug', 'MinSizeRel']) {
  const folder = `build/${type.toLowerCase()}`;
  const configure = ['cmake', '-S', '.', '-B', folder, `-DCMAKE_BUILD_TYPE=${type}`, ...narrow];
  compiled(
    `native: kernels of a ${type} build`,
    commands(configure, build(folder, '--target', 'attn_kernels'), [...symbols, '--kernels', folder]),
    needsNative,
    { group: 'processors' },
  );
}

// Builds the wheel with the flags and the compiler name of the preset native, so that ccache has the objects.
const interpreter = at('.setup/python-venv/bin/python');
const pip = (...args) => ['env', `CXX=${process.env.CXX ?? 'c++'}`, interpreter, '-m', 'pip', '--disable-pip-version-check', '--quiet', ...args];
const asNative = ['-DATTN_WERROR=ON', '-DATTN_PRECOMPILE=ON', '-DCMAKE_UNITY_BUILD=ON', '-DCMAKE_UNITY_BUILD_BATCH_SIZE=16'];
compiled(
  'python: wheel',
  commands(
    pip(
      'wheel',
      '--no-build-isolation',
      '--no-deps',
      '--wheel-dir',
      'build',
      ...asNative.map((option) => `--config-settings=cmake.define.${option.slice(2)}`),
      '.',
    ),
    pip('install', '--no-index', '--find-links', 'build', '--no-deps', '--force-reinstall', 'attn'),
  ),
  ['native: build', 'set-up: python', 'set-up: node'],
);
compiled('python: tests', pytest(interpreter), ['python: wheel'], { files: 'python/tests/*.py' });

// NEON: QEMU's most capable processor, and one without dot products. QEMU is ten times slower, so only a part of the
// float32 forwards run; nothing else on this machine can check their bits.
if (process.arch !== 'arm64') {
  const group = 'processors';
  const built = 'native-arm64: build';
  const qemu = (cpu) => ['qemu-aarch64', '-L', '/usr/aarch64-linux-gnu', '-cpu', cpu];
  compiled(built, preset('native-arm64'), ['set-up: native', 'set-up: arm'], { group });
  compiled('native-arm64: symbols', commands([...symbols, '--kernels', 'build/native-arm64']), [built], { group });
  for (const [cpu, arch, tests, when] of [
    ['max', 'neon_dotprod', '[kernels]~[large],[minilm]', group],
    ['cortex-a53', 'default_arch', '[int8]', beforeRelease],
  ]) {
    const by = qemu(cpu);
    compiled(`native-arm64 on ${arch}: tests`, catch2('native-arm64', { filter: [tests], by }), [built], { group: when });
    compiled(`native-arm64 on ${arch}: bits`, digest('native-arm64', { by, options: ['--float32', '300'], arch }), [built], { group: when });
  }
  const asked = { filter: ['the table in use is*'], by: qemu('max'), env: { ATTN_MAX_ARCH: 'default_arch' } };
  compiled('native-arm64 on default_arch, asked for: tests', catch2('native-arm64', asked), [built], { group });
}

const prefix = `-DCMAKE_PREFIX_PATH=${at('build/installed')}`;
compiled('C++ examples by find_package', examples('examples/cpp', 'build/examples-installed', prefix), ['native: install']);
compiled('a C example by pkg-config', examples('examples/c', 'build/examples-c', prefix), ['native: install']);
compiled(
  'a C++ example by FetchContent',
  examples('cmake/fetch-content-test', 'build/examples-fetched', ...asNative, `-DFETCHCONTENT_BASE_DIR=${at('build')}`),
  needsNative,
  { group: 'FetchContent' },
);
compiled(
  'a C++ example by FetchContent, -ffast-math',
  examples(
    'cmake/fetch-content-test',
    'build/examples-fast-math',
    ...narrow,
    '-DATTN_PRECOMPILE=ON',
    '-DCMAKE_UNITY_BUILD=ON',
    '-DCMAKE_CXX_FLAGS=-ffast-math',
  ),
  needsNative,
  { group: beforeRelease },
);
// The committed files as users build them: without git and presets, so without unity builds and precompiled headers.
compiled('release: the source archive', commands(['node', 'tools/release/source.mjs']), ['set-up: native', 'set-up: node'], { group: beforeRelease });

// ThreadSanitizer and AddressSanitizer are ten times slower: the former runs only tests with threads, the latter only
// tiny checkpoints, few texts and few repetitions, which cover the same code.
for (const [name, filter, group, needs] of [
  ['native-asan', '~[minilm]~[sentiment]~[large]', 'sanitizers', ['set-up: native', 'set-up: fuzz']],
  ['native-tsan', '[threads]', 'threads', needsNative],
]) {
  compiled(`${name}: build`, preset(name), needs, { group });
  compiled(`${name}: tests`, catch2(name, { filter: [filter] }), [`${name}: build`], { group });
}
compiled(
  'fuzzing, 30 s a target',
  nodeTests(() => ['native-tests/fuzz/targets.test.mjs']),
  ['native-asan: build'],
  { group: 'sanitizers', files: 'native-tests/fuzz/targets.test.mjs' },
);
const checked = { asan: 'checked WebAssembly', debug: beforeRelease };
for (const [name, group] of Object.entries(checked)) compiled(`wasm-${name}: build`, preset(`wasm-${name}`), needsWasm, { group });

// ---- the package and the page -------------------------------------------------------------------------------

const tsc = (...args) => ['node_modules/.bin/tsc', '--noEmit', ...args];
packaged('import rules', commands(['node', 'tools/check-includes.mjs'], ['node', 'tools/check-imports.mjs']), ['set-up: node']);
packaged('package: build', commands(['node', 'web/lib/build.mjs', '--wasm', 'build/wasm-release'], ['node', 'tools/package.mjs']), ['wasm: build']);
packaged(
  'bindings and package agree',
  commands(
    tsc(
      ...['--strict', '--skipLibCheck', '--target', 'es2022', '--lib', 'es2023,esnext.disposable,dom', '--module', 'nodenext', '--types', 'node'],
      'tools/check-embind.ts',
    ),
  ),
  ['wasm: build'],
);
packaged('lint', commands(['node_modules/.bin/eslint', '.'], ['node_modules/.bin/markdownlint-cli2']), ['package: build']);
packaged('package: wire size', commands(['node', 'tools/check-size.mjs']), ['package: build']);
const page = ['node_modules/.bin/vite', 'build', '--logLevel', 'warn', 'web/page'];
packaged('page: build', commands(tsc('-p', 'web/page'), ['node', 'tools/converted_models.mjs'], page), ['package: build']);

const pageOn = (engine, filter, { name = `page-${engine}`, group } = {}) => {
  const files = globSync('wasm-tests/page/*.test.mjs').filter(filter);
  const step = engine === 'chromium' ? waiting : packaged;
  step(
    name,
    nodeTests(() => files, { env: { ATTN_ENGINE: engine } }),
    ['page: build'],
    { group, files },
  );
};
/** What engines may draw, lay out or send in their own way; the rest computes the same everywhere. */
const ofEngines = (file) => /\/(example|figures|first|map|screen)\.test\.mjs$/.test(file);
const ofMemory = (file) => file.endsWith('/memory.test.mjs');
pageOn('chromium', (file) => !ofMemory(file));
pageOn('chromium', ofMemory, { name: 'page-chromium: memory', group: 'page in engines' });
packaged('page-unit', vitest(at('web/page')), ['package: build'], { files: 'web/page/**/*.test.ts' });
packaged('node-simd', suites({ variant: 'simd', threads: 1 }), ['package: build', 'native: build'], { files: 'wasm-tests/suites/*.ts' });
packaged('node-relaxed-threads', suites({ variant: 'relaxed', threads: 2 }), ['package: build', 'native: build'], {
  files: 'wasm-tests/suites/*.ts',
});
const inBrowser = (engine, setups, group) =>
  (setups === 'short' && engine === 'chromium' ? waiting : packaged)(
    `${engine}-${setups}`,
    nodeTests(() => ['wasm-tests/browser/suites.test.mjs'], { env: { ATTN_ENGINE: engine, ATTN_SETUPS: setups } }),
    ['package: build', 'native: build'],
    { group, files: 'wasm-tests/browser/suites.test.mjs' },
  );
inBrowser('chromium', 'short');
const nodeFiles = (name, pattern, needs, { env, ...options } = {}) =>
  packaged(
    name,
    nodeTests(() => globSync(pattern), { env }),
    needs,
    { files: pattern, ...options },
  );
nodeFiles('packaging', 'tests/packaging/*.test.mjs', ['package: build']);
nodeFiles('examples', 'tests/examples/*.test.mjs', ['package: build']);
nodeFiles('errors of the TypeScript sources', 'tests/docs/errors.test.mjs', ['set-up: node']);
nodeFiles("keys of models' files", 'tests/docs/model_keys.test.mjs', ['set-up: node']);
nodeFiles('lists and numbers of the guides', 'tests/docs/facts.test.mjs', ['set-up: node']);
nodeFiles('errors of the C++ and Python sources', 'tests/docs/native_errors.test.mjs', ['set-up: node']);
nodeFiles('the test run', 'tools/test/*.test.mjs', ['set-up: node']);
nodeFiles('code-blocks', 'tests/docs/code_blocks.test.mjs', ['package: build', 'native: install', 'python: wheel']);
nodeFiles("HACKING's commands", 'tests/docs/hacking.test.mjs', ['page: build', 'native: build', 'python: wheel']);
nodeFiles('the command', 'tests/command/*.test.mjs', ['package: build', 'native: build']);
nodeFiles("the lab's programs", 'tests/lab/*.test.mjs', ['package: build', 'native: install']);
nodeFiles('the time of tokenizers, 20 s', 'wasm-tests/fuzz/cost.test.mjs', ['set-up: node']);
const pageWithDocs = at('build/page-with-docs');
const buildWithDocs = [...page, '--outDir', pageWithDocs];
packaged('docs: build', commands(['node', 'docs/tools/site.mjs'], buildWithDocs), ['page: build', 'set-up: docs', 'python: wheel']);
nodeFiles('docs', 'tests/docs/site.test.mjs', ['docs: build'], { env: { ATTN_PAGE: pageWithDocs } });

const bundlers = { group: 'bundlers', files: 'tests/bundlers/*.test.mjs' };
packaged(
  'bundlers',
  nodeTests(() => ['tests/bundlers/bundlers.test.mjs'], { env: { ATTN_BUNDLERS: 'gate' } }),
  ['package: build'],
  bundlers,
);
nodeFiles('release: its rules', 'tools/release/*.test.mjs', ['set-up: node', 'set-up: release'], { group: 'releases' });
for (const engine of ['firefox', 'webkit']) {
  pageOn(engine, ofEngines, { group: 'page in engines' });
  pageOn(engine, (file) => !ofEngines(file), { name: `page-${engine}: the rest`, group: beforeRelease });
  inBrowser(engine, 'short', 'engines');
}
for (const engine of ['chromium', 'firefox', 'webkit']) for (const setups of ['complete', 'others']) inBrowser(engine, setups, beforeRelease);
for (const [name, setup] of [
  ['node-relaxed', { variant: 'relaxed', threads: 1 }],
  ['node-simd-threads', { variant: 'simd', threads: 2 }],
])
  packaged(name, suites(setup), ['package: build', 'native: build'], { group: beforeRelease });
for (const [name, group] of Object.entries(checked))
  packaged(`node-${name}`, suites({ variant: 'simd', threads: 1, build: name }), [`wasm-${name}: build`, 'native: build'], { group });

/** Groups that a change can ask for. */
const groups = new Set(steps.map(({ group }) => group).filter((group) => group && group !== beforeRelease));

export { beforeRelease, groups, steps };
