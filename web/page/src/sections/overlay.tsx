import { cssColour, headColour } from '../draw/overlay.ts';
import { opening } from '../state/bundled.ts';
import { overlay, toggleInOverlay, toggleOverlay } from '../state/overlay.ts';
import { cellInFocus } from '../state/pointed.ts';
import { run } from '../state/run.ts';
import { cellIn, layerInFocus, shown } from '../state/map_view.ts';
import { view } from '../state/view.ts';

export function OverlayTools() {
  const isOn = view.value.overlay.length > 0;
  return (
    <div class="overlay-tools">
      <label class="check">
        <input type="checkbox" checked={isOn} disabled={!run.value} onChange={toggleOverlay} />
        <span>Overlay all heads of the layer</span>
      </label>
      {isOn && <Chips />}
    </div>
  );
}

function Chips() {
  const [now, made] = [shown.value, overlay.value];
  const { heads: count } = run.value?.model ?? opening();
  const size = now?.places.length ?? 0;
  const cell = now && size > 0 ? cellIn(now, cellInFocus.value) : undefined;
  const chosen = view.value.overlay;
  return (
    <div class="overlay-heads" role="group" aria-label="Heads in the overlay">
      {Array.from({ length: count }, (_, head) => {
        const weights = made?.weights[made.heads.indexOf(head)];
        return (
          <button
            key={head}
            type="button"
            aria-pressed={chosen.includes(head)}
            aria-label={`Head ${head + 1} in the overlay`}
            onClick={() => toggleInOverlay(head)}
          >
            <span class="overlay-colour" style={{ background: cssColour(headColour(head, count)) }} aria-hidden="true" />
            {layerInFocus.value + 1}.{head + 1}{' '}
            <span class="figure">{weights && cell ? weights[cell.row * size + cell.column]!.toFixed(2).replace('0.', '.') : '–'}</span>
          </button>
        );
      })}
    </div>
  );
}
