// Builds a static site whose search works offline: node examples/site/build.mjs [OUT]
// OUT is a new or empty folder, by default build/site, which is replaced. It can then be served as it is, for example by
// python3 -m http.server -d build/site
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const path = (relative) => fileURLToPath(new URL(relative, import.meta.url));
const dist = path('../../web/lib/dist'); // after npm install: node_modules/attn/dist
const model = path('../../testdata/models/sentiment');
const out = process.argv[2] ?? path('../../build/site');

if (!process.argv[2]) rmSync(out, { recursive: true, force: true });
else if (existsSync(out) && readdirSync(out).length > 0) {
  console.error(`${out} is not empty, expected a new folder`);
  process.exit(2);
}
mkdirSync(out, { recursive: true });
for (const name of ['index.html', 'service_worker.js', 'pages']) cpSync(path(name), join(out, name), { recursive: true });
cpSync(model, join(out, 'model'), { recursive: true });
cpSync(dist, join(out, 'attn'), {
  recursive: true,
  filter: (file) => !/\.(map|cts|ts|cjs)$|^(node|cli|worker-host-node|worker-node)\b/.test(basename(file)),
});

// npx attn index pages --model model --out index.safetensors
const args = ['index', join(out, 'pages'), '--model', model, '--out', join(out, 'index.safetensors')];
execFileSync(process.execPath, [join(dist, 'cli.js'), ...args], { stdio: 'inherit' });
