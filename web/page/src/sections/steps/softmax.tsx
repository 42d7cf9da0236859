import { bracketed, brief, fixed } from '../../formats/numbers.ts';
import { changeInFocus, changeLayer } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { Call, Eq, Formula, Sub, Sum } from '../../ui/formula.tsx';
import { Slider } from '../../ui/slider.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import { softmaxWorking } from '../../arithmetic/workings.ts';
import { at, before, columnInFocus, PairTable, rowInFocus, type StepProps } from './parts.tsx';

export function SoftmaxStep({ walk, sizes }: StepProps) {
  const { head, trace } = walk;
  const { dropout, seed } = changeInFocus.value;
  const { L, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const masked = ofHead(trace.masked_scores, head);
  const shares = ofHead(trace.probabilities, head);
  const weights = ofHead(trace.weights, head);
  const working = softmaxWorking(masked.data.subarray(row * L, (row + 1) * L));
  const sumOf = (tensor: typeof shares, i: number) => tensor.data.subarray(i * L, (i + 1) * L).reduce((a, b) => a + b, 0);
  const most = working ? [...working.exponentials.keys()].sort((a, b) => working.exponentials[b]! - working.exponentials[a]!).slice(0, 8) : [];
  return (
    <>
      <p>
        <Term word="softmax">Softmax</Term> turns each row into <Term word="attention weight">attention weights</Term> that add up to 1. The map above
        shows them.
      </p>
      <Formula>
        <Sub base="a" sub="ij" />
        <Eq />
        <mfrac>
          <Call name="exp">
            <Sub base="s" sub="ij" />
          </Call>
          <Sum over="k">
            <Call name="exp">
              <Sub base="s" sub="ik" />
            </Call>
          </Sum>
        </mfrac>
      </Formula>
      <PairTable
        sizes={sizes}
        name="A, the weights"
        kind="weight"
        value={(i, j) => at(shares, i, j)}
        tint={(i, j) => at(shares, i, j)}
        total={{ name: 'row sum', value: (i) => sumOf(shares, i) }}
      />
      <Working
        name={`${tokens[row]} to ${tokens[column]}, weight`}
        value={at(shares, row, column)}
        before={before(walk, 'probabilities', (head * L + row) * L + column)}
      >
        {working ? (
          <>
            exp({brief(at(masked, row, column))} − {bracketed(working.largest)}) = {fixed(working.exponentials[column]!)}
            <br />
            row sum: {most.map((j) => `${fixed(working.exponentials[j]!, 4)} (${tokens[j]})`).join(' + ')}
            {L > most.length && ` + ${L - most.length} smaller terms`} = {fixed(working.sum)}
            <br />
            {fixed(working.exponentials[column]!)} / {fixed(working.sum)} = {fixed(working.exponentials[column]! / working.sum)}
          </>
        ) : (
          'Every key is masked, so all get the same weight, as in the transformers library.'
        )}
      </Working>
      {working && (
        <p class="note">
          The largest score of the row is subtracted first. This keeps the exponentials from overflowing and does not change the weights.
        </p>
      )}
      <p>
        In training, <Term word="dropout" /> sets some of the weights to 0 at random. Try it here: the same seed selects the same weights.
      </p>
      <div class="step-controls">
        <Slider
          id="steps-dropout"
          label="Dropout"
          min={0}
          max={0.9}
          step={0.05}
          value={dropout}
          text={dropout === 0 ? 'none' : String(dropout)}
          hint="The probability that a weight is set to 0. The others grow to compensate."
          onInput={(value) => changeLayer({ dropout: value })}
        />
        <label class="field seed">
          <span>Dropout seed</span>
          <input
            type="number"
            min={0}
            step={1}
            value={seed}
            onInput={(event) => {
              const value = event.currentTarget.valueAsNumber;
              if (Number.isSafeInteger(value) && value >= 0) changeLayer({ seed: value });
            }}
          />
        </label>
      </div>
      {dropout > 0 && (
        <PairTable
          sizes={sizes}
          name="A after dropout"
          kind="weight"
          value={(i, j) => at(weights, i, j)}
          tint={(i, j) => at(weights, i, j)}
          total={{ name: 'row sum', value: (i) => sumOf(weights, i) }}
        />
      )}
    </>
  );
}
