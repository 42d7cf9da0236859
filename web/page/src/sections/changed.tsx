import { summaryOf } from '../state/changes.ts';
import { model } from '../state/model.ts';
import { isChanged, undoChanges, view } from '../state/view.ts';

/** Always one line, so that nothing moves when something is changed. */
export function Changed() {
  if (!isChanged.value) return <p class="unchanged note">No changes: this is the model as published.</p>;
  return (
    <p class="changed">
      <span>
        <strong>Changed:</strong> {summaryOf(view.value, model.value?.heads ?? 1).join('; ')}.
      </span>
      <button type="button" onClick={undoChanges}>
        Undo all
      </button>
    </p>
  );
}
