// The suites of the package in Node, over its sources instead of the built files: where Stryker plants its mutants.
import { dirname, join } from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { defineConfig } from 'vitest/config';
import { startServer } from '../../wasm-tests/support/server.mjs';

const at = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));
const comlink = join(dirname(createRequire(import.meta.url).resolve('comlink/package.json')), 'dist/esm');
const server = await startServer();
const host = {
  engine: 'node',
  variant: 'simd',
  threads: 1,
  canThread: true,
  takesRelaxed: false,
  build: 'release',
  complete: true,
  server: server.url,
};

/** What lies beside the built files: the WebAssembly. */
const besideBuilt = {
  name: 'beside-built',
  enforce: 'pre',
  transform: (code, id) =>
    /\/web\/lib\/src\/.+\.ts$/.test(id)
      ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(at('web/lib/dist/node.js')).href))
      : undefined,
};

export default defineConfig({
  root: at('wasm-tests'),
  plugins: [besideBuilt],
  resolve: {
    alias: [
      { find: /^attn$/, replacement: at('web/lib/src/node.ts') },
      { find: /^attn\/worker$/, replacement: at('wasm-tests/node/worker_here.ts') },
      { find: /^.*\/glue\/(attn[\w-]*\.mjs)$/, replacement: `${at('web/lib/dist')}/$1` },
      { find: /^.*\/comlink\.js$/, replacement: join(comlink, 'comlink.mjs') },
      { find: /^.*\/comlink-node\.js$/, replacement: join(comlink, 'node-adapter.mjs') },
    ],
  },
  test: {
    globals: true,
    include: (process.env.MUTANTS_SUITES ?? '*').split(',').map((name) => `suites/${name}.ts`),
    exclude: ['suites/index.ts'],
    // What comes by import() too, before any test: else what it computes once would seem the first test's alone.
    setupFiles: ['node/setup.ts', at('web/lib/src/model/load_model.ts'), at('web/lib/src/worker/remote_model.ts')],
    env: { ATTN_TEST_HOST: JSON.stringify(host), ATTN_TEST_NOTES: '/dev/null' },
    server: { deps: { external: [/\/dist\//] } },
    testTimeout: 60000,
    hookTimeout: 60000,
  },
});
