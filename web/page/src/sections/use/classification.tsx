import { fixed } from '../../formats/numbers.ts';
import { headNameAt } from '../../formats/names.ts';
import { answerFunction, answerName, type LoadedModel } from '../../model/loaded.ts';
import { ablating, ablation, ablationFailure, isCurrent, switchEachOff, type Ablation } from '../../state/ablation.ts';
import { rightOf100 } from '../../state/bundled.ts';
import { lines, type Lines } from '../../state/compare_texts.ts';
import { update } from '../../state/view.ts';
import { Alert } from '../../ui/alert.tsx';
import { BarNumber } from '../../ui/bar_number.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { Term } from '../../ui/term.tsx';
import { WhyPart } from '../why.tsx';
import { Part } from '../../ui/part.tsx';
import { LinesField } from './lines_field.tsx';

export function Classification({ of, labels }: { of: LoadedModel; labels: readonly string[] }) {
  const made = lines.value.value;
  const current = made?.model === of ? made : undefined;
  return (
    <>
      <Part class="use-part" title="What does the classifier answer?">
        <p>
          {answerFunction(of) === 'identity' ? (
            <>
              Each line with the model’s <Term word="logits" />. It was trained to estimate numbers, and these are its estimates.
            </>
          ) : (
            <>
              Each line with the probability of each answer. It is computed from the <Term word="logits" /> by{' '}
              {answerFunction(of) === 'softmax' ? <Term word="softmax" /> : 'the sigmoid, 1 / (1 + e⁻ˣ)'}. It shows how sure the model is, not whether
              it is right.
              {of.id === 'sentiment' && <Measured />}
            </>
          )}
        </p>
        <LinesField />
        {current?.all.probabilities && <Probabilities of={current} labels={labels} />}
        {current && <WhyPart texts={current.texts} />}
      </Part>
      {labels.length > 1 && answerFunction(of) !== 'identity' && <Flipping of={of} />}
    </>
  );
}

/** Which head decides the answer for the sentence of the first figure? */
function Flipping({ of }: { of: LoadedModel }) {
  const made = ablation.value;
  const current = made?.model === of && isCurrent(made) ? made : undefined;
  return (
    <Part class="use-part" title="The head that flips it">
      <p>This reads the sentence at the top of the page again and again, each time with one head switched off. Does the answer change?</p>
      <p class="buttons">
        <button type="button" disabled={ablating.value !== undefined} onClick={() => void switchEachOff()}>
          Find the head that flips it
        </button>
      </p>
      <div aria-live="polite">{current?.answer && <Flips of={current} answer={current.answer} />}</div>
      <Alert what="The heads could not be tested." why={ablationFailure.value} />
    </Part>
  );
}

function Flips({ of: { model, text, effects, flips }, answer }: { of: Ablation; answer: NonNullable<Ablation['answer']> }) {
  const most = effects.data.reduce((best, value, i) => (Math.abs(value) > Math.abs(effects.data[best]!) ? i : best), 0);
  const [first = most] = flips;
  const name = (head: number) => headNameAt(head, model.heads);
  const without = answer.probability + effects.data[first]!;
  return (
    <>
      <p>
        “{text}” is <strong>{answer.label}</strong>, {fixed(answer.probability, 2)}.{' '}
        {flips.length === 0
          ? `No single head flips that. Most depends on ${name(first)}: without it, the probability is ${fixed(without, 2)}.`
          : `Without ${name(first)} it is not: the probability falls to ${fixed(without, 2)}.${flips.length > 1 ? ` ${flips.slice(1).map(name).join('; ')} would flip it as well.` : ''}`}
      </p>
      <p class="buttons">
        <button type="button" onClick={() => update({ layer: Math.floor(first / model.heads), head: first % model.heads })}>
          Look at {name(first)}
        </button>
      </p>
    </>
  );
}

const Measured = () => (
  <>
    {' '}
    Of 100 new sentences, the sentiment classifier gets {rightOf100.films} right if they are about films, {rightOf100.negations} if they depend on a
    negation or a contrast, and {rightOf100.products} if they are about products. Irony and comparisons often mislead it.
  </>
);

function Probabilities({ of, labels }: { of: Lines; labels: readonly string[] }) {
  const before = of.all.probabilities!.data;
  const after = of.without?.probabilities?.data;
  const isValue = answerName(of.model) === 'value';
  return (
    <div class="use-lines">
      <NumberTable
        name={isValue ? 'Values' : 'Probabilities'}
        rows={{ kind: 'text', count: of.texts.length, label: (i) => of.texts[i]! }}
        columns={{ kind: 'answer', count: labels.length, label: (i) => labels[i]! }}
        cell={(i, j) => {
          const at = i * labels.length + j;
          return (
            <>
              {isValue ? fixed((after ?? before)[at]!, 4) : <BarNumber value={(after ?? before)[at]!} />}
              {after && <span class="working">was {fixed(before[at]!, 4)}</span>}
            </>
          );
        }}
      />
    </div>
  );
}
