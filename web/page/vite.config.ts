import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // Relative addresses: the built folder works under any path.
  base: './',
  build: {
    outDir: fileURLToPath(new URL('../../build/page', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    // light-dark() and color-mix() stay as written.
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    // Nothing becomes a data: address and no inline script is written, so the page's CSP holds.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
});
