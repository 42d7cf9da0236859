import type { VNode } from 'preact';
import { useRef } from 'preact/hooks';
import { fixed } from '../formats/numbers.ts';
import { cellInFocus } from '../state/pointed.ts';
import { run, type Run } from '../state/run.ts';
import { cellIn, lineOf, shown, type Shown } from '../state/map_view.ts';
import { update, view } from '../state/view.ts';
import '../styles/head_details.css';
import type { Cell } from '../ui/attention_map.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { Paper } from '../ui/papers.tsx';
import { useSeen } from '../ui/seen.ts';
import { ShadedText } from '../ui/shaded_text.tsx';
import { Term } from '../ui/term.tsx';
import { TokenLines } from '../ui/token_lines.tsx';
import { Controls } from './controls.tsx';
import { Dimensions } from './dimensions.tsx';
import { Export } from './export.tsx';
import { lockAt, pointAt } from './focus.tsx';
import { Kinds } from './heads.tsx';
import { Links } from './links.tsx';

export function More() {
  const of = run.value;
  return (
    <section id="more" aria-labelledby="more-title">
      <h3 id="more-title" class="sub-title">
        The same head as lines, text and numbers
      </h3>
      {of && shown.value ? <Loaded of={of} shown={shown.value} /> : <div class="more-body placeholder" />}
    </section>
  );
}

function Loaded({ of, shown: now }: { of: Run; shown: Shown }) {
  const { asTable } = view.value;
  const { places, weights } = now;
  const size = places.length;
  return (
    <div class="more-body">
      <p class="note" id="map-hint">
        Point at a cell or a word to read its weight, click to lock it. With the keyboard, once the map has the focus: arrow keys move, Enter locks, ?
        lists all keys.
      </p>
      {size > 0 && <Forms of={of} shown={now} />}
      {size > 0 && <Links shown={now} />}
      <Dimensions />
      <p class="try">
        <strong>Try:</strong> hide the <Term word="special token">special tokens</Term> and renormalise. Which words get the attention now?
      </p>
      <p class="note">
        A weight tells how much of a word’s value is taken, not why the model gives an answer (<Paper of="Jain and Wallace 2019" />
        ). With the causal mask, a word looks only at itself and the words before, as in GPT.
      </p>
      <Controls of={of} />
      <div class="buttons">
        <button type="button" aria-expanded={asTable} aria-controls="weights-table" onClick={() => update({ asTable: !asTable })}>
          View as table
        </button>
        <Export of={of} />
      </div>
      <div id="weights-table">
        {asTable && size > 0 && (
          <NumberTable
            name="Attention weights"
            rows={{ kind: 'query', count: size, label: (i) => places[i]!.label }}
            columns={{ kind: 'key', count: size, label: (j) => places[j]!.label }}
            cell={(i, j) => fixed(weights[i * size + j]!, 4)}
            maximumCells={2 ** 14}
          />
        )}
      </div>
      <Kinds />
    </div>
  );
}

/** Not updated while it is off the screen. */
function Forms({ of, shown: now }: { of: Run; shown: Shown }) {
  const frame = useRef<HTMLDivElement>(null);
  const seen = useSeen(frame);
  const forms = useRef<VNode | undefined>(undefined);
  if (seen || !forms.current) {
    const { threshold, locked } = view.value;
    const following = {
      shown: now,
      cell: cellIn(now, cellInFocus.value),
      locked,
      onPoint: (target: Cell) => pointAt(now, target),
      onLock: (target: Cell, on: boolean) => lockAt(now, target, on),
    };
    forms.current = (
      <>
        <ShadedText texts={lineOf(of).texts} {...following} />
        <TokenLines threshold={threshold} {...following} />
      </>
    );
  }
  return (
    <div class="more-forms" ref={frame}>
      {forms.current}
    </div>
  );
}
