/** A text field, and over the same letters the words in the colours of the figure. */
import { useLayoutEffect, useRef } from 'preact/hooks';
import { spread } from '../draw/arcs.ts';
import { blank, fromField, toField } from '../state/first_look.ts';
import '../styles/sentence.css';
import { isPrinting } from './size.ts';

export interface Piece {
  /** Range in the text of the model. */
  readonly start: number;
  readonly end: number;
  readonly look: 'plain' | 'attended' | 'query';
  readonly isBlank: boolean;
  /** Written over a blank. */
  readonly guess?: string | undefined;
}

/** Where the words are, in pixels from the corner of the sentence. */
export interface SentenceLayout {
  readonly width: number;
  readonly height: number;
  readonly tops: readonly { readonly x: number; readonly y: number }[];
  readonly columns: readonly number[];
  readonly columnWidth: number;
}

export interface SentenceProps {
  readonly text: string;
  readonly mask: string;
  readonly pieces: readonly Piece[];
  /** Room for the words; if `wraps`, in several lines and without columns. */
  readonly room: number;
  readonly wraps: boolean;
  readonly onText: (text: string) => void;
  readonly onWriting: () => void;
  readonly onLayout: (layout: SentenceLayout) => void;
}

/** Pixels between words and columns. */
const [leastSpace, mostSpace] = [4, 72];
const [leastColumn, scrolledColumn, mostColumn] = [38, 48, 84];

/** Widens the spaces until the words fill the room, in smaller letters if there are many. */
function measure(mirror: HTMLElement, room: number, wraps: boolean): SentenceLayout {
  const words = Array.from(mirror.querySelectorAll<HTMLElement>('[data-piece]'));
  const line = mirror.firstElementChild as HTMLElement;
  const box = mirror.parentElement!;
  box.classList.remove('small');
  box.style.setProperty('--space', '0px');
  box.style.setProperty('--indent', '0px');
  const count = words.length;
  // Narrower than its share, so that columns stay under their words.
  let columnWidth = Math.max(leastColumn, Math.min(mostColumn, (0.82 * room) / Math.max(1, count)));
  const wide = Math.max(room, count * columnWidth);
  let [indent, end] = [0, 0];
  if (!wraps && count > 0) {
    const spaces = (mirror.textContent.match(/\s/g) ?? []).length;
    const around = (word: HTMLElement) => Math.max(0, (columnWidth - word.getBoundingClientRect().width) / 2);
    const isTooWide = () => {
      [indent, end] = [around(words[0]!), around(words.at(-1)!)];
      return line.getBoundingClientRect().width + leastSpace * spaces + indent + end > wide;
    };
    if (isTooWide()) {
      box.classList.add('small');
      isTooWide();
    }
    const natural = line.getBoundingClientRect().width;
    const space = Math.max(0, Math.min(mostSpace, (wide - natural - indent - end) / Math.max(1, spaces)));
    box.style.setProperty('--space', `${space}px`);
    box.style.setProperty('--indent', `${indent}px`);
  }
  const origin = mirror.getBoundingClientRect();
  const placesOf = () =>
    words.map((word) => {
      const { left, width, top } = word.getClientRects()[0] ?? word.getBoundingClientRect();
      return { x: left + width / 2 - origin.left, y: top - origin.top };
    });
  let tops = placesOf();
  /** How near two words are that a space is between. */
  const nearest = () =>
    words.reduce((least, word, i) => {
      const isApart = i > 0 && /\s/.test(word.previousSibling?.textContent ?? ' ') && tops[i]!.y === tops[i - 1]!.y;
      return isApart ? Math.min(least, Math.abs(tops[i]!.x - tops[i - 1]!.x)) : least;
    }, columnWidth);
  // A text that scrolls anyway gets the room for its columns.
  if (!wraps && line.getBoundingClientRect().width > room && nearest() < scrolledColumn) {
    box.style.setProperty('--space', `${parseFloat(box.style.getPropertyValue('--space')) + scrolledColumn - nearest()}px`);
    tops = placesOf();
  }
  columnWidth = Math.max(leastColumn, nearest());
  const width = wraps ? origin.width : Math.max(wide, line.getBoundingClientRect().width + indent + end);
  // From left to right, whatever the direction of the text.
  const order = tops.map((_, i) => i).sort((a, b) => tops[a]!.x - tops[b]!.x);
  const places = spread(
    order.map((i) => tops[i]!.x),
    columnWidth,
    columnWidth / 2,
    width - columnWidth / 2,
  );
  const columns = tops.map((_, i) => places[order.indexOf(i)]!);
  return { width, height: origin.height, tops, columns, columnWidth };
}

