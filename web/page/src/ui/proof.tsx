import { useEffect, useState } from 'preact/hooks';
import { explain, type Engine } from '../engine.ts';
import { largestDifference, type Sentence, type StoredLayer } from '../layer.ts';
import { median, milliseconds, scientific } from '../numbers.ts';

const runs = 15;

interface Measured {
  readonly variant: string;
  readonly threads: number;
  readonly notes: readonly string[];
  readonly time: number;
  readonly difference: number;
  readonly count: number;
}

/** Runs the stored sentence as PyTorch ran it, with no mask and the default scale, and says how far apart the weights are. */
async function measure(engine: Engine, layer: StoredLayer, sentence: Sentence): Promise<Measured> {
  const times: number[] = [];
  let weights: Float32Array | undefined;
  for (let i = 0; i < runs; ++i) {
    const start = performance.now();
    weights = (await layer.attention.forward(sentence.x, undefined, undefined, { needWeights: true })).weights!.data;
    times.push(performance.now() - start);
  }
  const { variant, threads, notes } = await engine.info;
  const expected = sentence.expected.data;
  return { variant, threads, notes, time: median(times), difference: largestDifference(weights!, expected), count: expected.length };
}

export function Proof({ engine, layer, sentence }: { engine: Engine; layer: StoredLayer; sentence: Sentence }) {
  const [measured, setMeasured] = useState<Measured>();
  const [failure, setFailure] = useState('');
  useEffect(() => {
    let current = true;
    setMeasured(undefined);
    setFailure('');
    measure(engine, layer, sentence).then(
      (result) => current && setMeasured(result),
      (error) => current && setFailure(explain(error)),
    );
    return () => {
      current = false;
    };
  }, [engine, layer, sentence]);

  if (failure) return <p class="proof">The comparison with PyTorch failed: {failure}</p>;
  if (!measured) return <p class="proof">Comparing with PyTorch …</p>;
  const { heads, length } = { heads: sentence.expected.dims[1], length: sentence.tokens.length };
  return (
    <div class="proof">
      <p>
        <strong>Checked just now, here:</strong> the largest difference to PyTorch {layer.torch} is{' '}
        <strong class="figure">{scientific(measured.difference)}</strong>, over all {measured.count} weights of this sentence ({heads} heads ×{' '}
        {length} × {length}, no mask, default scale). WebAssembly variant <strong>{measured.variant}</strong>, {measured.threads}{' '}
        {measured.threads === 1 ? 'thread' : 'threads'}, <strong class="figure">{milliseconds(measured.time)}</strong> for the whole layer (median of{' '}
        {runs} runs, the way to the worker and back included).
      </p>
      {measured.notes.length > 0 && <p class="note">{measured.notes.join(' ')}</p>}
    </div>
  );
}
