import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { gzipSync } from 'node:zlib';
import { zipSync } from 'fflate';

/** The committed files as attn-VERSION/ in a .tar.gz; times are the commit's, and gzip's header has none. */
export function sourceArchive(root, file, version, commit = 'HEAD') {
  const args = ['-c', 'tar.umask=0022', 'archive', '--format=tar', `--prefix=attn-${version}/`, commit];
  writeFileSync(file, gzipSync(execFileSync('git', args, { cwd: root, maxBuffer: 1 << 30 }), { level: 9 }));
}

export function zipFolder(folder, file, name) {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort();
  const entries = paths.map((path) => [`${name}/${relative(folder, path).split(sep).join('/')}`, readFileSync(path)]);
  writeFileSync(file, zipSync(Object.fromEntries(entries), { level: 9, mtime: new Date(1980, 0, 1) }));
}

export const sha256 = (file) => createHash('sha256').update(readFileSync(file)).digest('hex');

export function writeSums(folder) {
  const names = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile() && entry.name !== 'SHA256SUMS');
  const lines = names.map(({ name }) => `${sha256(join(folder, name))}  ${name}\n`).sort((a, b) => (a.slice(66) < b.slice(66) ? -1 : 1));
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}
