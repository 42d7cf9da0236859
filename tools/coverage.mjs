// node tools/coverage.mjs [native] [node]: lists lines and functions that no test reaches, natively (llvm-cov) and in
// Node (c8). HTML reports: build/coverage/native/index.html and build/coverage/node/index.html.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...parts) => join(root, ...parts);
const parts = process.argv.slice(2);
const wants = (part) => parts.length === 0 || parts.includes(part);

function run(program, args, env = {}, quiet = false) {
  const { status, stdout } = spawnSync(program, args, {
    cwd: root,
    env: { ...process.env, ...env },
    stdio: ['ignore', quiet ? 'pipe' : 'inherit', 'inherit'],
    maxBuffer: 2 ** 28,
  });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')} ended with ${status}`);
  return String(stdout);
}

const llvm = (name) => (spawnSync(`${name}-19`, ['--version']).status === 0 ? `${name}-19` : name);

function unreached(shown) {
  const lines = [];
  let file = '';
  for (const line of shown.split('\n')) {
    const named = /^(\/.*\.[ch]pp):$/.exec(line);
    if (named) file = named[1].slice(root.length);
    const [, number, source] = /^\s*(\d+)\|\s*0\|(.*)$/.exec(line) ?? [];
    if (number && /\w/.test(source)) lines.push(`${file}:${number}: ${source.trim()}`);
  }
  return [...new Set(lines)];
}

function native() {
  run('cmake', ['--preset', 'native-coverage']);
  run('cmake', ['--build', '--preset', 'native-coverage', '--parallel', String(availableParallelism())]);
  const built = at('build/native-coverage/native-tests');
  const out = at('build/coverage/native');
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  // Emulated lanes use different code (dispatch, rounding), so both runs are combined.
  const programs = ['attn_tests', 'attn_allocation_tests'].map((name) => join(built, name)).filter((name) => existsSync(name));
  for (const program of programs)
    for (const arch of ['', 'emulated'])
      spawnSync(program, ['--reporter', 'compact'], {
        env: { ...process.env, LLVM_PROFILE_FILE: join(out, '%p.profraw'), ...(arch && { ATTN_MAX_ARCH: arch }) },
        stdio: 'inherit',
      });
  const profile = join(out, 'all.profdata');
  const raw = readdirSync(out).filter((name) => name.endsWith('.profraw'));
  run(llvm('llvm-profdata'), ['merge', '-sparse', '-o', profile, ...raw.map((name) => join(out, name))]);
  for (const name of raw) rmSync(join(out, name));
  const [first, ...others] = programs;
  const from = `-compilation-dir=${at('build/native-coverage')}`;
  const common = [first, ...others.flatMap((name) => ['-object', name]), `-instr-profile=${profile}`, from, `${at('src/attn')}/`];
  console.log(run(llvm('llvm-cov'), ['report', ...common], {}, true));
  run(llvm('llvm-cov'), ['show', '-format=html', `-output-dir=${out}`, ...common], {}, true);
  const never = unreached(run(llvm('llvm-cov'), ['show', '-show-instantiations=false', ...common], {}, true));
  console.log(`${never.length} lines that no native test reaches:\n${never.map((line) => `  ${line}`).join('\n')}`);
}

function node() {
  const [raw, out] = [at('build/coverage/v8'), at('build/coverage/node')];
  for (const folder of [raw, out]) rmSync(folder, { recursive: true, force: true });
  run(process.execPath, ['tools/test.mjs', '--only', 'node-relaxed-threads'], { NODE_V8_COVERAGE: raw });
  run(process.execPath, [
    at('node_modules/c8/bin/c8.js'),
    'report',
    ...['--temp-directory', raw, '--reports-dir', out, '--reporter', 'text', '--reporter', 'html', '--reporter', 'json'],
    ...['--all=false', '--include', 'web/lib/dist/*.js'],
  ]);
  const never = [];
  for (const { path, statementMap, s } of Object.values(JSON.parse(readFileSync(join(out, 'coverage-final.json'), 'utf8')))) {
    // The tokenizer's suite runs on its sources, so its coverage is not measured here.
    if (!path.startsWith(at('web/lib/src/')) || path.startsWith(at('web/lib/src/tokenizer/'))) continue;
    const source = readFileSync(path, 'utf8').split('\n');
    for (const [key, { start }] of Object.entries(statementMap))
      if (s[key] === 0 && /\w/.test(source[start.line - 1])) never.push(`${relative(root, path)}:${start.line}: ${source[start.line - 1].trim()}`);
  }
  console.log(
    `${never.length} lines of the package that no suite reaches in Node, tokenizer/ left out:\n${never.map((line) => `  ${line}`).join('\n')}`,
  );
}

if (wants('native')) native();
if (wants('node')) node();
