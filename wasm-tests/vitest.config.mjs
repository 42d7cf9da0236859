/**
 * The suites in Node. Without variables (`npx vitest -t "part of a name"` in this folder) they run on the TypeScript
 * sources with the WebAssembly of web/lib/dist, which `make wasm` builds. Environment variables:
 * - ATTN_TEST_PACKAGE: a folder with a built package, used unchanged
 * - ATTN_TEST_VARIANT: simd (default) or relaxed
 * - ATTN_TEST_THREADS: 1 (default) or more
 * - ATTN_TEST_BUILD: release (default), or the checked builds debug or asan
 */
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { defineConfig } from 'vitest/config';
import { checkMatrix, isComplete, suitesOf } from './suites/suite_matrix.mjs';
import { at } from './support/paths.mjs';

const { ATTN_TEST_PACKAGE: folder, ATTN_TEST_VARIANT: variant = 'simd', ATTN_TEST_THREADS = '1', ATTN_TEST_BUILD: build = 'release' } = process.env;
const threads = Number(ATTN_TEST_THREADS);
const dist = folder ? join(folder, 'dist') : at('web/lib/dist');
const canThread = existsSync(join(dist, 'attn-threads-node.mjs'));
if (!existsSync(join(dist, 'attn.mjs'))) throw new Error(`${dist} has no built WebAssembly: make wasm`);

const suites = fileURLToPath(new URL('suites', import.meta.url));
const all = checkMatrix(readdirSync(suites).filter((name) => name.endsWith('.ts')));
const set = { engine: 'node', variant, threads, build };
const complete = !folder || (build === 'release' && isComplete(set));

/**
 * With -t, loads only suites whose source contains the text, because others take seconds to load; all if there is none,
 * because names may contain data.
 */
function named(names) {
  const { values } = parseArgs({ strict: false, options: { testNamePattern: { type: 'string', short: 't' } } });
  const holds = (name) => readFileSync(join(suites, `${name}.ts`), 'utf8').includes(String(values.testNamePattern));
  const found = values.testNamePattern ? names.filter(holds) : [];
  return found.length > 0 ? found : names;
}

const require = createRequire(import.meta.url);
const comlink = join(dirname(require.resolve('comlink/package.json')), 'dist/esm');
const dependencies = [
  { find: /^.*\/comlink\.js$/, replacement: join(comlink, 'comlink.mjs') },
  { find: /^.*\/comlink-node\.js$/, replacement: join(comlink, 'node-adapter.mjs') },
  { find: /^.*\/jinja\.js$/, replacement: join(dirname(require.resolve('@huggingface/jinja')), 'index.js') },
  { find: /^.*\/minisearch\.js$/, replacement: join(dirname(require.resolve('minisearch')), '../es/index.js') },
];

/** Replaces built files by sources, except the WebAssembly and its glue. */
function fromSources() {
  return {
    plugins: [
      {
        name: 'beside-built',
        enforce: 'pre',
        transform: (code, id) =>
          /\/web\/lib\/src\/.+\.ts$/.test(id)
            ? code.replaceAll('import.meta.url', JSON.stringify(pathToFileURL(join(dist, 'node.js')).href))
            : undefined,
      },
    ],
    resolve: {
      alias: [
        { find: /^attn$/, replacement: at('web/lib/src/node.ts') },
        { find: /^attn\/worker$/, replacement: at('wasm-tests/node/worker_here.ts') },
        { find: /^attn\/lens$/, replacement: at('web/lib/src/lens/lens.ts') },
        { find: /^attn\/search$/, replacement: at('web/lib/src/search/search.ts') },
        { find: /^attn\/static$/, replacement: at('web/lib/src/static/static_model.ts') },
        { find: /^attn\/cache$/, replacement: at('web/lib/src/cache/node.ts') },
        { find: /^.*\/glue\/(attn[\w-]*\.mjs)$/, replacement: `${dist}/$1` },
        ...dependencies,
      ],
    },
  };
}

const built = {
  resolve: {
    alias: [
      { find: /^attn$/, replacement: join(dist, 'node.js') },
      { find: /^attn\/worker$/, replacement: join(dist, 'worker-node.js') },
      { find: /^attn\/lens$/, replacement: join(dist, 'lens.js') },
      { find: /^attn\/search$/, replacement: join(dist, 'search.js') },
      { find: /^attn\/static$/, replacement: join(dist, 'static.js') },
      { find: /^attn\/cache$/, replacement: join(dist, 'cache-node.js') },
      ...dependencies,
    ],
  },
};

export default defineConfig({
  ...(folder ? built : fromSources()),
  define: { ATTN_THREADS: String(canThread) },
  root: fileURLToPath(new URL('.', import.meta.url)),
  test: {
    globals: true,
    include: named(folder ? suitesOf(set) : all).map((name) => `suites/${name}.ts`),
    globalSetup: ['node/server.mjs'],
    setupFiles: ['node/setup.ts'],
    env: { ATTN_TEST_HOST: JSON.stringify({ ...set, canThread, takesRelaxed: variant === 'relaxed', complete, inOneThread: !folder }) },
    server: { deps: { external: [/\/dist\//] } },
    pool: 'forks',
    execArgv: ['--expose-gc', ...(variant === 'relaxed' ? ['--experimental-wasm-relaxed-simd'] : [])],
    maxWorkers: Math.min(2, availableParallelism()),
    // The time limits stop hanging tests, not slow ones.
    testTimeout: 600_000,
    hookTimeout: 600_000,
  },
});
