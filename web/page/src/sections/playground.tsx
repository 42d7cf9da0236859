import { unread } from '../state/hash.ts';
import '../styles/playground.css';
import { Term } from '../ui/term.tsx';
import { Answer, Trust } from './answer.tsx';
import { DropZone, Model } from './model.tsx';
import { Changed } from './changed.tsx';
import { Finding } from './finding.tsx';
import { Focus, Reading } from './focus.tsx';
import { Heads } from './heads.tsx';
import { Texts } from './texts.tsx';

/** The first screen: sentence, map, heads, answer and model. */
export function Playground({ onHelp }: { onHelp: () => void }) {
  return (
    <section id="sentence" class="playground" aria-labelledby="sentence-title">
      <div class="playground-head">
        <h1 id="sentence-title">Which words look at which?</h1>
        <p>
          A Transformer, the kind of model behind chat and search, lets every word of a text take information from the others:{' '}
          <Term word="attention weight">attention</Term>. In a bright cell, the word of the <span class="as-query">row</span> attends to the word of
          its <span class="as-key">column</span>. <strong>Try:</strong> switch a head off.
        </p>
      </div>
      <Texts />
      <Focus onHelp={onHelp} />
      <div class="playground-side">
        <Reading />
        <Finding />
        <Answer />
        <Trust />
        <Heads />
        <Changed />
        <Model />
      </div>
      <Unread />
      <DropZone />
    </section>
  );
}

function Unread() {
  if (unread.value === undefined) return null;
  return (
    <div role="alert" class="problem">
      <p>
        <strong>This link is too long to read.</strong> {unread.value}
      </p>
      <p>Ask its sender for a link with a shorter text or fewer edits.</p>
      <div class="buttons">
        <button type="button" class="quiet" onClick={() => (unread.value = undefined)}>
          Close
        </button>
      </div>
    </div>
  );
}
