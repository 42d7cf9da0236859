/**
 * node tools/deb.mjs [ARCHIVE]: packages for Debian in build/deb, built by dpkg-buildpackage in an unpacked source archive (without ARCHIVE: one of what
 * is committed), looked at by lintian, and used: the examples in C and C++ are compiled against what the packages hold, and run. The last line is
 * "N passed, N failed".
 *
 * Debian 12 has older xsimd and xtensor than attn needs; tools/setup native takes Debian 13's, with which these build.
 */
import { strict as assert } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Checks } from '../wasm-tests/support/checks.mjs';
import { sourceArchive } from './release/archives.mjs';
import { versionOf } from './release/versions.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'build/deb');
const version = versionOf(root);
const source = join(out, `attn-${version}`);
const unpacked = join(out, 'root');
const checks = new Checks('deb');
const check = checks.check.bind(checks);
const read = (program, ...args) => execFileSync(program, args, { encoding: 'utf8' }).trim();

/** A command whose words are shown only when it fails. */
function quiet(program, args, { cwd = out, env = {} } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, { cwd, encoding: 'utf8', env: { ...process.env, ...env }, maxBuffer: 1 << 28 });
  if (status !== 0) throw error ?? new Error(`${program} ${args.join(' ')}: exit ${status}\n${stdout.slice(-4000)}${stderr.slice(-8000)}`);
  return stdout;
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
const archive = join(out, `attn_${version}.orig.tar.gz`);
if (process.argv[2]) copyFileSync(process.argv[2], archive);
else sourceArchive(root, archive, version);
quiet('tar', ['xzf', archive]);
cpSync(join(source, 'packaging/debian'), join(source, 'debian'), { recursive: true });
// Debian's own names for who packages.
const { DEBFULLNAME = 'attn maintainers', DEBEMAIL = 'maintainers@attn.invalid' } = process.env;
const date = existsSync(join(root, '.git')) ? read('git', '-C', root, 'log', '-1', '--format=%cD') : new Date().toUTCString().replace('GMT', '+0000');
writeFileSync(
  join(source, 'debian/changelog'),
  `attn (${version}-1) unstable; urgency=medium\n\n  * New upstream version.\n\n -- ${DEBFULLNAME} <${DEBEMAIL}>  ${date}\n`,
);

await check(
  'dpkg-buildpackage builds them, with the symbols that are written down',
  () =>
    quiet('dpkg-buildpackage', ['--build=binary', '--unsigned-changes', `--jobs=${availableParallelism()}`], {
      cwd: source,
      // Without packages of debug symbols, 30 MB, unless asked otherwise. debhelper gives builds an empty home; what ccache has is found all the same.
      env: {
        DEB_BUILD_OPTIONS: process.env.DEB_BUILD_OPTIONS ?? 'noautodbgsym',
        CCACHE_DIR: process.env.CCACHE_DIR ?? read('ccache', '--get-config', 'cache_dir'),
      },
    }),
  1800,
);
if (checks.failed) {
  console.log('0 passed, 1 failed');
  process.exit(1);
}
const debs = readdirSync(out).filter((name) => name.endsWith('.deb') && !name.includes('-dbgsym_'));
const packages = new Map(debs.map((name) => [name.split('_')[0], join(out, name)]));
const abi = version.split('.', 2).join('.');

await check('each package holds what its name says', (note) => {
  assert.deepEqual([...packages.keys()].sort(), ['attn', 'libattn-c-dev', `libattn-c${abi}`, 'libattn-dev']);
  for (const file of packages.values()) quiet('dpkg', ['-x', file, unpacked]);
  const files = (name) => read('dpkg', '--contents', packages.get(name));
  assert.match(files('libattn-dev'), /\/usr\/include\/attn\/attn\.hpp$/m);
  assert.doesNotMatch(files('libattn-dev'), /\/attn\/c\.h$/m);
  assert.match(files('libattn-c-dev'), /\/usr\/include\/attn\/c\.h$/m);
  assert.match(files(`libattn-c${abi}`), new RegExp(`/libattn_c\\.so\\.${version.replaceAll('.', '\\.')}$`, 'm'));
  assert.match(files('attn'), /\/usr\/bin\/attn$/m);
  assert.match(files('attn'), /\/usr\/share\/man\/man1\/attn\.1\.gz$/m);
  const depends = read('dpkg-deb', '--field', packages.get(`libattn-c${abi}`), 'Depends');
  assert.match(depends, /\blibutf8proc\d/);
  note(debs.map((name) => name.split('_')[0]).join(', '));
});

const installed = join(unpacked, 'usr');
const libraries = join(installed, 'lib', read('dpkg-architecture', '-qDEB_HOST_MULTIARCH'));
const env = { PKG_CONFIG_LIBDIR: join(libraries, 'pkgconfig'), LD_LIBRARY_PATH: libraries };
/** Configures, builds and runs an example's CTest tests. */
function example(name, options, tests) {
  const folder = join(out, `example-${name}`);
  quiet('cmake', ['-S', join(source, 'examples', name), '-B', folder, ...options], { env });
  quiet('cmake', ['--build', folder, ...(tests ? ['--target', tests] : []), '--parallel'], { env });
  const filter = tests ? ['--tests-regex', `^example_${tests}$`] : [];
  quiet('ctest', ['--test-dir', folder, '--output-on-failure', '--no-tests=error', ...filter], { env });
  return folder;
}
await check('the example in C is compiled against them, and runs', () => {
  const folder = example('c', []);
  const linked = quiet('ldd', [join(folder, 'sentence_similarity')], { env });
  assert.ok(linked.includes(join(libraries, `libattn_c.so.${abi}`)), linked);
});
await check('an example in C++ is compiled against them, and runs', () => {
  const folder = example('cpp', [`-DCMAKE_PREFIX_PATH=${installed}`], 'attention');
  assert.ok(readFileSync(join(folder, 'CMakeCache.txt'), 'utf8').includes(`attn_DIR:PATH=${libraries}`));
});
await check('the command runs', () => assert.equal(quiet(join(installed, 'bin/attn'), ['--version']).trim(), version));
await check('lintian finds no error', (note) => {
  // The maintainers have no address of their own yet, and nobody has asked for the packages.
  const known = 'bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs';
  const said = quiet('lintian', ['--allow-root', '--fail-on', 'error', '--suppress-tags', known, ...packages.values()]);
  if (said.trim()) note(said.trim());
});

console.log(`${checks.passed} passed, ${checks.failed} failed`);
process.exitCode = checks.failed ? 1 : 0;
