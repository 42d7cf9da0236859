/** The first screen: one query looks at the other words, and becomes a guess. */
import type { ComponentType } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { firstLook, isFirstPictureDrawn, isPlaying, showStep, stepShown, type FirstLook as Numbers } from '../state/first_look.ts';
import { filledBlanks, fillsBlanks, guesses, guessesNext, queryAsked } from '../state/guess.ts';
import { model } from '../state/model.ts';
import { run } from '../state/run.ts';
import { textNotes } from '../state/text_notes.ts';
import { setText, view } from '../state/view.ts';
import '../styles/first_look.css';
import { Sentence, type Piece, type SentenceLayout } from '../ui/sentence.tsx';
import { useWidth } from '../ui/size.ts';
import { Card } from './first_look/card.tsx';
import { Columns, RowLabels } from './first_look/columns.tsx';
import { Arcs, figureHeight, rows } from './first_look/drawing.tsx';
import { Foot } from './first_look/foot.tsx';
import { Guesses, Sum } from './first_look/guesses.tsx';
import { Unread } from './unread.tsx';

export function FirstLook({ steps }: { steps: ComponentType | undefined }) {
  return (
    <section id="first" class="first" aria-label="First look">
      <Unread />
      <h1>{heading()}</h1>
      <About />
      <Figure />
      <Foot steps={steps} />
    </section>
  );
}

function heading(): string {
  if (guessesNext()) return 'To find the next word, a Transformer looks at those before.';
  return `To ${fillsBlanks() ? 'fill a blank' : 'understand a word'}, a Transformer looks at the other words.`;
}

/** For such a text a full stop is the likeliest guess. */
const endsInBlank = (text: string, mask: string): boolean => text.trimEnd().endsWith(mask);

/** Changes the text as it is now: the model may still read an earlier one. */
function changeText(changed: (text: string) => string): void {
  const { text, pair } = view.value;
  setText(changed(text), pair);
}

const addFullStop = (mask: string): void => changeText((text) => (endsInBlank(text, mask) ? `${text.trimEnd()}.` : text));

/** At the end, before the full stop. */
const addBlank = (mask: string): void => changeText((text) => (text.includes(mask) ? text : `${text.replace(/[\s.]+$/u, '')} ${mask}.`));

/** A warning about the text takes the place of the sub-heading, so that nothing moves. */
function About() {
  const of = run.value;
  const notes = of ? textNotes(of) : [];
  const mask = of?.model.maskToken;
  if (notes.length === 0 && of && mask !== undefined && endsInBlank(of.view.text, mask))
    return (
      <p class="first-about">
        The text ends with the blank, so the model expects a full stop there.{' '}
        <button type="button" class="quiet in-text" onClick={() => addFullStop(mask)}>
          Add a full stop
        </button>
      </p>
    );
  if (notes.length > 0 || !of || mask === undefined || of.tokens.includes(mask))
    return (
      <p class="first-about" role={notes.length > 0 ? 'note' : undefined}>
        {notes.length > 0 ? notes.join(' ') : 'This is the calculation, live in your browser. Change a word.'}
      </p>
    );
  return (
    <p class="first-about">
      No blank: each word can ask. Write ___ for a word, or{' '}
      <button type="button" class="quiet in-text" onClick={() => addBlank(mask)}>
        add a blank at the end
      </button>
      .
    </p>
  );
}

/** Weight from which a word is written in the colour of keys. */
const attended = 0.2;

/** As the model read them or, until it has read the text, as they are written. */
function piecesOf(now: Numbers | undefined, text: string): readonly Piece[] {
  const isCurrent = now?.of.run.view.text === text;
  const lookOf = (i: number): Piece['look'] => {
    if (!now || !now.columns[i]) return 'plain';
    return i === now.place ? 'query' : now.columns[i].weight >= attended && !now.isOff ? 'attended' : 'plain';
  };
  if (!isCurrent)
    return Array.from(text.matchAll(/\[MASK\]|<mask>|[\p{L}\p{M}\p{N}]+|[^\s\p{L}\p{M}\p{N}]/gu), ({ 0: word, index }, i) => ({
      start: index,
      end: index + word.length,
      look: lookOf(i),
      isBlank: word === '[MASK]' || word === '<mask>',
    }));
  const { maskToken } = now.of.run.model;
  const filled = filledBlanks.value;
  return now.columns.map(({ start, end, token }, i) => ({
    start,
    end,
    look: lookOf(i),
    isBlank: text.slice(start, end) === maskToken,
    guess: filled?.run === now.of.run ? filled.words.get(token) : undefined,
  }));
}

/** Pixels after which the columns of a long text are drawn again: only those on the screen are. */
const scrollStep = 200;

