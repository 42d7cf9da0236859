import type { RefObject } from 'preact';
import '../styles/help.css';
import { pageStep } from './rove.ts';

const keys: readonly (readonly [string, string])[] = [
  ['Arrow keys', 'move to another cell of the map or to another small picture'],
  ['Page Up, Page Down', `move ${pageStep} rows up or down`],
  ['Home, End', 'move to the first or last cell of the row; with Ctrl, of the map'],
  ['+ and -', 'zoom in and out; 0 shows the whole map'],
  ['Enter', 'lock or unlock the cell; Escape also unlocks it'],
  [', and .', 'select the previous or next head'],
  ['[ and ]', 'select the previous or next layer'],
  ['m', 'switch the causal mask on or off'],
  ['e', 'export the map'],
  ['?', 'show this list'],
  ['Ctrl + Enter', 'run, in a field of “Your own numbers”'],
];

export function Help({ dialog }: { dialog: RefObject<HTMLDialogElement | null> }) {
  return (
    <dialog ref={dialog} aria-labelledby="help-title">
      <h2 id="help-title">Keyboard shortcuts of the attention map</h2>
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
