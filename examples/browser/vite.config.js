// npx vite examples/browser, or npx vite build examples/browser
export default {
  base: './',
  // The package finds its .wasm and its worker beside its own files: the dev server must not move it.
  optimizeDeps: { exclude: ['attn'] },
  worker: { format: 'es' },
};
