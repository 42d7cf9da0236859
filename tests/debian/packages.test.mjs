/** Tests the Debian packages in build/deb, built by tools/deb.mjs: their files, and examples compiled against them. */
import { strict as assert } from 'node:assert';
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { versionOf } from '../../tools/release/versions.mjs';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';

const out = at('build/deb');
const version = versionOf(repository);
const abi = version.split('.', 2).join('.');
const source = join(out, `attn-${version}`);
const unpacked = join(out, 'root');
const read = (program, ...args) => execFileSync(program, args, { encoding: 'utf8' }).trim();

function quiet(program, args, { env = {} } = {}) {
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    cwd: out,
    encoding: 'utf8',
    env: { ...process.env, ...env },
    maxBuffer: 1 << 28,
    timeout: limit.timeout,
  });
  if (status !== 0) throw error ?? new Error(`${program} ${args.join(' ')}: exit ${status}\n${stdout.slice(-4000)}${stderr.slice(-8000)}`);
  return stdout;
}

const installed = join(unpacked, 'usr');
let packages;
let libraries;
let env;
before(() => {
  const debs = readdirSync(out).filter((name) => name.endsWith('.deb') && !name.includes('-dbgsym_'));
  packages = new Map(debs.map((name) => [name.split('_')[0], join(out, name)]));
  for (const file of packages.values()) quiet('dpkg', ['-x', file, unpacked]);
  libraries = join(installed, 'lib', read('dpkg-architecture', '-qDEB_HOST_MULTIARCH'));
  env = { PKG_CONFIG_LIBDIR: join(libraries, 'pkgconfig'), LD_LIBRARY_PATH: libraries };
});

test('each Debian package contains the files that its name promises', limit, (t) => {
  assert.deepEqual([...packages.keys()].sort(), ['attn', 'libattn-c-dev', `libattn-c${abi}`, 'libattn-dev']);
  const files = (name) => read('dpkg', '--contents', packages.get(name));
  assert.match(files('libattn-dev'), /\/usr\/include\/attn\/attn\.hpp$/m);
  assert.doesNotMatch(files('libattn-dev'), /\/attn\/c\.h$/m);
  assert.match(files('libattn-c-dev'), /\/usr\/include\/attn\/c\.h$/m);
  assert.match(files(`libattn-c${abi}`), new RegExp(`/libattn_c\\.so\\.${version.replaceAll('.', '\\.')}$`, 'm'));
  assert.match(files('attn'), /\/usr\/bin\/attn$/m);
  assert.match(files('attn'), /\/usr\/share\/man\/man1\/attn\.1\.gz$/m);
  const depends = read('dpkg-deb', '--field', packages.get(`libattn-c${abi}`), 'Depends');
  assert.match(depends, /\blibutf8proc\d/);
  t.diagnostic([...packages.keys()].join(', '));
});

function example(name, options, tests) {
  const folder = join(out, `example-${name}`);
  quiet('cmake', ['-S', join(source, 'examples', name), '-B', folder, ...options], { env });
  quiet('cmake', ['--build', folder, ...(tests ? ['--target', tests] : []), '--parallel', String(availableParallelism())], { env });
  const filter = tests ? ['--tests-regex', `^example_${tests}$`] : [];
  quiet('ctest', ['--test-dir', folder, '--output-on-failure', '--no-tests=error', ...filter], { env });
  return folder;
}

test('the C example compiles against the Debian packages and runs', limit, () => {
  const folder = example('c', []);
  const linked = quiet('ldd', [join(folder, 'sentence_similarity')], { env });
  assert.ok(linked.includes(join(libraries, `libattn_c.so.${abi}`)), linked);
});

test('a C++ example compiles against the Debian packages and runs', limit, () => {
  const folder = example('cpp', [`-DCMAKE_PREFIX_PATH=${installed}`], 'attention');
  assert.ok(readFileSync(join(folder, 'CMakeCache.txt'), 'utf8').includes(`attn_DIR:PATH=${libraries}`));
});

test('the packaged command runs', limit, () => assert.equal(quiet(join(installed, 'bin/attn'), ['--version']).trim(), version));

test('lintian finds no error', limit, (t) => {
  // The maintainers have no mail address, and no request for packaging exists.
  const known = 'bogus-mail-host,bogus-mail-host-in-debian-changelog,initial-upload-closes-no-bugs';
  const said = quiet('lintian', ['--allow-root', '--fail-on', 'error', '--suppress-tags', known, ...packages.values()]);
  if (said.trim()) t.diagnostic(said.trim());
});