/** Fades the side where a long text goes on. */
function fade(words: HTMLElement): void {
  const { scrollLeft, scrollWidth, clientWidth } = words;
  const [left, right] = [scrollLeft > 1, scrollLeft + clientWidth < scrollWidth - 1];
  words.toggleAttribute('data-more', left || right);
  if (left || right) words.dataset['more'] = left && right ? 'both' : left ? 'left' : 'right';
}

function Figure() {
  const box = useRef<HTMLDivElement>(null);
  const words = useRef<HTMLDivElement>(null);
  const [layout, setLayout] = useState<SentenceLayout>();
  const [scrolled, setScrolled] = useState(0);
  const [width, room] = [useWidth(box), useWidth(words)];
  const isNarrow = width > 0 && width < 600;
  const isStacked = width < 960;
  const now = firstLook.value;
  const { text, pair } = view.value;
  const fits = !now || layout?.columns.length === now.columns.length;
  const made = guesses.value;
  const isComplete = now !== undefined && layout !== undefined && fits && made?.run === now.of.run;
  useLayoutEffect(() => {
    if (!isComplete) return;
    document.documentElement.dataset['ready'] = 'true';
    isFirstPictureDrawn.value = true;
  }, [isComplete]);
  useLayoutEffect(() => fade(words.current!), [layout, room]);
  // The query of a long text comes into view, except while the visitor writes.
  useLayoutEffect(() => {
    const [frame, x] = [words.current!, layout && fits && now ? layout.columns[now.place] : undefined];
    if (x === undefined || frame.scrollWidth <= frame.clientWidth || frame.contains(document.activeElement)) return;
    if (x < frame.scrollLeft || x > frame.scrollLeft + frame.clientWidth) frame.scrollLeft = x - frame.clientWidth / 2;
  }, [layout, now?.token]);
  const step = stepShown.value;
  const point = (event: PointerEvent) => {
    const isWriting = words.current!.contains(document.activeElement) && document.activeElement instanceof HTMLTextAreaElement;
    if (!layout || !now || isWriting || event.pointerType !== 'mouse' || event.buttons !== 0) return;
    const { left, top } = words.current!.getBoundingClientRect();
    // Below the words are their numbers, which stay while they are read.
    const isAtWords = event.clientY - top < rows.key - 20;
    const x = event.clientX - left + words.current!.scrollLeft;
    const near = layout.columns.findIndex((middle) => Math.abs(middle - x) < layout.columnWidth / 2 - 2);
    queryAsked.value = isNarrow || near < 0 || !isAtWords ? undefined : now.columns[near]?.token;
  };
  return (
    <div
      ref={box}
      class={['first-figure', isNarrow ? 'narrow' : isStacked ? 'stacked' : 'wide', step > 0 && 'in-steps'].filter(Boolean).join(' ')}
      data-step={step || undefined}
      data-playing={isPlaying.value || undefined}
      style={{ '--box': width || 1 }}
      onKeyDown={(event) => event.key === 'Escape' && showStep(0)}
    >
      {!isNarrow && <RowLabels now={now} />}
      <div
        ref={words}
        class={layout && !isNarrow && layout.width > room + 1 ? 'first-words scrolls' : 'first-words'}
        style={isNarrow ? {} : { height: `${figureHeight}px` }}
        onScroll={(event) => {
          fade(event.currentTarget);
          setScrolled(Math.floor(event.currentTarget.scrollLeft / scrollStep) * scrollStep);
        }}
        onPointerMove={point}
        onPointerLeave={() => (queryAsked.value = undefined)}
      >
        <div class="first-inner" style={layout && !isNarrow ? { width: `${layout.width}px`, '--fit': Math.min(1, room / layout.width) } : {}}>
          {layout && now && fits && (
            <Arcs now={now} layout={layout} wraps={isNarrow} isStacked={isStacked} seen={[scrolled - scrollStep, scrolled + room + 2 * scrollStep]} />
          )}
          <div class="first-sentence" style={isNarrow ? {} : { top: `${rows.words}px` }}>
            <Sentence
              text={text}
              mask={model.value?.maskToken ?? '[MASK]'}
              pieces={piecesOf(now, text)}
              room={room}
              wraps={isNarrow}
              onText={(written) => {
                showStep(0);
                setText(written, pair);
              }}
              onWriting={() => (queryAsked.value = undefined)}
              onLayout={setLayout}
            />
          </div>
          {layout && now && fits && !isNarrow && <Columns now={now} layout={layout} />}
        </div>
      </div>
      <div class="first-result">
        <Guesses now={now} />
        {!isNarrow && <Sum now={now} />}
      </div>
      {isNarrow && <Card now={now} />}
    </div>
  );
}
