/**
 * Bundles tfjs with gradients for Node as build/bench/tfjs.cjs: its own bundles omit the modules that register
 * gradients.
 */
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';

const entry = '\0tfjs';
const code = `
import '@tensorflow/tfjs-core/dist/register_all_gradients.js';
import '@tensorflow/tfjs-backend-wasm';
export * from '@tensorflow/tfjs-core';
export { setWasmPaths } from '@tensorflow/tfjs-backend-wasm';
`;

export async function tfjsWithGradients() {
  const file = fileURLToPath(new URL('../../build/bench/tfjs.cjs', import.meta.url));
  const bundle = await rolldown({
    input: entry,
    platform: 'node',
    resolve: { mainFields: ['module', 'main'] },
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    logLevel: 'silent',
    plugins: [
      {
        name: 'entry',
        resolveId(id, importer) {
          if (id === entry) return id;
          return importer === entry ? this.resolve(id, fileURLToPath(import.meta.url)) : null;
        },
        load: (id) => (id === entry ? code : null),
      },
    ],
  });
  await bundle.write({ file, format: 'cjs', codeSplitting: false });
  await bundle.close();
  return file;
}
