import { run } from '../state/run.ts';
import '../styles/playground.css';
import { PartTitle } from '../ui/part_title.tsx';
import { Term } from '../ui/term.tsx';
import { Answer, Trust } from './answer.tsx';
import { DropZone, Model } from './model.tsx';
import { Changed } from './changed.tsx';
import { Finding } from './finding.tsx';
import { Focus, Reading } from './focus.tsx';
import { Heads } from './heads.tsx';
import { Texts } from './texts.tsx';

/** Says which tokens are not of the text. */
function added(): string {
  const of = run.value;
  const marks = of ? [...new Set(of.tokens.filter((_, i) => of.encoding.offsets[0]![i] === null))] : [];
  return marks.length === 0 || marks.length > 3 ? '' : `The model adds ${marks.join(' and ')} to every text.`;
}

export function Playground({ onHelp }: { onHelp: () => void }) {
  return (
    <section id="sentence" class="playground" aria-labelledby="sentence-title">
      <div class="playground-head">
        <PartTitle of="all" name="sentence-title" />
        <p>
          In the first figure, one word asks. In fact every word asks, at the same time: row by row, this map stacks their{' '}
          <Term word="attention weight">weights</Term>. In a bright cell, the word of the <span class="as-query">row</span> looks at the word of its{' '}
          <span class="as-key">column</span>. {added()} <strong>Try:</strong> switch a head off.
        </p>
      </div>
      <Focus onHelp={onHelp} />
      <Reading />
      <div class="playground-side">
        <Finding />
        <Answer />
        <Trust />
        <Heads />
        <Changed />
        <Model />
      </div>
      <Texts />
      <DropZone />
    </section>
  );
}
