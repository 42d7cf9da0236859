/**
 * The Node host. What is under test comes by environment: ATTN_TEST_HOST is the Host of support/host.ts as JSON, ATTN_TEST_PACKAGE a folder with another
 * build of the package (the checked ones).
 */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { checkTable, suitesOf } from '../suites/table.mjs';

const host = JSON.parse(process.env.ATTN_TEST_HOST);
const folder = process.env.ATTN_TEST_PACKAGE;
const suites = fileURLToPath(new URL('../suites', import.meta.url));
checkTable(readdirSync(suites).filter((name) => name.endsWith('.ts')));

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  // Relative to web/lib, where its own manifest says what 'attn' is in Node; the package itself runs untouched, as a user's would.
  resolve: {
    alias: folder
      ? [
          { find: /^attn$/, replacement: join(folder, 'dist/node.js') },
          { find: /^attn\/worker$/, replacement: join(folder, 'dist/worker-node.js') },
        ]
      : [],
  },
  test: {
    globals: true,
    include: suitesOf(host).map((name) => `suites/${name}.ts`),
    setupFiles: ['node/setup.ts'],
    server: { deps: { external: [/\/dist\/[^/]+\.js$/] } },
    pool: 'forks',
    execArgv: ['--expose-gc', ...(host.takesRelaxed ? ['--experimental-wasm-relaxed-simd'] : [])],
    maxWorkers: 2,
    testTimeout: host.build === 'release' ? 60000 : 300000,
    hookTimeout: host.build === 'release' ? 60000 : 300000,
    reporters: ['default', 'json'],
    outputFile: { json: process.env.ATTN_TEST_OUTPUT },
  },
});
