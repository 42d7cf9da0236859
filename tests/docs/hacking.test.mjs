/** Each line of HACKING.md's block of commands for single tests, as it is written there: it has to run a test, and to pass. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';

const [, block] = /^## Test$.*?^```sh\n(.*?)^```/ms.exec(readFileSync(at('HACKING.md'), 'utf8'));
const lines = block.trim().split('\n');
/** What Vitest, Catch2, node:test, pytest and tools/test.mjs print when a test has passed, and --list when there are steps. */
const passed = /Tests\s+.*[1-9]\d* passed|All tests passed|^# pass [1-9]|^[1-9]\d* passed|^lint$/m;

test('the block has ten commands', () => assert.equal(lines.length, 10));

for (const line of lines)
  test(line.replace(/ +#.*/, ''), limit, () => {
    // A test runner inside another one would report to it.
    const env = { ...process.env, NO_COLOR: '1' };
    delete env.NODE_TEST_CONTEXT;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', line], { cwd: repository, env, encoding: 'utf8' });
    assert.equal(status, 0, `${stdout}\n${stderr}`.slice(-3000));
    assert.match(stdout, passed);
  });
