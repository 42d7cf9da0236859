/**
 * Compares N workers, each with a single-threaded instance of one compiled module, with one instance of N threads, on
 * the same batches of texts. They take turns; the result is the median ratio of consecutive turns.
 */

const batchSize = 8;
const rounds = 9;
/** Milliseconds for idle threads to go to sleep. */
const pause = 50;

const median = (numbers) => numbers.toSorted((a, b) => a - b)[numbers.length >> 1];

async function start(host) {
  const { worker, listen } = host.spawn();
  let done;
  listen((message) => done(message));
  const ask = async (message) => {
    const answered = new Promise((resolve) => (done = resolve));
    if (message) worker.postMessage(message);
    const answer = await answered;
    if (answer.error) throw new Error(answer.error);
    return answer;
  };
  await ask();
  return { ask, end: () => worker.terminate() };
}

/**
 * Starts `count` instances with `threads` threads each; returns the start-up `ms` and embed(texts) -> vectors and peak
 * heaps.
 */
async function contender(host, count, threads, { variant, weights, wasm }) {
  const workers = await Promise.all(Array.from({ length: count }, () => start(host)));
  const began = performance.now();
  const options = { entry: host.entry, variant, threads, folder: host.folder, weights, ...(wasm && { wasm }) };
  for (const each of await Promise.all(workers.map(({ ask }) => ask(options))))
    if (each.threads !== threads) throw new Error(`there are ${each.threads} threads instead of ${threads}`);
  const ms = performance.now() - began;
  return {
    ms,
    async embed(texts) {
      if (count === 1) {
        const { data, peak } = await workers[0].ask({ texts, batchSize });
        return { vectors: data, peak };
      }
      // Longest first, so that the last batches are short; the next free worker takes the next batch.
      const order = texts.map((_, i) => i).sort((a, b) => texts[b].length - texts[a].length);
      const peaks = workers.map(() => 0);
      let vectors;
      let next = 0;
      await Promise.all(
        workers.map(async ({ ask }, worker) => {
          while (next < order.length) {
            const batch = order.slice(next, (next += batchSize));
            const { data, peak } = await ask({ texts: batch.map((i) => texts[i]), batchSize });
            const width = data.length / batch.length;
            vectors ??= new Float32Array(width * texts.length);
            for (const [row, i] of batch.entries()) vectors.set(data.subarray(row * width, (row + 1) * width), i * width);
            peaks[worker] = peak;
          }
        }),
      );
      return { vectors, peak: peaks.reduce((a, b) => a + b) };
    },
    end: () => workers.forEach(({ end }) => end()),
  };
}

/** Batches of short and long texts, and a single text as in an interactive page. */
function casesOf(reviews) {
  const long = Array.from({ length: 24 }, (_, i) => Array.from({ length: 16 }, (_, j) => reviews[(16 * i + j) % reviews.length]).join(' '));
  return { 'short texts': reviews.slice(0, 192), 'texts of 256 tokens': long, 'one text of 256 tokens': long.slice(0, 1) };
}

export async function runPool(host, tell) {
  for (const variant of host.variants)
    for (const weights of ['float32', 'int8']) {
      const wasm = await host.module(variant);
      const pool = await contender(host, host.cores, 1, { variant, weights, wasm });
      const one = await contender(host, 1, host.cores, { variant, weights });
      try {
        for (const [name, texts] of Object.entries(casesOf(host.texts))) {
          const [a, b] = [await pool.embed(texts), await one.embed(texts)];
          if (!a.vectors.every((x, i) => x === b.vectors[i])) throw new Error(`${name}: the vectors differ`);
          const times = { pool: [], one: [] };
          const busy = { pool: [], one: [] };
          for (let round = 0; round < rounds; round++)
            // Alternates the order.
            for (const which of round % 2 ? ['pool', 'one'] : ['one', 'pool']) {
              await new Promise((done) => setTimeout(done, pause));
              const [started, before] = [performance.now(), host.processorMs?.()];
              await { pool, one }[which].embed(texts);
              times[which].push(performance.now() - started);
              busy[which].push(host.processorMs?.() - before);
            }
          await tell({
            case: `${host.engine}, ${variant}, ${weights}, ${name}`,
            workers: host.cores,
            workersTextsPerSecond: (1000 * texts.length) / median(times.pool),
            threadsTextsPerSecond: (1000 * texts.length) / median(times.one),
            workersOverThreads: median(times.one.map((ms, i) => ms / times.pool[i])),
            // Processor time depends less on other programs.
            ...(host.processorMs && { workersOverThreadsByProcessorTime: median(busy.one.map((ms, i) => ms / busy.pool[i])) }),
            workersReadyMs: pool.ms,
            threadsReadyMs: one.ms,
            workersHeapMB: a.peak / 1e6,
            threadsHeapMB: b.peak / 1e6,
          });
        }
      } finally {
        pool.end();
        one.end();
      }
    }
}
