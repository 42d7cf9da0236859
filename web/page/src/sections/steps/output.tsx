import { Eq, Formula, I, Plus, Sub } from '../../ui/formula.tsx';
import { Working } from '../../ui/working.tsx';
import { at, before, isShown, LinearDot, LinearTables, numberInFocus, rowInFocus, TokenTable, WeightsBehind, type StepProps } from './parts.tsx';

export function OutputStep({ walk, sizes }: StepProps) {
  const { trace, names } = walk;
  const { E, H, D, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), numberInFocus('model', E)];
  const linear = names?.output;
  return (
    <>
      <p>A last matrix mixes the heads and returns rows as wide as X.</p>
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
