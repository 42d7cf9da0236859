/** The steps after the heads: W_O, the sums, the norms, the feed-forward, and what comes of it all. */
import { useState } from 'preact/hooks';
import type { Tensor } from 'attn';
import { bracketed, brief, fixed, joined, shortNumber } from '../../numbers.ts';
import type { LinearNames } from '../../parameter_names.ts';
import { toggleHead } from '../../state/heads.ts';
import { answerFunction, answerName } from '../../state/model.ts';
import { answers, baseline } from '../../state/run.ts';
import { update, view } from '../../state/view.ts';
import { reach, type Walk } from '../../state/walk.ts';
import { Call, Eq, Formula, I, Plus, Sub } from '../../ui/formula.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { StepTable } from '../../ui/step_table.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import { meanAndVariance } from '../../workings.ts';
import {
  at,
  before,
  Choice,
  focusNumber,
  focusRow,
  isShown,
  LinearDot,
  LinearTables,
  numberAxis,
  numberInFocus,
  reader,
  rowInFocus,
  tokenAxis,
  TokenTable,
  WeightsBehind,
  type Sizes,
  type StepProps,
} from './parts.tsx';

export function ConcatStep({ walk, sizes }: StepProps) {
  const { layer, head, trace } = walk;
  const { H, D } = sizes;
  const { off } = view.value;
  const isOff = (h: number) => off.includes(layer * H + h);
  const width = H * D;
  const first = head * D;
  return (
    <>
      <p>
        The results of all {H} heads stand side by side. Switch one off, and its results are zeros: the model goes on without it (
        <Term word="ablation" />
        ).
      </p>
      <Formula>
        <I>O</I>
        <Eq />
        <mo>[</mo>
        <Sub base="O" sub="1" />
        <mo>,</mo>
        <mo>…</mo>
        <mo>,</mo>
        <Sub base="O" sub={String(H)} />
        <mo>]</mo>
      </Formula>
      <fieldset class="token-toggles">
        <legend>Switch off heads of layer {layer + 1}</legend>
        {Array.from({ length: H }, (_, h) => (
          <button
            key={h}
            type="button"
            aria-pressed={isOff(h)}
            aria-label={`Drop head ${h + 1}${h === head ? ', in focus' : ''}`}
            onClick={() => toggleHead(layer * H + h)}
          >
            {h + 1}
            {h === head ? ', in focus' : ''}
          </button>
        ))}
      </fieldset>
      <p class="note">
        Columns {first + 1} to {first + D} of {width} come from head {head + 1}
        {isOff(head) ? ', which is switched off' : ''}.
      </p>
      <StepTable
        name="O, all heads side by side"
        rows={tokenAxis(sizes, 'query')}
        columns={numberAxis(width)}
        value={(i, j) => at(trace.merged, i, j)}
        selected={{ row: rowInFocus(sizes), column: first + numberInFocus('head', D) }}
        onSelect={({ row, column }) => {
          focusRow(row);
          focusNumber('head', column % D);
          update({ head: Math.floor(column / D) });
        }}
      />
    </>
  );
}

