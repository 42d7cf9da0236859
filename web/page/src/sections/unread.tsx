import { unread } from '../state/hash.ts';

export function Unread() {
  if (unread.value === undefined) return null;
  return (
    <div role="alert" class="problem">
      <p>
        <strong>This link is too long to read.</strong> {unread.value}
      </p>
      <p>Ask its sender for a link with a shorter text or fewer edits.</p>
      <div class="buttons">
        <button type="button" class="quiet" onClick={() => (unread.value = undefined)}>
          Close
        </button>
      </div>
    </div>
  );
}
