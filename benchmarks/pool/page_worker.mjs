/** Runs the suite in a page's worker, with nested workers. */
import { runPool } from './suite.mjs';

const post = (news) => fetch('/news', { method: 'POST', body: JSON.stringify(news) });

function spawn() {
  const worker = new Worker('/benchmarks/pool/worker.mjs', { type: 'module' });
  const listen = (heard) => {
    worker.onmessage = ({ data }) => heard(data);
    worker.onerror = ({ message, filename, lineno }) => heard({ error: `${message} ${filename}:${lineno}` });
  };
  return { worker, listen };
}

try {
  const asked = JSON.parse(new URLSearchParams(self.name).get('asked'));
  const { texts } = await (await fetch('/testdata/sentiment/products.json')).json();
  await runPool(
    {
      engine: asked.engine,
      variants: ['relaxed', 'simd'],
      cores: navigator.hardwareConcurrency,
      spawn,
      module: (variant) => WebAssembly.compileStreaming(fetch(`/attn/attn-${variant}.wasm`)),
      entry: '/attn/index.js',
      folder: `${location.origin}/checkpoints/all-MiniLM-L6-v2/`,
      texts: texts.map(({ text }) => text),
    },
    post,
  );
  await post({ done: true });
} catch (error) {
  await post({ fatal: String(error?.stack ?? error) });
}
