import { addAbortListener, removeAbortListener } from '../args/abort_listeners.js';
import { abortError, type AttnError } from '../args/error.js';

export function aborted(signal: AbortSignal, op = 'load'): AttnError {
  return abortError(`${op}: aborted by its signal`, { op }, { cause: signal.reason });
}

/** Rejects at once, even if `work` ignores the signal. */
export function abortable<T>(signal: AbortSignal | undefined, work: () => Promise<T>, op = 'load'): Promise<T> {
  if (!signal) return work();
  return new Promise((resolve, reject) => {
    if (signal.aborted) throw aborted(signal, op);
    const onAbort = () => reject(aborted(signal, op));
    addAbortListener(signal, onAbort);
    work()
      .finally(() => removeAbortListener(signal, onAbort))
      .then(resolve, reject);
  });
}
