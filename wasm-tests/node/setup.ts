/** Defines mocha's names of hooks, and the Host. */
import { appendFileSync } from 'node:fs';
import { takeCoverage } from 'node:v8';
import { afterAll, beforeAll } from 'vitest';

Object.assign(globalThis, {
  before: beforeAll,
  after: afterAll,
  attnHost: {
    ...JSON.parse(process.env.ATTN_TEST_HOST!),
    server: process.env.ATTN_TEST_SERVER!,
    note: (text: string) => appendFileSync(process.env.ATTN_TEST_NOTES!, `${text}\n`),
  },
});

// Vitest ends its processes before Node writes coverage.
if (process.env.NODE_V8_COVERAGE) afterAll(takeCoverage);
