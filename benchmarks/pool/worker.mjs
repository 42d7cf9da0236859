const port = globalThis.postMessage && globalThis.addEventListener ? globalThis : (await import('node:worker_threads')).parentPort;
const answer = (message, transfer = []) => port.postMessage(message, transfer);

let attn, model;

async function act({ entry, wasm, variant, threads, folder, weights, texts, batchSize }) {
  if (entry) {
    const started = performance.now();
    const { load } = await import(entry);
    attn = await load({ ...(wasm && { wasm }), variant, threads });
    model = await attn.loadModel(folder, { cache: 'none', weights });
    return answer({ ms: performance.now() - started, threads: attn.info.threads });
  }
  const { data } = await model.embed(texts, { batchSize });
  answer({ data, peak: attn.info.heap.peak }, [data.buffer]);
}

const onMessage = (message) => act(message).catch((error) => answer({ error: String(error?.stack ?? error) }));
if (port === globalThis) port.addEventListener('message', ({ data }) => onMessage(data));
else port.on('message', onMessage);
answer({});
