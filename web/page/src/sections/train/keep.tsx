import { useState } from 'preact/hooks';
import { linkHash } from '../../state/hash.ts';
import { answersAbove, openAbove, runs, saveWeights, step } from '../../train/state.ts';

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

/** A link that leads to this section and its settings, and holds nothing of the texts above. */
function LinkButton() {
  const [said, setSaid] = useState('');
  const copy = async () => {
    const params = new URLSearchParams([...new URLSearchParams(linkHash())].filter(([name]) => name.startsWith('train.')));
    params.set('go', 'train');
    const link = `${location.origin}${location.pathname}#${params.toString()}`;
    try {
      await navigator.clipboard.writeText(link);
      setSaid('Copied.');
    } catch {
      setSaid(link);
    }
  };
  return (
    <>
      <button type="button" onClick={() => void copy()}>
        Link to this run
      </button>
      {said && (
        <span class="note train-link" role="group" aria-label="Link">
          {said}
        </span>
      )}
    </>
  );
}
