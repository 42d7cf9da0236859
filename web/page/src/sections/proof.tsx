import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { encoderSize, gigaflops, multiplyAdds } from '../flops.ts';
import { counted, median, milliseconds, scientific } from '../numbers.ts';
import { editedWeights, shownModel } from '../state/derived.ts';
import {
  answerName,
  beside,
  besideFailure,
  closeBeside,
  expectedBytes,
  loadingBeside,
  openBeside,
  otherOf,
  type LoadedModel,
} from '../state/model.ts';
import { quantized, type Answered, type Quantized } from '../state/quantized.ts';
import { comparison, type Compared, type Comparison } from '../state/reference.ts';
import { selfCheck, type SelfCheck } from '../state/self_check.ts';
import { followSpeed, measure, measuring, sampleMilliseconds, samples, speed, speedFailure, type Disturbance, type Speed } from '../state/speed.ts';
import '../styles/proof.css';
import { Formula, Group } from '../ui/formula.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Progress } from '../ui/progress.tsx';
import { Term } from '../ui/term.tsx';

export function ProofSection() {
  useEffect(() => {
    const ends = [comparison.follow(), selfCheck.follow(), quantized.follow(), followSpeed()];
    return () => ends.forEach((end) => end());
  }, []);
  const of = shownModel.value;
  return (
    <section id="proof" aria-labelledby="proof-title">
      <h2 id="proof-title">Proof</h2>
      <div class="lede">
        <p>
          Why believe these numbers? PyTorch, the program in which such models are made, has computed the sentiment classifier too: the page has just
          compared its own numbers with those. It has computed every layer once more without its WebAssembly module. It can show what rounding the
          weights to 8 bits changes. And it has measured how fast this browser is.
        </p>
        <p class="try">
          <strong>Try:</strong> measure the speed again while a video plays in another tab, or with the laptop unplugged.
        </p>
      </div>
      {of && (
        <>
          <Agreement of={of} />
          <Checks of={of} />
          <Quantization of={of} />
          <SpeedPart of={of} />
        </>
      )}
    </section>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <div class="proof-part">
      <h3>{title}</h3>
      {children}
    </div>
  );
}

const Failed = ({ what, why }: { what: string; why: string | undefined }) =>
  why ? (
    <p role="alert" class="error">
      {what} {why}
    </p>
  ) : null;

function Agreement({ of }: { of: LoadedModel }) {
  const made = comparison.value.value?.model === of ? comparison.value.value : undefined;
  return (
    <Part title="The same numbers as PyTorch">
      {of.id !== 'sentiment' && (
        <p>
          The page has PyTorch’s numbers for the sentiment classifier only, not for {of.name}. attn’s own tests compare every family of models with
          PyTorch. What can be checked here without PyTorch’s numbers comes next.
          {of.dtype === 'int8' &&
            ' With int8 weights the numbers are not those of PyTorch’s float32 in any case, only close to them. “What int8 changes” shows how close.'}
        </p>
      )}
      {of.id === 'sentiment' && editedWeights.value.length > 0 && (
        <p>You have changed weights, so this is not the model that PyTorch computed. Undo the changes, and it is compared again.</p>
      )}
      <Failed what="The comparison with PyTorch failed." why={comparison.failure.value} />
      {made && editedWeights.value.length === 0 && <Agreed of={made} />}
      {!made && of.id === 'sentiment' && !comparison.failure.value && <p>Comparing …</p>}
    </Part>
  );
}

const total = (rows: readonly Compared[]) => rows.reduce((sum, { count }) => sum + count, 0);
const largest = (rows: readonly Compared[]) => rows.reduce((most, each) => (each.difference > most.difference ? each : most));

