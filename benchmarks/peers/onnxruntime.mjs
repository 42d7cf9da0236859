/**
 * onnxruntime-node as a contender: one measurement per JSON line on stdin, {"case": {..}, "shape": {..}, "threads": 1,
 * "least": 20, "variant": "plain" or "fused"}. CPU provider with every graph optimisation, on models from
 * make_models.py; int8 cases use quantized models. For texts, "batch" is an index into the batches { dims, ids, mask }
 * of "file".
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import * as ort from 'onnxruntime-node';
import { numbers } from '../cases.mjs';

const models = new URL('../../build/bench/models/', import.meta.url);
const { version } = createRequire(import.meta.url)('onnxruntime-node/package.json');

/** Sessions of the current model, by form and threads, because loading takes longer than running. */
const kept = { model: '', sessions: new Map() };

async function sessionOf(model, variant, threads) {
  if (kept.model !== model) {
    for (const session of kept.sessions.values()) await session.release();
    kept.model = model;
    kept.sessions.clear();
  }
  const key = `${variant} ${threads}`;
  if (!kept.sessions.has(key)) {
    const file = fileURLToPath(new URL(`${model}${variant === 'fused' ? '.fused' : ''}.onnx`, models));
    const options = { executionProviders: ['cpu'], graphOptimizationLevel: 'all', intraOpNumThreads: threads, interOpNumThreads: 1 };
    kept.sessions.set(key, await ort.InferenceSession.create(file, options));
  }
  return kept.sessions.get(key);
}

async function run(session, feeds, calls) {
  let result;
  const start = performance.now();
  for (let i = 0; i < calls; i++) result = await session.run(feeds);
  return [performance.now() - start, result];
}

/** The model of a case, with its inputs and their shape; inputs are drawn from the seeds 1, 2, .. */
function modelOf({ kind, model, checkpoint, B, H, S, D, E, int8 }, shape) {
  const quantized = int8 ? '.int8' : '';
  switch (kind) {
    case 'sentences':
      return { model: checkpoint + quantized };
    case 'encoder':
      return { model: model + quantized, names: ['x'], dims: [B, S, shape.E] };
    case 'mha':
      return { model: `mha-${E}-${H}`, names: ['x'], dims: [B, S, E] };
    default:
      return { model: `sdpa-${H}-${D}`, names: ['q', 'k', 'v'], dims: [B, H, S, D] };
  }
}

let batches;
function feedsOf(file, index) {
  batches ??= JSON.parse(readFileSync(file, 'utf8'));
  const { dims, ids, mask } = batches[index];
  return { ids: new ort.Tensor('int32', Int32Array.from(ids), dims), mask: new ort.Tensor('int32', Int32Array.from(mask), dims) };
}

/** Four numbers of a result, from the first to the last. */
const probeOf = (output) => [0, 1, 2, 3].map((i) => output[Math.floor((i * (output.length - 1)) / 3)]);

function drawn(names, dims) {
  const size = dims.reduce((a, b) => a * b, 1);
  return Object.fromEntries(names.map((name, i) => [name, new ort.Tensor('float32', numbers(size, i + 1), dims)]));
}

async function measure({ case: one, shape, variant, threads, least, file, batch }) {
  if (!['encoder', 'mha', 'sdpa', 'sentences'].includes(one.kind) || one.weights) return { absent: true };
  const { model, names, dims } = modelOf(one, shape);
  const session = await sessionOf(model, variant, threads);
  const feeds = one.checkpoint ? feedsOf(file, batch) : drawn(names, dims);
  // Increases the calls until they take long enough, like Google Benchmark; earlier ones are the warm-up.
  let calls = 1;
  let [spent, result] = await run(session, feeds, calls);
  while (spent < least) {
    calls = Math.min(10 * calls, Math.floor((calls * 1.4 * least) / Math.max(spent, 1e-6)) + 1);
    [spent, result] = await run(session, feeds, calls);
  }
  return { ms: spent / calls, calls, probe: probeOf(result.y.data) };
}

const answer = (line) => console.log(JSON.stringify(line));
answer({ engine: `onnxruntime-node ${version}` });
for await (const line of createInterface({ input: process.stdin })) {
  answer(await measure(JSON.parse(line)).catch((error) => ({ error: error.message })));
}
