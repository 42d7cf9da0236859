/** Gives the suites mocha's names for the hooks, and their Host. */
import { appendFileSync } from 'node:fs';
import { afterAll, beforeAll } from 'vitest';

Object.assign(globalThis, {
  before: beforeAll,
  after: afterAll,
  attnHost: {
    ...JSON.parse(process.env.ATTN_TEST_HOST!),
    note: (text: string) => appendFileSync(process.env.ATTN_TEST_NOTES!, `${text}\n`),
  },
});
