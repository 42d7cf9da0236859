import { strict as assert } from 'node:assert';
import { availableParallelism } from 'node:os';
import { describe, test } from 'node:test';
import { limit } from '../../wasm-tests/support/node_tests.mjs';
import { fuzz, targets } from './run.mjs';

describe('libFuzzer', { concurrency: availableParallelism() }, () => {
  for (const target of targets)
    test(`${target}: no seed is refused, and no input crashes, leaks or hangs`, limit, async (t) => {
      const { passed, report } = await fuzz(target, { seconds: 30, seed: 1 });
      assert.ok(passed, report);
      t.diagnostic(report);
    });
});
