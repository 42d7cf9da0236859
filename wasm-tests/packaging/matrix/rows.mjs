/**
 * The rows: a tool, the folder of tools/ that it needs, and how it makes and runs an app that uses attn. Each resolves to what check() says, by part.
 * Production builds and default settings; where one setting cannot be avoided, it is the row's `setting`.
 */
import { execFile, spawn } from 'node:child_process';
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { repository } from '../../support/steps.mjs';
import { programs } from '../../browser/drivers.mjs';
import { serve } from './server.mjs';

const execute = promisify(execFile);
const environment = { ...process.env, CI: 'true', ASTRO_TELEMETRY_DISABLED: '1', NEXT_TELEMETRY_DISABLED: '1', NODE_ENV: 'production' };
const run = async (folder, program, ...args) => {
  try {
    return (await execute(program, args, { cwd: folder, env: environment, maxBuffer: 1 << 24, timeout: 300_000 })).stdout;
  } catch (error) {
    throw new Error(`${program} ${args.join(' ')}: ${error.code}\n${`${error.stdout}${error.stderr}`.slice(-3000)}`, { cause: error });
  }
};
const bin = (folder, name, ...args) => run(folder, process.execPath, ...[join(folder, 'node_modules', name), ...args]);
const write = (folder, name, text) => {
  mkdirSync(join(folder, name, '..'), { recursive: true });
  writeFileSync(join(folder, name), text);
};
const model = join(repository, 'testdata/models/tiny-bert');
const copyDist = (folder, out, names) => {
  for (const name of readdirSync(join(folder, 'node_modules/attn/dist')))
    if (names.test(name)) copyFileSync(join(folder, 'node_modules/attn/dist', name), join(out, name));
};

/** A page that `build` makes in a folder of the app, which it resolves to. */
const page =
  (build, path = '', options = {}) =>
  async (folder, browser) => {
    const server = await serve(await build(folder), options);
    try {
      return await inBrowser(browser, server.url + path);
    } finally {
      await server.close();
    }
  };

/** What the page at a URL comes to; its console where it comes to nothing. */
async function inBrowser(browser, url, name = 'matrix') {
  await browser.open(url);
  const wait = `(async () => { for (let i = 0; i < 300 && !globalThis.${name}; ++i) await new Promise((r) => setTimeout(r, 100));
    return globalThis.${name} ? await Promise.race([globalThis.${name}, new Promise((r) => setTimeout(r, 60000, 'no answer'))]) : 'no answer'; })()`;
  const said = await browser.evaluate(wait);
  if (said === 'no answer') throw new Error(`no answer; the console says:\n${browser.messages().slice(-5).join('\n')}`);
  return said;
}

