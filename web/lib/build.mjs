// Makes dist/: the compiled sources, the hand-written types, Comlink, and the WebAssembly of a build folder.
//   node build.mjs [--wasm FOLDER] [--out FOLDER]
// FOLDER defaults to build/wasm of the repository, and to dist.
import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const here = dirname(fileURLToPath(import.meta.url));
const root = join(here, '..', '..');
const { values } = parseArgs({
  options: { wasm: { type: 'string', default: join(root, 'build', 'wasm') }, out: { type: 'string', default: join(here, 'dist') } },
});
const wasm = resolve(values.wasm);
const out = resolve(values.out);
const require = createRequire(import.meta.url);

// A checked build has one binary only; the package then has what there is.
const binaries = ['attn.mjs', 'attn-simd.wasm'];
const others = ['attn-relaxed.wasm', 'attn-simd-threads.wasm', 'attn-relaxed-threads.wasm', 'attn-threads.mjs', 'attn-threads-node.mjs'];
for (const name of binaries)
  if (!existsSync(join(wasm, name))) {
    console.error(`${join(wasm, name)} is missing: cmake --preset wasm && cmake --build --preset wasm makes it`);
    process.exit(1);
  }

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });

const tsc = spawnSync(process.execPath, [require.resolve('typescript/bin/tsc'), '-p', here, '--outDir', out], { stdio: 'inherit' });
if (tsc.status !== 0) process.exit(tsc.status ?? 1);

for (const name of ['attn.d.ts', 'worker.d.ts']) copyFileSync(join(here, 'src', name), join(out, name));

// Comlink goes in as a file of our own: a page's import map does not reach into its workers, so there a bare 'comlink' means nothing.
const comlink = dirname(require.resolve('comlink/package.json'));
for (const [from, to] of [
  ['comlink.min.mjs', 'comlink.js'],
  ['node-adapter.min.mjs', 'comlink-node.js'],
]) {
  const text = readFileSync(join(comlink, 'dist', 'esm', from), 'utf8');
  writeFileSync(join(out, to), text.replace(/\n\/\/# sourceMappingURL=.*\s*$/, '\n'));
}

/**
 * The threads glue starts its workers itself, by an expression that bundlers stop at, and in Node it makes Worker a global.
 * Here it is made to ask for workers, so that src/ starts them, sees their errors and ends them.
 */
function askForWorkers(name, text) {
  const replaceOne = (pattern, replacement) => {
    if (text.match(pattern)?.length !== 1) throw new Error(`${name}: expected exactly one ${pattern}; the glue of this Emscripten is another`);
    text = text.replace(pattern, () => replacement);
  };
  replaceOne(
    /allocateUnusedWorker\(\)\{var worker;.*?PThread\.unusedWorkers\.push\(worker\)\}/gs,
    'allocateUnusedWorker(){PThread.unusedWorkers.push(Module["createWorker"]())}',
  );
  if (name === 'attn-threads-node.mjs') replaceOne(/global\.Worker=worker_threads\.Worker;/g, '');
  return text;
}

for (const name of [...binaries, ...others]) {
  const from = join(wasm, name);
  if (!existsSync(from)) continue;
  if (name.includes('threads') && name.endsWith('.mjs')) writeFileSync(join(out, name), askForWorkers(name, readFileSync(from, 'utf8')));
  else copyFileSync(from, join(out, name));
}
copyFileSync(join(root, 'LICENSE'), join(here, 'LICENSE'));
copyFileSync(join(root, 'THIRD_PARTY_NOTICES.md'), join(out, 'THIRD_PARTY_NOTICES.md'));