function Agreed({ of: { rows, texts, torch, transformers } }: { of: Comparison }) {
  const passes = rows.every((row) => row.passes);
  const worst = largest(rows);
  return (
    <>
      <p class={passes ? 'proof-verdict' : 'proof-verdict failed'}>
        <strong>{passes ? 'They agree.' : 'They do not agree.'}</strong> The largest difference to PyTorch {torch} is{' '}
        <strong class="figure">{scientific(worst.difference)}</strong>, where <span class="figure">{scientific(worst.tolerance)}</span> is allowed;{' '}
        {total(rows)} numbers from {counted(texts, 'text')} were compared just now, in this page.
      </p>
      <ComparedTable name="Differences to PyTorch" rows={rows} />
      <p>
        PyTorch’s numbers were computed by transformers {transformers} in float64: y<sub>64</sub>. A difference may be twice as large as that between
        PyTorch’s own float32 and float64, plus 10
        <sup>-6</sup>. For values above 1 both grow with the largest:
      </p>
      <Formula>
        <Largest>
          <Difference from="" />
        </Largest>
        <mo>≤</mo>
        <mi>t</mi>
        <mo>·</mo>
        <Largest>
          <Group>
            <mn>1</mn>
            <mo>,</mo>
            <mrow>
              <mo>|</mo>
              <msub>
                <mi>y</mi>
                <mn>64</mn>
              </msub>
              <mo>|</mo>
            </mrow>
          </Group>
        </Largest>
      </Formula>
      <Formula>
        <mi>t</mi>
        <mo>=</mo>
        <mn>2</mn>
        <mspace width="0.2em" />
        <Largest>
          <Difference from="32" />
        </Largest>
        <mo>+</mo>
        <msup>
          <mn>10</mn>
          <mn>-6</mn>
        </msup>
      </Formula>
    </>
  );
}

const Largest = ({ children }: { children: ComponentChildren }) => (
  <mrow>
    <mi mathvariant="normal">max</mi>
    <mspace width="0.2em" />
    {children}
  </mrow>
);

/** |y - y64| or, from 32 bits, |y32 - y64| */
const Difference = ({ from }: { from: string }) => (
  <mrow>
    <mo>|</mo>
    {from ? (
      <msub>
        <mi>y</mi>
        <mn>{from}</mn>
      </msub>
    ) : (
      <mi>y</mi>
    )}
    <mo>-</mo>
    <msub>
      <mi>y</mi>
      <mn>64</mn>
    </msub>
    <mo>|</mo>
  </mrow>
);

function ComparedTable({ name, rows }: { name: string; rows: readonly Compared[] }) {
  const columns = ['largest difference', 'allowed', 'numbers', 'within'];
  return (
    <NumberTable
      name={name}
      rows={{ kind: 'numbers', count: rows.length, label: (i) => rows[i]!.what }}
      columns={{ kind: 'check', count: columns.length, label: (j) => columns[j]! }}
      cell={(i, j) => {
        const { difference, tolerance, count, passes } = rows[i]!;
        return [scientific(difference), scientific(tolerance), count, passes ? 'yes' : 'no'][j];
      }}
    />
  );
}

function Checks({ of }: { of: LoadedModel }) {
  const made = selfCheck.value.value?.model === of ? selfCheck.value.value : undefined;
  return (
    <Part title="Computed once more, without the module">
      <p>
        Any model can be checked in two ways. Every row of attention weights has to sum to 1. And each step of each layer is computed once more in
        plain JavaScript with 64-bit numbers, from the weights and from what went into the step: not one line of the module has a part in it.
      </p>
      <Failed what="The check failed." why={selfCheck.failure.value} />
      {of.dtype === 'int8' && (
        <p>
          The weights are int8: before each product the rows that go in are rounded to 8 bits. The check rounds them in the same way, and multiplies
          them by the numbers that the weights stand for.
        </p>
      )}
      {made ? <Checked of={made} layers={of.layers} /> : !selfCheck.failure.value && <p>Checking …</p>}
    </Part>
  );
}

/** Why the speed is lower than this computer's. */
function Disturbed({ by: { kind, from, to } }: { by: Disturbance }) {
  const peak = (value: number) => <span class="figure">{value.toFixed(1)}</span>;
  return (
    <p class="proof-disturbed">
      <strong>Something else was using this computer.</strong>{' '}
      {kind === 'unsteady' ? (
        <>
          The peak came out between {peak(from)} and {peak(to)} GFLOP/s from one moment to the next.
        </>
      ) : (
        <>
          The peak was {peak(from)} GFLOP/s this time, and {peak(to)} before.
        </>
      )}{' '}
      So these times are longer than they need be. Measure again when the computer is idle.
    </p>
  );
}

/** As much of a text as a sentence about it can hold. */
function shortened(text: string, most = 80): string {
  const letters = Array.from(text);
  return letters.length <= most ? text : `${letters.slice(0, most).join('').trimEnd()} …`;
}

