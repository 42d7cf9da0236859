import { useState } from 'preact/hooks';
import { linkHash } from '../../state/hash.ts';
import { answersAbove, openAbove, runs, saveWeights, step } from '../../train/state.ts';

export function Keep() {
  const [first, second] = runs.value;
  const isThere = first !== undefined;
  const above = answersAbove.value;
  return (
    <div class="train-keep">
      <div class="buttons">
        <button type="button" disabled={!isThere} onClick={openAbove}>
          Open this model in the sections above
        </button>
        <button type="button" disabled={!isThere} onClick={saveWeights}>
          Save as safetensors
        </button>
        <LinkButton />
      </div>
      {above && (
        <p aria-live="polite">
          Above, with all changes made there, it answers <span class="figure">{above.join(' ')}</span>.
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
          . The same settings and seed give the same fingerprint on any machine.
        </p>
      )}
    </div>
  );
}

/** Contains only this section's settings, not the texts above. */
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
