import { useEffect } from 'preact/hooks';
import {
  computedExample,
  example,
  exampleFailure,
  exampleVersion,
  followExample,
  initialExample,
  resetExample,
  updateExample,
} from '../state/example.ts';
import { status } from '../state/status.ts';
import '../styles/stepper.css';
import { Paper } from '../ui/papers.tsx';
import { FlowDiagram } from './example/diagram.tsx';
import { steps, titles } from './example/steps.tsx';
import { PartTitle } from '../ui/part_title.tsx';
import { Alert } from '../ui/alert.tsx';

export function Example() {
  useEffect(followExample, []);
  const { step, matrices, usualScale, causal } = example.value;
  const untouched = matrices === initialExample.matrices && !usualScale && !causal;
  const made = computedExample.value;
  const current = steps[step]!;
  const go = (to: number) => updateExample({ step: to });
  return (
    <section id="example" aria-labelledby="example-title">
      <div class="lede">
        <PartTitle of="one" name="example-title" />
        <p>
          “Cats chase mice”: three words, with numbers small enough for pencil and paper. Each row belongs to one word: follow that of “cats” from X
          to the output of attention. Steps 1 to 8 use the numbers of “<Paper of="Raimi Karim 2019">Illustrated: Self-Attention</Paper>” (Raimi Karim
          2019); the words and the last two steps are added here. The same code computes these numbers and the map below.
        </p>
        <p class="try">
          <strong>Try:</strong> change the first number of “chase” in X to 3, in step 1. Then look at step 6: which word do all three look at now?
        </p>
      </div>
      <FlowDiagram titles={titles} />
      <div class="stepper">
        <ol class="step-list">
          {titles.map((title, i) => (
            <li key={title}>
              <button type="button" class="quiet" aria-current={i === step ? 'step' : undefined} onClick={() => go(i)}>
                <span class="figure">{i + 1}</span> <span class="step-title">{title}</span>
              </button>
            </li>
          ))}
        </ol>
        <div class="step">
          <div class="buttons">
            <button type="button" disabled={step === 0} onClick={() => go(step - 1)}>
              Previous step
            </button>
            <button type="button" disabled={step === steps.length - 1} onClick={() => go(step + 1)}>
              Next step
            </button>
            <button type="button" class="quiet" disabled={untouched} onClick={resetExample}>
              Original numbers
            </button>
          </div>
          <h3 aria-live="polite">
            Step {step + 1} of {steps.length}: {current.title}
          </h3>
          <p>{current.text}</p>
          {current.formula}
          <Alert what="The example could not be computed." why={exampleFailure.value} />
          {made ? (
            <div class="step-tables" key={`${step} ${exampleVersion.value}`}>
              {current.body(made)}
            </div>
          ) : (
            <p class="note">{status.value.failed ? 'The module is not running.' : 'The module is starting.'}</p>
          )}
        </div>
      </div>
    </section>
  );
}
