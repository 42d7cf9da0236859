import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { bin, copyDist, inBrowser, model, module, page, printed, run, says, serving, write } from './apps.mjs';

const vite = async (folder) => (await bin(folder, 'vite/bin/vite.js', 'build', '--logLevel', 'warn'), join(folder, 'dist'));

/** Loads the page twice, because Vite's dependency discovery changes the served files. */
async function viteDev(folder, browser) {
  const headers = { 'cross-origin-opener-policy': 'same-origin', 'cross-origin-embedder-policy': 'require-corp' };
  write(folder, 'vite.config.js', `export default { server: { headers: ${JSON.stringify(headers)} } };`);
  cpSync(model, join(folder, 'public/tiny-bert'), { recursive: true });
  const args = ['node_modules/vite/bin/vite.js', '--port', '5199', '--strictPort', '--host', '127.0.0.1'];
  const twice = async (url) => {
    await inBrowser(browser, url).catch(() => {});
    return inBrowser(browser, url);
  };
  return serving(folder, process.execPath, args, 'http://127.0.0.1:5199/', twice, { NODE_ENV: 'development' });
}

const packed = (file, name) => async (folder) => {
  const { [name]: bundler } = await import(pathToFileURL(join(folder, 'node_modules', file)).href);
  const configuration = { mode: 'production', context: folder, entry: './page.js', output: { path: join(folder, 'dist') } };
  await new Promise((done, fail) =>
    bundler(configuration, (error, stats) => {
      if (error || stats.hasErrors()) fail(error ?? new Error(stats.toString({ all: false, errors: true })));
      else done();
    }),
  );
  write(folder, 'dist/index.html', module('main.js'));
  return join(folder, 'dist');
};

const beside = 'cp node_modules/attn/dist/{*.wasm,worker-host.js,attn-threads.mjs} dist/';
const besidePattern = /\.wasm$|^worker-host\.js$|^attn-threads\.mjs$/;

async function esbuild(folder) {
  const args = ['page.js', '--bundle', '--format=esm', '--outdir=dist', '--splitting', '--minify', '--log-level=error'];
  await run(folder, join(folder, 'node_modules/.bin/esbuild'), ...args);
  write(folder, 'dist/index.html', module('page.js'));
  copyDist(folder, join(folder, 'dist'), besidePattern);
  return join(folder, 'dist');
}

async function parcel(folder) {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  write(folder, 'package.json', JSON.stringify({ ...manifest, '@parcel/resolver-default': { packageExports: true } }));
  await bin(folder, 'parcel/lib/bin.js', 'build', 'index.html', '--no-cache', '--log-level', 'error');
  return join(folder, 'dist');
}

async function rollup(folder) {
  await bin(folder, 'rollup/dist/bin/rollup', 'page.js', '-d', 'dist', '-p', 'node-resolve', '--silent');
  write(folder, 'dist/index.html', module('page.js'));
  copyDist(folder, join(folder, 'dist'), besidePattern);
  return join(folder, 'dist');
}

const besideProgram = 'cp node_modules/attn/dist/*.{wasm,js,mjs,cjs} dist/';

const commonJs = (build) => async (folder) => {
  const program = `import { load } from 'attn';
import { load as loadInWorker } from 'attn/worker';
import { check } from './check.js';
check(load, loadInWorker, ${JSON.stringify(model)}).then((said) => (console.log(JSON.stringify(said)), process.exit(0)));
`;
  write(folder, 'program.js', program);
  await build(folder);
  copyDist(folder, join(folder, 'dist'), /\.(wasm|m?js|cjs)$/);
  return printed(await run(folder, process.execPath, 'dist/program.cjs'));
};
const esbuildProgram = ['program.js', '--bundle', '--platform=node', '--format=cjs', '--outfile=dist/program.cjs', '--log-level=error'];
const nodeResolve = 'node-resolve={exportConditions:["node"]}';
const rollupProgram = ['program.js', '-o', 'dist/program.cjs', '-f', 'cjs', '--inlineDynamicImports', '-p', nodeResolve, '--silent'];

export const bundlers = [
  { name: 'Vite 7, build', line: 'Vite 7 and 8 (build, dev)', tool: 'vite7', run: page(vite) },
  { name: 'Vite 7, dev', line: 'Vite 7 and 8 (build, dev)', tool: 'vite7', run: viteDev },
  { name: 'Vite 8, build', line: 'Vite 7 and 8 (build, dev)', tool: 'vite8', gate: true, run: page(vite) },
  { name: 'Vite 8, dev', line: 'Vite 7 and 8 (build, dev)', tool: 'vite8', run: viteDev },
  { name: 'webpack', tool: 'webpack', gate: true, run: page(packed('webpack/lib/index.js', 'default')) },
  { name: 'Rspack', tool: 'rspack', run: page(packed('@rspack/core/dist/index.js', 'rspack')) },
  { name: 'esbuild', tool: 'esbuild', gate: true, setting: beside, run: page(esbuild) },
  { name: 'Rollup', tool: 'rollup', setting: beside, run: page(rollup) },
  { name: 'Parcel', tool: 'parcel', setting: `"@parcel/resolver-default": { "packageExports": true }`, run: page(parcel) },
  {
    name: 'esbuild (CommonJS for Node)',
    tool: 'esbuild',
    gate: true,
    setting: besideProgram,
    says: says.program,
    run: commonJs((folder) => run(folder, join(folder, 'node_modules/.bin/esbuild'), ...esbuildProgram)),
  },
  {
    name: 'Rollup (CommonJS for Node)',
    tool: 'rollup',
    setting: besideProgram,
    says: says.program,
    run: commonJs((folder) => bin(folder, 'rollup/dist/bin/rollup', ...rollupProgram)),
  },
].map((row) => ({ says: { ...says.page, entries: 'works' }, ...row }));