export function OutputStep({ walk, sizes }: StepProps) {
  const { trace, names } = walk;
  const { E, H, D, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', E)];
  const linear = names?.output;
  return (
    <>
      <p>One more matrix mixes the heads, into rows as wide as X.</p>
      <Formula>
        <I>Y</I>
        <Eq />
        <I>O</I>
        <Sub base="W" sub="O" />
        {linear?.bias && (
          <>
            <Plus />
            <Sub base="b" sub="O" />
          </>
        )}
      </Formula>
      <TokenTable sizes={sizes} name="Y, the output of attention" tensor={trace.output} kind="model" of="query" />
      <Working
        name={`Y of ${tokens[row]}, number ${column + 1}`}
        value={at(trace.output, row, column)}
        before={before(walk, 'output', row * E + column)}
      >
        {isShown(walk, linear) && (
          <LinearDot
            walk={walk}
            linear={linear}
            a={(i) => at(trace.merged, row, i)}
            count={H * D}
            column={column}
            result={at(trace.output, row, column)}
          />
        )}
      </Working>
      {isShown(walk, linear) && (
        <WeightsBehind>
          <LinearTables walk={walk} name="W_O" biasName="b_O" linear={linear} inKind="model" outKind="model" />
        </WeightsBehind>
      )}
    </>
  );
}

/** A norm of rows: its formula, its numbers, its weights. */
function Norm({
  walk,
  sizes,
  name,
  input,
  output,
  linear,
  trace,
}: StepProps & { name: string; input: Tensor; output: Tensor; linear: LinearNames | undefined; trace: 'norm1' | 'norm2' }) {
  const { E, eps, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', E)];
  const { mean, variance } = meanAndVariance(input.data.subarray(row * E, (row + 1) * E));
  const x = at(input, row, column);
  const weight = isShown(walk, linear) ? reader(walk, linear.weight).value(0, column) : 1;
  const bias = isShown(walk, linear) && linear.bias ? reader(walk, linear.bias).value(0, column) : undefined;
  return (
    <>
      <Formula>
        <Call name="norm">
          <I>x</I>
        </Call>
        <Eq />
        <mfrac>
          <mrow>
            <I>x</I>
            <mo>−</mo>
            <mi mathvariant="normal">mean</mi>
          </mrow>
          <msqrt>
            <mrow>
              <mi mathvariant="normal">variance</mi>
              <Plus />
              <I>ε</I>
            </mrow>
          </msqrt>
        </mfrac>
        <I>γ</I>
        {bias !== undefined && (
          <>
            <Plus />
            <I>β</I>
          </>
        )}
      </Formula>
      <TokenTable sizes={sizes} name={name} tensor={output} kind="model" />
      <Working
        name={`${name} of ${tokens[row]}, number ${column + 1}`}
        value={at(output, row, column)}
        before={before(walk, trace, row * E + column)}
      >
        ({brief(x)} − {bracketed(mean)}) / √({brief(variance)} + {eps.toExponential()}) · {bracketed(weight)}
        {bias !== undefined && ` ${joined(bias)}`} = {fixed(at(output, row, column))}
      </Working>
      <p class="note">Mean and variance are taken over the row of {tokens[row]}.</p>
      {isShown(walk, linear) && (
        <WeightsBehind>
          <LinearTables walk={walk} name="γ" biasName="β" linear={linear} inKind="model" outKind="model" />
        </WeightsBehind>
      )}
    </>
  );
}

function Residual({
  walk,
  sizes,
  name,
  a,
  b,
  sum,
  trace,
}: StepProps & { name: string; a: Tensor; b: Tensor; sum: Tensor; trace: 'attn_residual' | 'ff_residual' }) {
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', sizes.E)];
  return (
    <>
      <TokenTable sizes={sizes} name={name} tensor={sum} kind="model" />
      <Working
        name={`${name} of ${sizes.tokens[row]}, number ${column + 1}`}
        value={at(sum, row, column)}
        before={before(walk, trace, row * sizes.E + column)}
      >
        <span class="as-query">{brief(at(a, row, column))}</span> <span class="as-key">{joined(at(b, row, column))}</span> ={' '}
        {fixed(at(sum, row, column))}
      </Working>
    </>
  );
}

export function FirstNormStep({ walk, sizes }: StepProps) {
  const { run, layer, trace, names } = walk;
  return (
    <>
      <p>
        The output of attention is added to X (a <Term word="residual" /> connection), and a <Term word="layer norm" /> brings each row back to a
        standard size.
      </p>
      <h4>The sum</h4>
      <Formula>
        <I>Z</I>
        <Eq />
        <I>X</I>
        <Plus />
        <I>Y</I>
      </Formula>
      <Residual walk={walk} sizes={sizes} name="Z" a={run.hiddenStates[layer]!} b={trace.output} sum={trace.attn_residual} trace="attn_residual" />
      <h4>The norm</h4>
      {sizes.preNorm && (
        <p class="note">
          This model is <Term word="pre-norm" />: only the input of the feed-forward is normed. Z itself stays as it is.
        </p>
      )}
      {sizes.preNorm ? (
        <Norm walk={walk} sizes={sizes} name="Norm of Z" input={trace.attn_residual} output={trace.norm2} linear={names?.norm2} trace="norm2" />
      ) : (
        <Norm walk={walk} sizes={sizes} name="Norm of Z" input={trace.attn_residual} output={trace.norm1} linear={names?.norm1} trace="norm1" />
      )}
    </>
  );
}

function FirstMap({ walk, sizes }: StepProps) {
  const { trace, names } = walk;
  const { F, E, tokens, gated } = sizes;
  const input = sizes.preNorm ? trace.norm2 : trace.norm1;
  const [row, column] = [rowInFocus(sizes), numberInFocus('hidden', F)];
  const linear = names?.linear1;
  const gate = names?.gate;
  return (
    <>
      <TokenTable sizes={sizes} name="H, the hidden layer" tensor={trace.ff_hidden} kind="hidden" />
      <Working
        name={`H of ${tokens[row]}, number ${column + 1}`}
        value={at(trace.ff_hidden, row, column)}
        before={before(walk, 'ff_hidden', row * F + column)}
      >
        {isShown(walk, linear) && (
          <>
            {gated && 'multiplied by the gate: '}
            <LinearDot walk={walk} linear={linear} a={(i) => at(input, row, i)} count={E} column={column} />
            {!gated && `, and ${sizes.activation} of that is ${fixed(at(trace.ff_hidden, row, column))}`}
          </>
        )}
        {gated && isShown(walk, gate) && (
          <>
            <br />
            the gate, {sizes.activation} of: <LinearDot walk={walk} linear={gate} a={(i) => at(input, row, i)} count={E} column={column} />
          </>
        )}
      </Working>
      {isShown(walk, linear) && (
        <WeightsBehind>
          <LinearTables walk={walk} name="W_1" biasName="b_1" linear={linear} inKind="model" outKind="hidden" />
          {isShown(walk, gate) && <LinearTables walk={walk} name="W_gate" biasName="b_gate" linear={gate} inKind="model" outKind="hidden" />}
        </WeightsBehind>
      )}
    </>
  );
}

function SecondMap({ walk, sizes }: StepProps) {
  const { trace, names } = walk;
  const { F, E, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', E)];
  const linear = names?.linear2;
  return (
    <>
      <TokenTable sizes={sizes} name="F, the output of the feed-forward" tensor={trace.ff_output} kind="model" />
      <Working
        name={`F of ${tokens[row]}, number ${column + 1}`}
        value={at(trace.ff_output, row, column)}
        before={before(walk, 'ff_output', row * E + column)}
      >
        {isShown(walk, linear) && (
          <LinearDot
            walk={walk}
            linear={linear}
            a={(i) => at(trace.ff_hidden, row, i)}
            count={F}
            column={column}
            result={at(trace.ff_output, row, column)}
          />
        )}
      </Working>
      {isShown(walk, linear) && (
        <WeightsBehind>
          <LinearTables walk={walk} name="W_2" biasName="b_2" linear={linear} inKind="hidden" outKind="model" />
        </WeightsBehind>
      )}
    </>
  );
}

export function FeedForwardStep({ walk, sizes }: StepProps) {
  const [map, setMap] = useState<'first' | 'second'>('first');
  const { gated, activation, E, F } = sizes;
  return (
    <>
      <p>
        The <Term word="feed-forward" /> takes each token by itself: from {E} numbers to {F}, through the{' '}
        <Term word="activation">activation {activation}</Term>, and back to {E}.
        {gated && (
          <>
            {' '}
            This model’s is <Term word="gated" />.
          </>
        )}
      </p>
      <p class="note">Z here is the normed Z of the step before.</p>
      <Choice
        name="Map shown"
        value={map}
        options={[
          ['first', 'First map, H'],
          ['second', 'Second map, F'],
        ]}
        onChange={setMap}
      />
      <Formula>
        {map === 'second' ? (
          <>
            <I>F</I>
            <Eq />
            <I>H</I>
            <Sub base="W" sub="2" />
            {!gated && (
              <>
                <Plus />
                <Sub base="b" sub="2" />
              </>
            )}
          </>
        ) : gated ? (
          <>
            <I>H</I>
            <Eq />
            <Call name={activation}>
              <I>Z</I>
              <Sub base="W" sub="gate" />
            </Call>
            <mo>⊙</mo>
            <I>Z</I>
            <Sub base="W" sub="1" />
          </>
        ) : (
          <>
            <I>H</I>
            <Eq />
            <Call name={activation}>
              <I>Z</I>
              <Sub base="W" sub="1" />
              <Plus />
              <Sub base="b" sub="1" />
            </Call>
          </>
        )}
      </Formula>
      {map === 'first' ? <FirstMap walk={walk} sizes={sizes} /> : <SecondMap walk={walk} sizes={sizes} />}
    </>
  );
}

export function SecondNormStep({ walk, sizes }: StepProps) {
  const { trace, names, layer, run } = walk;
  return (
    <>
      <p>
        Add again{sizes.preNorm ? '' : ', norm again'}, and this is the output of layer {layer + 1}
        {layer + 1 < run.model.layers ? `, which is the X of layer ${layer + 2}` : ', the last one'}.
      </p>
      <h4>The sum</h4>
      <Formula>
        <I>R</I>
        <Eq />
        {sizes.preNorm ? (
          <I>Z</I>
        ) : (
          <Call name="norm">
            <I>Z</I>
          </Call>
        )}
        <Plus />
        <I>F</I>
      </Formula>
      <Residual
        walk={walk}
        sizes={sizes}
        name="R"
        a={sizes.preNorm ? trace.attn_residual : trace.norm1}
        b={trace.ff_output}
        sum={trace.ff_residual}
        trace="ff_residual"
      />
      {sizes.preNorm ? (
        <p class="note">This model is pre-norm: there is no norm here, only one after the last layer.</p>
      ) : (
        <>
          <h4>The norm</h4>
          <Norm walk={walk} sizes={sizes} name="Norm of R" input={trace.ff_residual} output={trace.norm2} linear={names?.norm2} trace="norm2" />
        </>
      )}
    </>
  );
}

/** What a place of the reach is called. */
const places: Readonly<Record<string, string>> = {
  X: 'X, what goes in',
  q: 'queries',
  k: 'keys',
  v: 'values',
  scores: 'scores',
  masked_scores: 'masked scores',
  probabilities: 'shares',
  weights: 'attention weights',
  context: 'results of the heads',
  merged: 'heads side by side',
  output: 'output of attention',
  attn_residual: 'first sum',
  norm1: 'first norm',
  ff_hidden: 'hidden layer',
  ff_output: 'output of the feed-forward',
  ff_residual: 'second sum',
  norm2: 'second norm',
};

/** From 1e-7, which is rounding, to 10. */
const shareOf = (difference: number) => (difference === 0 ? 0 : Math.min(1, Math.max(0, (Math.log10(difference) + 7) / 8)));

function Answer({ walk }: { walk: Walk }) {
  const after = answers(walk.run);
  const unchanged = baseline.value && baseline.value.tokens.length === walk.run.tokens.length ? answers(baseline.value) : [];
  return (
    <NumberTable
      name="The classifier’s answer"
      rows={{ kind: 'answer', count: after.length, label: (i) => after[i]!.label }}
      columns={{ kind: answerName(walk.run.model), count: 3, label: (j) => ['unchanged model', 'with your changes', 'difference'][j]! }}
      cell={(i, j) => {
        const { label, score } = after[i]!;
        const old = unchanged.find((each) => each.label === label)?.score ?? score;
        return fixed([old, score, score - old][j]!, 4);
      }}
    />
  );
}

const functionWords = {
  softmax: '. Softmax turns these into probabilities.',
  sigmoid: '. The sigmoid, 1 / (1 + e⁻ˣ), turns each into a probability.',
  identity: ', which are the answer.',
};

export function AnswerStep({ walk }: { walk: Walk; sizes: Sizes }) {
  const found = reach.value;
  const { layer, run } = walk;
  const { labels } = run.model;
  return (
    <>
      <p>
        {layer + 1 < run.model.layers
          ? `The output goes through ${run.model.layers - layer - 1} more layer${run.model.layers - layer > 2 ? 's' : ''} built the same way. `
          : 'This was the last layer. '}
        {labels ? (
          <>
            At the end the classifier turns the last rows into scores, the <Term word="logits" />
            {functionWords[answerFunction(run.model)]}
          </>
        ) : (
          <>
            This model has no classifier. Its result is the last <Term word="hidden state" />: most models take the mean of its rows, which is one{' '}
            <Term word="vector" /> for the whole text.
          </>
        )}
      </p>
      {labels && <Answer walk={walk} />}
      <h4>How far your changes reach</h4>
      {found ? (
        <NumberTable
          name="Largest difference to the unchanged model"
          rows={{
            kind: 'place',
            count: found.length,
            label: (i) =>
              `${found[i]!.layer === undefined ? 'at the end' : `layer ${found[i]!.layer + 1}`}, ${places[found[i]!.place] ?? found[i]!.place}`,
          }}
          columns={{ kind: 'difference', count: 1, label: () => 'max |Δ|' }}
          cell={(i) => {
            const { difference } = found[i]!;
            return difference === Infinity ? 'blocked' : shortNumber(difference);
          }}
          tint={(i) => shareOf(found[i]!.difference)}
        />
      ) : (
        <p class="note">Nothing is changed yet. Change a number of X or of a weight, or move a slider, and you will see here how far that reaches.</p>
      )}
    </>
  );
}
