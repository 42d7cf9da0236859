/** The page's only status line. */
import { signal } from '@preact/signals';
import { truncate, longestMessage } from '../formats/truncate.ts';

export interface Status {
  readonly text: string;
  readonly failed?: boolean;
}

export const status = signal<Status>({ text: 'Starting …' });

export function explain(error: unknown): string {
  if (!(error instanceof Error)) return truncate(String(error), longestMessage);
  const code = (error as { code?: unknown }).code;
  const message = truncate(error.message, longestMessage);
  return typeof code === 'string' ? `${message} (${code})` : message;
}

export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

/** One job at a time; of those that wait, only the newest runs, even after a failed one. Rejects with the first error of a turn. */
export function newestOnly(): (job: () => Promise<void>) => Promise<void> {
  let running = false;
  let waiting: (() => Promise<void>) | undefined;
  return async (job) => {
    waiting = job;
    if (running) return;
    running = true;
    const errors: unknown[] = [];
    while (waiting) {
      const next = waiting;
      waiting = undefined;
      try {
        await next();
      } catch (error) {
        errors.push(error);
      }
    }
    running = false;
    if (errors.length > 0) throw errors[0];
  };
}

/** All jobs, in order, one at a time. */
export function oneAtATime(): <T>(job: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (job) => {
    const next = last.then(job);
    last = next.catch(() => undefined);
    return next;
  };
}
