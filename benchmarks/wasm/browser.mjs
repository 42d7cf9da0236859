/** Runs the cases in a worker of an isolated page in a real browser, which posts its records. */
import { createReadStream, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join, normalize, resolve, sep } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { show, version, within } from '../../wasm-tests/browser/drivers.mjs';

const repository = fileURLToPath(new URL('../..', import.meta.url));
const folders = {
  '/benchmarks/': join(repository, 'benchmarks'),
  '/attn/': join(repository, 'web/lib/dist'),
  '/gemm/': join(repository, 'build/wasm-release/benchmarks'),
  '/models/': join(repository, 'build/bench/models'),
  '/checkpoints/': join(repository, 'models'),
  '/testdata/': join(repository, 'testdata'),
};
const types = { '.html': 'text/html; charset=utf-8', '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };

function answer(request, response, onNews) {
  response.setHeader('cross-origin-opener-policy', 'same-origin');
  response.setHeader('cross-origin-embedder-policy', 'require-corp');
  response.setHeader('cache-control', 'no-store');
  const path = decodeURIComponent(new URL(request.url, 'http://localhost').pathname);
  if (request.method === 'POST') {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => (onNews(JSON.parse(Buffer.concat(chunks).toString())), response.writeHead(204).end()));
    return;
  }
  const folder = Object.keys(folders).find((each) => path.startsWith(each));
  const file = folder && resolve(folders[folder], '.' + sep + normalize(path.slice(folder.length)));
  if (!file?.startsWith(folders[folder] + sep)) return void response.writeHead(404).end();
  try {
    const { size } = statSync(file);
    response.writeHead(200, { 'content-type': types[extname(file)] ?? 'application/octet-stream', 'content-length': size });
    createReadStream(file).pipe(response);
  } catch {
    response.writeHead(404).end();
  }
}

/** Runs the cases in a browser and passes on its records; rejects if the page fails or becomes silent. */
export async function runBrowser(engine, options, tell, script = '/benchmarks/wasm/worker.mjs') {
  let failed;
  let done = false;
  let heard = Date.now();
  const server = createServer((request, response) =>
    answer(request, response, (news) => {
      heard = Date.now();
      if (news.fatal) failed ??= news.fatal;
      if (news.done) done = true;
      tell(news);
    }),
  );
  await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
  const asked = JSON.stringify({ host: engine, engine: version(engine), options });
  let browser;
  try {
    browser = await show(engine, `http://127.0.0.1:${server.address().port}/benchmarks/wasm/page.html?${new URLSearchParams({ asked, script })}`);
    while (!done && !failed) {
      if (Date.now() - heard > 240_000) throw new Error('no news for 240 s');
      await sleep(100);
    }
    if (failed) throw new Error(failed);
  } finally {
    await within(browser?.close() ?? Promise.resolve(), 20_000, `${engine} did not close`).catch((error) => console.error(error.message));
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  }
}
