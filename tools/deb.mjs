/**
 * node tools/deb.mjs [ARCHIVE]: builds Debian packages in build/deb from a source archive (default: the current
 * commit) and tests them (tests/debian). xsimd and xtensor of Debian 12 are too old; tools/setup native installs
 * those of Debian 13.
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
const { DEBFULLNAME = 'attn maintainers', DEBEMAIL = 'maintainers@attn.invalid' } = process.env;
const date = existsSync(join(root, '.git')) ? read('git', '-C', root, 'log', '-1', '--format=%cD') : new Date().toUTCString().replace('GMT', '+0000');
writeFileSync(
  join(source, 'debian/changelog'),
  `attn (${version}-1) unstable; urgency=medium\n\n  * New upstream version.\n\n -- ${DEBFULLNAME} <${DEBEMAIL}>  ${date}\n`,
);

quiet('dpkg-buildpackage', ['--build=binary', '--unsigned-changes', `--jobs=${availableParallelism()}`], {
  cwd: source,
  // Skips the packages with debug symbols (30 MB) unless the caller set options. debhelper sets an empty HOME, so
  // ccache gets its folder explicitly.
  env: {
    DEB_BUILD_OPTIONS: process.env.DEB_BUILD_OPTIONS ?? 'noautodbgsym',
    CCACHE_DIR: process.env.CCACHE_DIR ?? read('ccache', '--get-config', 'cache_dir'),
  },
});
const { status } = spawnSync(process.execPath, ['--test', '--test-reporter=spec', join(root, 'tests/debian/packages.test.mjs')], {
  stdio: 'inherit',
});
process.exitCode = status ?? 1;
