import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { Tensor } from 'attn';
import type { Attn } from 'attn/worker';
import { fromRows, transposed } from '../arrays.ts';
import { bracketed, brief, teaching } from '../numbers.ts';
import { engine } from '../state/model.ts';
import { explain, newestOnly, status } from '../state/status.ts';
import '../styles/stepper.css';
import { Call, Eq, Formula, I, Sub, Sum, Transposed } from '../ui/formula.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Term } from '../ui/term.tsx';

type InputName = 'X' | 'Wq' | 'Wk' | 'Wv';
type Inputs = Readonly<Record<InputName, readonly (readonly number[])[]>>;

const original: Inputs = {
  X: [
    [1, 0, 1, 0],
    [0, 2, 0, 2],
    [1, 1, 1, 1],
  ],
  Wq: [
    [1, 0, 1],
    [1, 0, 0],
    [0, 0, 1],
    [0, 1, 1],
  ],
  Wk: [
    [0, 0, 1],
    [1, 1, 0],
    [0, 1, 0],
    [1, 1, 0],
  ],
  Wv: [
    [0, 2, 0],
    [0, 3, 0],
    [1, 0, 3],
    [1, 1, 0],
  ],
};
/** As the article that the example comes from prints the weights. */
const shortenedWeights = fromRows([
  [0, 0.5, 0.5],
  [0, 1, 0],
  [0, 0.9, 0.1],
]);

interface Computed {
  readonly scale: number;
  readonly causal: boolean;
  readonly Q: Tensor;
  readonly K: Tensor;
  readonly V: Tensor;
  /** Q Kᵀ before the scale. */
  readonly products: Tensor;
  readonly scores: Tensor;
  readonly masked: Tensor;
  readonly weights: Tensor;
  readonly weightedValues: Tensor;
  readonly output: Tensor;
  readonly shortened: Tensor;
}

async function compute(attn: Attn, inputs: Inputs, scale: number, causal: boolean): Promise<Computed> {
  const x = fromRows(inputs.X);
  const Q = await attn.linear(x, transposed(fromRows(inputs.Wq)));
  const K = await attn.linear(x, transposed(fromRows(inputs.Wk)));
  const V = await attn.linear(x, transposed(fromRows(inputs.Wv)));
  // linear multiplies by the transpose of its second argument, so this is Q Kᵀ.
  const products = await attn.linear(Q, K);
  const { output, trace } = await attn.scaledDotProductAttention(Q, K, V, {
    scale,
    isCausal: causal,
    trace: ['scores', 'masked_scores', 'weights', 'weighted_values'],
  });
  const shortened = await attn.linear(shortenedWeights, transposed(V));
  return {
    scale,
    causal,
    Q,
    K,
    V,
    products,
    scores: trace!.scores!,
    masked: trace!.masked_scores!,
    weights: trace!.weights!,
    weightedValues: trace!.weighted_values!,
    output,
    shortened,
  };
}

const at = (tensor: Tensor, i: number, j: number) => tensor.data[i * tensor.dims.at(-1)! + j]!;

function Matrix({
  name,
  tensor,
  rows,
  columns,
  total,
  detail,
}: {
  name: string;
  tensor: Tensor;
  rows: string;
  columns: string;
  total?: boolean;
  detail?: (i: number, j: number) => string;
}) {
  const [length, width] = tensor.dims.slice(-2) as [number, number];
  const write = teaching(tensor.data);
  return (
    <NumberTable
      name={name}
      rows={{ kind: rows, count: length }}
      columns={{ kind: columns, count: width }}
      cell={(i, j) => (
        <>
          {write(at(tensor, i, j))}
          {detail && <span class="working">{detail(i, j)}</span>}
        </>
      )}
      total={total ? { name: 'row sum', cell: (i) => write(tensor.data.subarray(i * width, (i + 1) * width).reduce((a, b) => a + b, 0)) } : undefined}
    />
  );
}

function EditableMatrix({
  name,
  values,
  rows,
  columns,
  onChange,
}: {
  name: InputName;
  values: readonly (readonly number[])[];
  rows: string;
  columns: string;
  onChange: (name: InputName, row: number, column: number, value: number) => void;
}) {
  return (
    <NumberTable
      name={name}
      rows={{ kind: rows, count: values.length }}
      columns={{ kind: columns, count: values[0]!.length }}
      cell={(i, j) => (
        <input
          type="number"
          step="any"
          aria-label={`${name}, ${rows} ${i + 1}, ${columns} ${j + 1}`}
          // Not controlled: while "0." is being typed the field must keep it.
          defaultValue={values[i]![j]}
          onInput={(event) => {
            const value = event.currentTarget.valueAsNumber;
            if (Number.isFinite(Math.fround(value))) onChange(name, i, j, value);
          }}
        />
      )}
    />
  );
}

const transposedK = (
  <Transposed>
    <I>K</I>
  </Transposed>
);

