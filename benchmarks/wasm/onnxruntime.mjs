/**
 * onnxruntime-web as a contender: its WebAssembly provider at its best, on the plain and the fused graph; the faster of them counts. Of an int8
 * case they are the dynamically quantized ones.
 */
import { inputs } from './attn.mjs';

/**
 * Both forms of a model, { variant, session }. ort is a copy of the module of its own for each thread count: the count is set once, before its
 * first session.
 */
export async function onnxruntimeSessions(ort, threads, { model, checkpoint, int8 }, file) {
  ort.env.wasm.numThreads = threads;
  ort.env.logLevel = 'error';
  const sessions = [];
  for (const variant of ['plain', 'fused']) {
    const bytes = await file(`${model ?? checkpoint}${int8 ? '.int8' : ''}${variant === 'fused' ? '.fused' : ''}.onnx`);
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
  if (group[0].kind !== 'encoder') return [];
  const sessions = await onnxruntimeSessions(ort, threads, group[0], file);
  return sessions.map(({ variant, session }) => ({
    contender: 'onnxruntime-web',
    variant,
    threads,
    rivals: `onnxruntime-web ${threads}`,
    prepare(one) {
      if (one.weights) return undefined; // its graphs do not give them
      const { x } = inputs(one);
      const feeds = { x: new ort.Tensor('float32', x.data, x.dims) };
      const call = () => session.run(feeds);
      return { call, output: async () => (await call()).y.data };
    },
    dispose: () => session.release(),
  }));
}
