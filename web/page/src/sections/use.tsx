import { useEffect, useRef } from 'preact/hooks';
import { answerTab, chooseTab, tabsShown, type AnswerTab } from '../state/answers.ts';
import { shownModel } from '../state/background.ts';
import { lines } from '../state/compare_texts.ts';
import type { LoadedModel } from '../model/loaded.ts';
import '../styles/use.css';
import { PartTitle } from '../ui/part_title.tsx';
import { rove } from '../ui/rove.ts';
import { Term } from '../ui/term.tsx';
import { AlignmentPart } from './use/alignment.tsx';
import { Classification } from './use/classification.tsx';
import { Similarity } from './use/similarity.tsx';
import { Elsewhere, TaskOf } from './use/tasks.tsx';

function nameOf(tab: AnswerTab, of: LoadedModel): string {
  switch (tab) {
    case 'blank':
      return 'Fill a blank';
    case 'classes':
      return of.labels && of.id !== 'sentiment' ? 'Classes, and why' : 'Sentiment, and why';
    case 'names':
      return 'Names';
    case 'similar':
      return 'Similar texts';
    case 'task':
      return of.task === 'question-answering' ? 'Questions' : 'Ranking';
  }
}

export function Use() {
  useEffect(() => lines.follow(), []);
  const of = shownModel.value;
  return (
    <section id="use" aria-labelledby="use-title">
      <PartTitle of="answer" name="use-title" />
      <div class="lede">
        <p>
          What is attention used for? After the last <Term word="layer">layer</Term>, the row of each token contains information from the others. An
          output layer computes the answer from these rows: the word for a blank, a class, names, or the <Term word="vector">vector</Term> of the
          whole text.
        </p>
        <p class="try">
          <strong>Try:</strong> switch off a few heads above, and watch the answers change.
        </p>
      </div>
      {of && <Answers of={of} />}
      <p class="note">
        A model for question answering, or a cross-encoder that ranks texts, gets a tab of its own. Load one by its name above, or drop its folder.
      </p>
    </section>
  );
}

/** As in a group of radio buttons, the choice follows the focus. */
function Answers({ of }: { of: LoadedModel }) {
  const group = useRef<HTMLDivElement>(null);
  const tab = answerTab.value;
  return (
    <>
      <div ref={group} class="answer-tabs" role="tablist" aria-label="Answers" onKeyDown={(event) => rove(event, group.current!)}>
        {tabsShown.value.map((each) => (
          <button
            key={each}
            type="button"
            role="tab"
            id={`answer-${each}`}
            aria-selected={each === tab}
            aria-controls={each === tab ? 'answer-panel' : undefined}
            tabIndex={each === tab ? 0 : -1}
            onClick={() => chooseTab(each)}
            onFocus={() => each !== tab && chooseTab(each)}
          >
            {nameOf(each, of)}
          </button>
        ))}
      </div>
      <div id="answer-panel" class="answer-panel" role="tabpanel" aria-labelledby={`answer-${tab}`}>
        <Panel tab={tab} of={of} />
      </div>
    </>
  );
}

function Panel({ tab, of }: { tab: AnswerTab; of: LoadedModel }) {
  switch (tab) {
    case 'blank':
      return of.task === 'fill-mask' ? <TaskOf of={of} /> : <Elsewhere id="masks" />;
    case 'names':
      return of.task === 'token-classification' ? <TaskOf of={of} /> : <Elsewhere id="entities" />;
    case 'classes':
      return of.labels ? <Classification of={of} labels={of.labels} /> : <Elsewhere id="sentiment" />;
    case 'similar':
      return (
        <>
          <Similarity />
          <AlignmentPart of={of} />
        </>
      );
    case 'task':
      return (
        <>
          <TaskOf of={of} />
          {of.labels && <Classification of={of} labels={of.labels} />}
        </>
      );
  }
}
