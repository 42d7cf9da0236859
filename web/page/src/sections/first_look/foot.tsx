/** Below the first figure: sentences or the steps, the heads, and what can be done. */
import type { ComponentType } from 'preact';
import { useRef } from 'preact/hooks';
import { capitalized, headNameAt } from '../../formats/names.ts';
import { headText, type HeadSummary } from '../../model/head_kind.ts';
import { isSmall } from '../../model/known.ts';
import { fillsBlanks, guessesNext } from '../../state/guess.ts';
import { beginningOf, firstLook, type FirstLook, playSteps, sentences, stepShown, toField, withoutBlank } from '../../state/first_look.ts';
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
import { HeadMap } from './head_map.tsx';

/** The figure must be in sight, where the screen is small. */
function play(): void {
  const figure = document.querySelector('.first-figure')!;
  if (figure.getBoundingClientRect().top < 0) figure.scrollIntoView();
  playSteps(!matchMedia('(prefers-reduced-motion: reduce)').matches);
}

/** `steps` is loaded with the story. */
export function Foot({ steps: Steps }: { steps: ComponentType | undefined }) {
  const { layers, heads: perLayer } = run.value?.model ?? opening();
  const inFocus = layerInFocus.value * perLayer + headInFocus.value;
  const isOff = view.value.off.includes(inFocus);
  return (
    <div class="first-foot">
      <div class="first-choice">{stepShown.value > 0 && Steps ? <Steps /> : <Examples />}</div>
      <div class="first-heads">
        <Dots layers={layers} perLayer={perLayer} inFocus={inFocus} />
        <Caption count={layers * perLayer} perLayer={perLayer} inFocus={inFocus} isOff={isOff} />
        <div class="buttons">
          <button type="button" class="play" disabled={!firstLook.value} onClick={play}>
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

/** Other small models of the page make room for the mask model. */
const makesRoom = (): boolean => isSmall(model.value?.id) && model.value?.id !== 'masks' && !guessesNext();

/** A model that the visitor loaded stays, and gets whole sentences if it fills no blanks. */
const showsBlanks = (): boolean => fillsBlanks() || makesRoom();

function open(sentence: string): void {
  if (makesRoom()) void chooseModel('masks');
  setText(inModel(sentence), undefined);
}

/** As the model reads it: each model that fills blanks has its own blank. */
function inModel(sentence: string): string {
  if (guessesNext()) return beginningOf(sentence);
  if (makesRoom()) return sentence;
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

/** More heads than this are shown one layer at a time. */
const mostDots = 24;

/** Choosing follows the focus, as in a group of radio buttons. */
function Dots({ layers, perLayer, inFocus }: { layers: number; perLayer: number; inFocus: number }) {
  const group = useRef<HTMLDivElement>(null);
  const choose = (i: number) => update({ layer: Math.floor(i / perLayer), head: i % perLayer });
  const count = layers * perLayer;
  const byLayer = count > mostDots;
  const layer = Math.min(Math.floor(inFocus / perLayer), layers - 1);
  const shown = byLayer ? [layer] : Array.from({ length: layers }, (_, i) => i);
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
        class={count > 12 ? 'head-dots many' : 'head-dots'}
        role="group"
        aria-label="Head dots"
        onKeyDown={(event) => rove(event, group.current!)}
      >
        {shown.map((each) => (
          <div key={each} class="head-dots-layer" style={{ '--heads': perLayer }}>
            {!byLayer && perLayer > 2 && (
              <span class="head-dots-name" aria-hidden="true">
                Layer {each + 1}
              </span>
            )}
            {Array.from({ length: perLayer }, (_, head) => each * perLayer + head).map((i) => (
              <button
                key={i}
                type="button"
                class={off.includes(i) ? 'off' : ''}
                aria-label={`Head ${i + 1} of ${count}`}
                aria-pressed={i === inFocus}
                title={capitalized(headNameAt(i, perLayer))}
                tabIndex={i === inFocus ? 0 : -1}
                onClick={() => choose(i)}
                onFocus={() => choose(i)}
              >
                <HeadMap weights={run.value?.attentions[each]} head={i % perLayer} />
              </button>
            ))}
          </div>
        ))}
      </div>
      <p class="note head-dots-about">A head is one way to look at the words: click one.</p>
    </div>
  );
}

/** Times the weight that each token would have if all were alike. */
const unevenFrom = 2;

/** Where the query looks, if that is not where the head looks on average. */
function exception({ kind }: HeadSummary, now: FirstLook): string {
  const { columns, token, elsewhere } = now;
  const place = { previous: token - 1, next: token + 1, self: token };
  if (kind === 'separator' || kind === 'mixed') return '';
  const top = columns.reduce((a, b) => (b.weight > a.weight ? b : a));
  if (elsewhere > Math.max(top.weight, 0.4)) return '; here it rests';
  if (kind === 'diffuse' || top.token === place[kind] || top.weight < 0.25) return '';
  return top.token === token ? '; here at itself' : `; here at ${top.word === now.of.run.model.maskToken ? 'the blank' : `“${top.word}”`}`;
}

function textOf(summary: HeadSummary | undefined): string {
  if (!summary) return '…';
  const now = firstLook.value;
  const strays = summary.kind === 'separator' && now !== undefined && now.elsewhere < 0.5;
  const isUneven =
    summary.kind === 'diffuse' && now !== undefined && now.columns.some(({ weight }) => weight > unevenFrom / now.of.run.tokens.length);
  if (now?.columns.length === 0) return '';
  if (!now) return headText(summary);
  if (summary.kind !== 'mixed' && !strays && !isUneven) return headText(summary) + exception(summary, now);
  const named = now.columns
    .filter(({ word, weight }) => weight >= (isUneven ? unevenFrom / now.of.run.tokens.length : 0.15) && /[\p{L}\p{N}]/u.test(word))
    .sort((a, b) => b.weight - a.weight)
    .slice(0, 2)
    .map(({ word }) => (word === now.of.run.model.maskToken ? 'the blank' : `“${word}”`));
  const here = named.join(' and ');
  if (here === '') return headText(summary);
  if (isUneven) return `looks at many words; here most at ${here}`;
  return strays ? `often rests; here it looks at ${here}` : `here looks at ${here}`;
}

/** Numbers of other heads that are on and give these words a good part of their weight. */
function alsoLooking({ of: { run: made }, columns, token }: FirstLook): readonly number[] {
  const wanted = columns.filter(({ weight }) => weight >= 0.2).map((each) => each.token);
  const { off } = view.value;
  return made.attentions.flatMap(({ data, dims: [, perLayer = 0, length = 0] }, layer) =>
    Array.from({ length: perLayer }, (_, head) => head)
      .filter((head) => !off.includes(layer * perLayer + head))
      .filter((head) => wanted.reduce((sum, key) => sum + data[(head * length + token) * length + key]!, 0) > 0.35)
      .map((head) => layer * perLayer + head + 1),
  );
}

function whileOff(count: number): string {
  const now = firstLook.value;
  const others = now ? alsoLooking(now) : [];
  if (others.length === 0) return `is off; the other ${count - 1} go on`;
  if (others.length > 3) return `is off; ${others.length} other heads look at these words too`;
  const last = others.at(-1)!;
  return others.length === 1
    ? `is off; head ${last} looks at these words too`
    : `is off; heads ${others.slice(0, -1).join(', ')} and ${last} look at these words too`;
}

interface CaptionProps {
  readonly count: number;
  readonly perLayer: number;
  readonly inFocus: number;
  readonly isOff: boolean;
}

function Caption({ count, perLayer, inFocus, isOff }: CaptionProps) {
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
      <span class="muted">
        {isOff ? whileOff(count) : textOf(summary)} ({headNameAt(inFocus, perLayer)})
      </span>
    </p>
  );
}