const started = (folder, program, args, env = {}) => {
  const child = spawn(program, args, { cwd: folder, env: { ...environment, ...env }, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.setEncoding('utf8').on('data', (text) => (said += text));
  const stop = () => {
    try {
      process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has ended.
    }
  };
  return { child, stop, said: () => said };
};

async function answering(url, { said }, seconds = 90) {
  for (let i = 0; i < seconds * 2; ++i) {
    try {
      await fetch(url);
      return;
    } catch {
      await new Promise((done) => setTimeout(done, 500));
    }
  }
  throw new Error(`${url} does not answer\n${said().slice(-2000)}`);
}

const html = (script) => `<!doctype html><html lang="en"><head><title>attn</title>${script}</head><body></body></html>`;
const module = (name) => html(`<script type="module" src="./${name}"></script>`);

/** The app in a program's runtime: the last line that it prints is JSON. */
const printed = (text) => JSON.parse(text.trim().split('\n').at(-1));
const program = `import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';
console.log(JSON.stringify(await check(load, loadInWorker, ${JSON.stringify(model)})));
process.exit(0);
`;

const viteBuild = async (folder) => (await bin(folder, 'vite/bin/vite.js', 'build', '--logLevel', 'warn'), join(folder, 'dist'));

/** vite's dev server, twice: what it finds on the way changes what it serves. */
const viteDev = async (folder, browser) => {
  write(
    folder,
    'vite.config.js',
    `export default { server: { headers: { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' } } };`,
  );
  cpSync(model, join(folder, 'public/model'), { recursive: true });
  const server = started(folder, process.execPath, ['node_modules/vite/bin/vite.js', '--port', '5199', '--strictPort', '--host', '127.0.0.1'], {
    NODE_ENV: 'development',
  });
  try {
    await answering('http://127.0.0.1:5199/', server);
    await inBrowser(browser, 'http://127.0.0.1:5199/').catch(() => {});
    return await inBrowser(browser, 'http://127.0.0.1:5199/');
  } finally {
    server.stop();
  }
};

const copies = (names) => `cp node_modules/attn/dist/{${names}} dist/`;
const beside = copies('*.wasm,worker-host.js,attn-threads.mjs');
const besidePattern = /\.wasm$|^worker-host\.js$|^attn-threads\.mjs$/;

const nodeRow = (version) => ({
  name: `Node ${version}`,
  async run(folder) {
    write(folder, 'main.mjs', program);
    // In a folder of its own: npm takes away what no package.json names.
    const own = join(folder, 'node');
    write(own, 'package.json', '{ "private": true }');
    await run(
      own,
      'npm',
      'install',
      '--no-save',
      '--no-package-lock',
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      `node-linux-${process.arch}@${version}`,
    );
    return printed(await run(folder, join(own, `node_modules/node-linux-${process.arch}/bin/node`), 'main.mjs'));
  },
});

export const rows = [
  {
    name: 'import map',
    run: page(async (folder) => {
      const imports = {};
      for (const [name, file] of [
        ['attn', 'index.js'],
        ['attn/worker', 'worker-web.js'],
      ])
        imports[name] = `/node_modules/attn/dist/${file}`;
      write(
        folder,
        'index.html',
        html(`<script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="./page.js"></script>`),
      );
      return folder;
    }),
  },
  { name: 'Vite 7, build', tool: 'vite7', run: page(viteBuild) },
  { name: 'Vite 7, dev', tool: 'vite7', run: viteDev },
  { name: 'Vite 8, build', tool: 'vite8', run: page(viteBuild) },
  { name: 'Vite 8, dev', tool: 'vite8', run: viteDev },
  {
    name: 'webpack',
    tool: 'webpack',
    run: page(async (folder) => {
      const { default: webpack } = await import(pathToFileURL(join(folder, 'node_modules/webpack/lib/index.js')).href);
      await built(webpack, { mode: 'production', context: folder, entry: './page.js', output: { path: join(folder, 'dist') } });
      write(folder, 'dist/index.html', module('main.js'));
      return join(folder, 'dist');
    }),
  },
  {
    name: 'Rspack',
    tool: 'rspack',
    run: page(async (folder) => {
      const { rspack } = await import(pathToFileURL(join(folder, 'node_modules/@rspack/core/dist/index.js')).href);
      await built(rspack, { mode: 'production', context: folder, entry: './page.js', output: { path: join(folder, 'dist') } });
      write(folder, 'dist/index.html', module('main.js'));
      return join(folder, 'dist');
    }),
  },
  {
    name: 'esbuild',
    tool: 'esbuild',
    setting: beside,
    run: page(async (folder) => {
      await run(
        folder,
        join(folder, 'node_modules/.bin/esbuild'),
        ...['page.js', '--bundle', '--format=esm', '--outdir=dist', '--splitting', '--minify', '--log-level=error'],
      );
      write(folder, 'dist/index.html', module('page.js'));
      copyDist(folder, join(folder, 'dist'), besidePattern);
      return join(folder, 'dist');
    }),
  },
  {
    name: 'Parcel',
    tool: 'parcel',
    setting: `package.json: "@parcel/resolver-default": { "packageExports": true }`,
    run: page(async (folder) => {
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
      write(folder, 'package.json', JSON.stringify({ ...manifest, '@parcel/resolver-default': { packageExports: true } }));
      await bin(folder, 'parcel/lib/bin.js', 'build', 'index.html', '--no-cache', '--log-level', 'error');
      return join(folder, 'dist');
    }),
  },
  {
    name: 'Rollup',
    tool: 'rollup',
    setting: beside,
    run: page(async (folder) => {
      await bin(folder, 'rollup/dist/bin/rollup', 'page.js', '-d', 'dist', '-p', 'node-resolve', '--silent');
      write(folder, 'dist/index.html', module('page.js'));
      copyDist(folder, join(folder, 'dist'), besidePattern);
      return join(folder, 'dist');
    }),
  },
  {
    name: 'package from another origin',
    run: page(async (folder) => {
      const elsewhere = await serve(folder);
      const at = (file) => `${elsewhere.url}node_modules/attn/dist/${file}`;
      const imports = { attn: at('index.js'), 'attn/worker': at('worker-web.js') };
      const script = `<script type="importmap">${JSON.stringify({ imports })}</script><script type="module" src="./page.js"></script>`;
      write(folder, 'site/index.html', html(script));
      for (const name of ['page.js', 'check.js']) copyFileSync(join(folder, name), join(folder, 'site', name));
      return join(folder, 'site');
    }),
  },
  {
    name: 'sandboxed iframe',
    alone: true,
    run: page(async (folder) => {
      const imports = { attn: './node_modules/attn/dist/index.js', 'attn/worker': './node_modules/attn/dist/worker-web.js' };
      const inner = `<script type="importmap">${JSON.stringify({ imports })}</script><script type="module">
        import { load } from 'attn';
        import { load as loadInWorker } from 'attn/worker';
        import { check } from './check.js';
        parent.postMessage(await check(load, loadInWorker, new URL('/model', document.baseURI).href), '*');
      </script>`;
      write(folder, 'inner.html', html(inner));
      write(
        folder,
        'index.html',
        `${html(`<script>globalThis.matrix = new Promise((done) => addEventListener('message', (event) => done(event.data)));</script>`)}<iframe
          sandbox="allow-scripts" allow="cross-origin-isolated" src="./inner.html"></iframe>`,
      );
      return folder;
    }),
  },
  ...[
    [
      'service worker',
      `navigator.serviceWorker.register('./script.js', { type: 'module' }).then(() => navigator.serviceWorker.ready).then((r) => r.active)`,
    ],
    ['SharedWorker', `Promise.resolve(new SharedWorker('./script.js', { type: 'module' }).port)`],
  ].map(([name, start]) => ({
    name,
    alone: true,
    run: page(async (folder) => {
      // Without a bundler there is no import map in workers.
      const entry = name === 'service worker' ? 'service-worker.js' : 'index.js';
      write(
        folder,
        'script.js',
        `import { load } from './node_modules/attn/dist/${entry}';
import { load as loadInWorker } from './node_modules/attn/dist/worker-web.js';
import { check } from './check.js';
const answer = (port) => (port.onmessage = async () => port.postMessage(await check(load, loadInWorker, new URL('/model', location).href)));
addEventListener('connect', (event) => answer(event.ports[0]));
addEventListener('message', (event) => event.ports[0] && answer(event.ports[0]).call());
`,
      );
      write(
        folder,
        'index.html',
        html(`<script type="module">
          globalThis.matrix = ${start}.then((target) => new Promise((done) => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = target.onmessage = (event) => done(event.data);
            target.postMessage('go', [port2]);
          }));
        </script>`),
      );
      return folder;
    }),
  })),
  ...['esbuild', 'vite8'].map((tool) => ({
    name: `service worker in one file by ${tool === 'vite8' ? 'Vite 8' : tool}`,
    tool,
    setting: copies('*.wasm'),
    run: page(async (folder) => {
      write(
        folder,
        'script.js',
        `import { load } from 'attn';
import { check } from './check.js';
addEventListener('message', async (event) => event.ports[0].postMessage(await check(load, undefined, new URL('/model', location).href)));
`,
      );
      if (tool === 'esbuild')
        await run(folder, join(folder, 'node_modules/.bin/esbuild'), 'script.js', '--bundle', '--format=esm', '--outdir=dist', '--log-level=error');
      else {
        write(
          folder,
          'vite.config.js',
          `export default { build: { lib: { entry: 'script.js', formats: ['es'], fileName: () => 'script.js' }, rollupOptions: { output: { codeSplitting: false } } } };`,
        );
        await viteBuild(folder);
      }
      copyDist(folder, join(folder, 'dist'), /\.wasm$/);
      write(
        folder,
        'dist/index.html',
        html(`<script type="module">
          globalThis.matrix = navigator.serviceWorker.register('./script.js', { type: 'module' }).then(() => navigator.serviceWorker.ready).then((r) => new Promise((done) => {
            const { port1, port2 } = new MessageChannel();
            port1.onmessage = (event) => done(event.data);
            r.active.postMessage('go', [port2]);
          }));
        </script>`),
      );
      return join(folder, 'dist');
    }),
  })),
  {
    name: 'AudioWorklet',
    without: 'model',
    setting: "import { load } from 'attn/service-worker', and give it a WebAssembly.Module",
    run: page(async (folder) => {
      write(
        folder,
        'worklet.js',
        `import { load } from './node_modules/attn/dist/service-worker.js';
import { check } from './check.js';
class Attn extends AudioWorkletProcessor {
  constructor({ processorOptions: { wasm, model } }) {
    super();
    check(load, undefined, model, { wasm }).then((results) => this.port.postMessage(results));
  }
  process() { return true; }
}
registerProcessor('attn', Attn);
`,
      );
      write(
        folder,
        'index.html',
        html(`<script type="module">
          globalThis.matrix = (async () => {
            const context = new OfflineAudioContext(1, 44100, 44100);
            await context.audioWorklet.addModule('./worklet.js');
            const wasm = await WebAssembly.compileStreaming(fetch('./node_modules/attn/dist/attn-simd.wasm'));
            const model = {};
            for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'modules.json', '1_Pooling/config.json', 'model.safetensors']) {
              const answer = await fetch('/model/' + name);
              if (answer.ok) model[name] = new Uint8Array(await answer.arrayBuffer());
            }
            const node = new AudioWorkletNode(context, 'attn', { processorOptions: { wasm, model } });
            return new Promise((done) => { node.port.onmessage = (event) => done(event.data); });
          })();
        </script>`),
      );
      return folder;
    }),
  },
  {
    name: 'Manifest-v3 extension',
    setting: `"content_security_policy": { "extension_pages": "script-src 'self' 'wasm-unsafe-eval'" }, and import from 'attn/service-worker'`,
    async run(folder) {
      const extension = join(folder, 'extension');
      cpSync(join(folder, 'node_modules/attn/dist'), join(extension, 'attn'), { recursive: true });
      cpSync(model, join(extension, 'model'), { recursive: true });
      copyFileSync(join(folder, 'check.js'), join(extension, 'check.js'));
      write(
        extension,
        'manifest.json',
        JSON.stringify({
          manifest_version: 3,
          name: 'attn',
          version: '1',
          background: { service_worker: 'background.js', type: 'module' },
          content_security_policy: { extension_pages: "script-src 'self' 'wasm-unsafe-eval'" },
        }),
      );
      write(
        extension,
        'background.js',
        `import { load } from './attn/service-worker.js';
import { check } from './check.js';
globalThis.matrix = check(load, undefined, chrome.runtime.getURL('model'));
`,
      );
      return inExtension(extension);
    },
  },
  ...['20.0.0', '20.11.1', '22.12.0', '24.0.0', '26.10.0'].map(nodeRow),
  {
    name: 'Bun',
    tool: 'bun',
    async run(folder) {
      write(folder, 'main.mjs', program);
      return printed(await run(folder, join(folder, `node_modules/@oven/bun-linux-${process.arch}/bin/bun`), 'main.mjs'));
    },
  },
  {
    name: 'Deno',
    tool: 'deno',
    async run(folder) {
      write(folder, 'main.mjs', program);
      const name = process.arch === 'x64' ? 'linux-x64-glibc' : 'linux-arm64-glibc';
      return printed(await run(folder, join(folder, `node_modules/@deno/${name}/deno`), 'run', '-A', 'main.mjs'));
    },
  },
  {
    name: 'workerd',
    tool: 'workerd',
    setting: "import wasm from 'attn/attn-simd.wasm', then load({ wasm })",
    async run(folder) {
      const files = readdirSync(join(folder, 'node_modules/attn/dist')).filter((name) =>
        /^(attn|index|load|load_model|model_options|options|placed|start_worker|web)\.(js|mjs)$/.test(name),
      );
      write(
        folder,
        'main.js',
        `import { load } from './node_modules/attn/dist/index.js';
import wasm from './node_modules/attn/dist/attn-simd.wasm';
import { check } from './check.js';
const names = ${JSON.stringify(readdirSync(model))};
export default {
  async fetch(request, env) {
    const model = {};
    for (const name of names) model[name] = new Uint8Array(await (await env.model.fetch('http://model/' + name)).arrayBuffer());
    return Response.json(await check(load, undefined, model, { wasm }));
  },
};
`,
      );
      const modules = ['main.js', 'check.js', ...files.map((name) => `node_modules/attn/dist/${name}`)].map(
        (name) => `(name = "${name}", esModule = embed "${name}")`,
      );
      write(
        folder,
        'config.capnp',
        `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .attn),
    (name = "model", disk = (path = ${JSON.stringify(model)})),
  ],
  sockets = [(name = "http", address = "127.0.0.1:5198", http = (), service = "main")],
);
const attn :Workerd.Worker = (
  modules = [
    ${modules.join(',\n    ')},
    (name = "node_modules/attn/dist/attn-simd.wasm", wasm = embed "node_modules/attn/dist/attn-simd.wasm"),
  ],
  compatibilityDate = "2025-01-01",
  bindings = [(name = "model", service = "model")],
);
`,
      );
      const server = started(folder, join(folder, `node_modules/@cloudflare/workerd-linux-${process.arch === 'x64' ? '64' : 'arm64'}/bin/workerd`), [
        'serve',
        'config.capnp',
      ]);
      try {
        await answering('http://127.0.0.1:5198/', server, 20);
        return await (await fetch('http://127.0.0.1:5198/')).json();
      } finally {
        server.stop();
      }
    },
  },
  {
    name: 'Jest, ESM',
    tool: 'jest',
    setting: 'node --experimental-vm-modules node_modules/.bin/jest',
    run: (folder) => jest(folder, ['--experimental-vm-modules']),
  },
  {
    name: 'Vitest',
    tool: 'vitest',
    async run(folder) {
      const out = join(folder, 'said.json');
      write(folder, 'a.test.js', `import { test } from 'vitest';\n${testing(out)}`);
      await bin(folder, 'vitest/vitest.mjs', 'run', '--reporter=dot');
      return JSON.parse(readFileSync(out, 'utf8'));
    },
  },
];

const testing = (out) => `import { writeFileSync } from 'node:fs';
import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';
test('attn', async () => writeFileSync(${JSON.stringify(out)}, JSON.stringify(await check(load, loadInWorker, ${JSON.stringify(model)}))), 60000);
`;

async function jest(folder, flags, options = '') {
  const out = join(folder, 'said.json');
  write(folder, 'a.test.js', `${options}${testing(out)}`);
  write(folder, 'jest.config.json', '{ "transform": {} }');
  await run(folder, process.execPath, ...flags, join(folder, 'node_modules/jest/bin/jest.js'), '--ci');
  return JSON.parse(readFileSync(out, 'utf8'));
}

/** What the service worker of an extension comes to. */
async function inExtension(extension) {
  const { chromium } = await import('playwright-core');
  const profile = mkdtempSync(join(tmpdir(), 'attn-extension-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: programs('chromium').chromium,
    headless: false,
    args: ['--headless=new', '--no-sandbox', '--disable-gpu', `--disable-extensions-except=${extension}`, `--load-extension=${extension}`],
    ignoreDefaultArgs: ['--disable-extensions'],
  });
  try {
    const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker', { timeout: 20000 }));
    return await worker.evaluate(() => globalThis.matrix);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
}

const built = (bundler, configuration) =>
  new Promise((done, fail) =>
    bundler(configuration, (error, stats) => {
      if (error || stats.hasErrors()) fail(error ?? new Error(stats.toString({ all: false, errors: true })));
      else done();
    }),
  );
