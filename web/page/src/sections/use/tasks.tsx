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

/** Parts for heads that say more than one answer of a text: fetched with the first model that has one. */
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
  if (tasksFailure.value) return <Alert what="The part of the page for this model could not be fetched. Reload the page." why={tasksFailure.value} />;
  return tasks.value ? <tasks.value.TaskPart of={of} /> : null;
}

/** Small models beside the page whose heads are for something else. */
const small = [
  ['entities', 'marks people, places, organisations and dates in a text'],
  ['masks', 'guesses which word a mask hides'],
] as const;

export function MoreTasks({ of }: { of: LoadedModel }) {
  return (
    <Part class="use-part" title="What else can such a model do?">
      <p>
        The layers stay the same; what they are good for depends on the head on top. Two more small models are beside this page. They replace the
        model above, and come when you ask for them.
      </p>
      <ul class="use-more">
        {small.map(([id, about]) => (
          <li key={id}>
            <button type="button" disabled={of.id === id || !!loading.value} onClick={() => void chooseModel(id)}>
              Load the {nameOf(id)}, {megabytes(expectedBytes(id, 'int8')!)}
            </button>
            <span>{of.id === id ? 'It is the model above.' : `It ${about}.`}</span>
          </li>
        ))}
      </ul>
      <p class="note">
        A model for question answering, or a cross-encoder that ranks texts, shows its own part here, too: load one by its name above, or drop its
        folder.
      </p>
    </Part>
  );
}
