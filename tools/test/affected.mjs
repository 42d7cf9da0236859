/**
 * Maps changed paths to the groups of steps that they can affect, beyond those of `make test`: the first matching row
 * decides. An unknown path affects every group but the one before a release, which only ALL=1 runs.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

const inEngines = ['engines', 'page in engines'];

/** @type {readonly (readonly [RegExp, readonly string[]])[]} */
export const table = [
  [/^src\/attn\/kernels\//, ['sanitizers', 'processors']],
  [/^src\/bindings\//, ['checked WebAssembly', 'engines']],
  [/^src\/(attn\/parallel|attn\/memory)\//, ['sanitizers', 'threads']],
  [/^src\//, ['sanitizers']],
  [/^native-tests\/(kernels|digest)\//, ['sanitizers', 'processors']],
  [/^native-tests\/parallel\//, ['sanitizers', 'threads']],
  [/^native-tests\//, ['sanitizers']],
  [/^cmake\/wasm\.cmake$|^cmake\/(emscripten|collect-wasm|embind)/, ['checked WebAssembly', ...inEngines, 'bundlers']],
  [/^cmake\/arm64\.cmake$/, ['processors']],
  [/^(CMakePresets\.json|cmake\/library\.cmake)$/, ['sanitizers', 'threads', 'processors', 'FetchContent', 'releases']],
  [/^(CMakeLists\.txt|cmake\/.*)$/, ['sanitizers', 'FetchContent', 'releases']],
  [/^web\/lib\/src\/(tokenizer|tasks|args|cli)\//, []],
  [/^web\/lib\/(README\.md|src\/.*\.d\.[cm]?ts)$/, []],
  [/^web\/lib\/src\/(worker|platform|load|element|lens|search)\//, [...inEngines, 'bundlers']],
  [/^web\/lib\/src\/model\//, ['engines']],
  [/^web\/lib\//, [...inEngines, 'bundlers']],
  [/^(web|wasm-tests)\/page\//, ['page in engines']],
  [/^wasm-tests\/browser\//, ['engines']],
  [/^wasm-tests\/support\//, inEngines],
  [/^wasm-tests\/(suites|node)\//, ['engines']],
  [/^wasm-tests\//, []],
  [/^tests\/bundlers\//, ['bundlers']],
  [/^tests\/debian\//, ['releases']],
  [/^tests\//, []],
  [/^testdata\/(models|make|sentiment|tasks|tokenizers|page)/, []],
  [/^testdata\//, ['sanitizers']],
  [/^(tools\/release|packaging)/, ['releases']],
  [/^Makefile$|^tools\/(page|mutants|demo|serve|coverage|check-|converted_models|list-|step|test)/, []],
  [/^(docs|examples|python|benchmarks)\//, []],
  [/^[^/]+\.(md|cff)$|^LICENSE$|^\.github\/|^\.ci\/base$/, []],
  [
    /^(\.clang-format|\.clang-tidy|\.gitattributes|\.gitignore|\.prettierignore|\.prettierrc\.json|\.markdownlint-cli2\.jsonc|eslint\.config\.mjs)$/,
    [],
  ],
];

export function affectedBy(paths, all) {
  const groups = new Set();
  for (const path of paths) {
    const row = table.find(([expression]) => expression.test(path));
    for (const group of row ? row[1] : all) groups.add(group);
  }
  return groups;
}

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();

/**
 * Paths changed since the last commit known to pass: BASE in the environment, else the commit in .ci/base. Undefined if
 * neither is an ancestor, so that every group runs.
 */
export function changedPaths() {
  const file = join(root, '.ci/base');
  const base = process.env.BASE || (existsSync(file) && readFileSync(file, 'utf8').trim());
  if (!base) return undefined;
  try {
    git('merge-base', '--is-ancestor', base, 'HEAD');
    const tracked = git('diff', '--name-only', '--no-renames', base);
    const untracked = git('ls-files', '--others', '--exclude-standard');
    return { base, paths: `${tracked}\n${untracked}`.split('\n').filter(Boolean) };
  } catch {
    return undefined;
  }
}
