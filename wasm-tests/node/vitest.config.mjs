/**
 * The Node host. What is under test comes by environment: ATTN_TEST_HOST is the Host of support/host.ts as JSON, ATTN_TEST_PACKAGE a folder with another
 * build of the package (the checked ones).
 */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const host = JSON.parse(process.env.ATTN_TEST_HOST);
const folder = process.env.ATTN_TEST_PACKAGE;
// The checked builds are one single-threaded binary, and slow: what is about other binaries or about speed stays out. So does running out of memory:
// the checks themselves allocate when something is thrown, and AddressSanitizer takes no limit from the caller.
const left = host.build === 'release' ? [] : ['loading', 'threads', 'worker', 'bits', 'out_of_memory'];
if (!host.complete) left.push('tokenizer'); // no WebAssembly

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
    include: ['suites/*.ts'],
    exclude: ['suites/index.ts', ...left.map((name) => `suites/${name}.ts`)],
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
