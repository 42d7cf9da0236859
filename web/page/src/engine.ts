/** The module in its worker. Nothing on the page computes attention on the main thread. */
import { load } from 'attn/worker';

export type Engine = Awaited<ReturnType<typeof load>>;

/** One thread: a layer of this size is done before a second thread would have woken up. */
export function startEngine(): Promise<Engine> {
  return load();
}

/** Any failure in words, with its code where it has one. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' ? `${error.message} (${code})` : error.message;
}

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
