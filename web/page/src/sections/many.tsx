import { shownModel } from '../state/background.ts';
import '../styles/use.css';
import { PartTitle } from '../ui/part_title.tsx';
import { Term } from '../ui/term.tsx';
import { Concatenation } from './many/concatenation.tsx';
import { Heads, InTurn } from './many/heads.tsx';

export function Many() {
  const of = shownModel.value;
  return (
    <section id="many" aria-labelledby="many-title">
      <PartTitle of="many" name="many-title" />
      <div class="lede">
        <p>
          One <Term word="head" /> follows one kind of link, so each layer has several, with queries, keys and values of their own. What they gather
          is put side by side, and one matrix, W<sub>O</sub>, mixes it into one row for each word.
        </p>
      </div>
      <Concatenation />
      {of && <Heads of={of} />}
      {of && <InTurn of={of} />}
    </section>
  );
}
