import { counted } from '../formats/numbers.ts';
import { model } from '../state/model.ts';
import { isChanged, undoChanges, view, type View } from '../state/view.ts';

const scoreNames: Readonly<Record<string, string>> = { dot: 'plain products', general: 'Luong’s scores', additive: 'Bahdanau’s scores' };

/** In words, what is not as the model's authors published it. */
function changesIn({ causal, padding, drawn, off, weights, change }: View, perLayer: number): readonly string[] {
  const head = (number: number) => `${Math.floor(number / perLayer) + 1}.${(number % perLayer) + 1}`;
  return [
    causal && 'causal mask',
    padding.length > 0 && `${counted(padding.length, 'token')} hidden`,
    drawn.length > 0 && `${counted(drawn.length, 'cell')} masked`,
    off.length > 0 && `${off.length === 1 ? 'head' : 'heads'} ${off.length > 6 ? `(${off.length})` : off.map(head).join(', ')} off`,
    weights.length > 0 && `${counted(weights.length, 'weight')} edited`,
    change && change.factor !== 1 && `layer ${change.layer + 1}: scale × ${change.factor}`,
    change && change.score !== 'scaled_dot' && `layer ${change.layer + 1}: ${scoreNames[change.score]}`,
    change && change.dropout > 0 && `layer ${change.layer + 1}: dropout ${change.dropout}`,
    change && change.edits.length > 0 && `layer ${change.layer + 1}: ${counted(change.edits.length, 'number')} of its input edited`,
  ].filter((each) => typeof each === 'string');
}

/** What is not as the model was published; nothing moves when there is something. */
export function Changed() {
  if (!isChanged.value) return <p class="unchanged note">Nothing is changed: this is the model as it was published.</p>;
  return (
    <p class="changed">
      <span>
        <strong>Changed:</strong> {changesIn(view.value, model.value?.heads ?? 1).join('; ')}.
      </span>
      <button type="button" onClick={undoChanges}>
        Undo all
      </button>
    </p>
  );
}
