export async function attempt(part) {
  try {
    return (await part()) ?? 'works';
  } catch (error) {
    return `${error?.code ?? error?.name}: ${error?.message}`;
  }
}

export function assert(condition, what) {
  if (!condition) throw new Error(`wrong: ${what}`);
}

async function attention(attn) {
  const mha = await new attn.MultiHeadAttention({ embedDim: 8, numHeads: 2 });
  const optimizer = await new attn.SGD([mha]);
  const x = { data: new Float32Array(24).fill(1), dims: [1, 3, 8] };
  const { output } = await mha.forward(x, undefined, undefined, { forBackward: true });
  assert(output.dims.join() === '1,3,8', output.dims);
  const { gradient } = await attn.mseLoss(output, x);
  assert((await mha.backward(gradient)).gradQuery.dims.join() === '1,3,8', 'a gradient');
  await optimizer.step();
  const [q, k, v] = [
    [1, 0, 2, 2, 2, 2, 2, 1, 3],
    [0, 1, 1, 4, 4, 0, 2, 3, 1],
    [1, 2, 3, 2, 8, 0, 2, 6, 3],
  ].map((rows) => ({
    data: new Float32Array(rows),
    dims: [3, 3],
  }));
  const known = await attn.scaledDotProductAttention(q, k, v, { scale: 1 });
  assert(known.output.data[0].toFixed(6) === '1.936621', known.output.data[0]);
}

async function model(attn, source) {
  const made = await attn.loadModel(source);
  const { dims } = await made.embed(['It was good', 'a']);
  assert(dims.join() === '2,32', dims);
  await made.dispose();
}

/**
 * `load` of 'attn' and of 'attn/worker', each undefined if unavailable; `source`: the folder of tiny-bert, or its
 * files.
 */
export async function check(load, loadInWorker, source, options = {}) {
  const results = {};
  if (load) {
    results.attention = await attempt(async () => {
      const attn = await load(options);
      await attention(attn);
      attn.dispose();
    });
    if (source !== undefined)
      results.model = await attempt(async () => {
        const attn = await load(options);
        await model(attn, source);
        attn.dispose();
      });
    results.threads = await attempt(async () => {
      const attn = await load({ ...options, threads: 2 });
      await attention(attn);
      const { threads, notes } = attn.info;
      attn.dispose();
      return threads === 2 ? 'works' : notes.find((note) => note.startsWith('one thread'));
    });
  }
  if (loadInWorker) {
    results.worker = await attempt(async () => {
      const attn = await loadInWorker();
      await attention(attn);
      await model(attn, source);
      await attn.dispose();
    });
    results.workerThreads = await attempt(async () => {
      const attn = await loadInWorker({ threads: 2 });
      await attention(attn);
      const { threads, notes } = await attn.info;
      await attn.dispose();
      return threads === 2 ? 'works' : notes.find((note) => note.startsWith('one thread'));
    });
  }
  return results;
}
