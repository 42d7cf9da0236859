import { useEffect, useState } from 'preact/hooks';
import { fixed, shortNumber } from '../numbers.ts';
import { linkHash } from '../state/hash.ts';
import { run } from '../state/run.ts';
import '../styles/train.css';
import { Curve, type Line } from '../train/curve.tsx';
import { SettingsForm } from '../train/form.tsx';
import { MapPicture, MapTable, mapsOf } from '../train/maps.tsx';
import { puzzles } from '../train/puzzles.ts';
import { changes, taskIds } from '../train/settings.ts';
import {
  another,
  answersAbove,
  beside,
  choose,
  example,
  failure,
  lookAt,
  looks,
  moment,
  moments,
  openAbove,
  pauseTraining,
  phase,
  refused,
  runs,
  saveWeights,
  setExample,
  settings,
  spoken,
  startAgain,
  step,
  stepsPerSecond,
  takeOneStep,
  train,
} from '../train/state.ts';
import type { Looks } from '../train/messages.ts';
import type { TaskId } from '../train/task.ts';
import { taskWords } from '../train/words.ts';
import { Term } from '../ui/term.tsx';

export function Train() {
  // What stands above may still grow until its map is there.
  useEffect(goThere, [run.value !== undefined]);
  return (
    <section id="train" aria-labelledby="train-title">
      <h2 id="train-title">Train</h2>
      <div class="lede">
        <p>
          Nobody tells a head where to look. Here a small Transformer starts with random weights and learns in front of you: press{' '}
          <strong>Train</strong> and watch a pattern come up in its maps.
        </p>
      </div>
      <div class="train-frame">
        <div class="train-stage">
          <TaskChoice />
          <Buttons />
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
        <SettingsForm />
      </div>
      <p class="visually-hidden" aria-live="polite">
        {spoken.value}
      </p>
    </section>
  );
}

const leadsHere = new URLSearchParams(location.hash.slice(1)).get('go') === 'train';

/** A link to a run leads here. */
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
  return (
    <div class="buttons train-buttons">
      {isRunning ? (
        <button type="button" class="primary" onClick={pauseTraining}>
          Pause
        </button>
      ) : (
        <button type="button" class="primary" onClick={train}>
          Train
        </button>
      )}
      <button type="button" disabled={isRunning} onClick={takeOneStep}>
        One step
      </button>
      <button type="button" disabled={phase.value === 'idle'} onClick={startAgain}>
        Start again
      </button>
      {isStarting && <span class="note">Loading what trains …</span>}
      {failure.value && (
        <p role="alert" class="error">
          Training has stopped. {failure.value}
        </p>
      )}
    </div>
  );
}

const percent = (share: number) => `${fixed(100 * share, 1)} %`;

function Figure({ name, children }: { name: string; children: string }) {
  return (
    <div class="train-number">
      <span aria-hidden="true">{name}</span>
      <strong class="figure" role="group" aria-label={name}>
        {children}
      </strong>
    </div>
  );
}

function Numbers() {
  const [first, second] = runs.value;
  const none = '–';
  const loss = (of: typeof first) => (of ? fixed(of.loss, 4) : none);
  const held = (of: typeof first) => (of ? percent(of.points.at(-1)!.held.accuracy) : none);
  return (
    <div class="train-numbers">
      <Figure name="Step">{String(step.value)}</Figure>
      <Figure name="Loss">{loss(first)}</Figure>
      <Figure name="Held-out accuracy">{held(first)}</Figure>
      {second && <Figure name="Loss, second run">{loss(second)}</Figure>}
      {second && <Figure name="Held-out accuracy, second run">{held(second)}</Figure>}
      <Figure name="Steps a second">{stepsPerSecond.value === undefined ? none : fixed(stepsPerSecond.value, 0)}</Figure>
    </div>
  );
}

