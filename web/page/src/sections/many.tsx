import { shownModel } from '../state/background.ts';
import { chooseModel } from '../state/load_model.ts';
import { loading, model } from '../state/model.ts';
import '../styles/many.css';
import '../styles/use.css';
import { Part } from '../ui/part.tsx';
import { Paper } from '../ui/papers.tsx';
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
          A <Term word="head" /> gives each word one set of weights. To follow several kinds of links, each layer has several heads, with queries,
          keys and values of their own. What they gather is put side by side, and one matrix, Wo, mixes it into one row for each word.
        </p>
      </div>
      <Concatenation />
      <div class="many-parts">
        {of && <Heads of={of} />}
        {of && <InTurn of={of} />}
        <Chemistry />
      </div>
    </section>
  );
}

/** A head that learned something on its own. */
const Chemistry = () => (
  <Part class="use-part" title="A head that does chemistry">
    <p>
      RXNMapper learned to fill blanks in the formulas of chemical reactions (<Paper of="Schwaller et al. 2021" />
      ). In layer 11, head 6, each atom of the product looks at the atom of the reactants that it comes from.
    </p>
    <p class="buttons">
      <button type="button" disabled={!!loading.value || model.value?.id === 'reactions'} onClick={() => void chooseModel('reactions')}>
        Show it with a reaction
      </button>
    </p>
  </Part>
);
