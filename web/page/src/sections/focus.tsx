import { fixed } from '../formats/numbers.ts';
import { leastOf } from '../draw/scale.ts';
import { fewest, isWhole, zoomed, zoomStep, type Part } from '../draw/part.ts';
import { isDecoder } from '../model/loaded.ts';
import { opening } from '../state/bundled.ts';
import { overlay } from '../state/overlay.ts';
import { cellInFocus, pointTo } from '../state/pointed.ts';
import { run, running, type Run } from '../state/run.ts';
import { cellIn, headInFocus, layerInFocus, scaleInUse, shown, type Shown } from '../state/map_view.ts';
import { status } from '../state/status.ts';
import { partShown } from '../state/strongest.ts';
import { update, view, type SpecialTokens, type View } from '../state/view.ts';
import '../styles/focus.css';
import { AttentionMap, type Cell } from '../ui/attention_map.tsx';
import { openExport } from './export.tsx';
import { OverlayTools } from './overlay.tsx';

export function Focus({ onHelp }: { onHelp: () => void }) {
  const of = run.value;
  return (
    <section id="focus" aria-label="One head">
      <div class="focus-head">
        <Choosers />
        <Zoom />
        <Legend shown={shown.value} />
        <Busy />
      </div>
      <div class="map-box">{of && shown.value && <Map of={of} shown={shown.value} onHelp={onHelp} />}</div>
      <OverlayTools />
    </section>
  );
}

function Choosers() {
  const { layers, heads } = run.value?.model ?? opening();
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
          {numbers(layers)}
        </select>
      </label>
      <label class="inline-field">
        <span>Head</span>
        <select value={String(headInFocus.value + 1)} onChange={(event) => update({ head: Number(event.currentTarget.value) - 1 })}>
          {numbers(heads)}
        </select>
      </label>
    </div>
  );
}

function Busy() {
  return running.value ? <span class="busy">computing …</span> : null;
}

/** Moves to the next head, which may be in the next layer, or to the next layer. */
function step(by: 'head' | 'layer', direction: 1 | -1, { layers, heads: perLayer }: Run['model']): void {
  const [layer, head] = [layerInFocus.value, headInFocus.value];
  if (by === 'layer') return void update({ layer: (layer + direction + layers) % layers });
  const next = (layer * perLayer + head + direction + layers * perLayer) % (layers * perLayer);
  update({ layer: Math.floor(next / perLayer), head: next % perLayer });
}

const tokensAt = ({ places }: Shown, { row, column }: Cell): View['cell'] => ({ row: places[row]!.tokens[0]!, column: places[column]!.tokens[0]! });

export const pointAt = (of: Shown, target: Cell): void => pointTo(tokensAt(of, target));
export const lockAt = (of: Shown, target: Cell, locked: boolean): void => update({ cell: tokensAt(of, target), locked });

/** Undefined if the whole map is visible. */
const showPart = (part: Part): void => update({ part: shown.peek() && isWhole(part, shown.peek()!.places.length) ? undefined : part });

/** Keeps the cell in focus in place. */
function zoom(factor: number): void {
  const now = shown.peek();
  if (!now || now.places.length === 0) return;
  const size = now.places.length;
  const part = partShown.peek();
  const { row, column } = cellIn(now, cellInFocus.peek());
  const at = (place: number, first: number) => Math.min(1, Math.max(0, (place - first) / Math.max(1, part.count - 1)));
  showPart(zoomed(part, size, factor, { x: at(column, part.column), y: at(row, part.row) }));
}

function Zoom() {
  const size = shown.value?.places.length ?? 0;
  const part = partShown.value;
  return (
    <div class="zoom">
      <button type="button" aria-label="Zoom in" title="Zoom in: +" disabled={part.count <= fewest} onClick={() => zoom(zoomStep)}>
        +
      </button>
      <button type="button" aria-label="Zoom out" title="Zoom out: -" disabled={isWhole(part, size)} onClick={() => zoom(1 / zoomStep)}>
        −
      </button>
    </div>
  );
}

