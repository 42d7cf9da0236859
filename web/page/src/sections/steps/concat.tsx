import { toggleHead } from '../../state/heads.ts';
import { update, view } from '../../state/view.ts';
import { Eq, Formula, I, Sub } from '../../ui/formula.tsx';
import { StepTable } from '../../ui/step_table.tsx';
import { Term } from '../../ui/term.tsx';
import { at, focusNumber, focusRow, numberAxis, numberInFocus, rowInFocus, shownNumbers, tokenAxis, type StepProps } from './parts.tsx';

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
        The results of all {H} heads are concatenated. If you switch one off, its results become zeros, and the model continues without it (
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
        name="O, all heads concatenated"
        kind="value"
        numbers={shownNumbers()}
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
