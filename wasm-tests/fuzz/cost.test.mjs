/** Runs cost.mjs for twenty seconds, with a fixed seed. */
import { strict as assert } from 'node:assert';
import { test } from 'node:test';
import { limit } from '../support/node_tests.mjs';
import { search } from './cost.mjs';

test('no tokenizer.json and no text takes more time, steps or memory than its size allows', limit, async (t) => {
  const { findings, useful, summary } = await search({ seconds: 20, seed: 122378224 });
  t.diagnostic(summary);
  assert.deepEqual(findings, [], 'cases that cost too much, printed above');
  assert.ok(useful, 'too few files were accepted');
});
