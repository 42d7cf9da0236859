/**
 * onnxruntime-web as a contender: its WebAssembly provider on the plain and the fused graph, of which the faster
 * counts; int8 cases use dynamically quantized graphs.
 */
import { inputs } from './attn.mjs';

/**
 * Opens both forms of a model, { variant, session }. `ort` is a separate copy of the module per thread count, which is
 * fixed at its first session.
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
      if (one.weights) return undefined; // its graphs do not return weights
      const { x, ids } = inputs(one);
      const whole = (values) => new ort.Tensor('int64', BigInt64Array.from(values, BigInt), ids.dims);
      const feeds = ids ? { ids: whole(ids.data), mask: whole(ids.data.map(() => 1)) } : { x: new ort.Tensor('float32', x.data, x.dims) };
      const call = () => session.run(feeds);
      return { call, output: async () => (await call()).y.data };
    },
    dispose: () => session.release(),
  }));
}
