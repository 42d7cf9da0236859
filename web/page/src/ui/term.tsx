import type { ComponentChildren } from 'preact';
import { useId, useState } from 'preact/hooks';
import '../styles/term.css';
import { glossary, type Word } from './glossary.ts';

/** A term with its definition (glossary.ts), shown on hover, focus and tap and closed by Escape. <Term word="head">heads</Term> */
export function Term({ word, children }: { word: Word; children?: ComponentChildren }) {
  const id = useId();
  /** Horizontal shift that keeps the definition on the screen; undefined if it is hidden. */
  const [shift, setShift] = useState<number>();
  const show = (event: { currentTarget: Element }) => {
    const { left } = event.currentTarget.getBoundingClientRect();
    const width = Math.min(20 * 16, innerWidth - 32);
    setShift(Math.min(0, document.documentElement.clientWidth - 16 - width - left));
  };
  const hide = () => setShift(undefined);
  return (
    <span class="term" onMouseLeave={hide}>
      <button
        type="button"
        aria-describedby={id}
        onMouseEnter={show}
        onFocus={show}
        onClick={show}
        onBlur={hide}
        onKeyDown={(event) => event.key === 'Escape' && hide()}
      >
        {children ?? word}
      </button>
      <span role="tooltip" id={id} hidden={shift === undefined} style={{ left: `${shift ?? 0}px` }}>
        {glossary[word]}
      </span>
    </span>
  );
}
