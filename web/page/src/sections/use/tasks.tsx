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

/** Small models on the page's server. */
const small = [
  ['entities', 'marks people, places, organisations and dates in a text'],
  ['masks', 'guesses which word a mask hides'],
] as const;

export function MoreTasks({ of }: { of: LoadedModel }) {
  return (
    <Part class="use-part" title="What else can such a model do?">
      <p>
        The layers stay the same; the head on top decides their use. This page comes with two more small models, which replace the model above when
        you load them.
      </p>
      <ul class="use-more">
        {small.map(([id, about]) => (
          <li key={id}>
            <button type="button" disabled={of.id === id || !!loading.value} onClick={() => void chooseModel(id)}>
              Load the {nameOf(id)}, {megabytes(expectedBytes(id, 'int8')!)}
            </button>
            <span>{of.id === id ? 'This is the model above.' : `It ${about}.`}</span>
          </li>
        ))}
      </ul>
      <p class="note">
        A model for question answering or a cross-encoder that ranks texts also gets its own part here. Load one by its name above, or drop its
        folder.
      </p>
    </Part>
  );
}
