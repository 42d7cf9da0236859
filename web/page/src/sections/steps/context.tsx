import { ofHead } from '../../state/walk.ts';
import { Eq, Formula, Sub, Sum } from '../../ui/formula.tsx';
import { Dot, Working } from '../../ui/working.tsx';
import { at, before, numberInFocus, rowInFocus, TokenTable, type StepProps } from './parts.tsx';

export function ContextStep({ walk, sizes }: StepProps) {
  const { head, trace } = walk;
  const { L, D, tokens } = sizes;
  const [weights, v, context] = [ofHead(trace.weights, head), ofHead(trace.v, head), ofHead(trace.context, head)];
  const [row, column] = [rowInFocus(sizes), numberInFocus('head', D)];
  return (
    <>
      <p>Multiply the value of every token by its weight and add up the products. The result is a mixture of the values that the query attends to.</p>
      <Formula>
        <Sub base="o" sub="i" />
        <Eq />
        <Sum over="j">
          <Sub base="a" sub="ij" />
          <Sub base="v" sub="j" />
        </Sum>
      </Formula>
      <TokenTable sizes={sizes} name="AV, the results of this head" colour="value" tensor={context} kind="head" of="query" />
      <Working
        name={`Result of ${tokens[row]}, number ${column + 1}`}
        value={at(context, row, column)}
        before={before(walk, 'context', (head * L + row) * D + column)}
      >
        <Dot a={(j) => at(weights, row, j)} b={(j) => at(v, j, column)} count={L} result={at(context, row, column)} />
      </Working>
      <p class="note">The first number of each product is a token’s weight, the second is from its value.</p>
    </>
  );
}
