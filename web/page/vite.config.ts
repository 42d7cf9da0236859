import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

/** `vite` alone, for developing: styles are put into the page by a script then, and news come through a socket. */
const forDeveloping = {
  name: 'csp-for-developing',
  apply: 'serve',
  transformIndexHtml: (html: string) =>
    html.replace("style-src 'self'", "style-src 'self' 'unsafe-inline'").replace("connect-src 'self'", "connect-src 'self' ws:"),
} as const;

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
  plugins: [forDeveloping],
});
