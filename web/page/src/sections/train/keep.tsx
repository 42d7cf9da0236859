import { answersAbove, openAbove, runs, saveWeights, step } from '../../train/state.ts';
import { LinkButton } from '../train.tsx';

/** What can be done with the model. */
export function Keep() {
  const [first, second] = runs.value;
  const isThere = first !== undefined;
  const above = answersAbove.value;
  return (
    <div class="train-keep">
      <div class="buttons">
        <button type="button" disabled={!isThere} onClick={openAbove}>
          Open it in the sections above
        </button>
        <button type="button" disabled={!isThere} onClick={saveWeights}>
          Save as safetensors
        </button>
        <LinkButton />
      </div>
      {above && (
        <p aria-live="polite">
          Above, with all that is changed there, it answers <span class="figure">{above.join(' ')}</span>.
        </p>
      )}
      {first?.fingerprint && (
        <p class="note">
          {first.parameters} weights after {step.value} steps, fingerprint{' '}
          <span class="figure" role="group" aria-label="Fingerprint">
            {first.fingerprint}
          </span>
          {second?.fingerprint && (
            <>
              {' '}
              (second run <span class="figure">{second.fingerprint}</span>)
            </>
          )}
          . The same settings and seed give the same one on any machine.
        </p>
      )}
    </div>
  );
}
