// Builds a static site whose search works offline: node examples/site/build.mjs [OUT]
// OUT, by default build/site, can then be served as it is, for example by python3 -m http.server -d build/site
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const dist = path('../../web/lib/dist'); // after npm install: node_modules/attn/dist
const model = path('../../testdata/models/sentiment');
const out = process.argv[2] ?? path('../../build/site');

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
for (const name of ['index.html', 'service_worker.js', 'pages']) cpSync(path(name), join(out, name), { recursive: true });
cpSync(model, join(out, 'model'), { recursive: true });
cpSync(dist, join(out, 'attn'), { recursive: true, filter: (file) => !/\.(map|cts|ts|cjs)$/.test(file) });

// npx attn index pages --model model --out index.safetensors
const args = ['index', join(out, 'pages'), '--model', model, '--out', join(out, 'index.safetensors')];
execFileSync(process.execPath, [join(dist, 'cli.js'), ...args], { stdio: 'inherit' });
