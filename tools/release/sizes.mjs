import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants } from 'node:zlib';

/** Bytes by name: the files of a release without their version, and the package's binaries as served (Brotli). */
export function sizesOf(folder, version, dist) {
  const sizes = {};
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isFile() && /\.(tgz|gz|zip|whl|deb)$/.test(entry.name))
      sizes[entry.name.replace(`-${version}`, '')] = statSync(join(folder, entry.name)).size;
  for (const name of dist ? readdirSync(dist) : [])
    if (name.endsWith('.wasm')) {
      const bytes = readFileSync(join(dist, name));
      const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
      sizes[`${name} as brotli`] = brotliCompressSync(bytes, { params }).length;
    }
  return sizes;
}

export function compareSizes(before, after) {
  const kB = (bytes) => `${(bytes / 1000).toFixed(1)} kB`;
  const growth = (from, to) => `${to >= from ? '+' : ''}${((100 * (to - from)) / from).toFixed(1)} %`;
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort().map((name) => {
    if (!(name in after)) return `${name}: gone, was ${kB(before[name])}`;
    if (!(name in before)) return `${name}: ${kB(after[name])}, new`;
    return `${name}: ${kB(after[name])}, was ${kB(before[name])}, ${growth(before[name], after[name])}`;
  });
}
