/**
 * Runs the cases in Node: node [--experimental-wasm-relaxed-simd] benchmarks/wasm/node.mjs; prints a JSON line per
 * record or note.
 */
import { access, readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { load } from '../../web/lib/dist/node.js';
import { settings } from '../settings.mjs';
import { runSuite } from './suite.mjs';
import { tfjsWithGradients } from './tfjs_training.mjs';

const here = fileURLToPath(new URL('..', import.meta.url));
const require = createRequire(join(here, 'package.json'));
const { table, options } = await settings();

const copies = new Map();

const host = {
  name: 'node',
  engine: `Node ${process.versions.node} (V8 ${process.versions.v8})`,
  isolated: null, // concerns pages only
  threads: [1, 2],
  load,
  async gemm(variant) {
    const file = join(here, `../build/wasm-release/benchmarks/gemm-${variant}`);
    return { factory: (await import(pathToFileURL(`${file}.mjs`))).default, bytes: await readFile(`${file}.wasm`) };
  },
  // A copy per thread count, because the count is fixed at the first session and the ES module cannot be loaded twice.
  async onnxruntime(threads) {
    if (!copies.has(threads)) {
      for (const name of Object.keys(require.cache)) if (name.includes('onnxruntime')) delete require.cache[name];
      copies.set(threads, require('onnxruntime-web'));
    }
    return copies.get(threads);
  },
  async tfjs() {
    const tf = require('@tensorflow/tfjs-core');
    require('@tensorflow/tfjs-backend-wasm');
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    await tf.setBackend('wasm');
    return tf;
  },
  async tfjsWithGradients() {
    const tf = require(await tfjsWithGradients());
    tf.setWasmPaths(join(here, 'node_modules/@tensorflow/tfjs-backend-wasm/dist/'));
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    await tf.setBackend('wasm');
    return tf;
  },
  async jax() {
    const jax = await import(pathToFileURL(join(here, 'node_modules/@jax-js/jax/dist/index.js')));
    await jax.init('wasm');
    jax.defaultDevice('wasm');
    return jax;
  },
  async checkpoint(name) {
    const folder = join(here, '../models', name);
    await access(join(folder, 'model.safetensors'));
    return folder;
  },
  family: (name) => join(here, '../build/bench/models/families', name),
  texts: async () => JSON.parse(await readFile(join(here, '../testdata/sentiment/products.json'), 'utf8')).texts.map(({ text }) => text),
  file: (name) => readFile(join(here, '../build/bench/models', name)),
};

const tell = (news) => void (Object.keys(news).length && console.log(JSON.stringify(news)));
try {
  await runSuite(host, table, { ...options, tell });
  process.exit(0); // idle threads of peers would keep the process alive
} catch (error) {
  tell({ fatal: error.message });
  process.exit(1);
}
