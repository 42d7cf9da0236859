/** Scripts in other scopes than the page, and pages with restrictions; without a bundler unless stated. */
import { copyFileSync, cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programs } from '../../wasm-tests/browser/drivers.mjs';
import { bin, copyDist, html, inBrowser, model, module, page, run, says, served, write } from './apps.mjs';

const dist = './node_modules/attn/dist';
const mapped = (script) =>
  html(
    `<script type="importmap">${JSON.stringify({ imports: { attn: `${dist}/index.js`, 'attn/worker': `${dist}/worker-web.js` } })}</script>${script}`,
  );
const source = "new URL('/tiny-bert', location).href";

const importMap = page(async (folder) => (write(folder, 'index.html', mapped('<script type="module" src="./plain.js"></script>')), folder));

const elsewhere =
  (policyFor = () => null) =>
  (folder, browser) =>
    served(folder, async (url) => {
      const site = join(folder, 'site');
      const at = `${url}node_modules/attn/dist`;
      write(
        site,
        'page.js',
        `import { load } from '${at}/index.js';
import { load as loadInWorker } from '${at}/worker-web.js';
import { check } from './check.js';
globalThis.matrix = check(load, loadInWorker, '/tiny-bert');
`,
      );
      write(site, 'index.html', module('page.js'));
      copyFileSync(join(folder, 'check.js'), join(site, 'check.js'));
      return served(site, (own) => inBrowser(browser, own), { policy: policyFor(new URL(url).origin) });
    });

const sandboxed = page(async (folder) => {
  const inner = mapped(`<script type="module">
    import { load } from 'attn';
    import { load as loadInWorker } from 'attn/worker';
    import { check } from './check.js';
    parent.postMessage(await check(load, loadInWorker, new URL('/tiny-bert', document.baseURI).href), '*');
  </script>`);
  write(folder, 'inner.html', inner);
  const listening = `<script>globalThis.matrix = new Promise((done) => addEventListener('message', (event) => done(event.data)));</script>`;
  const frame = '<iframe sandbox="allow-scripts" allow="cross-origin-isolated" src="./inner.html"></iframe>';
  write(folder, 'index.html', html(listening) + frame);
  return folder;
});

const asking = (start) =>
  html(`<script type="module">
    globalThis.matrix = ${start}.then((target) => new Promise((done) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = target.onmessage = (event) => done(event.data);
      target.postMessage('go', [port2]);
    }));
  </script>`);
const serviceWorker = asking(
  `navigator.serviceWorker.register('./script.js', { type: 'module' }).then(() => navigator.serviceWorker.ready).then((r) => r.active)`,
);
const sharedWorker = asking(`Promise.resolve(new SharedWorker('./script.js', { type: 'module' }).port)`);

/** Workers have no import maps. */
const inWorker = (entry, asked) =>
  page(async (folder) => {
    write(
      folder,
      'script.js',
      `import { load } from '${dist}/${entry}.js';
import { load as loadInWorker } from '${dist}/worker-web.js';
import { check } from './check.js';
const answer = (port) => (port.onmessage = async () => port.postMessage(await check(load, loadInWorker, ${source})));
addEventListener('connect', (event) => answer(event.ports[0]));
addEventListener('message', (event) => event.ports[0] && answer(event.ports[0]).call());
`,
    );
    write(folder, 'index.html', asked);
    return folder;
  });

const bundledServiceWorker = (build) =>
  page(async (folder) => {
    write(
      folder,
      'script.js',
      `import { load } from 'attn';
import { check } from './check.js';
addEventListener('message', async (event) => event.ports[0].postMessage(await check(load, undefined, ${source})));
`,
    );
    await build(folder);
    copyDist(folder, join(folder, 'dist'), /\.wasm$/);
    write(folder, 'dist/index.html', serviceWorker);
    return join(folder, 'dist');
  });
const byEsbuild = (folder) =>
  run(folder, join(folder, 'node_modules/.bin/esbuild'), 'script.js', '--bundle', '--format=esm', '--outdir=dist', '--log-level=error');
function byVite(folder) {
  const lib = { entry: 'script.js', formats: ['es'] };
  const build = `{ lib: { ...${JSON.stringify(lib)}, fileName: () => 'script.js' }, rollupOptions: { output: { codeSplitting: false } } }`;
  write(folder, 'vite.config.js', `export default { build: ${build} };`);
  return bin(folder, 'vite/bin/vite.js', 'build', '--logLevel', 'warn');
}

/** A worklet has no fetch: the page passes the module and the model's files. */
const audioWorklet = (entry) =>
  page(async (folder) => {
    write(
      folder,
      'worklet.js',
      `import { load } from '${dist}/${entry}.js';
import { load as loadInWorker } from '${dist}/worker-web.js';
import { check } from './check.js';
class Attn extends AudioWorkletProcessor {
  constructor({ processorOptions: { wasm, model } }) {
    super();
    check(load, loadInWorker, model, { wasm }).then((results) => this.port.postMessage(results));
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
        const wasm = await WebAssembly.compileStreaming(fetch('${dist}/attn-simd.wasm'));
        const model = {};
        for (const name of ['config.json', 'tokenizer.json', 'tokenizer_config.json', 'model.safetensors'])
          model[name] = new Uint8Array(await (await fetch('/tiny-bert/' + name)).arrayBuffer());
        const node = new AudioWorkletNode(context, 'attn', { processorOptions: { wasm, model } });
        return new Promise((done) => { node.port.onmessage = (event) => done(event.data); });
      })();
    </script>`),
    );
    return folder;
  });

