// Builds dist/: the sources and Comlink as a few minified files with source maps, the type declarations, and the
// WebAssembly of a build folder (default: build/wasm in the repository).
//
//   node build.mjs [--wasm FOLDER] [--out FOLDER]
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { rolldown } from 'rolldown';
import { minifySync } from 'rolldown/utils';
import { breakLines } from './break_lines.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const { values } = parseArgs({
  options: { wasm: { type: 'string', default: join(root, 'build', 'wasm') }, out: { type: 'string', default: join(here, 'dist') } },
});
const wasm = resolve(values.wasm);
const out = resolve(values.out);
const require = createRequire(import.meta.url);

// Checked builds have no others; `make wasm` builds no threads.
const binaries = ['attn.mjs', 'attn-simd.wasm'];
const others = ['attn-relaxed.wasm', 'attn-threads.mjs', 'attn-threads-node.mjs', 'attn-simd-threads.wasm', 'attn-relaxed-threads.wasm'];
for (const name of binaries)
  if (!existsSync(join(wasm, name))) {
    console.error(`${join(wasm, name)} is missing: cmake --preset wasm && cmake --build --preset wasm makes it`);
    process.exit(1);
  }

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

// Functions and classes keep their names for stack traces.
const minify = { compress: { target: 'es2022' }, mangle: { toplevel: true, keepNames: true } };

/**
 * Emscripten's glue starts threads by an expression that breaks bundlers, and makes Worker a global in Node. The
 * adapted glue asks src/ for workers, and does not fetch the .wasm, since import.meta.url breaks in some bundles.
 */
