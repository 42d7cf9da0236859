import { strict as assert } from 'node:assert';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function edit(folder, file, pattern, replacement) {
  const path = join(folder, file);
  const before = readFileSync(path, 'utf8');
  const after = before.replace(pattern, replacement);
  assert.notEqual(after, before, `${file} has nothing like ${pattern}`);
  writeFileSync(path, after);
}
