import { fixed, shortNumber } from '../../formats/numbers.ts';
import { answerFunction, answerName, isDecoder } from '../../model/loaded.ts';
import { answers, baseline } from '../../state/run.ts';
import { reach, type Walk } from '../../state/walk.ts';
import { NumberTable } from '../../ui/number_table.tsx';
import { Term } from '../../ui/term.tsx';
import { guessText } from '../guess_text.ts';
import { type Sizes } from './parts.tsx';

const places: Readonly<Record<string, string>> = {
  X: 'X, the input',
  q: 'queries',
  k: 'keys',
  v: 'values',
  scores: 'scores',
  masked_scores: 'masked scores',
  probabilities: 'weights before dropout',
  weights: 'attention weights',
  context: 'results of the heads',
  merged: 'concatenated heads',
  output: 'output of attention',
  attn_residual: 'first sum',
  norm1: 'first norm',
  ff_hidden: 'hidden layer',
  ff_output: 'output of the feed-forward network',
  ff_residual: 'second sum',
  norm2: 'second norm',
};

/** Logarithmic from 1e-7, the rounding error, to 10. */
const shareOf = (difference: number) => (difference === 0 ? 0 : Math.min(1, Math.max(0, (Math.log10(difference) + 7) / 8)));

function Answer({ walk }: { walk: Walk }) {
  const after = answers(walk.run);
  const unchanged = baseline.value && baseline.value.tokens.length === walk.run.tokens.length ? answers(baseline.value) : [];
  return (
    <NumberTable
      name="The classifier’s answer"
      rows={{ kind: 'answer', count: after.length, label: (i) => after[i]!.label }}
      columns={{ kind: answerName(walk.run.model), count: 3, label: (j) => ['unchanged model', 'with your changes', 'difference'][j]! }}
      cell={(i, j) => {
        const { label, score } = after[i]!;
        const old = unchanged.find((each) => each.label === label)?.score ?? score;
        return fixed([old, score, score - old][j]!, 4);
      }}
    />
  );
}

const functionWords = {
  softmax: '. Softmax turns these into probabilities.',
  sigmoid: '. The sigmoid, 1 / (1 + e⁻ˣ), turns each into a probability.',
  identity: ', which are the answer.',
};

export function AnswerStep({ walk }: { walk: Walk; sizes: Sizes }) {
  const found = reach.value;
  const { layer, run } = walk;
  const { labels } = run.model;
  return (
    <>
      <p>
        {layer + 1 < run.model.layers
          ? `The output goes through ${run.model.layers - layer - 1} more layer${run.model.layers - layer > 2 ? 's' : ''} of the same kind. `
          : 'This was the last layer. '}
        {labels ? (
          <>
            The classifier then turns the last rows into scores, the <Term word="logits" />
            {functionWords[answerFunction(run.model)]}
          </>
        ) : run.model.task === 'fill-mask' || isDecoder(run.model) ? (
          <>
            Its output layer then turns {isDecoder(run.model) ? 'the last row' : 'the row of each blank'} into one number for each token of the
            vocabulary, the <Term word="logits" />. Softmax turns these into probabilities. {guessText()}
          </>
        ) : (
          <>
            This model has no classifier. Its result is the last <Term word="hidden state" />. Most models use the mean of its rows, one{' '}
            <Term word="vector" /> for the whole text.
          </>
        )}
      </p>
      {labels && <Answer walk={walk} />}
      <h4>Effect of your changes</h4>
      {found ? (
        <NumberTable
          name="Largest difference from the unchanged model"
          rows={{
            kind: 'place',
            count: found.length,
            label: (i) =>
              `${found[i]!.layer === undefined ? 'at the end' : `layer ${found[i]!.layer + 1}`}, ${places[found[i]!.place] ?? found[i]!.place}`,
          }}
          columns={{ kind: 'difference', count: 1, label: () => 'max |Δ|' }}
          cell={(i) => {
            const { difference } = found[i]!;
            return difference === Infinity ? 'masked' : shortNumber(difference);
          }}
          tint={(i) => shareOf(found[i]!.difference)}
        />
      ) : (
        <p class="note">You have not changed anything yet. Change a number of X or of a weight, or move a slider, to see the effect here.</p>
      )}
    </>
  );
}