function ownGlue(name, text) {
  const replaceOne = (pattern, replacement) => {
    if (text.match(pattern)?.length !== 1) throw new Error(`${name}: expected exactly one ${pattern}; the glue of this Emscripten is another`);
    text = text.replace(pattern, () => replacement);
  };
  replaceOne(/wasmBinaryFile\s*\?\?=.*?\.catch\(readyPromiseReject\);/gs, '');
  replaceOne(/var _scriptName = import\.meta\.url;/g, 'var _scriptName = "";');
  if (name.endsWith('-node.mjs')) {
    // A CommonJS bundle has no URL for createRequire() and no top-level await.
    replaceOne(/import \{ createRequire \} from 'module';\s*const require = createRequire\(import\.meta\.url\);/g, '');
    replaceOne(/if\(!import\.meta\.url\.startsWith\("data:"\)\)\{.*?\}/g, '');
    replaceOne(/\(await import\('worker_threads'\)\)/g, 'require("worker_threads")');
    text = withImports(text);
  } else {
    // The form in checked builds.
    const address = /if\(ENVIRONMENT_IS_WEB\|\|ENVIRONMENT_IS_WORKER\)\{if\(ENVIRONMENT_IS_WORKER\)\{scriptDirectory=.*?(?=var out=)/s;
    if (address.test(text)) {
      text = text.replace(address, '');
      replaceOne(/var ENVIRONMENT_IS_NODE=.*?;/g, '');
      replaceOne(/what\+="\. Build with -sASSERTIONS for more info\.";/g, '');
      replaceOne(/err\(`Module\.instantiateWasm callback failed.*?`\);/g, '');
    }
  }
  if (!name.includes('threads')) return text;
  // Throw in the caller, which waits for the tasks of a crashed thread.
  replaceOne(
    /var runtimeKeepalivePush=.*?throw"unwind"\};/gs,
    'var _emscripten_exit_with_live_runtime=()=>{throw Error("a helper thread has stopped")};',
  );
  replaceOne(
    /allocateUnusedWorker\(\)\{var worker;.*?PThread\.unusedWorkers\.push\(worker\)\}/gs,
    'allocateUnusedWorker(){PThread.unusedWorkers.push(Module["createWorker"]())}',
  );
  // A thrown error would end the process or the worker; src/ handles it.
  replaceOne(/worker\.onerror=e=>\{.*?throw e\};/gs, name.endsWith('-node.mjs') ? 'worker.onerror=()=>{};' : '');
  if (name.endsWith('-node.mjs')) replaceOne(/global\.Worker=worker_threads\.Worker;/g, '');
  else {
    replaceOne(/for\(const handler of msgData\.handlers\)\{.*?(?=wasmMemory=msgData\.wasmMemory)/gs, '');
    replaceOne(/var handlers=\[\];var knownHandlers=.*?(?=worker\.postMessage\(\{cmd:"load",handlers,)/gs, 'var handlers=[];');
    replaceOne(/else if\(cmd==="callHandler"\)\{.*?\}(?=else)/gs, '');
    replaceOne(/else if\(cmd==="alert"\)\{.*?\}(?=else)/gs, '');
    replaceOne(/err\(`Internal error! Worker sent.*?`\)/gs, '');
    replaceOne(/else if\(cmd\)\{err\(`worker: received unknown command.*?err\(msgData\)\}/gs, '');
    replaceOne(/else if\(cmd\)\{err\(`worker sent an unknown command.*?`\)\}/gs, '');
    replaceOne(/function threadAlert.*?self\.alert=threadAlert;/gs, '');
  }
  if (text.includes('import.meta')) throw new Error(`${name}: still asks for its own address`);
  return text;
}

function withImports(text) {
  const builtins = new Set();
  const body = text.replaceAll(/\brequire\("(\w+)"\)/g, (_, builtin) => (builtins.add(builtin), `node_${builtin}`));
  return [...builtins].map((builtin) => `import node_${builtin} from "node:${builtin}";\n`).join('') + body;
}

for (const name of [...binaries, ...others]) {
  const from = join(wasm, name);
  if (!existsSync(from)) continue;
  if (name.endsWith('.wasm')) {
    copyFileSync(from, join(out, name));
    continue;
  }
  const text = readFileSync(from, 'utf8');
  // Shorter names save 1 kB.
  const { code, errors } = minifySync(name, ownGlue(name, text), {
    module: true,
    ...minify,
    mangle: { toplevel: true },
  });
  if (errors.length > 0) throw new Error(`${name}: ${errors[0].message}`);
  writeFileSync(join(out, name), code);
}

const tsc = spawnSync(process.execPath, [require.resolve('typescript/bin/tsc'), '-p', here], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

const comlink = (file) => join(dirname(require.resolve('comlink/package.json')), 'dist', 'esm', file);
const files = {
  'comlink.js': comlink('comlink.mjs'),
  'comlink-node.js': comlink('node-adapter.mjs'),
  'jinja.js': join(dirname(require.resolve('@huggingface/jinja')), 'index.js'),
  'minisearch.js': join(dirname(require.resolve('minisearch')), '..', 'es', 'index.js'),
};

/** Bundles the package's dependencies, because a page's import map does not apply to its workers. */
const dependencies = { name: 'dependencies', resolveId: (id) => files[basename(id)] };

const noGlue = '\0no-glue';

/** Resolves the glue to a separate file or to a part of the bundle. */
const glue = (isPart) => ({
  name: 'glue',
  resolveId(id) {
    if (!/\/glue\/attn[\w-]*\.mjs$/.test(id)) return undefined;
    const name = basename(id);
    if (!isPart(name)) return { id: `./${name}`, external: true };
    return existsSync(join(out, name)) ? join(out, name) : noGlue;
  },
  load(id) {
    if (id === noGlue) return 'export default undefined';
    // Only the separate file is the script of a thread.
    return /\battn[\w-]*\.mjs$/.test(id)
      ? { code: readFileSync(id, 'utf8').replace(/globalThis\.self\?\.name\?\.startsWith\([^)]*\)&&\w+\(\);\s*$/, ''), map: { mappings: '' } }
      : undefined;
  },
});

const sourcemapPathTransform = (source, map) => {
  const file = resolve(dirname(map), source);
  return file.startsWith(here) ? `../${relative(here, file)}` : `../${file.slice(file.lastIndexOf('node_modules/'))}`;
};

const hasThreads = existsSync(join(out, 'attn-threads.mjs'));
const define = { ATTN_THREADS: String(hasThreads) };
const common = { platform: 'neutral', resolve: { extensionAlias: { '.js': ['.ts', '.js'] } }, transform: { target: 'es2022', define } };
const format = { format: 'es', sourcemap: true, sourcemapPathTransform, minify };
/** For files of which no bundler leaves out a part: without its annotations. */
const whole = { comments: { annotation: false } };

function write({ fileName, code, map }) {
  // Bundlers recognise these expressions only with a quoted string.
  const quoted = code.replace(/\b(new URL|import)\(`([^`$]+)`/g, '$1("$2"');
  writeFileSync(join(out, fileName), breakLines(quoted, map));
  // Sources of dependencies are in their own packages.
  const sourcesContent = map.sourcesContent.map((source, i) => (map.sources[i].includes('node_modules/') ? null : source));
  writeFileSync(join(out, `${fileName}.map`), JSON.stringify({ ...map, sourcesContent }));
}

/** One script, although GGUF files need a part of it only. */
const shared = new RegExp(
  `/src/(${[
    'args/(error|hub|nested|refuse_text|arrays|abort_listeners|caches|signature|options)',
    'platform/(utf8|abort|event_loop|download|dispose|asset_urls|instance|model_storage)',
    'engine/(native|trace_names|training)',
    'model/safetensors(_header)?',
  ].join('|')})[.]ts$`,
);

/** Entries in one file each. */
const alone = {
  element: 'element/element.ts',
  'search-element': 'element/attn_search.ts',
  lens: 'lens/lens.ts',
  tokenizer: 'tokenizer/text_tokenizer.ts',
  chunk: 'tokenizer/chunk.ts',
  static: 'static/static_model.ts',
  cache: 'cache/browser.ts',
};
/** The bundler names shared scripts after a module in them, which may be called as such an entry. */
const chunkName = (extension) => (chunk) => `${chunk.name in alone ? `${chunk.name}_parts` : chunk.name}.${extension}`;

/** attn/search, and in Node attn/cache, share code with the entries that they are used with. */
const inputs = (...names) => ({
  ...Object.fromEntries(names.map((name) => [name, join(here, 'src', `${name}.ts`)])),
  search: join(here, 'src', 'search', 'search.ts'),
  'cache-node': join(here, 'src', 'cache', 'node.ts'),
});

/** Entries with shared code in a few files: without a bundler a page would discover nested imports one by one. */
async function bundle() {
  const bundled = await rolldown({
    ...common,
    input: inputs('index', 'node', 'worker-web', 'worker-node', 'worker-host-node'),
    external: /^node:/,
    plugins: [dependencies, glue(() => false)],
  });
  const codeSplitting = {
    groups: [
      { name: 'shared', test: shared },
      { name: 'node_files', test: /\/src\/platform\/node_\w+[.]ts$/ },
    ],
  };
  const { output } = await bundled.generate({ ...format, dir: out, entryFileNames: '[name].js', chunkFileNames: chunkName('js'), codeSplitting });
  for (const file of output) if (file.type === 'chunk') write(file);
}

/** Jest's jsdom has no TextEncoder; worklets also lack AbortController. */
const from = (module, ...names) => Object.fromEntries(names.map((name) => [name, [module, name]]));

/** An entry and the glue in one file. */
async function bundleWhole(name, inject = {}, more = {}) {
  const bundled = await rolldown({
    ...common,
    transform: { ...common.transform, inject },
    input: join(here, 'src', `${name}.ts`),
    plugins: [dependencies, glue(() => true)],
  });
  const { output } = await bundled.generate({ ...format, ...more, dir: out, codeSplitting: false });
  const chunks = output.filter(({ type }) => type === 'chunk');
  if (chunks.length !== 1) throw new Error(`${name}.js needs ${chunks.map(({ fileName }) => fileName).join()}`);
  write(chunks[0]);
}

/** The source map has attn's own sources only, to save space. marked's address for reports is not attn's. */
const parsers = {
  name: 'parsers',
  load(id) {
    if (!/\/node_modules\/(marked|htmlparser2|entities)\//.test(id)) return undefined;
    const code = readFileSync(id, 'utf8').replace(/\nPlease report this to https:\/\/github\.com\/markedjs\/marked\./, '');
    return { code, map: { mappings: '' } };
  },
};

async function bundleCommand() {
  const outside = { '../node.js': 'node', '../lens/lens.js': 'lens', '../search/search.js': 'search', '../tokenizer/chunk.js': 'chunk' };
  const bundled = await rolldown({
    ...common,
    platform: 'node',
    input: join(here, 'src', 'cli', 'cli.ts'),
    external: /^node:/,
    plugins: [entries(outside), parsers],
  });
  const banner = ({ isEntry }) => (isEntry ? '#!/usr/bin/env node' : '');
  const { output } = await bundled.generate({ ...format, ...whole, dir: out, banner, chunkFileNames: 'cli_[name].js' });
  for (const file of output) if (file.type === 'chunk') write(file);
}

/** For hosts that cannot require ES modules: Jest by default, Node before 20.19. */
async function bundleCommonJs() {
  const bundled = await rolldown({
    ...common,
    transform: { ...common.transform, inject: from('node:util', 'TextEncoder', 'TextDecoder') },
    platform: 'node',
    input: inputs('node', 'worker-node', 'worker-host-node'),
    plugins: [dependencies, glue((name) => !name.includes('threads'))],
    external: /^node:/,
  });
  const { output } = await bundled.generate({ format: 'cjs', minify, ...whole, entryFileNames: '[name].cjs', chunkFileNames: chunkName('cjs') });
  for (const { fileName, code } of output)
    writeFileSync(join(out, fileName), breakLines(code.replace('worker-host-node.js', 'worker-host-node.cjs')));
}

/** Other entries as files of their own, since shared chunks would be further files for pages. */
const entries = (files) => ({
  name: 'entries',
  resolveId: (id) => (id in files ? { id: `./${files[id]}.js`, external: true } : undefined),
});

async function bundleAlone(name, source) {
  const plugins = [entries({ '../worker-web.js': 'worker-web', '../search/search.js': 'search', '../tokenizer/text_tokenizer.js': 'tokenizer' })];
  const bundled = await rolldown({ ...common, input: { [name]: join(here, 'src', source) }, plugins });
  const { output } = await bundled.generate({ ...format, dir: out, entryFileNames: '[name].js' });
  write(output[0]);
  if (name === 'cache') return; // hosts that require() have cache-node.cjs
  const required = await bundled.generate({ format: 'cjs', minify, ...whole, entryFileNames: '[name].cjs' });
  writeFileSync(join(out, `${name}.cjs`), breakLines(required.output[0].code.replace(/(?<=\.\/tokenizer\.)js\b/g, 'cjs')));
}

await bundle();
for (const [name, source] of Object.entries(alone)) await bundleAlone(name, source);
await bundleWhole('worker-host');
await bundleWhole('service-worker', from(join(here, 'src', 'platform', 'worklet.ts'), 'TextEncoder', 'TextDecoder', 'AbortController'), whole);
await bundleCommand();
if (hasThreads) await bundleCommonJs();

// With node16 resolution declarations for import and for require() cannot refer to each other.
for (const file of readdirSync(join(here, 'src')).filter((each) => each.endsWith('.d.ts') && each !== 'build.d.ts')) {
  const text = readFileSync(join(here, 'src', file), 'utf8');
  writeFileSync(join(out, file), text);
  writeFileSync(join(out, file.replace('.ts', '.cts')), text.replaceAll(/'\.\/(\w+)\.js'/g, "'./$1.cjs'").replace('export default', 'export ='));
}

copyFileSync(join(root, 'LICENSE'), join(here, 'LICENSE'));
copyFileSync(join(root, 'THIRD_PARTY_NOTICES.md'), join(out, 'THIRD_PARTY_NOTICES.md'));