function Map({ of, shown: now, onHelp }: { of: Run; shown: Shown; onHelp: () => void }) {
  const { locked, threshold } = view.value;
  const onKey = (key: string) => {
    const actions: Record<string, () => unknown> = {
      ',': () => step('head', -1, of.model),
      '.': () => step('head', 1, of.model),
      '[': () => step('layer', -1, of.model),
      ']': () => step('layer', 1, of.model),
      m: () => isDecoder(of.model) || update({ causal: !view.value.causal }),
      e: openExport,
      '+': () => zoom(zoomStep),
      '=': () => zoom(zoomStep),
      '-': () => zoom(1 / zoomStep),
      '0': () => update({ part: undefined }),
      '?': onHelp,
    };
    actions[key]?.();
    if (',.[]'.includes(key)) status.value = { text: `Layer ${layerInFocus.value + 1}, head ${headInFocus.value + 1}.` };
  };
  if (now.places.length === 0) return <p>There is nothing to show because the text is empty and special tokens are hidden.</p>;
  return (
    <AttentionMap
      shown={now}
      look={{ threshold, scaleBy: scaleInUse.value }}
      part={partShown.value}
      onPart={showPart}
      overlay={overlay.value}
      heads={of.model.heads}
      label={`Attention of layer ${layerInFocus.value + 1}, head ${headInFocus.value + 1}. Rows are queries, columns are keys.`}
      cell={cellIn(now, cellInFocus.value)}
      locked={locked}
      onPoint={(target) => pointAt(now, target)}
      onLock={(target, on) => lockAt(now, target, on)}
      onKey={onKey}
    />
  );
}

function Legend({ shown: of }: { shown: Shown | undefined }) {
  const { scaleBy: wanted, threshold } = view.value;
  const scale = scaleInUse.value;
  if (overlay.value) return <p class="legend">colour: the head with the largest weight</p>;
  return (
    <p class="legend">
      <span class="legend-scale">
        <span class="figure">{scale === 'log' && of ? leastOf(of.largest).toFixed(4) : 0}</span> <span class="legend-ramp" aria-hidden="true" />{' '}
        <span class="figure">{scale === 'row' ? 'largest in its row' : (of?.largest.toFixed(2) ?? '…')}</span>{' '}
        {scale === 'log' && (
          <span title={`Logarithmic${wanted === 'auto' ? ', chosen automatically: most weights are small compared with the largest' : ''}`}>log</span>
        )}
      </span>
      {of?.blocked && <span>⁄ masked</span>}
      {threshold > 0 && <span>blank: below {threshold.toFixed(3)}</span>}
    </p>
  );
}

export function Reading() {
  const { locked, special } = view.value;
  const now = shown.value;
  return (
    <div class="reading">
      {now && now.places.length > 0 && <Numbers shown={now} cell={cellIn(now, cellInFocus.value)} locked={locked} special={special} />}
    </div>
  );
}

function Numbers({
  shown: { places, weights, blocked },
  cell,
  locked,
  special,
}: {
  shown: Shown;
  cell: Cell;
  locked: boolean;
  special: SpecialTokens;
}) {
  const size = places.length;
  const row = weights.subarray(cell.row * size, (cell.row + 1) * size);
  const sum = row.reduce((a, b) => a + b, 0);
  const [query, key] = [places[cell.row]!, places[cell.column]!];
  const isMasked = Boolean(blocked?.[cell.row * size + cell.column]);
  const percent = 100 * row[cell.column]!;
  const share = percent > 0 && percent < 0.05 ? 'less than 0.1 %' : `${percent.toFixed(1)} %`;
  const pair = places.some(({ source }) => source === 1);
  const source = (of: number | undefined) => pair && of !== undefined && <small class="muted"> text {of + 1}</small>;
  return (
    <>
      <p class="reading-cell">
        <span class="as-query">{query.label}</span>
        {source(query.source)} <span aria-hidden="true">→</span>
        <span class="visually-hidden">to</span> <span class="as-key">{key.label}</span>
        {source(key.source)} <strong class="figure">{fixed(row[cell.column]!, 4)}</strong>
        {locked && (
          <button type="button" class="tag" onClick={() => update({ locked: false })}>
            Unlock cell
          </button>
        )}
      </p>
      <p class="note">
        {isMasked
          ? `${key.label} is hidden by the mask, so ${query.label} cannot attend to it.`
          : `${share} of the weight of ${query.label} is on ${key.label}.`}{' '}
        The row sums to <span class="figure">{fixed(sum, 4)}</span>
        {special === 'hide' && '; the rest is on the hidden special tokens'}
        {special === 'renormalise' && ' after renormalisation without special tokens'}.
      </p>
    </>
  );
}
