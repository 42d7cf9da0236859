/**
 * onnxruntime-web as a contender: its WebAssembly provider at its best, on the plain and the fused graph; the faster of them counts. Of an int8
 * case they are the dynamically quantized ones.
 */
import { inputs } from './attn.mjs';

/**
 * Both forms of a model, { variant, session }. ort is a copy of the module of its own for each thread count: the count is set once, before its
 * first session.
 */
export async function onnxruntimeSessions(ort, threads, { kind, model, checkpoint, int8 }, file) {
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  const sessions = [];
  for (const variant of ['plain', 'fused']) {
    const bytes = await file(
      `${kind === 'family' ? 'families/' : ''}${model ?? checkpoint}${int8 ? '.int8' : ''}${variant === 'fused' ? '.fused' : ''}.onnx`,
    );
    const session = await ort.InferenceSession.create(bytes, {
      executionProviders: ['wasm'],
      graphOptimizationLevel: 'all',
      intraOpNumThreads: threads,
    });
    sessions.push({ variant, session });
  }
  return sessions;
}

export async function onnxruntimeContenders(ort, threads, group, file) {
  if (!['encoder', 'family'].includes(group[0].kind)) return [];
  const sessions = await onnxruntimeSessions(ort, threads, group[0], file);
  return sessions.map(({ variant, session }) => ({
    contender: 'onnxruntime-web',
    variant,
    threads,
    rivals: `onnxruntime-web ${threads}`,
    prepare(one) {
      if (one.weights) return undefined; // its graphs do not give them
      const { x, ids } = inputs(one);
      const whole = (values) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), ids.dims);
      const feeds = ids ? { ids: whole(ids.data), mask: whole(ids.data.map(() => 1)) } : { x: new ort.Tensor('float32', x.data, x.dims) };
      const call = () => session.run(feeds);
      return { call, output: async () => (await call()).y.data };
    },
    dispose: () => session.release(),
  }));
}
