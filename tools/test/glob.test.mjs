import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { globSync } from './glob.mjs';

test('a pattern finds files, a path without one is itself', () => {
  assert.ok(globSync('tools/test/*.test.mjs').includes('tools/test/glob.test.mjs'));
  assert.ok(globSync('native-tests/**/*.cpp').includes('native-tests/io/json_test.cpp'));
  assert.ok(!globSync('native-tests/*.cpp').includes('native-tests/io/json_test.cpp'));
  assert.deepEqual(globSync('tests/docs/site.test.mjs'), ['tests/docs/site.test.mjs']);
});
