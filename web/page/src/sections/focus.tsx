import type { ComponentChildren } from 'preact';
import { useCallback, useRef, useState } from 'preact/hooks';
import { save, formats } from '../export/save.ts';
import { selectionOf } from '../export/selection.ts';
import { lookText } from '../head_kind.ts';
import { fixed } from '../numbers.ts';
import { heads } from '../state/heads.ts';
import { run, running, type Run } from '../state/run.ts';
import { cellIn, headInFocus, layerInFocus, lineOf, shown, type Shown } from '../state/shown.ts';
import { explain, status } from '../state/status.ts';
import { update, view, type SpecialTokens, type View } from '../state/view.ts';
import '../styles/focus.css';
import { AttentionMap, type Cell } from '../ui/attention_map.tsx';
import { NumberTable } from '../ui/number_table.tsx';
import { ShadedText } from '../ui/shaded_text.tsx';
import { Term } from '../ui/term.tsx';
import { TokenLines } from '../ui/token_lines.tsx';

export function Focus({ onHelp }: { onHelp: () => void }) {
  const of = run.value;
  return (
    <section id="focus" aria-labelledby="focus-title">
      <div class="focus-head">
        <h2 id="focus-title">One head</h2>
        {of && <Choosers of={of} />}
        {of && <Kind of={of} />}
        <Busy />
      </div>
      {of && shown.value ? <Loaded of={of} shown={shown.value} onHelp={onHelp} /> : <div class="focus-body placeholder" />}
    </section>
  );
}

function Choosers({ of: { model } }: { of: Run }) {
  const numbers = (count: number) =>
    Array.from({ length: count }, (_, i) => (
      <option key={i} value={String(i + 1)}>
        {i + 1}
      </option>
    ));
  return (
    <div class="focus-choosers">
      <label class="inline-field">
        <span>Layer</span>
        <select value={String(layerInFocus.value + 1)} onChange={(event) => update({ layer: Number(event.currentTarget.value) - 1 })}>
          {numbers(model.layers)}
        </select>
      </label>
      <label class="inline-field">
        <span>Head</span>
        <select value={String(headInFocus.value + 1)} onChange={(event) => update({ head: Number(event.currentTarget.value) - 1 })}>
          {numbers(model.heads)}
        </select>
      </label>
    </div>
  );
}

function Busy() {
  return running.value ? <span class="busy">computing …</span> : null;
}

/** What the head in focus mostly does. */
function Kind({ of }: { of: Run }) {
  const [layer, head] = [layerInFocus.value, headInFocus.value];
  const summary = heads.value?.run.model === of.model ? heads.value.list[layer * of.model.heads + head] : undefined;
  return (
    <p class="focus-kind">
      {summary && <>Here it {lookText(summary)}.</>}
      {of.view.off.includes(layer * of.model.heads + head) && <strong> Switched off: the model goes on without it.</strong>}
    </p>
  );
}

/** One head further, into the next layer at the end; or one layer further. */
function step(by: 'head' | 'layer', direction: 1 | -1, { layers, heads: perLayer }: Run['model']): void {
  const [layer, head] = [layerInFocus.value, headInFocus.value];
  if (by === 'layer') return void update({ layer: (layer + direction + layers) % layers });
  const next = (layer * perLayer + head + direction + layers * perLayer) % (layers * perLayer);
  update({ layer: Math.floor(next / perLayer), head: next % perLayer });
}

