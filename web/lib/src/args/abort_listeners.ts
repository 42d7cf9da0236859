/** One listener on each AbortSignal, however many calls wait for it: Node warns of an eleventh. */

const all = new WeakMap<AbortSignal, { readonly listeners: Set<() => void>; readonly onAbort: () => void }>();

export function addAbortListener(signal: AbortSignal, listener: () => void): void {
  let known = all.get(signal);
  if (!known) {
    const listeners = new Set<() => void>();
    const onAbort = () => [...listeners].forEach((each) => each());
    signal.addEventListener('abort', onAbort);
    all.set(signal, (known = { listeners, onAbort }));
  }
  known.listeners.add(listener);
}

export function removeAbortListener(signal: AbortSignal, listener: () => void): void {
  const known = all.get(signal);
  known?.listeners.delete(listener);
  if (known?.listeners.size !== 0) return;
  all.delete(signal);
  signal.removeEventListener('abort', known.onAbort);
}