function Curves() {
  const all = runs.value;
  const linesOf = (read: (score: { readonly loss: number; readonly accuracy: number }) => number): readonly Line[] =>
    all.flatMap(({ points }, run) =>
      (['training', 'held'] as const).map((kind) => ({
        name: `${kind} ${run}`,
        kind,
        run,
        values: points.map((point) => [point.step, read(point[kind])] as const),
      })),
    );
  const losses = linesOf(({ loss }) => loss);
  // A loss that shoots up now and then would press all else to the ground.
  const most = Math.max(
    0.5,
    ...losses.map(({ values }) => Math.max(...values.slice(0, 1).map(([, value]) => value), ...values.slice(-5).map(([, value]) => value))),
  );
  const steps = Math.max(settings.value.steps, step.value);
  const other = changes[beside.value]?.label(settings.value);
  return (
    <>
      <Curve
        name="Loss curve"
        lines={losses}
        most={most}
        steps={steps}
        moment={moment.value}
        write={(value) => String(Number(value.toPrecision(2)))}
      />
      <Curve
        name="Accuracy curve"
        lines={linesOf(({ accuracy }) => accuracy)}
        most={1}
        steps={steps}
        moment={moment.value}
        write={(value) => `${Math.round(100 * value)} %`}
      />
      <p class="train-legend">
        <span class="held run-0">held out</span>
        <span class="training run-0">training</span>
        {other && <span class="held run-1">{other}, held out</span>}
        {other && <span class="training run-1">training</span>}
      </p>
    </>
  );
}

/** Before anything was trained: what one would expect. */
function preview(): { readonly tokens: readonly string[]; readonly expected: Float32Array } | undefined {
  const { task: id } = settings.value;
  const task = puzzles.find((each) => each.id === id);
  const read = task?.read(example.value ?? taskWords[id].example ?? '');
  if (!task?.expected || !read || typeof read === 'string') return undefined;
  return { tokens: read.ids.map((each) => task.symbols[each]!), expected: task.expected(read.ids) };
}

function Heads() {
  const [asTable, setAsTable] = useState(false);
  const now = looks.value;
  const { tokens, expected } = now ?? preview() ?? {};
  const names = ['As set', changes[beside.value]?.label(settings.value) ?? ''];
  return (
    <div class="train-heads">
      <ExampleField />
      {now ? (
        now.runs.map((_, run) => <RunHeads key={run} of={now} run={run} name={now.runs.length > 1 ? names[run] : undefined} />)
      ) : (
        <div class="train-maps">
          {tokens && expected && <MapPicture of={expectedMap(expected)} tokens={tokens} />}
          <p class="note">The maps of its heads come up here as soon as it trains.</p>
        </div>
      )}
      {now && (
        <button type="button" aria-expanded={asTable} onClick={() => setAsTable(!asTable)}>
          View its maps as tables
        </button>
      )}
      {now &&
        asTable &&
        mapsOf(now.runs[0]!.attentions, now.tokens.length, undefined).map((each) => <MapTable key={each.name} of={each} tokens={now.tokens} />)}
    </div>
  );
}

const expectedMap = (weights: Float32Array) => ({ name: 'Expected', weights, note: 'before any training', brightest: 1, isExpected: true });

function RunHeads({ of: { runs: all, tokens, labels, expected }, run, name }: { of: Looks; run: number; name: string | undefined }) {
  const { answers, attentions } = all[run]!;
  const maps = mapsOf(attentions, tokens.length, expected);
  return (
    <div class="train-run">
      {name && <h3>{name}</h3>}
      <Answers tokens={tokens} answers={answers} labels={labels} name={name} />
      <div class={maps.length > 3 || all.length > 1 ? 'train-maps many' : 'train-maps'}>
        {run === 0 && expected && <MapPicture of={expectedMap(expected)} tokens={tokens} />}
        {maps.map((each) => (
          <MapPicture key={each.name} of={each} tokens={tokens} in={name} />
        ))}
      </div>
    </div>
  );
}

