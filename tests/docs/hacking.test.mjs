/** Runs each line of the block of test commands in HACKING.md: it must run at least one test, which passes. */
import { strict as assert } from 'node:assert';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { at, repository } from '../../wasm-tests/support/paths.mjs';

const [, block] = /^## Test$.*?^```sh\n(.*?)^```/ms.exec(readFileSync(at('HACKING.md'), 'utf8'));
const lines = block.trim().split('\n');
/** Success messages of Vitest, Catch2, node:test, pytest and tools/test.mjs, and the output of --list. */
const passed = /Tests\s+.*[1-9]\d* passed|All tests passed|^# pass [1-9]|^[1-9]\d* passed|^lint$/m;

test('the block has ten commands', () => assert.equal(lines.length, 10));

for (const line of lines)
  test(line.replace(/ +#.*/, ''), limit, () => {
    // A nested test runner would report to the outer one.
    const env = { ...process.env, NO_COLOR: '1' };
    delete env.NODE_TEST_CONTEXT;
    const { status, stdout, stderr } = spawnSync('bash', ['-c', line], { cwd: repository, env, encoding: 'utf8' });
    assert.equal(status, 0, `${stdout}\n${stderr}`.slice(-3000));
    assert.match(stdout, passed);
  });
