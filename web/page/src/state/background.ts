/** Computed when the browser is idle; a newer request replaces waiting ones. */
import { computed, effect, signal, untracked, type Signal } from '@preact/signals';
import { model } from './model.ts';
import { run } from './run.ts';
import { explain, newestOnly, oneAtATime } from './status.ts';

/** WebKit has no requestIdleCallback. */
export const idle = (): Promise<void> =>
  new Promise((resolve) => {
    if (typeof requestIdleCallback === 'function') requestIdleCallback(() => resolve(), { timeout: 500 });
    else setTimeout(resolve, 50);
  });

/** One background job at a time: a second one would distort measured times. */
export const inBackground = oneAtATime();

export const shownModel = computed(() => (run.value?.model === model.value ? model.value : undefined));

const none = [] as const;
export const editedWeights = computed(() => run.value?.view.weights ?? none);
export const headsOff = computed(() => {
  const { off = none, of } = run.value ? { off: run.value.view.off, of: run.value.model } : {};
  return of && off.some((head) => head >= of.layers * of.heads) ? off.filter((head) => head < of.layers * of.heads) : off;
});

export interface BackgroundValue<T> {
  readonly value: Signal<T | undefined>;
  readonly failure: Signal<string | undefined>;
  readonly follow: () => () => void;
}

/** `plan` reads signals and returns the job, if any. `isWanted` is false once the job is obsolete. */
export function backgroundValue<T>(plan: () => ((isWanted: () => boolean) => Promise<T | undefined>) | undefined): BackgroundValue<T> {
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
          // An obsolete job may fail because its model was disposed.
          if (isWanted()) failure.value = explain(error);
        }
      };
      untracked(() => void inTurn(() => inBackground(turn)));
    });
  return { value, failure, follow };
}