function Checked({ of: { sums, rows, tokens, steps, text }, layers }: { of: SelfCheck; layers: number }) {
  const passes = steps.every((each) => each.passes);
  return (
    <>
      <p class={passes ? 'proof-verdict' : 'proof-verdict failed'}>
        <strong>{passes ? 'They agree.' : 'They do not agree.'}</strong> The text was “{shortened(text)}”, and{' '}
        {rows === tokens ? `all of its ${counted(tokens, 'token')}` : `${rows} of its ${counted(tokens, 'token')}`} were computed in{' '}
        {counted(layers, 'layer')}. The sums of {sums.count} rows of weights miss 1 by at most{' '}
        <strong class="figure">{scientific(sums.difference)}</strong>.
      </p>
      <ComparedTable name="Layers recomputed step by step" rows={steps} />
      <p class="note">
        Of each step you see the number that comes nearest to what is allowed: what sums of that many 32-bit products may lose to rounding, √K · 2
        <sup>-23</sup> times the sum of their sizes for K products, and a few roundings more. Positions, masks and embeddings are not part of this
        check.
      </p>
    </>
  );
}

const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`;
const whole = (bytes: number) => `${Math.round(bytes / 1e6)} MB`;
const dtypes = ['float32', 'int8'] as const;

/** The other kind of weights, loaded when it is asked for, and what they change. */
function Quantization({ of }: { of: LoadedModel }) {
  const other = otherOf(of.dtype);
  const way = loadingBeside.value;
  const found = quantized.value.value;
  const both = [of, beside.value];
  const made = found && both.includes(found.models.int8) && both.includes(found.models.float32) ? found : undefined;
  const edited = editedWeights.value.length > 0;
  const bytes = of.id === 'files' || of.id === 'sentiment' ? undefined : expectedBytes(of.id, other);
  return (
    <Part title="What int8 changes">
      <p>
        <Term word="int8" /> weights take a quarter of the memory of <Term word="float32" /> ones, and a quarter of the download where the files are
        int8 already. What do they cost? Load the model in both forms and compare them on your text. The one above is {of.dtype}.
      </p>
      {!beside.value && !way && (
        <p>
          <button type="button" onClick={() => void openBeside()}>
            Load {other} too and compare{bytes === undefined ? '' : `, ${whole(bytes)}`}
          </button>
        </p>
      )}
      {way && <Progress of={way} />}
      {besideFailure.value && (
        <p role="alert" class="error">
          {besideFailure.value.what} {besideFailure.value.cause} {besideFailure.value.fix}
        </p>
      )}
      {beside.value && (
        <>
          <p>
            <button type="button" onClick={closeBeside}>
              Let the {other} model go
            </button>{' '}
            <span aria-live="polite">{made || edited || quantized.failure.value ? '' : 'Comparing …'}</span>
          </p>
          <Failed what="The two could not be compared." why={quantized.failure.value} />
          {edited ? <p>You have changed weights. Undo the changes, and the two are compared again.</p> : made && <Compare of={made} />}
        </>
      )}
    </Part>
  );
}

/** As many digits as tell it from 1. */
function cosineText(value: number): string {
  const decimals = Math.min(12, Math.max(4, Math.ceil(-Math.log10(Math.abs(1 - value) || 1)) + 1));
  return value.toFixed(decimals);
}

function Compare({ of: { models, tokens, layers, all, cosines, leastOfLines, lines, answered, milliseconds: times } }: { of: Quantized }) {
  const rows = [...layers.map((each, i) => ({ ...each, name: `layer ${i + 1}` })), { ...all, name: 'all layers' }];
  const columns = ['largest difference', 'mean difference', 'numbers'];
  const measures = ['time of the text above', 'WASM memory', 'files read', 'ready after'];
  return (
    <>
      <p class="proof-verdict">
        Of {all.count} attention weights the largest difference is <strong class="figure">{scientific(all.largest)}</strong>, the mean{' '}
        <strong class="figure">{scientific(all.mean)}</strong>. The{' '}
        {cosines.length > 1 ? 'vectors of the two texts have the cosines' : 'text’s vectors have the cosine'}{' '}
        <strong class="figure">{cosines.map(cosineText).join(' and ')}</strong>
        {leastOfLines !== undefined && (
          <>
            {' '}
            (of the {counted(lines, 'line')} under “Use it” at least <span class="figure">{cosineText(leastOfLines)}</span>)
          </>
        )}
        . <Flips answered={answered} of={models.float32} />
      </p>
      <NumberTable
        name="Attention weights, int8 beside float32"
        rows={{ kind: 'layer', count: rows.length, label: (i) => rows[i]!.name }}
        columns={{ kind: 'difference', count: columns.length, label: (j) => columns[j]! }}
        cell={(i, j) => [scientific(rows[i]!.largest), scientific(rows[i]!.mean), rows[i]!.count][j]}
      />
      {answered.length > 0 && <Answers answered={answered} of={models.float32} />}
      <NumberTable
        name="Time and memory, int8 beside float32"
        rows={{ kind: 'weights', count: dtypes.length, label: (i) => dtypes[i]! }}
        columns={{ kind: 'measured', count: measures.length, label: (j) => measures[j]! }}
        cell={(i, j) => {
          const dtype = dtypes[i]!;
          const { memory, bytes, loadTime } = models[dtype];
          return [milliseconds(times[dtype]), megabytes(memory), megabytes(bytes), milliseconds(loadTime)][j];
        }}
      />
      <p class="note">
        Your text with its {counted(tokens, 'token')}, through the model as it was published: no masks, all heads. Times are medians of 5 samples,
        taken in turns, and include the message to the worker and back. Memory is how much more the module holds since that model was loaded.
        {models.int8.isStoredAsInt8
          ? models.float32.isStoredAsInt8
            ? ' The files hold int8 weights, and float32 means the numbers that these stand for. So only what they are multiplied with is rounded in one and not in the other.'
            : ''
          : ' The int8 weights were made here while the files were read, so both have read the same files.'}
      </p>
    </>
  );
}

function Flips({ answered, of }: { answered: readonly Answered[]; of: LoadedModel }) {
  if (answered.length === 0) return null;
  const isValue = answerName(of) === 'value';
  if (isValue) return null;
  const flips = answered.filter((each) => each.flips).length;
  return (
    <>
      Answers that flipped: <strong class="figure">{flips}</strong> of {answered.length}.
    </>
  );
}

/** The likeliest answer of each text, by both. */
function Answers({ answered, of }: { answered: readonly Answered[]; of: LoadedModel }) {
  const isValue = answerName(of) === 'value';
  const columns = isValue ? dtypes : [...dtypes, 'flipped'];
  const said = ({ answers }: Answered, dtype: (typeof dtypes)[number]) => {
    const { label, score } = answers[dtype][0]!;
    return `${shortened(label, 30)} ${score.toFixed(4)}`;
  };
  return (
    <NumberTable
      name="Answers, int8 beside float32"
      rows={{ kind: 'text', count: answered.length, label: (i) => shortened(answered[i]!.text, 60) }}
      columns={{ kind: 'answer', count: columns.length, label: (j) => columns[j]! }}
      cell={(i, j) => (j < 2 ? said(answered[i]!, dtypes[j]!) : answered[i]!.flips ? 'yes' : 'no')}
    />
  );
}

function SpeedPart({ of }: { of: LoadedModel }) {
  const made = speed.value?.model === of ? speed.value : undefined;
  return (
    <Part title="How fast, here">
      <p>
        <button type="button" disabled={measuring.value} onClick={() => void measure()}>
          Measure again
        </button>{' '}
        <span aria-live="polite">{measuring.value ? 'Measuring …' : ''}</span>
      </p>
      <Failed what="The speed could not be measured." why={speedFailure.value} />
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
    ['WASM heap, most so far', megabytes(info.heap.peak)],
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
        The peak, <strong class="figure">{median(peaks).toFixed(1)} GFLOP/s</strong>, is what one thread of this browser does with multiply-adds in
        registers alone. It is measured beside each run, so that a run and its peak see the same computer.
        {model.dtype === 'int8' &&
          ' It is a peak of float32. Products of int8 weights are of whole numbers, counted in the same way, and may go beyond it.'}
      </p>
      <p>
        A message to the worker and back takes <strong class="figure">{milliseconds(way)}</strong>, which is part of each time:{' '}
        {Math.round((100 * way) / alone.milliseconds)} % of that of the text alone. Softmax, norms and copies take time as well, and count as no
        operations. Times are medians: for the text alone of {samples} samples, each of forwards one after the other for {sampleMilliseconds} ms, and
        of 5 for the copies.
      </p>
      <p>
        <Term word="GFLOP/s" /> counts two operations for each multiply-add of the projections, the attention and the{' '}
        <Term word="feed-forward">feed-forward</Term>, with N = {size.layers} layers, L = {tokens} tokens, E = {size.width} and F = {size.hidden}:{' '}
        {parts.projections} + {parts.attention} + {parts.feedForward} = {parts.total} multiply-adds a text.
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