/** One entry as the sum of products that it is. */
function dotText(left: Tensor, i: number, right: (k: number) => number, count: number): string {
  return Array.from({ length: count }, (_, k) => `${brief(at(left, i, k))}·${bracketed(right(k))}`).join(' + ');
}

export function Example() {
  const [inputs, setInputs] = useState(original);
  const [scale, setScale] = useState(1);
  const [causal, setCausal] = useState(false);
  const [computed, setComputed] = useState<Computed>();
  const [failure, setFailure] = useState('');
  const [step, setStep] = useState(0);
  /** Counts resets: the fields are made anew then. */
  const [resets, setResets] = useState(0);
  const run = useMemo(newestOnly, []);

  useEffect(() => {
    const attn = engine.value;
    if (!attn) return;
    void run(async () => {
      try {
        setComputed(await compute(attn, inputs, scale, causal));
        setFailure('');
      } catch (error) {
        setFailure(explain(error));
      }
    });
  }, [engine.value, inputs, scale, causal]);

  const change = (name: InputName, row: number, column: number, value: number) =>
    setInputs((old) => ({ ...old, [name]: old[name].map((line, i) => (i === row ? line.map((v, j) => (j === column ? value : v)) : line)) }));
  const untouched = inputs === original && scale === 1 && !causal;
  const reset = () => {
    setInputs(original);
    setResets((n) => n + 1);
    setScale(1);
    setCausal(false);
  };

  const editable = (name: InputName) => (
    <EditableMatrix
      name={name}
      values={inputs[name]}
      rows={name === 'X' ? 'word' : 'in'}
      columns={name === 'X' ? 'number' : 'out'}
      onChange={change}
    />
  );

  const steps: readonly { title: string; text: ComponentChildren; formula: ComponentChildren; body: (c: Computed) => ComponentChildren }[] = [
    {
      title: 'Words are rows of numbers',
      text: 'Three words, four numbers each. One row is one word. Change a number: every later step follows.',
      formula: (
        <Formula>
          <I>X</I>
          <mo>∈</mo>
          <msup>
            <mi>ℝ</mi>
            <mrow>
              <mn>3</mn>
              <mo>×</mo>
              <mn>4</mn>
            </mrow>
          </msup>
        </Formula>
      ),
      body: () => editable('X'),
    },
    {
      title: 'Each word gets a query, a key and a value',
      text: 'The query is what a word looks for. The key is what it offers to be found by. The value is what it hands over. Three learned matrices make them; change those too.',
      formula: (
        <>
          {(['Q', 'K', 'V'] as const).map((letter) => (
            <Formula key={letter}>
              <I>{letter}</I>
              <Eq />
              <I>X</I>
              <Sub base="W" sub={letter} />
            </Formula>
          ))}
        </>
      ),
      body: (c) => (
        <>
          <div class="pair">
            {editable('Wq')}
            <Matrix name="Q = X·Wq" tensor={c.Q} rows="query" columns="number" />
          </div>
          <div class="pair">
            {editable('Wk')}
            <Matrix name="K = X·Wk" tensor={c.K} rows="key" columns="number" />
          </div>
          <div class="pair">
            {editable('Wv')}
            <Matrix name="V = X·Wv" tensor={c.V} rows="key" columns="number" />
          </div>
        </>
      ),
    },
    {
      title: 'Compare every query with every key',
      text: 'Multiply number by number and add up. A large product says: this key is what that query looks for. Each cell shows its sum.',
      formula: (
        <Formula>
          <I>Q</I>
          {transposedK}
        </Formula>
      ),
      body: (c) => (
        <Matrix
          name="Query times key"
          tensor={c.products}
          rows="query"
          columns="key"
          detail={(i, j) => dotText(c.Q, i, (k) => at(c.K, j, k), c.Q.dims[1]!)}
        />
      ),
    },
    {
      title: 'Scale',
      text: 'One factor for all products. It keeps them from growing with the width. The worked example uses 1; Transformers use one over the root of the width, here 1/√3.',
      formula: (
        <Formula>
          <I>S</I>
          <Eq />
          <I>Q</I>
          {transposedK}
          <mo>·</mo>
          <mi>scale</mi>
        </Formula>
      ),
      body: (c) => (
        <>
          <div class="buttons" role="group" aria-label="Scale of the example">
            <button type="button" aria-pressed={scale === 1} onClick={() => setScale(1)}>
              1
            </button>
            <button type="button" aria-pressed={scale !== 1} onClick={() => setScale(1 / Math.sqrt(3))}>
              1/√3
            </button>
          </div>
          <Matrix
            name="Scaled products"
            tensor={c.scores}
            rows="query"
            columns="key"
            {...(c.scale === 1 ? {} : { detail: (i: number, j: number) => `${brief(at(c.products, i, j))} · ${brief(c.scale)}` })}
          />
        </>
      ),
    },
    {
      title: 'Mask',
      text: 'A mask hides keys from queries. The worked example has none. The causal mask hides every later word, as in a model that writes text: what is hidden becomes −Infinity.',
      formula: (
        <Formula>
          <Sub base="S" sub="ij" />
          <Eq />
          <mo>−</mo>
          <mi mathvariant="normal">∞</mi>
          <mspace width="0.6em" />
          <mtext>where hidden</mtext>
        </Formula>
      ),
      body: (c) => (
        <>
          <label class="check">
            <input type="checkbox" checked={causal} onChange={(event) => setCausal(event.currentTarget.checked)} />
            <span>Hide later words</span>
          </label>
          <Matrix name="Products after the mask" tensor={c.masked} rows="query" columns="key" />
        </>
      ),
    },
    {
      title: 'Softmax',
      text: 'Turn each row into shares that add up to 1. The largest product takes most.',
      formula: (
        <Formula>
          <Sub base="A" sub="ij" />
          <Eq />
          <mfrac>
            <mrow>
              <Call name="exp">
                <Sub base="S" sub="ij" />
              </Call>
            </mrow>
            <mrow>
              <Sum over="k">
                <Call name="exp">
                  <Sub base="S" sub="ik" />
                </Call>
              </Sum>
            </mrow>
          </mfrac>
        </Formula>
      ),
      body: (c) => <Matrix name="Shares" tensor={c.weights} rows="query" columns="key" total />,
    },
    {
      title: 'Weigh the values',
      text: 'Each query takes every value, times its share.',
      formula: (
        <Formula>
          <Sub base="A" sub="ij" />
          <Sub base="V" sub="j" />
        </Formula>
      ),
      body: (c) => {
        const [length, count, width] = c.weightedValues.dims as [number, number, number];
        return (
          <>
            {Array.from({ length }, (_, i) => (
              <Matrix
                key={i}
                name={`Weighted values of query ${i + 1}`}
                tensor={{ data: c.weightedValues.data.subarray(i * count * width, (i + 1) * count * width), dims: [count, width] }}
                rows="key"
                columns="number"
                detail={(j, d) => `${brief(at(c.weights, i, j))} · ${bracketed(at(c.V, j, d))}`}
              />
            ))}
          </>
        );
      },
    },
    {
      title: 'Add them up',
      text: 'The sum over the keys is the new row of each word: a mixture of the values it looked at.',
      formula: (
        <Formula>
          <Sub base="O" sub="i" />
          <Eq />
          <Sum over="j">
            <Sub base="A" sub="ij" />
            <Sub base="V" sub="j" />
          </Sum>
        </Formula>
      ),
      body: (c) => (
        <>
          <Matrix name="Result, exact shares" tensor={c.output} rows="query" columns="number" />
          {untouched && (
            <>
              <Matrix name="Result, shortened shares" tensor={c.shortened} rows="query" columns="number" />
              <p class="note">
                The first table uses the shares as softmax gives them. The second uses the shares that the article with this example prints, shortened
                to one decimal: (0, 0.5, 0.5), (0, 1, 0), (0, 0.9, 0.1). That is why its results look rounder.
              </p>
            </>
          )}
        </>
      ),
    },
  ];

  const current = steps[step]!;
  return (
    <section id="example" aria-labelledby="example-title">
      <div class="lede">
        <h2 id="example-title">Attention by hand, in eight steps</h2>
        <p>
          The same with three words and numbers so small that you can follow with a pencil: one <Term word="head" />, weights chosen by hand. Every
          number comes out of the same module as the map above.
        </p>
        <p class="try">
          <strong>Try:</strong> write 10 over a number of X in step 1, then look at the <Term word="softmax" /> in step 6: who takes it all?
        </p>
      </div>
      <div class="stepper">
        <ol class="step-list">
          {steps.map(({ title }, i) => (
            <li key={title}>
              <button type="button" class="quiet" aria-current={i === step ? 'step' : undefined} onClick={() => setStep(i)}>
                <span class="figure">{i + 1}</span> <span class="step-title">{title}</span>
              </button>
            </li>
          ))}
        </ol>
        <div class="step">
          <div class="buttons">
            <button type="button" disabled={step === 0} onClick={() => setStep(step - 1)}>
              Previous step
            </button>
            <button type="button" disabled={step === steps.length - 1} onClick={() => setStep(step + 1)}>
              Next step
            </button>
            <button type="button" class="quiet" disabled={untouched} onClick={reset}>
              Original numbers
            </button>
          </div>
          <h3 aria-live="polite">
            Step {step + 1} of {steps.length}: {current.title}
          </h3>
          <p>{current.text}</p>
          {current.formula}
          {failure && (
            <p role="alert" class="error">
              The example could not be computed. {failure}
            </p>
          )}
          {computed ? (
            <div class="step-tables" key={`${step} ${resets}`}>
              {current.body(computed)}
            </div>
          ) : (
            <p class="note">{status.value.failed ? 'The module is not running.' : 'The module is starting.'}</p>
          )}
        </div>
      </div>
    </section>
  );
}