function Loaded({ of, shown: now, onHelp }: { of: Run; shown: Shown; onHelp: () => void }) {
  const { cell: chosen, locked, threshold, scaleBy, asTable } = view.value;
  const { places, weights } = now;
  const size = places.length;
  const cell = cellIn(now, chosen);
  const exportMenu = useRef<{ open(): void }>(null);

  const drawn = useCallback(() => {
    document.documentElement.dataset.ready = 'true';
  }, []);
  const tokensAt = ({ row, column }: Cell): View['cell'] => ({ row: places[row]!.tokens[0]!, column: places[column]!.tokens[0]! });
  const point = (target: Cell) => update({ cell: tokensAt(target) });
  const lock = (target: Cell, on: boolean) => update({ cell: tokensAt(target), locked: on });
  const onKey = (key: string) => {
    const actions: Record<string, () => void> = {
      ',': () => step('head', -1, of.model),
      '.': () => step('head', 1, of.model),
      '[': () => step('layer', -1, of.model),
      ']': () => step('layer', 1, of.model),
      m: () => update({ causal: !view.value.causal }),
      e: () => exportMenu.current?.open(),
      '?': onHelp,
    };
    actions[key]?.();
    if (',.[]'.includes(key)) status.value = { text: `Layer ${layerInFocus.value + 1}, head ${headInFocus.value + 1}.` };
  };
  const name = `Attention of layer ${layerInFocus.value + 1}, head ${headInFocus.value + 1}. Rows are queries, columns are keys.`;

  if (size === 0)
    return (
      <div class="focus-body">
        <Controls of={of} />
        <p>Nothing to show: the text is empty, and the special tokens are hidden.</p>
      </div>
    );
  return (
    <div class="focus-body">
      <div class="focus-map">
        <Legend shown={now} scaleBy={scaleBy} threshold={threshold} />
        <AttentionMap
          shown={now}
          look={{ threshold, scaleBy }}
          label={name}
          cell={cell}
          locked={locked}
          onPoint={point}
          onLock={lock}
          onKey={onKey}
          onDrawn={drawn}
        />
        <p class="note" id="map-hint">
          Point at a cell to read it, click to lock it. On the keyboard: arrow keys move, Enter locks, ? lists all keys.
        </p>
      </div>
      <div class="focus-side">
        <Reading shown={now} cell={cell} locked={locked} special={view.value.special} />
        <TokenLines shown={now} threshold={threshold} cell={cell} locked={locked} onPoint={point} onLock={lock} />
      </div>
      <ShadedText shown={now} texts={lineOf(of).texts} cell={cell} locked={locked} onPoint={point} onLock={lock} />
      <p class="try">
        <strong>Try:</strong> hide the <Term word="special token">special tokens</Term> and renormalise. What do the words look at now?
      </p>
      <Controls of={of} />
      <div class="buttons">
        <button type="button" aria-expanded={asTable} aria-controls="weights-table" onClick={() => update({ asTable: !asTable })}>
          View as table
        </button>
        <Export of={of} handle={exportMenu} />
      </div>
      <div id="weights-table">
        {asTable && (
          <NumberTable
            name="Attention weights"
            rows={{ kind: 'query', count: size, label: (i) => places[i]!.label }}
            columns={{ kind: 'key', count: size, label: (j) => places[j]!.label }}
            cell={(i, j) => fixed(weights[i * size + j]!, 4)}
            maximumCells={2 ** 14}
          />
        )}
      </div>
    </div>
  );
}

function Legend({ shown: { largest, blocked }, scaleBy, threshold }: { shown: Shown; scaleBy: View['scaleBy']; threshold: number }) {
  return (
    <p class="legend">
      <span class="as-query">rows look</span>
      <span class="as-key">at columns</span>
      <span class="legend-scale">
        <span class="figure">0</span>
        <span class="legend-ramp" aria-hidden="true" />
        <span class="figure">{scaleBy === 'row' ? 'largest of its row' : largest.toFixed(2)}</span>
      </span>
      {blocked && <span>⁄ not allowed</span>}
      {threshold > 0 && <span>blank: less than {threshold.toFixed(3)}</span>}
    </p>
  );
}

/** The cell in numbers, and what its row sums to. */
function Reading({ shown: { places, weights }, cell, locked, special }: { shown: Shown; cell: Cell; locked: boolean; special: SpecialTokens }) {
  const size = places.length;
  const row = weights.subarray(cell.row * size, (cell.row + 1) * size);
  const sum = row.reduce((a, b) => a + b, 0);
  const [query, key] = [places[cell.row]!, places[cell.column]!];
  const percent = 100 * row[cell.column]!;
  const share = percent > 0 && percent < 0.05 ? 'less than 0.1 %' : `${percent.toFixed(1)} %`;
  const pair = places.some(({ source }) => source === 1);
  const source = (of: number | undefined) => pair && of !== undefined && <small class="muted"> text {of + 1}</small>;
  return (
    <div class="reading">
      <p class="reading-cell">
        <span class="as-query">{query.label}</span>
        {source(query.source)} <span aria-hidden="true">→</span>
        <span class="visually-hidden">to</span> <span class="as-key">{key.label}</span>
        {source(key.source)} <strong class="figure">{fixed(row[cell.column]!, 4)}</strong>
        {locked && (
          <button type="button" class="tag" onClick={() => update({ locked: false })}>
            locked: let go
          </button>
        )}
      </p>
      <p class="note">
        {key.label} makes up {share} of what {query.label} takes in. The row sums to <span class="figure">{fixed(sum, 4)}</span>
        {special === 'hide' && '; the rest went to the hidden special tokens'}
        {special === 'renormalise' && ', after division by what is left without special tokens'}.
      </p>
    </div>
  );
}

