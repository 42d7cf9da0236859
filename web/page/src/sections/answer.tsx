import { counted } from '../formats/numbers.ts';
import { id2label } from '../../../../testdata/models/sentiment/config.json';
import { rightOf100 } from '../state/bundled.ts';
import { guessText } from './guess_text.ts';
import { openingModel, sentenceName } from '../model/known.ts';
import { answerFunction, isDecoder, type LoadedModel } from '../model/loaded.ts';
import { answers, baseline, hasWords, run, type LabelScore } from '../state/run.ts';
import { isChanged, view } from '../state/view.ts';
import '../styles/answer.css';

const most = 3;

/** In the model's label order, so that they do not move when their numbers change. */
function inPlace(scores: readonly LabelScore[], { labels }: LoadedModel): readonly string[] {
  const place = ({ label }: LabelScore) => labels!.indexOf(label);
  return [...scores.slice(0, most)].sort((a, b) => place(a) - place(b)).map(({ label }) => label);
}

export function Answer() {
  const of = run.value;
  if (!of) return openingModel(view.value.model) === 'masks' ? null : <Waiting />;
  const now = answers(of);
  const before = isChanged.value && baseline.value?.model === of.model ? answers(baseline.value) : [];
  if (now.length === 0)
    return (
      <p class="answer-none note">
        {of.model.task === 'fill-mask' || isDecoder(of.model)
          ? (guessText() ?? `Its guess for the ${isDecoder(of.model) ? 'next word' : 'blank'} is in the first figure.`)
          : `${sentenceName(of.model)} has no classifier. Switching a head off changes the maps of later layers.`}
      </p>
    );
  if (!hasWords(of)) return <Nothing labels={inPlace(now, of.model)} />;
  const isShare = answerFunction(of.model) !== 'identity';
  const shown = (score: number) => (isShare ? `${(100 * score).toFixed(1)} %` : score.toFixed(3));
  const scoreOf = (list: readonly LabelScore[], wanted: string) => list.find(({ label }) => label === wanted)?.score;
  const flipped = before.length > 0 && before[0]!.label !== now[0]!.label;
  return (
    <ul class="answer" aria-label="The classifier's answer">
      {inPlace(before.length > 0 ? before : now, of.model).map((label) => {
        const [score, old] = [scoreOf(now, label)!, scoreOf(before, label)];
        const isBest = label === now[0]!.label;
        return (
          <li key={label} class={[isBest && 'best', isBest && flipped && 'flipped'].filter(Boolean).join(' ')}>
            <span>{label}</span>
            <span class={isShare ? 'answer-bar' : ''} aria-hidden="true">
              {isShare && <span class="answer-now" style={{ width: `${100 * score}%` }} />}
              {isShare && old !== undefined && <span class="answer-old" style={{ left: `${100 * old}%` }} />}
            </span>
            <span class="figure">
              {shown(score)}
              {old !== undefined && <span class="muted"> was {shown(old)}</span>}
            </span>
          </li>
        );
      })}
      {now.length > most && <li class="muted">and {counted(now.length - most, 'answer')} more</li>}
    </ul>
  );
}

/** Without a text there is nothing to classify; the rows keep their place. */
function Nothing({ labels }: { labels: readonly string[] }) {
  return (
    <ul class="answer" aria-label="The classifier's answer">
      {labels.map((label) => (
        <li key={label}>
          <span>{label}</span>
          <span class="answer-bar" aria-hidden="true" />
          <span class="muted">no text</span>
        </li>
      ))}
    </ul>
  );
}

export function Trust() {
  if ((run.value?.model.id ?? openingModel(view.value.model)) !== 'sentiment') return null;
  return <p class="note">The classifier was trained on English film reviews. It misjudges {100 - rightOf100.films} of 100 new ones.</p>;
}

/** A placeholder of the same size. */
function Waiting() {
  return (
    <ul class="answer" aria-hidden="true">
      {Object.values(id2label).map((label) => (
        <li key={label}>
          <span>{label}</span>
          <span class="answer-bar" />
          <span class="figure">…</span>
        </li>
      ))}
    </ul>
  );
}
