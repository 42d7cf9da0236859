/**
 * node [--experimental-wasm-relaxed-simd] benchmarks/pool/run.mjs [chromium|firefox|webkit]: compares workers with
 * threads, in Node or a browser; prints a JSON line per case. Needs `tools/setup models` and `make wasm`.
 */
import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { runBrowser } from '../wasm/browser.mjs';
import { runPool } from './suite.mjs';

const at = (path) => new URL(`../../${path}`, import.meta.url);
const tell = (news) => console.log(JSON.stringify(news, (_, value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)));

const [engine] = process.argv.slice(2);
if (engine) {
  await runBrowser(engine, {}, tell, '/benchmarks/pool/page_worker.mjs');
} else {
  const spawn = () => {
    const worker = new Worker(new URL('worker.mjs', import.meta.url));
    return { worker, listen: (heard) => worker.on('message', heard).on('error', (error) => heard({ error: error.stack })) };
  };
  const relaxed = process.execArgv.includes('--experimental-wasm-relaxed-simd');
  await runPool(
    {
      engine: `Node ${process.versions.node}`,
      variants: [relaxed ? 'relaxed' : 'simd'],
      cores: availableParallelism(),
      spawn,
      processorMs: () => (({ user, system }) => (user + system) / 1000)(process.cpuUsage()),
      module: async (variant) => WebAssembly.compile(await readFile(at(`web/lib/dist/attn-${variant}.wasm`))),
      entry: at('web/lib/dist/node.js').href,
      folder: fileURLToPath(at('models/all-MiniLM-L6-v2')),
      texts: JSON.parse(readFileSync(at('testdata/sentiment/products.json'), 'utf8')).texts.map(({ text }) => text),
    },
    tell,
  );
  process.exit(0);
}
