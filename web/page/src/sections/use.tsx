import { useEffect } from 'preact/hooks';
import { shownModel } from '../state/background.ts';
import { lines } from '../state/compare_texts.ts';
import '../styles/use.css';
import { PartTitle } from '../ui/part_title.tsx';
import { Term } from '../ui/term.tsx';
import { Classification } from './use/classification.tsx';
import { Similarity } from './use/similarity.tsx';
import { MoreTasks, TaskOf } from './use/tasks.tsx';

export function Use() {
  useEffect(() => lines.follow(), []);
  const of = shownModel.value;
  return (
    <section id="use" aria-labelledby="use-title">
      <PartTitle of="answer" name="use-title" />
      <div class="lede">
        <p>
          What is attention used for? After the last <Term word="layer">layer</Term>, the row of each token contains information from the others. A
          classifier reads its answer from these rows. In most models their mean is the <Term word="vector">vector</Term> of the whole text: similar
          texts have vectors that point in similar directions.
        </p>
        <p class="try">
          <strong>Try:</strong> add a line of your own and see which lines are closest to it. Then switch off a few heads above, and watch the answers
          change.
        </p>
      </div>
      {of && <TaskOf of={of} />}
      <Similarity />
      {of && <Classification of={of} />}
      {of && <MoreTasks of={of} />}
    </section>
  );
}
