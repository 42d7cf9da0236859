/** packaging/last_release: what the next release is compared with. Absent until there was one. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const folderOf = (root) => join(root, 'packaging/last_release');
const write = (path, value) => writeFileSync(path, `${JSON.stringify(value, null, 2)}\n`);

/** { version, sizes, api }; undefined: nothing was released yet. */
export function lastRelease(root) {
  const folder = folderOf(root);
  if (!existsSync(folder)) return undefined;
  const read = (name) => JSON.parse(readFileSync(join(folder, name), 'utf8'));
  return { ...read('sizes.json'), api: read('api.json') };
}

/** In two files: one is read by people, the other is long. */
export function writeLastRelease(root, { version, sizes, api }) {
  mkdirSync(folderOf(root), { recursive: true });
  write(join(folderOf(root), 'sizes.json'), { version, sizes });
  write(join(folderOf(root), 'api.json'), api);
}
