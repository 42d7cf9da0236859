import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { root } from './processes.mjs';

/** Files below the root that match a pattern with * and **, like node:fs from Node 22 on. */
export function globSync(pattern) {
  if (!pattern.includes('*')) return [pattern];
  const [folder] = pattern.split('*');
  const expression = new RegExp(
    `^${pattern
      .replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')
      .replaceAll('**/', '\0')
      .replaceAll('*', '[^/]*')
      .replaceAll('\0', '(?:.*/)?')}$`,
  );
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .map((name) => join(folder, name))
    .filter((name) => expression.test(name))
    .sort();
}
