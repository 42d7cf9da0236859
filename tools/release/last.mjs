/** packaging/last_release describes the previous release, for comparison. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folderOf = (root) => join(root, 'packaging/last_release');
const write = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);

export function lastRelease(root) {
  const folder = folderOf(root);
  if (!existsSync(folder)) return undefined;
  const read = (name) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  return { ...read('sizes.json'), api: read('api.json') };
}

export function writeLastRelease(root, { version, sizes, api }) {
  mkdirSync(folderOf(root), { recursive: true });
  write(join(folderOf(root), 'sizes.json'), { version, sizes });
  write(join(folderOf(root), 'api.json'), api);
}
