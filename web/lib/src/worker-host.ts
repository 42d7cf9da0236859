/**
 * The worker's first module, which holds nothing. Bundlers put what modules share into the first one, for the others to import; and WebKit
 * (WebKitGTK 2.50) runs a worker's first module once more when another imports it: there would be two hosts.
 */
const early: MessageEvent[] = [];
const keep = (event: MessageEvent) => void early.push(event);
addEventListener('message', keep);
import('./worker-main.js').then(
  ({ start }) => {
    removeEventListener('message', keep);
    start();
    for (const { data, ports } of early) dispatchEvent(new MessageEvent('message', { data, ports: [...ports] }));
  },
  (error: unknown) =>
    // Thrown where the page hears of it.
    setTimeout(() => {
      throw error;
    }),
);

export {};
