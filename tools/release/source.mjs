/**
 * Tests the source archive alone: unpacks it, builds it without git, installs it, and builds an example with it.
 *   node tools/release/source.mjs   tests the current commit
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sourceArchive } from './archives.mjs';
import { versionOf } from './versions.mjs';

export function trySource(archive, version) {
  const work = mkdtempSync(join(tmpdir(), 'attn-source-'));
  const at = (...parts) => join(work, ...parts);
  try {
    execFileSync('tar', ['xzf', archive, '-C', work]);
    const source = at(`attn-${version}`);
    return [
      ['cmake', '-S', source, '-B', at('build'), '-DATTN_WERROR=ON'],
      ['cmake', '--build', at('build'), '--parallel', String(availableParallelism())],
      ['cmake', '--install', at('build'), '--prefix', at('installed')],
      ['cmake', '-S', join(source, 'examples/cpp'), '-B', at('examples'), `-DCMAKE_PREFIX_PATH=${at('installed')}`],
      ['cmake', '--build', at('examples'), '--target', 'attention'],
      ['ctest', '--test-dir', at('examples'), '--output-on-failure', '--no-tests=error', '--tests-regex', '^example_attention$'],
      [at('installed/bin/attn'), '--version'],
    ].find(([program, ...args]) => spawnSync(program, args, { cwd: work, stdio: ['ignore', 'inherit', 'inherit'] }).status !== 0);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const root = fileURLToPath(new URL('../..', import.meta.url));
  const version = versionOf(root);
  const folder = mkdtempSync(join(tmpdir(), 'attn-archive-'));
  const archive = join(folder, 'attn.tar.gz');
  sourceArchive(root, archive, version);
  const failed = trySource(archive, version);
  rmSync(folder, { recursive: true });
  if (failed) console.log(`${failed.join(' ')} failed`);
  process.exitCode = failed ? 1 : 0;
}
