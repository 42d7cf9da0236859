/** `--only` finds a test by its name in the steps of every group. */
import { strict as assert } from 'node:assert';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { root } from './processes.mjs';

const listed = (text) =>
  execFileSync(process.execPath, ['tools/test.mjs', '--list', '--only', text], { cwd: root, encoding: 'utf8' }).trim().split('\n');

// Names are read from the files: in this file they would be found as well.
for (const [file, ...expected] of [
  ['tests/bundlers/bundlers.test.mjs', 'bundlers'],
  ['tools/release/rules.test.mjs', 'release: its rules'],
  ['wasm-tests/page/memory.test.mjs', 'page-chromium: memory', 'page-firefox: the rest', 'page-webkit: the rest'],
  ['wasm-tests/page/map.test.mjs', 'page-chromium'],
])
  test(`a name of ${file} selects ${expected.join(', ')}`, () => {
    const [, , name] = /^ *\w*[tT]est\((["'])(.*?)\1, /m.exec(readFileSync(join(root, file), 'utf8'));
    assert.deepEqual(listed(name), expected);
  });
