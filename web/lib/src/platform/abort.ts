import { abortError, type AttnError } from '../args/error.js';

export function aborted(signal: AbortSignal, op = 'load'): AttnError {
  return abortError(`${op}: aborted by its signal`, { op }, { cause: signal.reason });
}

/** Rejects as soon as the signal is aborted, whatever the work is doing then. */
export function abortable<T>(signal: AbortSignal | undefined, work: () => Promise<T>, op = 'load'): Promise<T> {
  if (!signal) return work();
  return new Promise((resolve, reject) => {
    if (signal.aborted) throw aborted(signal, op);
    const onAbort = () => reject(aborted(signal, op));
    signal.addEventListener('abort', onAbort, { once: true });
    work()
      .finally(() => signal.removeEventListener('abort', onAbort))
      .then(resolve, reject);
  });
}
