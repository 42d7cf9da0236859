import type { Task } from 'attn';
import { fixed } from '../../formats/numbers.ts';
import { sentenceName } from '../../model/known.ts';
import { answerFunction, answerName, type LoadedModel } from '../../model/loaded.ts';
import { rightOf100 } from '../../state/bundled.ts';
import { lines, type Lines } from '../../state/compare_texts.ts';
import { BarNumber } from '../../ui/bar_number.tsx';
import { NumberTable } from '../../ui/number_table.tsx';
import { Term } from '../../ui/term.tsx';
import { WhyPart } from '../why.tsx';
import { Part } from '../../ui/part.tsx';

const madeFor: Readonly<Partial<Record<Task, string>>> = {
  embedding: 'to compare texts',
  'token-classification': 'to sort tokens into classes',
  'fill-mask': 'to guess hidden words',
  'question-answering': 'to find answers in a text',
  'multiple-choice': 'to choose between endings',
  'text-generation': 'to continue a text',
};

export function Classification({ of }: { of: LoadedModel }) {
  const made = lines.value.value;
  const current = made?.model === of ? made : undefined;
  const { labels } = of;
  return (
    <Part class="use-part" title="What does the classifier answer?">
      {!labels && (
        <p>
          {sentenceName(of)} has no classifier: it was trained {madeFor[of.task] ?? 'for something else'}, not to classify texts. The sentiment
          classifier has one. Load it above to see its answers for these lines.
        </p>
      )}
      {labels && (
        <p>
          {answerFunction(of) === 'identity' ? (
            <>
              The same lines with the model’s <Term word="logits" />. It was trained to estimate numbers, and these are its estimates.
            </>
          ) : (
            <>
              The same lines with the probability of each answer. It is computed from the <Term word="logits" /> by{' '}
              {answerFunction(of) === 'softmax' ? <Term word="softmax" /> : 'the sigmoid, 1 / (1 + e⁻ˣ)'}. It shows how sure the model is, not whether
              it is right.
              {of.id === 'sentiment' && <Measured />}
            </>
          )}
        </p>
      )}
      {labels && current?.all.probabilities && <Probabilities of={current} labels={labels} />}
      {labels && current && <WhyPart texts={current.texts} />}
    </Part>
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
