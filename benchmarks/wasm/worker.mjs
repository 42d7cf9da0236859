/** Runs the cases in a page's worker, whose name holds the request. */
import { runSuite } from './suite.mjs';

const asked = JSON.parse(new URLSearchParams(self.name).get('asked'));
const modules = '/benchmarks/node_modules';
const post = (news) => fetch('/news', { method: 'POST', body: JSON.stringify(news) });

async function get(path) {
  const response = await fetch(path);
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return new Uint8Array(await response.arrayBuffer());
}

let last = 0;
const host = {
  name: asked.host,
  engine: asked.engine,
  isolated: crossOriginIsolated,
  threads: crossOriginIsolated ? [1, 2] : [1],
  load: (await import('/attn/index.js')).load,
  gemm: async (variant) => ({ factory: (await import(`/gemm/gemm-${variant}.mjs`)).default, bytes: await get(`/gemm/gemm-${variant}.wasm`) }),
  // A copy per thread count, which is fixed at the first session.
  async onnxruntime(threads) {
    const ort = await import(`${modules}/onnxruntime-web/dist/ort.wasm.min.mjs?threads=${threads}`);
    ort.env.wasm.wasmPaths = `${location.origin}${modules}/onnxruntime-web/dist/`;
    return ort;
  },
  async tfjs() {
    // Its builds for pages are scripts that define globalThis.tf.
    await import(`${modules}/@tensorflow/tfjs-core/dist/tf-core.min.js`);
    await import(`${modules}/@tensorflow/tfjs-backend-wasm/dist/tf-backend-wasm.min.js`);
    const { tf } = globalThis;
    tf.wasm.setWasmPaths(`${location.origin}${modules}/@tensorflow/tfjs-backend-wasm/dist/`);
    tf.env().set('WASM_HAS_MULTITHREAD_SUPPORT', false);
    if (!(await tf.setBackend('wasm'))) throw new Error('its WebAssembly backend does not start here');
    return tf;
  },
  async jax() {
    const jax = await import(`${modules}/@jax-js/jax/dist/index.js`);
    await jax.init('wasm');
    jax.defaultDevice('wasm');
    return jax;
  },
  async checkpoint(name) {
    await get(`/checkpoints/${name}/config.json`);
    return `${location.origin}/checkpoints/${name}/`;
  },
  family: (name) => `${location.origin}/models/families/${name}/`,
  texts: async () => JSON.parse(new TextDecoder().decode(await get('/testdata/sentiment/products.json'))).texts.map(({ text }) => text),
  file: (name) => get(`/models/${name}`),
};

try {
  const table = JSON.parse(new TextDecoder().decode(await get('/benchmarks/cases.json')));
  await runSuite(host, table, {
    ...asked.options,
    async tell(news) {
      const now = performance.now();
      if (Object.keys(news).length || now - last > 1000) {
        last = now;
        await post(news);
      }
    },
  });
  await post({ done: true });
} catch (error) {
  await post({ fatal: String(error?.stack?.includes(error.message) ? error.stack : error) });
}
