import { fixed, joined } from '../../formats/numbers.ts';
import { changeInFocus, changeLayer } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { Eq, Formula, Plus, Sub } from '../../ui/formula.tsx';
import { Slider } from '../../ui/slider.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import { at, before, columnInFocus, PairTable, rowInFocus, type StepProps } from './parts.tsx';

export function ScaleStep({ walk, sizes }: StepProps) {
  const { head, trace, products } = walk;
  const { factor, score } = changeInFocus.value;
  const scores = ofHead(trace.scores, head);
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const unscaled = score === 'scaled_dot' ? 1 / Math.sqrt(sizes.divisor) : 1;
  const scale = factor * unscaled;
  const value = at(scores, row, column);
  const product = at(products, row, column);
  return (
    <>
      <p>
        {score === 'scaled_dot'
          ? `All scores are multiplied by one over the square root of ${sizes.divisor === sizes.D ? 'the query width' : `${sizes.divisor}, which this model has instead of the query width`}. Without this factor, wide queries produce large scores, and a few tokens get all the attention.`
          : `The score function of step 3 is unscaled: its scores are not divided by √${sizes.divisor}, and the factor is 1.`}
      </p>
      <Formula>
        <Sub base="s" sub="ij" />
        <Eq />
        <Sub base="r" sub="ij" />
        <mo>·</mo>
        <mfrac>
          <mn>{factor}</mn>
          {score === 'scaled_dot' ? (
            <msqrt>
              <mn>{sizes.divisor}</mn>
            </msqrt>
          ) : (
            <mn>1</mn>
          )}
        </mfrac>
        {sizes.positionBias && (
          <>
            <Plus />
            <Sub base="b" sub="ij" />
          </>
        )}
      </Formula>
      <div class="step-controls">
        <Slider
          id="steps-score-scale"
          label="Score scale"
          min={0}
          max={4}
          step={0.05}
          value={factor}
          text={`${factor} × ${score === 'scaled_dot' ? `1/√${sizes.divisor}` : '1'} = ${fixed(scale, 4)}`}
          hint="Larger: each token attends to fewer tokens. Zero: it attends to all of them equally. It applies to all heads of the layer."
          onInput={(value) => changeLayer({ factor: value })}
        />
        <button type="button" disabled={factor === 1} onClick={() => changeLayer({ factor: 1 })}>
          Default scale
        </button>
      </div>
      <PairTable sizes={sizes} name="S, the scaled scores" value={(i, j) => at(scores, i, j)} />
      <Working
        name={`${sizes.tokens[row]} to ${sizes.tokens[column]}, scaled`}
        value={value}
        before={before(walk, 'scores', (head * sizes.L + row) * sizes.L + column)}
      >
        {sizes.cap > 0 && `${sizes.cap} · tanh(`}
        {fixed(product)} · {fixed(scale)}
        {sizes.cap > 0 && ` / ${sizes.cap})`}
        {sizes.positionBias && (
          <>
            {' '}
            {joined(value - product * scale)} <span class="note">position bias</span>
          </>
        )}{' '}
        = {fixed(value)}
      </Working>
      {sizes.cap > 0 && (
        <p class="note">
          This model bends its scores by tanh, so that they stay between −{sizes.cap} and {sizes.cap}.
        </p>
      )}
      {sizes.positionBias && (
        <p class="note">
          This model adds a <Term word="position bias" />: one learned number for each distance between two tokens, the same in all layers. You cannot
          change it here.
        </p>
      )}
    </>
  );
}
