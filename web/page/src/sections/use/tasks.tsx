import { signal } from '@preact/signals';
import type { Task } from 'attn';
import { useEffect } from 'preact/hooks';
import { megabytes } from '../../formats/numbers.ts';
import { expectedBytes, nameOf } from '../../model/known.ts';
import type { LoadedModel } from '../../model/loaded.ts';
import { chooseModel } from '../../state/load_model.ts';
import { loading } from '../../state/model.ts';
import { explain } from '../../state/status.ts';
import { Part } from '../../ui/part.tsx';
import { Alert } from '../../ui/alert.tsx';

/** Loaded with the first model whose head has more than one answer per text. */
const tasks = signal<typeof import('../tasks.tsx') | undefined>(undefined);
const tasksFailure = signal<string | undefined>(undefined);
const ofTokens: readonly Task[] = ['token-classification', 'fill-mask', 'question-answering'];

export function TaskOf({ of }: { of: LoadedModel }) {
  const isWanted = ofTokens.includes(of.task) || of.labels?.length === 1;
  useEffect(() => {
    if (!isWanted || tasks.value) return;
    tasksFailure.value = undefined;
    import('../tasks.tsx').then(
      (found) => (tasks.value = found),
      (error: unknown) => (tasksFailure.value = explain(error)),
    );
  }, [of]);
  if (!isWanted) return null;
  if (tasksFailure.value) return <Alert what="The part of the page for this model could not be loaded. Reload the page." why={tasksFailure.value} />;
  return tasks.value ? <tasks.value.TaskPart of={of} /> : null;
}

const small = {
  masks: ['Which word is missing?', 'guesses which word a blank hides'],
  entities: ['What does the text name?', 'marks people, places, organisations and dates in a text'],
  sentiment: ['Praise or blame?', 'says whether a film review is positive, and which of its words decide'],
} as const;

/** The tab of a model that is not loaded. */
export function Elsewhere({ id }: { id: keyof typeof small }) {
  const [title, about] = small[id];
  return (
    <Part class="use-part" title={title}>
      <p>
        Layers of the same kind, trained for another answer and with another output layer: the {nameOf(id)} {about}.
      </p>
      <p class="buttons">
        <button type="button" disabled={!!loading.value} onClick={() => void chooseModel(id)}>
          Load the {nameOf(id)}, {megabytes(expectedBytes(id, 'int8')!)}
        </button>
        <span class="note">It replaces the model above.</span>
      </p>
    </Part>
  );
}
