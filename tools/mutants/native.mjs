// Plants bugs in src/attn one at a time and checks that the native tests fail: node tools/mutants/native.mjs
// [WORD]... Words select mutants by file or text. Works on a copy in build/mutants, which is compiled once; then only
// changed files. Exit code 1 if a mutant survives; accepted_mutants.md lists accepted ones.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { mutants } from './native-list.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const tree = join(repository, 'build/mutants/tree');
const build = join(repository, 'build/mutants/build');
const program = join(build, 'native-tests/attn_tests');
/** A test that takes longer waits for something that the mutant removed. */
const mostSeconds = 300;

setPriority(10);
const words = process.argv.slice(2);
const picked = mutants.filter(({ file, find, put }) => words.every((word) => `${file} ${find} ${put}`.includes(word)));
for (const { file, find } of mutants) {
  const count = readFileSync(join(repository, 'src/attn', file), 'utf8').split(find).length - 1;
  if (count !== 1) throw new Error(`mutants: ${file} has ${count} times, expected once: ${find}`);
}

copySources();
configure();
if (!compile()) throw new Error('mutants: the sources do not compile without a mutant');
for (const tests of new Set(picked.map(({ tests }) => tests)))
  if (run(tests) !== 'survived') throw new Error(`mutants: tests "${tests}" fail without a mutant`);

const results = { killed: 0, survived: 0, 'does not compile': 0 };
for (const { file, find, put, tests } of picked) {
  const path = join(tree, 'src/attn', file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(
    path,
    source.replace(find, () => put),
  );
  const result = compile() ? run(tests) : 'does not compile';
  writeFileSync(path, source);
  ++results[result];
  console.log(`${result}  ${file}: ${find.trim()}  ->  ${put.trim() || 'nothing'}`);
}
console.log(`${results.killed} of ${picked.length} killed`);
process.exitCode = results.killed === picked.length ? 0 : 1;

function copySources() {
  const parts = ['CMakeLists.txt', 'cmake', 'src', 'native-tests'];
  const files = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard', ...parts], { cwd: repository }).toString();
  for (const file of files.split('\0').filter(Boolean)) {
    const [from, to] = [join(repository, file), join(tree, file)];
    if (!existsSync(from) || (existsSync(to) && readFileSync(from).equals(readFileSync(to)))) continue;
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to);
  }
  for (const name of ['testdata', 'models']) {
    rmSync(join(tree, name), { recursive: true, force: true });
    if (existsSync(join(repository, name))) symlinkSync(join(repository, name), join(tree, name));
  }
}

function configure() {
  if (existsSync(join(build, 'CMakeCache.txt'))) return;
  const options = ['-DCMAKE_BUILD_TYPE=Release', '-DCMAKE_CXX_FLAGS_RELEASE=-O1', '-DATTN_BUILD_TESTS=ON', '-DATTN_PRECOMPILE=ON'];
  execFileSync('cmake', ['-S', tree, '-B', build, ...options], { stdio: ['ignore', 'ignore', 'inherit'] });
}

function compile() {
  const { status } = spawnSync('cmake', ['--build', build, '--target', 'attn_tests', '--parallel', String(availableParallelism())], {
    stdio: 'ignore',
  });
  return status === 0;
}

/** @param {string} tests Catch2 filter */
function run(tests) {
  const { status } = spawnSync(program, [tests, '--abort'], { stdio: 'ignore', timeout: 1000 * mostSeconds, killSignal: 'SIGKILL' });
  return status === 0 ? 'survived' : 'killed';
}