function Check({ on, onChange, hint, children }: { on: boolean; onChange: (on: boolean) => void; hint: ComponentChildren; children: string }) {
  const id = `check-${children.toLowerCase().replaceAll(' ', '-')}`;
  return (
    <div class="check-block">
      <label class="check">
        <input type="checkbox" checked={on} aria-describedby={id} onChange={(event) => onChange(event.currentTarget.checked)} />
        <span>{children}</span>
      </label>
      <p class="note" id={id}>
        {hint}
      </p>
    </div>
  );
}

/** The slider's way to the threshold: fine where most weights are. */
const thresholds = [0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5];

function Controls({ of }: { of: Run }) {
  const { special, threshold, scaleBy, mergeWords, causal } = view.value;
  const words = lineOf(of);
  const position = thresholds.findIndex((each) => each >= threshold);
  const text = threshold === 0 ? 'all weights' : `at least ${threshold}`;
  return (
    <div class="controls">
      <div class="field">
        <label for="special-tokens">Special tokens</label>
        <select
          id="special-tokens"
          value={special}
          aria-describedby="special-note"
          onChange={(event) => update({ special: event.currentTarget.value as SpecialTokens })}
        >
          <option value="show">show</option>
          <option value="hide">hide</option>
          <option value="renormalise">hide and renormalise</option>
        </select>
        <span class="note" id="special-note">
          {specialNotes[special]}
        </span>
      </div>
      <div class="field">
        <label for="colours">Colours</label>
        <select
          id="colours"
          value={scaleBy}
          aria-describedby="colours-note"
          onChange={(event) => update({ scaleBy: event.currentTarget.value as View['scaleBy'] })}
        >
          <option value="head">by the whole head</option>
          <option value="row">by row</option>
        </select>
        <span class="note" id="colours-note">
          {scaleBy === 'head' ? 'Rows can be compared.' : 'In each row the largest weight is brightest.'}
        </span>
      </div>
      <div class="slider">
        <div class="slider-head">
          <label for="threshold">Threshold</label>
          <span class="figure" aria-hidden="true">
            {text}
          </span>
        </div>
        <input
          id="threshold"
          type="range"
          min={0}
          max={thresholds.length - 1}
          step={1}
          value={position < 0 ? thresholds.length - 1 : position}
          aria-valuetext={text}
          aria-describedby="threshold-note"
          onInput={(event) => update({ threshold: thresholds[Number(event.currentTarget.value)]! })}
        />
        <p class="note" id="threshold-note">
          Smaller weights are not drawn. The table and exported files still have them.
        </p>
      </div>
      <Check on={mergeWords} onChange={(on) => update({ mergeWords: on })} hint={mergeHint(words.tokens)}>
        Merge sub-words
      </Check>
      <Check
        on={causal}
        onChange={(on) => update({ causal: on })}
        hint={
          <>
            The whole model runs again, and no <Term word="token">token</Term> may look at a later one, as in a model that writes text.
          </>
        }
      >
        Causal mask
      </Check>
    </div>
  );
}

const specialNotes: Readonly<Record<SpecialTokens, string>> = {
  show: 'Everything the model reads.',
  hide: 'Rows then sum to less than 1.',
  renormalise: 'Each row is divided by its sum, so that it is 1 again.',
};

const mergeHint = (tokens: readonly string[]) =>
  `The model reads a rare word in parts. Their rows are averaged and their columns summed (Clark et al. 2019). ${
    tokens.some((token) => token.startsWith('##')) ? 'Parts that continue a word begin with ##.' : 'Try “unputdownable”.'
  }`;

function Export({ of, handle }: { of: Run; handle: { current: { open(): void } | null } }) {
  const [open, setOpen] = useState(false);
  const [message, setMessage] = useState('');
  const opener = useRef<HTMLButtonElement>(null);
  const first = useRef<HTMLButtonElement>(null);
  handle.current = {
    open() {
      setOpen(true);
      setTimeout(() => first.current?.focus());
    },
  };
  const write = async (format: string) => {
    const selection = selectionOf(of, view.value);
    if (!selection) return;
    try {
      setMessage('');
      status.value = { text: `Saved ${await save(selection, format)}.` };
    } catch (error) {
      setMessage(`It could not be saved. ${explain(error)} Try another format.`);
    }
  };
  return (
    <div
      class="export"
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !open) return;
        setOpen(false);
        opener.current?.focus();
      }}
    >
      <button type="button" ref={opener} aria-expanded={open} aria-controls="export-formats" onClick={() => setOpen(!open)}>
        Export
      </button>
      <div id="export-formats" class="buttons" role="group" aria-label="Save what is shown as" hidden={!open}>
        {Object.keys(formats).map((format, i) => (
          <button key={format} type="button" ref={i === 0 ? first : null} onClick={() => void write(format)}>
            {format}
          </button>
        ))}
      </div>
      {message && (
        <p role="alert" class="error">
          {message}
        </p>
      )}
    </div>
  );
}
