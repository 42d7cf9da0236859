// npx vite examples/browser, or npx vite build examples/browser
export default {
  base: './',
  // The package finds its .wasm and worker next to its own files, so the dev server must not move it.
  optimizeDeps: { exclude: ['attn'] },
  worker: { format: 'es' },
};
