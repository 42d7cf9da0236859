import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { besideThePage, hasDocs, packedBytes, readSourceAddress } from './card/plugin.ts';

/** `vite` alone, for developing: styles are put into the page by a script then, and news come through a socket. */
const forDeveloping = {
  name: 'csp-for-developing',
  apply: 'serve',
  transformIndexHtml: (html: string) =>
    html.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace("connect-src 'self'", "connect-src 'self' ws:"),
} as const;

/** What the files of a model come to that will stand beside the page (tools/setup models); 0 where they are not there now, or are to be left out. */
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
  // Relative addresses: the built folder works under any path.
  base: './',
  build: {
    outDir: fileURLToPath(new URL('../../build/page', import.meta.url)),
    emptyOutDir: true,
    rolldownOptions: { input: ['index.html', 'embed.html'].map((name) => fileURLToPath(new URL(name, import.meta.url))) },
    target: 'es2022',
    // light-dark() and color-mix() stay as written.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Nothing becomes a data: address and no inline script is written, so the page's CSP holds.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  // For what hangs, not for what is slow.
  test: { testTimeout: 600_000, hookTimeout: 600_000 },
  plugins: [forDeveloping, besideThePage(process.env['ATTN_PAGE_URL'] || undefined)],
});
