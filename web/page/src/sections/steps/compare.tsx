import { Fragment } from 'preact';
import { bracketed, brief, fixed } from '../../formats/numbers.ts';
import type { ScoreFunction } from '../../state/changes.ts';
import { changeInFocus, changeLayer } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { Call, Eq, Formula, I, Plus, Sub, Transposed } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { Dot, Working } from '../../ui/working.tsx';
import { at, columnInFocus, PairTable, rowInFocus, type StepProps } from './parts.tsx';

const scoreFunctions: Readonly<Record<ScoreFunction, string>> = {
  scaled_dot: 'Scaled dot product (Vaswani et al. 2017)',
  dot: 'Dot product (Luong et al. 2015)',
  general: 'General (Luong et al. 2015)',
  additive: 'Additive (Bahdanau et al. 2015)',
};

const qi = <Sub base="q" sub="i" />;

const kj = <Sub base="k" sub="j" />;

function ScoreFormula({ score }: { score: ScoreFunction }) {
  return (
    <Formula>
      <Sub base="r" sub="ij" />
      <Eq />
      {score === 'additive' ? (
        <>
          <Transposed>
            <I>v</I>
          </Transposed>
          <Call name="tanh">
            <Sub base="W" sub="Q" />
            {qi}
            <Plus />
            <Sub base="W" sub="K" />
            {kj}
          </Call>
        </>
      ) : (
        <>
          {qi}
          {score === 'general' && <I>W</I>}
          <Transposed>{kj}</Transposed>
        </>
      )}
    </Formula>
  );
}

export function CompareStep({ walk, sizes }: StepProps) {
  const { head, trace, products } = walk;
  const { score } = changeInFocus.value;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const [q, k] = [ofHead(trace.q, head), ofHead(trace.k, head)];
  const value = at(products, row, column);
  return (
    <>
      <p>
        The <Term word="dot product" /> compares every query with every key. The larger it is, the better the key fits the query.
      </p>
      <ScoreFormula score={score} />
      <div class="step-controls">
        <label class="field">
          <span>Score function</span>
          <select value={score} onChange={(event) => changeLayer({ score: event.currentTarget.value as ScoreFunction })}>
            {Object.entries(scoreFunctions).map(([each, label]) => (
              <option key={each} value={each}>
                {label}
              </option>
            ))}
          </select>
        </label>
        {score === 'scaled_dot' && <p class="note">The model was trained with this score function. The others are older.</p>}
        {score !== 'scaled_dot' && <p class="note">These scores are unscaled: step 4 does not divide them by √{sizes.D}.</p>}
        {(score === 'general' || score === 'additive') && (
          <p class="note">
            This model has no learned weights for this function, so{' '}
            {score === 'general'
              ? 'W is the identity matrix, and the score is the plain dot product'
              : 'W_Q and W_K are identity matrices, and v is all ones'}
            .
          </p>
        )}
      </div>
      <PairTable
        sizes={sizes}
        name={score === 'additive' ? 'Scores before the scale' : 'Q times K transposed'}
        value={(i, j) => at(products, i, j)}
      />
      <Working name={`${sizes.tokens[row]} to ${sizes.tokens[column]}, before the scale`} value={value}>
        {score === 'additive' ? (
          <>
            {Array.from({ length: Math.min(8, sizes.D) }, (_, d) => (
              <Fragment key={d}>
                <span class="working-term">
                  {d > 0 && '+ '}tanh(<span class="as-query">{brief(at(q, row, d))}</span> + <span class="as-key">{bracketed(at(k, column, d))}</span>
                  )
                </span>{' '}
              </Fragment>
            ))}
            {sizes.D > 8 && <span class="note">+ {sizes.D - 8} more </span>}= {fixed(value)}
          </>
        ) : (
          <Dot a={(d) => at(q, row, d)} b={(d) => at(k, column, d)} count={sizes.D} result={value} />
        )}
      </Working>
    </>
  );
}
