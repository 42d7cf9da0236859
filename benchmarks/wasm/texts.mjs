/**
 * Text models: time and heap of loading, and texts to vectors against onnxruntime-web, which gets the same batches from
 * the same tokenizer, and pools and normalises in its graph. Contenders take turns batch by batch, because all texts
 * take seconds; the minimum is the sum of the batches' minima.
 */
import { folderOf } from '../cases.mjs';
import { furthest, summary, summaryOfParts } from './measure.mjs';
import { onnxruntimeSessions } from './onnxruntime.mjs';

/** Number of loads, rounds over all texts, and sampling interval of texts. */
const usual = { loads: 5, rounds: 3, every: 1 };
const quick = { loads: 3, rounds: 2, every: 5 };
/** Milliseconds of spinning of onnxruntime's idle threads after work. */
const pause = 100;

async function timed(call) {
  const start = performance.now();
  const result = await call();
  return [performance.now() - start, result];
}

/** Files are read each time; weights keep their type unless the case specifies int8. */
const optionsOf = ({ int8 }) => ({ cache: 'none', weights: int8 ? 'int8' : 'auto' });

/** Loads repeatedly, each time in a new instance, because the heap's peak never falls. */
async function load(host, one, source, variants, { isQuick, tell }) {
  for (const variant of variants) {
    const samples = [];
    let bytes;
    for (let i = 0; i < (isQuick ? quick : usual).loads; i++) {
      const attn = await host.load({ variant });
      try {
        const [ms] = await timed(() => attn.loadModel(source, optionsOf(one)));
        samples.push(ms);
        bytes = attn.info.heap.peak;
      } finally {
        attn.dispose();
      }
      await tell({});
    }
    await tell({ record: recordOf(host, one, { contender: 'attn', variant, threads: 1 }, { calls: 1, ...summary(samples), bytes }) });
  }
}

const recordOf = ({ name, engine, isolated }, one, { contender, variant, threads }, measured) => ({
  host: name,
  engine,
  isolated,
  contender,
  variant,
  threads,
  case: one.name,
  date: new Date().toISOString(),
  ...measured,
});

/** attn's variants, then the peer: { contender, variant, threads, embed(texts) -> concatenated vectors, dispose }. */
async function contendersOf(host, one, source, variants, threads, tell) {
  const contenders = [];
  let tokenizer;
  for (const variant of variants) {
    const attn = await host.load({ variant, threads });
    const model = await attn.loadModel(source, optionsOf(one));
    tokenizer ??= model;
    contenders.push({
      contender: 'attn',
      variant,
      threads,
      tokenize: (texts) => model.tokenize(texts),
      embed: async (texts) => (await model.embed(texts, { batchSize: one.batch })).data,
      dispose: () => attn.dispose(),
    });
    await tell({});
  }
  try {
    const ort = await host.onnxruntime(threads);
    for (const { variant, session } of await onnxruntimeSessions(ort, threads, one, host.file))
      contenders.push({
        contender: 'onnxruntime-web',
        variant,
        threads,
        async embed(texts) {
          const { inputIds, attentionMask, dims } = tokenizer.tokenize(texts);
          const ids = new ort.Tensor('int32', inputIds, dims);
          const mask = new ort.Tensor('int32', Int32Array.from(attentionMask), dims);
          return (await session.run({ ids, mask })).y.data;
        },
        dispose: () => session.release(),
      });
  } catch (error) {
    await tell({ note: `onnxruntime-web, ${threads} threads: ${error?.message ?? error}` });
  }
  return contenders;
}

/** Batches texts of similar length, like embed(). */
function batchesOf(texts, size, tokenize) {
  const sorted = texts.map((text) => ({ text, length: tokenize(text).dims[1] })).sort((a, b) => a.length - b.length);
  const batches = [];
  for (let i = 0; i < sorted.length; i += size) batches.push(sorted.slice(i, i + size).map(({ text }) => text));
  return batches;
}

/** Stops the run if a contender's vectors differ from the first one's. */
function compare(one, results) {
  const [[first, expected], ...others] = results;
  for (const [other, vectors] of others) {
    let worst = vectors.length === expected.length ? 0 : NaN;
    for (let i = 0; i < expected.length; i++) worst = Math.max(worst, Math.abs(vectors[i] - expected[i]));
    if (!(worst <= furthest(one))) throw new Error(`${other.contender} ${other.variant} and ${first.contender} ${first.variant} differ by ${worst}`);
  }
}

async function sentences(host, one, source, variants, threads, { isQuick, tell }) {
  const { rounds, every } = isQuick ? quick : usual;
  let contenders = await contendersOf(host, one, source, variants, threads, tell);
  const texts = (await host.texts()).slice(0, one.texts).filter((_, i) => i % every === 0);
  const batches = batchesOf(texts, one.batch, contenders[0].tokenize);
  const turn = async (contender, batch) => {
    const result = await timed(() => contender.embed(batch));
    if (threads > 1 && contender.contender !== 'attn') await new Promise((done) => setTimeout(done, pause));
    await tell({});
    return result;
  };

  // The warm-up also determines the faster form of the peer.
  const first = new Map(contenders.map((contender) => [contender, 0]));
  for (const batch of [batches[0], batches.at(-1), batches[batches.length >> 1], batches[batches.length >> 1]]) {
    const results = [];
    for (const contender of contenders) {
      const [ms, vectors] = await turn(contender, batch);
      first.set(contender, ms);
      results.push([contender, vectors]);
    }
    compare(one, results);
  }
  const isFaster = (one, other) => other !== one && other.contender === one.contender && first.get(other) < first.get(one);
  const slower = contenders.filter((each) => each.contender !== 'attn' && contenders.some((other) => isFaster(each, other)));
  for (const each of slower) await each.dispose();
  contenders = contenders.filter((each) => !slower.includes(each));

  const times = new Map(contenders.map((contender) => [contender, batches.map(() => [])]));
  for (let round = 0; round < rounds; round++)
    for (const [i, batch] of batches.entries()) for (const contender of contenders) times.get(contender)[i].push((await turn(contender, batch))[0]);
  for (const [contender, parts] of times) {
    await tell({ record: recordOf(host, one, contender, { calls: 1, ...summaryOfParts(parts), texts: texts.length }) });
    await contender.dispose();
  }
}

export async function runTextCase(host, one, variants, options) {
  let source;
  try {
    source = await host.checkpoint(folderOf(one));
  } catch (error) {
    return options.tell({ note: `${one.name}: ${error.message}` });
  }
  if (one.kind === 'load') return load(host, one, source, variants, options);
  for (const threads of host.threads) await sentences(host, one, source, variants, threads, options);
}
