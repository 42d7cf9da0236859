import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { besideThePage, hasDocs, packedBytes, readSourceAddress } from './card/plugin.ts';

/** For the development server, which injects styles and uses a socket. */
const forDeveloping = {
  name: 'csp-for-developing',
  apply: 'serve',
  transformIndexHtml: (html: string) =>
    html.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace("connect-src 'self'", "connect-src 'self' ws:"),
} as const;

/** attn's worker is one file. The page runs it with one thread and on texts, so the parts for others are left out. */
const smallWorker = {
  name: 'small-worker',
  transform(code: string, id: string) {
    if (!id.endsWith('/dist/worker-host.js')) return undefined;
    const without = ['threaded', 'images'].reduce((left, part) => {
      const next = left.replace(new RegExp(`\\b${part}:async\\(\\)=>[\\w$]+`), `${part}:void 0`);
      if (next === left) throw new Error(`${id} has no part "${part}"`);
      return next;
    }, code);
    return { code: without, map: null };
  },
};

/** Size of a model's files next to the page (tools/setup models); 0 if they are missing or left out. */
function bytesOf(folder: string): number {
  if (process.env['MODELS'] === '0') return 0;
  const at = fileURLToPath(new URL(`../../models/${folder}`, import.meta.url));
  if (!existsSync(join(at, 'model.safetensors'))) return 0;
  return readdirSync(at, { recursive: true, encoding: 'utf8' }).reduce((sum, file) => {
    const found = statSync(join(at, file));
    return sum + (found.isFile() ? found.size : 0);
  }, 0);
}

export default defineConfig({
  define: {
    'import.meta.env.ATTN_INT8_BYTES': JSON.stringify(bytesOf('all-MiniLM-L6-v2-int8')),
    'import.meta.env.ATTN_DOCS': JSON.stringify(hasDocs()),
    'import.meta.env.ATTN_PACKAGE_BYTES': JSON.stringify(packedBytes()),
    'import.meta.env.ATTN_SOURCE': JSON.stringify(readSourceAddress()),
  },
  root: fileURLToPath(new URL('.', import.meta.url)),
  // Relative, so that the built folder works under any path.
  base: './',
  build: {
    outDir: fileURLToPath(new URL('../../build/page', import.meta.url)),
    emptyOutDir: true,
    rolldownOptions: { input: ['index.html', 'embed.html'].map((name) => fileURLToPath(new URL(name, import.meta.url))) },
    target: 'es2022',
    // Keeps light-dark() and color-mix().
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // No data: addresses and inline scripts, which the CSP forbids.
    assetsInlineLimit: 0,
    modulePreload: {
      polyfill: false,
      // Firefox reports an error when a later import preloads the script that is running.
      resolveDependencies: (_, files, { hostType }) => (hostType === 'html' ? files : files.filter((file) => !/\/index-[^/]*\.js$/.test(file))),
    },
  },
  // Nothing bundles the built page again, so it needs no annotations for bundlers.
  worker: { format: 'es', plugins: () => [smallWorker], rolldownOptions: { output: { comments: { annotation: false } } } },
  // A limit for hanging tests, not slow ones.
  test: { testTimeout: 600_000, hookTimeout: 600_000 },
  plugins: [forDeveloping, besideThePage(process.env['ATTN_PAGE_URL'] || undefined)],
});
