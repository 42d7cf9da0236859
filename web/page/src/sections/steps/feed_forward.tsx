import { useState } from 'preact/hooks';
import { fixed } from '../../formats/numbers.ts';
import { Call, Eq, Formula, I, Plus, Sub } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import {
  at,
  before,
  Choice,
  isShown,
  LinearDot,
  LinearTables,
  numberInFocus,
  rowInFocus,
  TokenTable,
  WeightsBehind,
  type StepProps,
} from './parts.tsx';

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
      <TokenTable sizes={sizes} name="F, the output of the feed-forward network" tensor={trace.ff_output} kind="model" />
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
        The <Term word="feed-forward">feed-forward network</Term> transforms each token separately: from {E} numbers to {F}, through the{' '}
        <Term word="activation">activation {activation}</Term>, and back to {E}.
        {gated && (
          <>
            {' '}
            The network of this model is <Term word="gated" />.
          </>
        )}
      </p>
      <p class="note">Z is the normalised Z of the previous step.</p>
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
