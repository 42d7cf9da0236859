import type { ComponentChildren } from 'preact';
import { bracketed, brief, fixed } from '../../formats/numbers.ts';
import { example, exampleWords, initialExample, updateExample, type ComputedExample } from '../../state/example.ts';
import { Call, Eq, Formula, I, Sub, Sum, Transposed } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { at, dotText, EditableMatrix, Matrix } from './tables.tsx';

interface Step {
  readonly title: string;
  readonly text: ComponentChildren;
  readonly formula: ComponentChildren;
  readonly body: (of: ComputedExample) => ComponentChildren;
}

const product = (
  <>
    <I>Q</I>
    <Transposed>
      <I>K</I>
    </Transposed>
  </>
);

const input: Step = {
  title: 'Words are rows of numbers',
  text: 'Three words, four numbers each. Each row is a word. Change a number, and every later step changes with it.',
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
  body: () => <EditableMatrix name="X" />,
};

const projections: Step = {
  title: 'Each word gets a query, a key and a value',
  text: (
    <>
      The <Term word="query" /> describes the words that a word looks for, the <Term word="key" /> what other words find it by, and the{' '}
      <Term word="value" /> what it passes on. Three matrices compute them. A trained model has learned these matrices; you can change the ones here.
    </>
  ),
  formula: (['Q', 'K', 'V'] as const).map((letter) => (
    <Formula key={letter}>
      <I>{letter}</I>
      <Eq />
      <I>X</I>
      <Sub base="W" sub={letter} />
    </Formula>
  )),
  body: ({ Q, K, V }) =>
    (
      [
        ['Wq', 'Q = X·Wq', Q, 'query'],
        ['Wk', 'K = X·Wk', K, 'key'],
        ['Wv', 'V = X·Wv', V, 'key'],
      ] as const
    ).map(([weight, name, tensor, rows]) => (
      <div key={weight} class="pair">
        <EditableMatrix name={weight} />
        <Matrix name={name} tensor={tensor} rows={rows} columns="number" />
      </div>
    )),
};

const compare: Step = {
  title: 'Compare every query with every key',
  text: (
    <>
      For each pair, multiply the two rows number by number and add up the products: a <Term word="dot product" />. The larger it is, the better the
      key fits the query. Each cell shows its sum.
    </>
  ),
  formula: <Formula>{product}</Formula>,
  body: ({ Q, K, products }) => (
    <Matrix name="Query times key" tensor={products} rows="query" columns="key" detail={(i, j) => dotText(Q, i, (k) => at(K, j, k))} />
  ),
};

const scaling: Step = {
  title: 'Scale',
  text: 'Every product is multiplied by the same factor, so that wide queries do not produce huge scores. The article uses 1. Transformers use one over the square root of the query width, here 1/√3.',
  formula: (
    <Formula>
      <I>S</I>
      <Eq />
      {product}
      <mo>·</mo>
      <mi>scale</mi>
    </Formula>
  ),
  body: ({ scale, products, head }) => {
    const { usualScale } = example.value;
    return (
      <>
        <div class="buttons" role="group" aria-label="Scale of the example">
          <button type="button" aria-pressed={!usualScale} onClick={() => updateExample({ usualScale: false })}>
            1
          </button>
          <button type="button" aria-pressed={usualScale} onClick={() => updateExample({ usualScale: true })}>
            1/√3
          </button>
        </div>
        <Matrix
          name="Scaled products"
          tensor={head.scores}
          rows="query"
          columns="key"
          detail={(i, j) => `${brief(at(products, i, j))} · ${brief(scale)}`}
        />
        {scale === 1 && <p class="note">Times 1: the products stay as they are, so nothing is scaled here.</p>}
      </>
    );
  },
};

const masking: Step = {
  title: 'Mask',
  text: (
    <>
      A <Term word="mask" /> hides some keys from a query: it sets their scores to minus infinity (−∞). The article uses no mask. A model that
      generates text hides every later word, because that word is not written yet.
    </>
  ),
  formula: (
    <Formula>
      <Sub base="S" sub="ij" />
      <Eq />
      <mo>−</mo>
      <mi mathvariant="normal">∞</mi>
      <mspace width="0.6em" />
      <mtext>if hidden</mtext>
    </Formula>
  ),
  body: ({ head }) => (
    <>
      <label class="check">
        <input type="checkbox" checked={example.value.causal} onChange={(event) => updateExample({ causal: event.currentTarget.checked })} />
        <span>Hide later words</span>
      </label>
      <Matrix name="Products after the mask" tensor={head.masked} rows="query" columns="key" />
    </>
  ),
};