function ExampleField() {
  const { task } = settings.value;
  const why = refused.value;
  return (
    <div class="train-example">
      <label class="field">
        <span>Test example</span>
        <input
          type="text"
          spellcheck={false}
          autocomplete="off"
          value={example.value ?? looks.value?.example ?? taskWords[task].example ?? ''}
          aria-invalid={why ? 'true' : undefined}
          aria-describedby={why ? 'train-example-error' : undefined}
          onInput={(event) => setExample(event.currentTarget.value)}
        />
      </label>
      <button type="button" disabled={phase.value === 'idle'} onClick={another}>
        Another example
      </button>
      {why && (
        <p role="alert" id="train-example-error" class="error">
          {why}
        </p>
      )}
    </div>
  );
}

/** What the model answers, beneath what it was asked; wrong answers say so. */
function Answers({
  tokens,
  answers,
  labels,
  name,
}: {
  tokens: readonly string[];
  answers: readonly string[];
  labels: readonly string[];
  name: string | undefined;
}) {
  const isOne = answers.length === 1;
  const judged = answers.map((answer, i) => (labels[i] === undefined || labels[i] === '' ? undefined : answer === labels[i]));
  const wrong = judged.filter((each) => each === false).length;
  const verdict = labels.length === 0 ? '' : wrong === 0 ? (isOne ? 'right' : 'all right') : isOne ? `wrong, it is ${labels[0]}` : `${wrong} wrong`;
  return (
    <div class="train-answers" role="group" aria-label={name ? `The answer, ${name}` : 'The answer'}>
      {isOne ? (
        <span class={judged[0] === false ? 'wrong one' : 'one'}>{answers[0]}</span>
      ) : (
        <span class="train-tokens">
          {tokens.map((token, i) => (
            <span key={i} class={judged[i] === false ? 'wrong' : ''}>
              <span>{token}</span>
              <strong>{answers[i] || '·'}</strong>
            </span>
          ))}
        </span>
      )}
      <span class="train-verdict">{verdict}</span>
    </div>
  );
}

function Moments() {
  const all = moments.value;
  const last = Math.max(0, all.length - 1);
  const index = moment.value === undefined ? last : Math.max(0, all.indexOf(moment.value));
  const at = moment.value ?? step.value;
  return (
    <div class="slider train-moments">
      <div class="slider-head">
        <label for="train-moment">Moment of the run</label>
        <span class="figure">{moment.value === undefined ? `step ${at}, now` : `step ${at} of ${step.value}`}</span>
      </div>
      <input
        id="train-moment"
        type="range"
        min={0}
        max={last}
        value={index}
        disabled={last === 0}
        aria-valuetext={`step ${at}`}
        onInput={(event) => lookAt(Number(event.currentTarget.value))}
      />
    </div>
  );
}

/** What can be done with the model. */
function Keep() {
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

function Norms() {
  const all = runs.value;
  const most = Math.max(...all.flatMap(({ norms }) => norms.map(({ norm }) => norm)), 1e-12);
  const [longest] = all.map(({ norms }) => norms.map(({ part }) => part)).sort((a, b) => b.length - a.length);
  const parts = longest ?? [];
  return (
    <table class="train-norms">
      <caption>
        Norm of the <Term word="gradient" /> by layer
      </caption>
      <thead class={all.length > 1 ? '' : 'visually-hidden'}>
        <tr>
          <th scope="col">part</th>
          {all.map((_, run) => (
            <th scope="col" key={run}>
              {run === 0 ? 'as set' : changes[beside.value]?.label(settings.value)}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {parts.map((part) => (
          <tr key={part}>
            <th scope="row">{part}</th>
            {all.map(({ norms }, run) => (
              <td key={run}>
                <Norm of={norms.find((each) => each.part === part)?.norm} most={most} />
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** undefined: this run has no such part. */
const Norm = ({ of, most }: { of: number | undefined; most: number }) =>
  of === undefined ? (
    <>–</>
  ) : (
    <span class="bar-number" style={{ '--share': `${((100 * of) / most).toFixed(1)}%` }}>
      {shortNumber(of)}
    </span>
  );

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
