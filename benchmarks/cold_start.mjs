/**
 * node benchmarks/cold_start.mjs [RUNS]: measures the time from nothing to the first result of the worked example,
 * without weights; prints JSON. In Node each run is a separate process, timed from its first statement, before the
 * package is imported. In Chromium each run has a new browser and profile; a page on localhost imports web/lib/dist,
 * compressed and uncached, and is timed from navigation. script_ms is the browser's own time before the page's first
 * statement.
 */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { launch, missing } from '../wasm-tests/browser/drivers.mjs';
import { summary } from './wasm/measure.mjs';

const dist = fileURLToPath(new URL('../web/lib/dist/', import.meta.url));
const goal = 100;

/** The worked example; `done` gets the known first number and the time. */
const example = (from) => `
const { load } = await import(${JSON.stringify(from)});
const attn = await load();
const [query, key, value] = [
  [1, 0, 2, 2, 2, 2, 2, 1, 3],
  [0, 1, 1, 4, 4, 0, 2, 3, 1],
  [1, 2, 3, 2, 8, 0, 2, 6, 3],
].map((rows) => ({ data: new Float32Array(rows), dims: [3, 3] }));
const { output } = attn.scaledDotProductAttention(query, key, value, { scale: 1 });
const result = { first: output.data[0], ms: performance.now() - started, variant: attn.info.variant };
`;
const page = `<!doctype html><meta charset="utf-8"><title>attn</title><link rel="icon" href="data:,">
<script type="module">const started = 0, script = performance.now();${example('/dist/index.js')}globalThis.result = { ...result, script };</script>`;
const program = `const started = performance.now();${example(pathToFileURL(join(dist, 'node.js')).href)}console.log(JSON.stringify(result));`;

function checked({ first, ...times }) {
  if (Math.abs(first - 1.936621) > 1e-5) throw new Error(`the worked example began with ${first}, expected 1.936621`);
  return times;
}

function serve() {
  const types = { '.js': 'text/javascript', '.mjs': 'text/javascript', '.wasm': 'application/wasm' };
  const compressed = new Map();
  const server = createServer((request, response) => {
    const path = new URL(request.url, 'http://localhost').pathname;
    const type = types[extname(path)];
    try {
      if (!compressed.has(path))
        compressed.set(path, brotliCompressSync(path === '/' ? page : readFileSync(join(dist, path.replace(/^\/dist\//, '')))));
    } catch {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': type ?? 'text/html; charset=utf-8', 'content-encoding': 'br', 'cache-control': 'no-store' });
    response.end(compressed.get(path));
  });
  return new Promise((ready) => server.listen(0, '127.0.0.1', () => ready(server)));
}

async function chromium(url) {
  const browser = await launch('chromium');
  try {
    await browser.open(url);
    return checked(
      await browser.evaluate(async () => {
        while (!globalThis.result) await new Promise((done) => setTimeout(done, 5));
        return globalThis.result;
      }),
    );
  } finally {
    await browser.close();
  }
}

async function node() {
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', program]);
  return checked(JSON.parse(stdout));
}

async function measure(host, runs, once) {
  const samples = [];
  for (let i = 0; i < runs; i++) samples.push(await once());
  const round = (ms) => Math.round(ms * 10) / 10;
  const times = (name) => summary(samples.map((sample) => sample[name]));
  const { min_ms, median_ms } = times('ms');
  const { variant, script } = samples[0];
  const record = { host, variant, runs, min_ms: round(min_ms), median_ms: round(median_ms), goal_ms: goal, met: round(median_ms) < goal };
  return script === undefined ? record : { ...record, script_ms: round(times('script').median_ms) };
}

/** Returns records for Node and, if available, Chromium. */
export async function coldStart(runs = 10) {
  const records = [await measure('node', runs, node)];
  if (missing('chromium').length === 0) {
    const server = await serve();
    try {
      const url = `http://127.0.0.1:${server.address().port}/`;
      await chromium(url); // compresses the files, and loads the browser into the disk cache
      records.push(await measure('chromium', runs, () => chromium(url)));
    } finally {
      server.close();
    }
  }
  return records;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(JSON.stringify(await coldStart(Number(process.argv[2] ?? 10)), undefined, 2));
