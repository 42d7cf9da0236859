/** Below the first figure: sentences or the steps, the heads, and what can be done. */
import { useRef } from 'preact/hooks';
import { headWords, type HeadSummary } from '../../model/head_kind.ts';
import { isSmall } from '../../model/known.ts';
import { fillsBlanks, guessesNext } from '../../state/guess.ts';
import {
  beginningOf,
  firstLook,
  isPlaying,
  playSteps,
  sentences,
  showStep,
  stepCaptions,
  stepShown,
  toField,
  withoutBlank,
} from '../../state/first_look.ts';
import { heads, toggleHead } from '../../state/heads.ts';
import { chooseModel } from '../../state/load_model.ts';
import { headInFocus, layerInFocus } from '../../state/map_view.ts';
import { opening } from '../../state/bundled.ts';
import { model } from '../../state/model.ts';
import { run } from '../../state/run.ts';
import { setText, update, view } from '../../state/view.ts';
import '../../styles/first_foot.css';
import { rove } from '../../ui/rove.ts';
import { Share } from '../share.tsx';

export function Foot() {
  const { layers, heads: perLayer } = run.value?.model ?? opening();
  const inFocus = layerInFocus.value * perLayer + headInFocus.value;
  const isOff = view.value.off.includes(inFocus);
  const withMotion = () => !matchMedia('(prefers-reduced-motion: reduce)').matches;
  return (
    <div class="first-foot">
      {stepShown.value > 0 ? <Steps /> : <Examples />}
      <div class="first-heads">
        <Dots layers={layers} perLayer={perLayer} inFocus={inFocus} />
        <Caption count={layers * perLayer} inFocus={inFocus} isOff={isOff} />
        <div class="buttons">
          <button type="button" class="play" disabled={!firstLook.value} onClick={() => playSteps(withMotion())}>
            Play the steps
          </button>
          <button type="button" aria-pressed={isOff} disabled={!run.value} onClick={() => toggleHead(inFocus)}>
            {isOff ? 'Switch this head on' : 'Switch this head off'}
          </button>
          <Share />
        </div>
      </div>
    </div>
  );
}

/** Small models of the page make room for the mask model; one that the visitor loaded stays, and gets whole sentences. */
const showsBlanks = (): boolean => fillsBlanks() || isSmall(model.value?.id);

function open(sentence: string): void {
  if (!guessesNext() && !fillsBlanks() && showsBlanks()) void chooseModel('masks');
  setText(inModel(sentence), undefined);
}

/** As the model reads it: each model that fills blanks has its own blank. */
function inModel(sentence: string): string {
  if (guessesNext()) return beginningOf(sentence);
  return showsBlanks() ? sentence.replace('[MASK]', model.value?.maskToken ?? '[MASK]') : withoutBlank(sentence);
}

function Examples() {
  const group = useRef<HTMLDivElement>(null);
  const chosen = sentences.findIndex((sentence) => inModel(sentence) === view.value.text);
  return (
    <div ref={group} class="first-try" role="group" aria-label="Examples" onKeyDown={(event) => rove(event, group.current!)}>
      <strong aria-hidden="true">Try</strong>
      {sentences.map((sentence, i) => (
        <button
          key={sentence}
          type="button"
          class="chip"
          aria-pressed={i === chosen}
          tabIndex={i === Math.max(0, chosen) ? 0 : -1}
          onClick={() => open(sentence)}
        >
          {guessesNext()
            ? `${inModel(sentence)} …`
            : toField(showsBlanks() ? sentence : withoutBlank(sentence))
                .replace(/_+/, '___')
                .replace(/\.$/, '')}
        </button>
      ))}
    </div>
  );
}

function Steps() {
  const step = stepShown.value;
  const group = useRef<HTMLDivElement>(null);
  return (
    <div class="first-steps" role="group" aria-label="Steps" onKeyDown={(event) => event.key === 'Escape' && showStep(0)}>
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
      <p aria-live="polite">{guessesNext() ? stepCaptions[step - 1]![1].replace('The blank', 'The word') : stepCaptions[step - 1]![1]}</p>
      <button type="button" class="quiet" onClick={() => showStep(0)}>
        {isPlaying.value ? 'Skip' : 'Done'}
      </button>
    </div>
  );
}

/** More heads than this are shown one layer at a time. */
const mostDots = 24;

/** Choosing follows the focus, as in a group of radio buttons. */
function Dots({ layers, perLayer, inFocus }: { layers: number; perLayer: number; inFocus: number }) {
  const group = useRef<HTMLDivElement>(null);
  const choose = (i: number) => update({ layer: Math.floor(i / perLayer), head: i % perLayer });
  const count = layers * perLayer;
  const byLayer = count > mostDots;
  const layer = Math.min(Math.floor(inFocus / perLayer), layers - 1);
  const [first, shown] = byLayer ? [layer * perLayer, perLayer] : [0, count];
  const { off } = view.value;
  return (
    <div class="head-dots-all">
      {byLayer && (
        <div class="head-layer">
          <button type="button" aria-label="Layer before" disabled={layer === 0} onClick={() => update({ layer: layer - 1 })}>
            ‹
          </button>
          <span aria-live="polite">
            Layer {layer + 1} of {layers}
          </span>
          <button type="button" aria-label="Layer after" disabled={layer === layers - 1} onClick={() => update({ layer: layer + 1 })}>
            ›
          </button>
        </div>
      )}
      <div
        ref={group}
        class={shown > 12 || byLayer ? 'head-dots many' : 'head-dots'}
        role="group"
        aria-label="Head dots"
        onKeyDown={(event) => rove(event, group.current!)}
      >
        {Array.from({ length: shown }, (_, at) => first + at).map((i) => (
          <button
            key={i}
            type="button"
            class={off.includes(i) ? 'off' : ''}
            aria-label={`Head ${i + 1} of ${count}`}
            aria-pressed={i === inFocus}
            title={`Layer ${Math.floor(i / perLayer) + 1}, head ${(i % perLayer) + 1}`}
            tabIndex={i === inFocus ? 0 : -1}
            onClick={() => choose(i)}
            onFocus={() => choose(i)}
          />
        ))}
      </div>
    </div>
  );
}

function textOf(summary: HeadSummary | undefined): string {
  if (!summary) return '…';
  const now = firstLook.value;
  const strays = summary.kind === 'separator' && now !== undefined && now.elsewhere < 0.5;
  if ((summary.kind !== 'mixed' && !strays) || !now) return headWords[summary.kind];
  const named = now.columns
    .filter(({ word, weight }) => weight >= 0.15 && /[\p{L}\p{N}]/u.test(word))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 2)
    .map(({ word }) => word);
  const here = named.join(' and ');
  if (strays) return here ? `often rests; here it looks at ${here}` : headWords.separator;
  return here ? `${headWords.mixed}, here ${here}` : headWords.mixed;
}

function Caption({ count, inFocus, isOff }: { count: number; inFocus: number; isOff: boolean }) {
  const of = run.value;
  const summary = of && heads.value?.run.model === of.model ? heads.value.list[inFocus] : undefined;
  // A link may name a head that only the model to come has.
  const ofCount = inFocus < count ? ` of ${count}` : '';
  return (
    <p class="first-caption" aria-live="polite">
      <strong>
        Head {inFocus + 1}
        {ofCount}
      </strong>{' '}
      <span class="muted">{isOff ? 'is switched off' : textOf(summary)}</span>
    </p>
  );
}