const mayCompile = `"content_security_policy": { "extension_pages": "script-src 'self' 'wasm-unsafe-eval'" }`;

/** As in docs/guide/bundlers.md: an offscreen document that is cross-origin isolated. */
const withOffscreen = {
  permissions: ['offscreen'],
  cross_origin_embedder_policy: { value: 'require-corp' },
  cross_origin_opener_policy: { value: 'same-origin' },
};

const inServiceWorker = {
  'background.js': `import { load } from './attn/service-worker.js';
import { load as loadInWorker } from './attn/worker-web.js';
import { check } from './check.js';
globalThis.matrix = check(load, loadInWorker, chrome.runtime.getURL('model'));
`,
};

const inOffscreenDocument = {
  'background.js': `globalThis.matrix = new Promise((resolve, reject) => {
  chrome.runtime.onMessage.addListener((results) => resolve(results));
  chrome.offscreen.createDocument({ url: 'offscreen.html', reasons: ['WORKERS'], justification: 'runs a model' }).catch(reject);
});
`,
  'offscreen.html': module('offscreen.js'),
  'offscreen.js': `import { load } from './attn/index.js';
import { load as loadInWorker } from './attn/worker-web.js';
import { check } from './check.js';
chrome.runtime.sendMessage(await check(load, loadInWorker, chrome.runtime.getURL('model')));
`,
};

const extension = (files, more) => async (folder) => {
  const unpacked = join(folder, 'extension');
  cpSync(join(folder, 'node_modules/attn/dist'), join(unpacked, 'attn'), { recursive: true });
  cpSync(model, join(unpacked, 'model'), { recursive: true });
  copyFileSync(join(folder, 'check.js'), join(unpacked, 'check.js'));
  const manifest = { manifest_version: 3, name: 'attn', version: '1', background: { service_worker: 'background.js', type: 'module' } };
  write(unpacked, 'manifest.json', JSON.stringify({ ...manifest, ...JSON.parse(`{ ${mayCompile} }`), ...more }));
  for (const [name, text] of Object.entries(files)) write(unpacked, name, text);
  const { chromium } = await import('playwright-core');
  const profile = mkdtempSync(join(tmpdir(), 'attn-extension-'));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: programs('chromium').chromium,
    headless: false,
    args: ['--headless=new', '--no-sandbox', '--disable-gpu', `--disable-extensions-except=${unpacked}`, `--load-extension=${unpacked}`],
    ignoreDefaultArgs: ['--disable-extensions'],
  });
  try {
    const worker = context.serviceWorkers()[0] ?? (await context.waitForEvent('serviceworker', { timeout: 20000 }));
    return await worker.evaluate(() => globalThis.matrix);
  } finally {
    await context.close();
    rmSync(profile, { recursive: true, force: true });
  }
};

const noBlob =
  'ENVIRONMENT: load: the worker did not start (attn/worker: the worker is gone (its script could not be loaded)); it is of another origin';
const lacks = 'ENVIRONMENT: attn: this host lacks ';
const forStatic = "import { load } from 'attn/service-worker'";

export const scopes = [
  { name: 'import map', says: says.page, run: importMap },
  { name: 'package on another origin', says: says.page, run: elsewhere() },
  {
    name: 'package on another origin (CSP without `blob:`)',
    says: { ...says.page, worker: noBlob, workerThreads: noBlob },
    run: elsewhere((origin) => `script-src 'self' 'wasm-unsafe-eval' ${origin}; worker-src 'self' ${origin}`),
  },
  {
    name: 'sandboxed iframe',
    says: { ...says.page, workerThreads: 'one thread instead of 2: the page is not cross-origin isolated' },
    run: sandboxed,
  },
  { name: 'service worker', says: says.alone, setting: forStatic, run: inWorker('service-worker', serviceWorker) },
  {
    name: 'service worker (from `attn`)',
    says: { ...says.alone, model: 'ENVIRONMENT: loadModel: could not load scripts' },
    run: inWorker('index', serviceWorker),
  },
  {
    name: 'service worker in one file by esbuild',
    line: 'service worker in one file',
    tool: 'esbuild',
    says: says.withoutWorker,
    setting: 'cp node_modules/attn/dist/*.wasm dist/',
    run: bundledServiceWorker(byEsbuild),
  },
  {
    name: 'service worker in one file by Vite 8',
    line: 'service worker in one file',
    tool: 'vite8',
    says: says.withoutWorker,
    setting: 'cp node_modules/attn/dist/*.wasm dist/',
    run: bundledServiceWorker(byVite),
  },
  { name: 'SharedWorker', says: says.alone, run: inWorker('index', sharedWorker) },
  { name: 'AudioWorklet', says: says.alone, setting: forStatic, run: audioWorklet('service-worker') },
  { name: 'AudioWorklet (from `attn`)', says: { ...says.alone, attention: lacks, model: lacks, threads: lacks }, run: audioWorklet('index') },
  { name: 'Manifest-v3 extension', says: says.alone, setting: mayCompile, run: extension(inServiceWorker) },
  { name: 'Manifest-v3 extension (offscreen document)', says: says.page, run: extension(inOffscreenDocument, withOffscreen) },
];
