import { useState } from 'preact/hooks';
import { MapPicture, MapTable, mapsOf } from '../../train/maps.tsx';
import { puzzles } from '../../train/puzzles.ts';
import { changes } from '../../train/settings.ts';
import { another, beside, example, lookAt, looks, moment, moments, phase, refused, setExample, settings, step } from '../../train/state.ts';
import type { Looks } from '../../train/messages.ts';
import { taskWords } from '../../train/words.ts';
import { Alert } from '../../ui/alert.tsx';

/** The expected pattern, shown before training starts. */
function preview(): { readonly tokens: readonly string[]; readonly expected: Float32Array } | undefined {
  const { task: id } = settings.value;
  const task = puzzles.find((each) => each.id === id);
  const read = task?.read(example.value ?? taskWords[id].example ?? '');
  if (!task?.expected || !read || typeof read === 'string') return undefined;
  return { tokens: read.ids.map((each) => task.symbols[each]!), expected: task.expected(read.ids) };
}

export function Heads() {
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
          The maps of its heads appear here when training starts.
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

const expectedMap = (weights: Float32Array) => ({ name: 'Expected', weights, note: 'the pattern to learn', brightest: 1, isExpected: true });

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
      <Alert id="train-example-error" why={why} />
    </div>
  );
}

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

export function Moments() {
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
