import { summaryOf } from '../state/changes.ts';
import { model } from '../state/model.ts';
import { isChanged, undoChanges, view } from '../state/view.ts';

/** What is not as the model was published; nothing moves when there is something. */
export function Changed() {
  if (!isChanged.value) return <p class="unchanged note">Nothing is changed: this is the model as it was published.</p>;
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