/** Enter and Escape end the writing; the next Tab goes on from the field. */
const keyDown = (event: KeyboardEvent & { currentTarget: HTMLTextAreaElement }) => {
  if (event.isComposing || (event.key !== 'Enter' && event.key !== 'Escape')) return;
  event.preventDefault();
  event.currentTarget.blur();
};

export function Sentence({ text, mask, pieces, room, wraps, onText, onWriting, onLayout }: SentenceProps) {
  const mirror = useRef<HTMLDivElement>(null);
  const said = useRef('');
  const edges = pieces.map(({ start, end }) => `${start}.${end}`).join();
  useLayoutEffect(() => {
    if (room === 0) return;
    const report = () => {
      if (said.current && isPrinting()) return;
      const layout = measure(mirror.current!, room, wraps);
      const now = JSON.stringify(layout);
      if (now !== said.current) onLayout(layout);
      said.current = now;
    };
    report();
    // Fonts may arrive later.
    void document.fonts.ready.then(() => mirror.current && report());
  }, [text, edges, room, wraps]);
  const input = (event: InputEvent & { currentTarget: HTMLTextAreaElement }) => {
    const field = event.currentTarget;
    // A script's event has no type.
    const isDeletion = (event.inputType as string | undefined)?.startsWith('delete') ?? false;
    const written = (part: string) => fromField(part.replaceAll(/\s*\n\s*/g, ' '), isDeletion, mask);
    const before = field.value.slice(0, field.selectionStart);
    let now = written(field.value);
    // Behind a blank that ends the text, the model would guess the full stop. A visitor may write another end in front of it.
    if (!isDeletion && now.endsWith(mask) && !text.endsWith(mask)) now += '.';
    else if (!isDeletion && ['.', '!', '?'].some((end) => now.endsWith(`${mask}${end}.`))) now = now.slice(0, -1);
    onText(now);
    if (field.value === toField(now)) return;
    field.value = toField(now);
    const caret = toField(written(before)).length;
    field.setSelectionRange(caret, caret);
  };
  return (
    <div class={wraps ? 'sentence wraps' : 'sentence'}>
      <div class="sentence-mirror" dir="auto" aria-hidden="true" ref={mirror}>
        <span>{spelled(text, pieces)}</span>
      </div>
      <textarea
        aria-label="Sentence"
        dir="auto"
        rows={1}
        spellcheck={false}
        autocomplete="off"
        placeholder="Write a sentence"
        value={toField(text)}
        onInput={input}
        onFocus={onWriting}
        onKeyDown={keyDown}
      />
    </div>
  );
}

function spelled(text: string, pieces: readonly Piece[]) {
  const parts = [];
  let at = 0;
  for (const [i, { start, end, look, isBlank, guess }] of pieces.entries()) {
    if (start < at || end > text.length) continue;
    parts.push(toField(text.slice(at, start)));
    parts.push(
      <span key={i} data-piece={i} class={[`word-${look}`, isBlank && 'blank'].filter(Boolean).join(' ')}>
        {isBlank ? <span class="blank-line">{blank}</span> : text.slice(start, end)}
        {isBlank && guess !== undefined && (
          <span class="blank-guess" style={guess.length > blank.length ? { fontSize: `${blank.length / guess.length}em` } : undefined}>
            {guess}
          </span>
        )}
      </span>,
    );
    at = end;
  }
  parts.push(toField(text.slice(at)));
  return parts;
}
