import { megabytes } from '../../formats/numbers.ts';
import type { FirstLook } from '../../state/first_look.ts';
import { guesses, guessFailure } from '../../state/guess.ts';
import { model } from '../../state/model.ts';
import { hasWords } from '../../state/run.ts';
import { status } from '../../state/status.ts';
import { Bar } from '../../ui/bar.tsx';
import { Alert } from '../../ui/alert.tsx';
import { Strip, largest } from '../../ui/strip.tsx';
import { queryName } from './columns.tsx';
import { percent } from './drawing.tsx';

/** Places that are reserved before the first guess. */
const most = 4;

function titleOf(now: FirstLook | undefined): string {
  const { kind = 'blank', query } = guesses.value ?? {};
  if (kind === 'answer') return 'Its answer';
  const isLast = query === now?.columns.at(-1)?.token;
  if (kind === 'next' && (isLast || !now?.columns.length)) return 'The next word';
  if (kind === 'blank' || !now?.columns.length) return 'Its guess';
  const word = now.columns.find(({ token }) => token === query)?.word ?? '';
  return kind === 'next' ? `After “${word}”` : `If “${word}” were blank`;
}

export function Guesses({ now }: { now: FirstLook | undefined }) {
  const made = guesses.value;
  const list = made?.list ?? [];
  const of = model.value;
  const best = made?.before?.[0];
  const shareBefore = (word: string) => made?.before?.find((each) => each.word === word)?.share;
  return (
    <div class="first-guess step-5">
      <h2 id="guess-title">{titleOf(now)}</h2>
      <ul aria-label="Guesses">
        {list.map(({ word, share }, i) => (
          <li key={i} class={i === 0 ? 'best' : ''}>
            <span class="guess-word">{word}</span> <Bar share={share} />
            {/* Style writes what it was, and names in the accessible tree stay words and shares. */}
            <span class="guess-share" data-was={shareBefore(word) === undefined ? undefined : `was ${percent(shareBefore(word)!)}`}>
              {percent(share)}
            </span>
          </li>
        ))}
        {!made && Array.from({ length: most }, (_, i) => <li key={i} aria-hidden="true" />)}
      </ul>
      {made?.kind === 'answer' && list.length === 0 && hasWords(made.run) && (
        <p class="note">This model gives no answer. It turns texts into vectors: the means of its words’ last rows.</p>
      )}
      <p class="note">
        {of?.id === 'masks' ? `A model of ${megabytes(of.bytes)}, often wrong` : of ? of.name : status.value.failed ? '' : 'The model is loading …'}
      </p>
      {/* Always there, so that nothing moves. */}
      <p class="note before">{best && `before the change: ${best.word} ${percent(best.share)}`}</p>
      <Alert what="The guess could not be computed." why={guessFailure.value} />
    </div>
  );
}

/** The guess is for a blank in place of the word that asks, so its sum is of another run. */
export const isApart = (now: FirstLook | undefined): boolean => guesses.value?.kind === 'word' && guesses.value.query === now?.token;

/** What the row goes through after this layer, counted from 1. */
function layersAfter(layer: number, layers: number): string {
  if (layer + 1 >= layers) return '';
  return layer + 2 === layers ? `layer ${layers}` : `layers ${layer + 2}–${layers}`;
}

export function Sum({ now }: { now: FirstLook | undefined }) {
  const of = now?.of.run.model;
  const isEmpty = now?.columns.length === 0;
  const apart = !isEmpty && isApart(now);
  const onward =
    of &&
    !isEmpty &&
    (apart ? 'another run, with the word hidden' : ['other heads', 'feed-forward', layersAfter(now.of.layer, of.layers)].filter(Boolean).join(', '));
  return (
    <div class="first-sum step-4">
      <p class={apart ? 'first-onward apart note step-5' : 'first-onward note step-5'}>{onward || ' '}</p>
      <p class="first-sum-name">
        <strong>Sum</strong>{' '}
        <span class="note">{now?.isOff ? 'switched off: nothing is passed on' : isEmpty ? '' : `what ${queryName(now)} has gathered`}</span>
      </p>
      <svg width="150" height="20" aria-hidden="true" class={now?.isOff ? 'off' : ''}>
        {now && !isEmpty && <Strip kind="value" values={now.sum} x={0} y={0} width={150} height={20} most={largest(now.sum)} />}
      </svg>
    </div>
  );
}
