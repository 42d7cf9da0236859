import { appendFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { takeCoverage } from 'node:v8';
import { afterAll, beforeAll } from 'vitest';
import { folderStorage } from '../../web/lib/src/platform/node_cache.ts';
import type { CacheKind } from '../support/host.ts';

function folderCaches(): CacheKind {
  const folder = mkdtempSync(join(tmpdir(), 'attn-cache-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  const opened = folderStorage('test', folder, false);
  const open = async (name: string) => (await opened)![name === 'attn-models' ? 'files' : 'parts'];
  const match = async (url: string) => (await (await open('attn-models')).match(url)) ?? (await open('attn-models-parts')).match(url);
  const storage = { open, match } as unknown as CacheStorage;
  const locks = { request: async (...given: [never, never, never]) => (await opened)!.locks!.request(...given) };
  const within: CacheKind['within'] = async (body) => {
    process.env.ATTN_CACHE_DIR = folder;
    try {
      return await body();
    } finally {
      delete process.env.ATTN_CACHE_DIR;
    }
  };
  return { storage, locks: locks as CacheKind['locks'], within };
}

Object.assign(globalThis, {
  before: beforeAll,
  after: afterAll,
  attnHost: {
    ...JSON.parse(process.env.ATTN_TEST_HOST!),
    server: process.env.ATTN_TEST_SERVER!,
    folderCaches,
    note: (text: string) => appendFileSync(process.env.ATTN_TEST_NOTES!, `${text}\n`),
  },
});

// Vitest ends its processes before Node writes coverage.
if (process.env.NODE_V8_COVERAGE) afterAll(takeCoverage);
