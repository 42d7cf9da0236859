import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { globSync } from './glob.mjs';

test('a pattern with wildcards finds files, other patterns are returned unchanged', () => {
  assert.ok(globSync('tools/test/*.test.mjs').includes('tools/test/glob.test.mjs'));
  assert.ok(globSync('native-tests/**/*.cpp').includes('native-tests/io/json_test.cpp'));
  assert.ok(!globSync('native-tests/*.cpp').includes('native-tests/io/json_test.cpp'));
  assert.deepEqual(globSync('tests/docs/site.test.mjs'), ['tests/docs/site.test.mjs']);
});
