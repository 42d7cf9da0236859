import { AttnError } from './error.js';

export function aborted(signal: AbortSignal): AttnError {
  return new AttnError('ABORTED', 'load: aborted by its signal', { op: 'load' }, { cause: signal.reason });
}

/** Rejects as soon as the signal is aborted, whatever the work is doing then. */
export function abortable<T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> {
  if (!signal) return work();
  return new Promise((resolve, reject) => {
    if (signal.aborted) throw aborted(signal);
    const onAbort = () => reject(aborted(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    work()
      .finally(() => signal.removeEventListener('abort', onAbort))
      .then(resolve, reject);
  });
}