const softmax: Step = {
  title: 'Softmax',
  text: (
    <>
      <Term word="softmax">Softmax</Term> turns each row into weights that add up to 1. The largest score gets the largest weight. Attention maps show
      these weights.
    </>
  ),
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
  body: ({ head }) => {
    const width = head.masked.dims[1]!;
    const rowOf = (i: number) => Array.from(head.masked.data.subarray(i * width, (i + 1) * width));
    const power = (score: number) => (score === -Infinity ? '0' : brief(Math.exp(score)));
    return (
      <>
        <Matrix
          name="Shares"
          tensor={head.weights}
          rows="query"
          columns="key"
          write={fixed}
          detail={(i, j) => `${power(rowOf(i)[j]!)} / ${brief(rowOf(i).reduce((sum, score) => sum + Math.exp(score), 0))}`}
          total
        />
        <p class="note">Below each share: e to the power of its score, divided by the sum of these powers in its row, both in four digits.</p>
      </>
    );
  },
};

const weigh: Step = {
  title: 'Weigh the values',
  text: 'The value of each word is multiplied by its weight.',
  formula: (
    <Formula>
      <Sub base="A" sub="ij" />
      <Sub base="V" sub="j" />
    </Formula>
  ),
  body: ({ V, head: { weights, weightedValues } }) => {
    const [, count, width] = weightedValues.dims as [number, number, number];
    return exampleWords.map((word, i) => (
      <Matrix
        key={word}
        name={`Weighted values of ${word}`}
        tensor={{ data: weightedValues.data.subarray(i * count * width, (i + 1) * count * width), dims: [count, width] }}
        rows="key"
        columns="number"
        detail={(j, d) => `${brief(at(weights, i, j))} · ${bracketed(at(V, j, d))}`}
      />
    ));
  },
};

const isOriginal = ({ of }: ComputedExample) => of.matrices === initialExample.matrices && !of.usualScale && !of.causal;

const add: Step = {
  title: 'Add them up',
  text: 'Add up the weighted values. The sum is the word’s new row: a mixture of the values that it attends to.',
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
  body: (of) => (
    <>
      <Matrix name="Result, exact shares" tensor={of.head.output} rows="query" columns="number" />
      {isOriginal(of) && (
        <>
          <Matrix name="Result, shortened shares" tensor={of.shortened} rows="query" columns="number" />
          <p class="note">
            The first table uses the exact weights of softmax. The article continues with approximate ones, (0, 0.5, 0.5), (0, 1, 0) and (0, 0.9,
            0.1). The second table does the same and has the article’s results.
          </p>
        </>
      )}
    </>
  ),
};

const concat: Step = {
  title: 'Concatenate the heads',
  text: (
    <>
      A layer has several <Term word="head">heads</Term>, each with its own matrices. The article has only one. Here a second head uses the same
      matrices in other places: Wk for its queries, Wv for its keys and Wq for its values. The results of both heads are concatenated.
    </>
  ),
  formula: (
    <Formula>
      <I>O</I>
      <Eq />
      <mo>[</mo>
      <Sub base="O" sub="1" />
      <mo>,</mo>
      <Sub base="O" sub="2" />
      <mo>]</mo>
    </Formula>
  ),
  body: ({ second, merged }) => (
    <>
      <Matrix name="Shares of head 2" tensor={second.weights} rows="query" columns="key" total />
      <Matrix name="Both heads side by side" tensor={merged} rows="query" columns="number" />
      <p class="note">Columns 1 to 3 are the result of step 8; columns 4 to 6 are the result of head 2.</p>
    </>
  ),
};

const output: Step = {
  title: 'Mix the heads: Wo',
  text: 'A last matrix mixes the heads and returns rows as wide as X, which the next layer can read. This Wo is not from the article. You can change it.',
  formula: (
    <Formula>
      <I>Y</I>
      <Eq />
      <I>O</I>
      <Sub base="W" sub="O" />
    </Formula>
  ),
  body: ({ merged, Y, of }) => (
    <>
      <EditableMatrix name="Wo" />
      <Matrix
        name="Y = O·Wo"
        tensor={Y}
        rows="query"
        columns="number"
        detail={(i, j) =>
          of.matrices.Wo.map((row, k) => (row[j] === 0 ? '' : `${brief(at(merged, i, k))}·${bracketed(row[j]!)}`))
            .filter((each) => each !== '')
            .join(' + ') || '0'
        }
      />
    </>
  ),
};

export const steps: readonly Step[] = [input, projections, compare, scaling, masking, softmax, weigh, add, concat, output];
export const titles = steps.map(({ title }) => title);
