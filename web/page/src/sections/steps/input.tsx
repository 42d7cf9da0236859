import { Formula, I } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { EditHint, editX, TokenTable, type StepProps } from './parts.tsx';

export function InputStep({ walk, sizes }: StepProps) {
  const { run, layer, trace } = walk;
  return (
    <>
      <p>
        One row for each <Term word="token" />: its <Term word="hidden state" /> of {sizes.E} numbers.{' '}
        {layer === 0 ? 'Before the first layer, it is the token’s embedding plus the vector of its position.' : `X is the output of layer ${layer}.`}
      </p>
      <Formula>
        <I>X</I>
        <mo>∈</mo>
        <msup>
          <mi>ℝ</mi>
          <mrow>
            <mn>{sizes.L}</mn>
            <mo>×</mo>
            <mn>{sizes.E}</mn>
          </mrow>
        </msup>
      </Formula>
      <EditHint />
      <TokenTable sizes={sizes} name="X" tensor={run.hiddenStates[layer]!} kind="model" edit={editX(sizes.E)} />
      {sizes.preNorm && (
        <>
          <p class="note">
            This model is <Term word="pre-norm" />:{' '}
            {layer === 0 ? 'its first layer has no norm, so X is used as it is.' : 'X is normalised before it is used.'}
          </p>
          {layer > 0 && <TokenTable sizes={sizes} name="Norm of X" tensor={trace.norm1} kind="model" />}
        </>
      )}
    </>
  );
}
