import { encoderSize, gigaflops, multiplyAdds } from '../../model/flops.ts';
import { counted, median, megabytes, milliseconds } from '../../formats/numbers.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { measure, measuring, sampleMilliseconds, samples, speed, speedFailure, type Speed } from '../../state/speed.ts';
import { Formula, Group } from '../../ui/formula.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { Term } from '../../ui/term.tsx';
import { Alert } from '../../ui/alert.tsx';
import { Part } from '../../ui/part.tsx';
import { Disturbed } from './disturbed.tsx';

export function SpeedPart({ of }: { of: LoadedModel }) {
  const made = speed.value?.model === of ? speed.value : undefined;
  return (
    <Part class="proof-part" title="Speed of this browser">
      <p>
        <button type="button" disabled={measuring.value} onClick={() => void measure()}>
          Measure again
        </button>{' '}
        <span aria-live="polite">{measuring.value ? 'Measuring …' : ''}</span>
      </p>
      <Alert what="The speed could not be measured." why={speedFailure.value} />
      {made && <Measured of={made} />}
    </Part>
  );
}

function Measured({ of: { model, tokens, alone, batch, peaks, way, disturbance, info } }: { of: Speed }) {
  const size = encoderSize(model.config);
  const parts = multiplyAdds(size, tokens);
  const columns = ['time', 'GFLOP/s', 'share of the peak'];
  const rows = [
    { name: `the text above, ${counted(tokens, 'token')}`, timed: alone },
    { name: `${batch.copies} copies of it at once`, timed: batch },
  ];
  const facts: readonly (readonly [string, string])[] = [
    ['Variant', info.variant],
    ['Weights', model.dtype],
    ['Threads', String(info.threads)],
    ['Cross-origin isolated', crossOriginIsolated ? 'yes' : 'no'],
    ['WASM heap in use', megabytes(info.heap.used)],
    ['WASM heap, peak', megabytes(info.heap.peak)],
    ['Model ready after', milliseconds(model.loadTime)],
    ['Version', info.version],
  ];
  return (
    <>
      <NumberTable
        name="Speed"
        rows={{ kind: 'run', count: rows.length, label: (i) => rows[i]!.name }}
        columns={{ kind: 'measured', count: columns.length, label: (j) => columns[j]! }}
        cell={(i, j) => {
          const { timed } = rows[i]!;
          const rate = gigaflops(timed.multiplyAdds, timed.milliseconds);
          return [milliseconds(timed.milliseconds), rate.toFixed(1), `${(100 * timed.share).toFixed(0)} %`][j];
        }}
      />
      {disturbance && <Disturbed by={disturbance} />}
      <p>
        The peak, <strong class="figure">{median(peaks).toFixed(1)} GFLOP/s</strong>, is the speed at which one thread of this browser computes
        multiply-adds in registers. It is measured next to each run, so that both see the same load of the computer.
        {model.dtype === 'int8' &&
          ' It is the peak of float32. Products of int8 weights are integer operations, which are counted in the same way and may exceed this peak.'}
      </p>
      <p>
        A message to the worker and back takes <strong class="figure">{milliseconds(way)}</strong>, which is part of each time:{' '}
        {Math.round((100 * way) / alone.milliseconds)} % of the time for the text alone. Softmax, norms and copies also take time but do not count as
        operations. Times are medians: of {samples} samples for the text alone, each with as many forwards as fit into {sampleMilliseconds} ms, and of
        5 samples for the copies.
      </p>
      <p>
        <Term word="GFLOP/s" /> counts two operations for each multiply-add of the projections, the attention and the{' '}
        <Term word="feed-forward">feed-forward network</Term>, with N = {size.layers} layers, L = {tokens} tokens, E = {size.width} and F ={' '}
        {size.hidden}: {parts.projections} + {parts.attention} + {parts.feedForward} = {parts.total} multiply-adds per text.
      </p>
      <Formula>
        <mi>N</mi>
        <Group>
          <mn>4</mn>
          <mi>L</mi>
          <msup>
            <mi>E</mi>
            <mn>2</mn>
          </msup>
          <mo>+</mo>
          <mn>2</mn>
          <msup>
            <mi>L</mi>
            <mn>2</mn>
          </msup>
          <mi>E</mi>
          <mo>+</mo>
          <mn>{size.gated ? 3 : 2}</mn>
          <mi>L</mi>
          <mi>E</mi>
          <mi>F</mi>
        </Group>
      </Formula>
      <dl class="proof-facts">
        {facts.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {info.notes.length > 0 && (
        <ul>
          {info.notes.map((note) => (
            <li key={note}>{note}</li>
          ))}
        </ul>
      )}
    </>
  );
}
