import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const folder = process.env.ATTN_TEST_PACKAGE;

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  base: './',
  resolve: {
    alias: folder
      ? [
          { find: /^attn$/, replacement: join(folder, 'dist/index.js') },
          { find: /^attn\/worker$/, replacement: join(folder, 'dist/worker-web.js') },
          { find: /^attn\/lens$/, replacement: join(folder, 'dist/lens.js') },
          { find: /^attn\/search$/, replacement: join(folder, 'dist/search.js') },
          { find: /^attn\/static$/, replacement: join(folder, 'dist/static.js') },
          { find: /^attn\/cache$/, replacement: join(folder, 'dist/cache.js') },
        ]
      : [],
  },
  build: {
    emptyOutDir: true,
    target: 'es2022',
    minify: false,
    modulePreload: { polyfill: false },
  },
  worker: { format: 'es' },
  logLevel: 'warn',
});
