import { useEffect } from 'preact/hooks';
import { run } from '../state/run.ts';
import '../styles/train.css';
import { SettingsForm } from '../train/form.tsx';
import { taskIds } from '../train/settings.ts';
import { choose, failure, pauseTraining, phase, runs, settings, spoken, startAgain, step, takeOneStep, train } from '../train/state.ts';
import type { TaskId } from '../train/task.ts';
import { taskWords } from '../train/words.ts';
import { Curves, Norms, Numbers } from './train/progress.tsx';
import { Heads, Moments } from './train/learned_heads.tsx';
import { Keep } from './train/keep.tsx';
import { PartTitle } from '../ui/part_title.tsx';
import { Alert } from '../ui/alert.tsx';

export function Train() {
  // The sections above may still grow until the map appears.
  useEffect(goThere, [run.value !== undefined]);
  return (
    <section id="train" aria-label="Train">
      <PartTitle of="train" name="train-title" />
      <div class="lede">
        <p>
          Nobody programs where a head looks. Here a small Transformer starts with random weights and learns from right answers while you watch: press{' '}
          <strong>Train</strong> and see a pattern appear in its maps.
        </p>
      </div>
      <div class="train-stage">
        <TaskChoice />
        <Buttons />
        {/* Above everything that a changed setting clears, so that it stays under the pointer. */}
        <SettingsForm />
        <Numbers />
        <div class="train-view">
          <div>
            <Heads />
            <Moments />
          </div>
          <div>
            <Curves />
            {runs.value.length > 0 && <Norms />}
          </div>
        </div>
        <Keep />
      </div>
      <p class="visually-hidden" aria-live="polite">
        {spoken.value}
      </p>
    </section>
  );
}

const leadsHere = new URLSearchParams(location.hash.slice(1)).get('go') === 'train';

function goThere(): void {
  if (leadsHere) document.getElementById('train')?.scrollIntoView();
}

function TaskChoice() {
  const { task } = settings.value;
  const { asks, expect } = taskWords[task];
  return (
    <div class="train-task">
      <label class="field">
        <span>Task</span>
        <select value={task} onChange={(event) => choose({ task: event.currentTarget.value as TaskId })}>
          {taskIds.map((id) => (
            <option key={id} value={id}>
              {taskWords[id].name}
            </option>
          ))}
        </select>
      </label>
      <p>
        <strong>{asks}</strong> {expect}
      </p>
    </div>
  );
}

function Buttons() {
  const isRunning = phase.value === 'running';
  const isStarting = isRunning && runs.value.length === 0;
  const isOver = phase.value !== 'idle' && step.value >= settings.value.steps;
  return (
    <div class="buttons train-buttons">
      {isRunning ? (
        <button type="button" class="primary" onClick={pauseTraining}>
          Pause
        </button>
      ) : (
        <button type="button" class="primary" onClick={train}>
          {isOver ? 'Train further' : 'Train'}
        </button>
      )}
      <button type="button" disabled={isRunning} onClick={takeOneStep}>
        One step
      </button>
      <button type="button" disabled={phase.value === 'idle'} onClick={startAgain}>
        Start again
      </button>
      {isStarting && <span class="note">Starting …</span>}
      <Alert what="Training has stopped." why={failure.value} />
    </div>
  );
}
