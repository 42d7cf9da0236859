/**
 * node tools/deb.mjs [ARCHIVE]: packages for Debian in build/deb, built by dpkg-buildpackage in an unpacked source archive (without ARCHIVE: one of what
 * is committed). Then tests/debian looks at them by lintian, and compiles and runs the examples in C and C++ against what they hold.
 *
 * Debian 12 has older xsimd and xtensor than attn needs; tools/setup native takes Debian 13's, with which these build.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceArchive } from './release/archives.mjs';
import { versionOf } from './release/versions.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'build/deb');
const version = versionOf(root);
const source = join(out, `attn-${version}`);
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

// It compares the symbols of the C library with those in packaging/debian.
quiet('dpkg-buildpackage', ['--build=binary', '--unsigned-changes', `--jobs=${availableParallelism()}`], {
  cwd: source,
  // Without packages of debug symbols, 30 MB, unless asked otherwise. debhelper gives builds an empty home; what ccache has is found all the same.
  env: {
    DEB_BUILD_OPTIONS: process.env.DEB_BUILD_OPTIONS ?? 'noautodbgsym',
    CCACHE_DIR: process.env.CCACHE_DIR ?? read('ccache', '--get-config', 'cache_dir'),
  },
});
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', join(root, 'tests/debian/packages.test.mjs')], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
