/** What the lower sections compute: after the map, when the browser has nothing else to do, and of several wishes only the newest. */
import { computed, effect, signal, untracked, type Signal } from '@preact/signals';
import { model } from './model.ts';
import { run } from './run.ts';
import { explain, newestOnly, oneAtATime } from './status.ts';

/** Resolves when the browser has time. WebKit does not say when. */
export const idle = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof requestIdleCallback === 'function') requestIdleCallback(() => resolve(), { timeout: 500 });
    else setTimeout(resolve, 50);
  });

/** What is computed here waits for each other: none of it is urgent, and a time measured beside another job is no time. */
export const inBackground = oneAtATime();

/** The model whose map is on the screen, until another one takes its place. */
export const shownModel = computed(() => (run.value?.model === model.value ? model.value : undefined));

const none = [] as const;
/** What the weights of that model are edited to. */
export const editedWeights = computed(() => run.value?.view.weights ?? none);
/** The heads of that model which are switched off. */
export const headsOff = computed(() => {
  const { off = none, of } = run.value ? { off: run.value.view.off, of: run.value.model } : {};
  return of && off.some((head) => head >= of.layers * of.heads) ? off.filter((head) => head < of.layers * of.heads) : off;
});

export interface Derived<T> {
  readonly value: Signal<T | undefined>;
  /** Why there is no newer value. */
  readonly failure: Signal<string | undefined>;
  /** Begins to follow; the result ends it. */
  readonly follow: () => () => void;
}

/** `plan` reads signals and gives the job, or nothing when there is nothing to do. A job may ask whether it is still wanted. */
export function derived<T>(plan: () => ((isWanted: () => boolean) => Promise<T | undefined>) | undefined): Derived<T> {
  const value = signal<T>();
  const failure = signal<string>();
  const inTurn = newestOnly();
  let newest: unknown;
  const follow = () =>
    effect(() => {
      const job = plan();
      newest = job;
      if (!job) return;
      const turn = async () => {
        const isWanted = () => newest === job;
        await idle();
        if (!isWanted()) return;
        try {
          const made = await job(isWanted);
          if (!isWanted()) return;
          if (made !== undefined) value.value = made;
          failure.value = undefined;
        } catch (error) {
          // What failed because a newer wish had put the model away is of no interest.
          if (isWanted()) failure.value = explain(error);
        }
      };
      untracked(() => void inTurn(() => inBackground(turn)));
    });
  return { value, failure, follow };
}
