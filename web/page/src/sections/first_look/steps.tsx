/** The steps below the first figure, with a caption each. */
import { useRef } from 'preact/hooks';
import { capitalized } from '../../formats/names.ts';
import { fixed } from '../../formats/numbers.ts';
import { type Column, firstLook, isPlaying, playSteps, showStep, stepCount, stepShown } from '../../state/first_look.ts';
import { stepCaptions } from '../../state/step_captions.ts';
import '../../styles/first_steps.css';
import { rove } from '../../ui/rove.ts';
import { useSeen } from '../../ui/seen.ts';
import { queryName } from './columns.tsx';
import { scoreShown } from './drawing.tsx';
import { isApart } from './guesses.tsx';

/** A caption, with the numbers of the words with the largest and the smallest weight. */
function captionOf(step: number): string {
  const now = firstLook.value;
  const asker = queryName(now);
  if (step === stepCount && isApart(now)) return `In another run, with ${asker} hidden, the model guesses what stands there.`;
  const caption = stepCaptions[step - 1]![1].replace('The blank', capitalized(asker));
  const seen = (now?.columns ?? []).filter(({ isMasked, word }) => !isMasked && /[\p{L}\p{N}]/u.test(word));
  const [least, most] = [(a: Column, b: Column) => (b.score < a.score ? b : a), (a: Column, b: Column) => (b.score > a.score ? b : a)];
  if (seen.length < 2 || (step !== 2 && step !== 3)) return caption;
  const [low, high] = [seen.reduce(least), seen.reduce(most)];
  if (step === 2) return `${caption} “${high.word}” gets ${scoreShown(high.score)}, “${low.word}” ${scoreShown(low.score)}.`;
  const apart = Number(fixed(high.score, 1)) - Number(fixed(low.score, 1));
  const times = high.weight / low.weight;
  if (!(apart > 0 && times < 1e6)) return caption;
  const shown = times < 10 ? fixed(times, 1) : Number(times.toPrecision(2)).toLocaleString('en');
  return `${caption} “${high.word}” scores ${fixed(apart, 1)} more than “${low.word}”: e to that power, ${shown} times the weight.`;
}

export function Steps() {
  const step = stepShown.value;
  const group = useRef<HTMLDivElement>(null);
  const figure = useRef(document.querySelector<HTMLElement>('.first-figure'));
  const isAway = !useSeen(figure);
  return (
    <div
      class={isAway ? 'first-steps away' : 'first-steps'}
      role="group"
      aria-label="Steps"
      onKeyDown={(event) => event.key === 'Escape' && showStep(0)}
    >
      <div ref={group} class="first-step-list" onKeyDown={(event) => rove(event, group.current!)}>
        {stepCaptions.map(([name], i) => (
          <button
            key={name}
            type="button"
            class="chip"
            aria-label={`Step ${i + 1}: ${name}`}
            aria-current={step === i + 1 ? 'step' : undefined}
            onClick={() => showStep(i + 1)}
          >
            {i + 1}
          </button>
        ))}
      </div>
      <p aria-live="polite">{captionOf(step)}</p>
      {step < stepCount && (
        <button type="button" class="quiet" onClick={() => (isPlaying.value ? showStep(step) : playSteps(true, step))}>
          {isPlaying.value ? 'Pause' : 'Resume'}
        </button>
      )}
      {step < stepCount && !isPlaying.value && (
        <button type="button" class="quiet" onClick={() => showStep(step + 1)}>
          Next
        </button>
      )}
      <button type="button" class="quiet" onClick={() => showStep(0)}>
        {isPlaying.value ? 'Skip' : 'Done'}
      </button>
    </div>
  );
}
