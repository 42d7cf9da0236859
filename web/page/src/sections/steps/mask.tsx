import { isDecoder } from '../../model/loaded.ts';
import { hidingIn, toggled, withOwnMask } from '../../state/changes.ts';
import { update, view } from '../../state/view.ts';
import { ofHead } from '../../state/walk.ts';
import { Eq, Formula, Sub } from '../../ui/formula.tsx';
import { Term } from '../../ui/term.tsx';
import { Working } from '../../ui/working.tsx';
import { at, columnInFocus, PairTable, rowInFocus, type StepProps } from './parts.tsx';

export function MaskStep({ walk, sizes }: StepProps) {
  const { head, trace, run } = walk;
  const now = withOwnMask(view.value, run.model);
  const { causal, padding, drawn } = now;
  const masked = ofHead(trace.masked_scores, head);
  const { L, tokens } = sizes;
  const [row, column] = [rowInFocus(sizes), columnInFocus(sizes)];
  const value = at(masked, row, column);
  const reasons = hidingIn(now, L).flatMap(({ reason, isHidden }) => (isHidden(row, column) ? [reason] : []));
  return (
    <>
      <p>
        A <Term word="mask" /> hides keys from a query. Their scores become minus infinity (−∞), which softmax turns into the weight 0. The mask
        applies to every layer and head.
      </p>
      <Formula>
        <Sub base="s" sub="ij" />
        <Eq />
        <mo>−</mo>
        <mi mathvariant="normal">∞</mi>
        <mspace width="0.6em" />
        <mtext>if masked</mtext>
      </Formula>
      <div class="step-controls">
        <label class="check">
          <input
            type="checkbox"
            checked={causal}
            disabled={isDecoder(run.model)}
            onChange={(event) => update({ causal: event.currentTarget.checked })}
          />
          <span>Hide later tokens</span>
        </label>
        <fieldset class="token-toggles">
          <legend>
            Hide tokens as <Term word="padding" />
          </legend>
          {tokens.map((token, j) => (
            <button
              key={j}
              type="button"
              aria-pressed={padding.includes(j)}
              aria-label={`Hide ${token}, token ${j + 1}`}
              onClick={() => update({ padding: toggled(padding, j) })}
            >
              {token}
            </button>
          ))}
        </fieldset>
        <div class="buttons">
          <p class="note">To draw your own mask, show the numbers and click cells, or press Enter on them.</p>
          <button type="button" disabled={drawn.length === 0} onClick={() => update({ drawn: [] })}>
            Clear the drawn mask
          </button>
        </div>
      </div>
      <PairTable
        sizes={sizes}
        name="Masked scores"
        value={(i, j) => at(masked, i, j)}
        toggle={{
          flip: (cell) => update({ drawn: toggled(drawn, cell.row * L + cell.column) }),
          on: (cell) => drawn.includes(cell.row * L + cell.column),
        }}
      />
      <Working name={`${tokens[row]} to ${tokens[column]}, masked`} value={value}>
        {value === -Infinity
          ? `Masked: ${reasons.join('; ') || (sizes.rotary ? 'the key is outside the window of this layer’s local attention, or it is padding' : 'the key is padding')}.`
          : 'Not masked: the score stays the same.'}
      </Working>
    </>
  );
}
