import type { RefObject } from 'preact';
import { pageStep } from './attention_map.tsx';

const keys: readonly (readonly [string, string])[] = [
  ['Arrow keys', 'move to another cell of the map, or to another of the small pictures'],
  ['Page Up, Page Down', `${pageStep} rows up or down`],
  ['Home, End', 'first and last key of the row; with Ctrl, first and last cell'],
  ['Enter', 'lock the cell, or let it go; Escape lets it go too'],
  [', and .', 'previous and next head'],
  ['[ and ]', 'previous and next layer'],
  ['m', 'causal mask on or off'],
  ['e', 'export what is shown'],
  ['?', 'this list'],
  ['Ctrl + Enter', 'in a field of your own numbers: run'],
];

export function Help({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="help-title">
      <h2 id="help-title">Keys in the attention map</h2>
      <p>Move into the map with Tab, or click it. Then:</p>
      <dl class="keys">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  );
}
