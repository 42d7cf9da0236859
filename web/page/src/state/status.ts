/** The one line that says what is going on and what went wrong. */
import { signal } from '@preact/signals';
import { cut, longestMessage } from '../formats/cut.ts';

export interface Status {
  readonly text: string;
  readonly failed?: boolean;
}

export const status = signal<Status>({ text: 'Starting …' });

/** Any failure in words, with its code where it has one. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return cut(String(error), longestMessage);
  const code = (error as { code?: unknown }).code;
  const message = cut(error.message, longestMessage);
  return typeof code === 'string' ? `${message} (${code})` : message;
}

export const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

/** Runs one job at a time; when jobs arrive faster than they finish, of those waiting only the newest runs. */
export function newestOnly(): (job: () => Promise<void>) => Promise<void> {
  let running = false;
  let waiting: (() => Promise<void>) | undefined;
  return async (job) => {
    waiting = job;
    if (running) return;
    running = true;
    try {
      while (waiting) {
        const next = waiting;
        waiting = undefined;
        await next();
      }
    } finally {
      running = false;
    }
  };
}

/** Runs jobs one after the other, all of them, in the order in which they come. */
export function oneAtATime(): <T>(job: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (job) => {
    const next = last.then(job);
    last = next.catch(() => undefined);
    return next;
  };
}
