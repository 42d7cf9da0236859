import { strict as assert } from 'node:assert';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { mutants } from '../mutants/native-list.mjs';
import { root } from './processes.mjs';

test('each planted bug of the C++ core still has its place in the sources', () => {
  const lost = mutants.filter(({ file, find }) => {
    const path = join(root, 'src/attn', file);
    return !existsSync(path) || readFileSync(path, 'utf8').split(find).length !== 2;
  });
  assert.deepEqual(lost, [], 'their text is not in the file exactly once');
});
