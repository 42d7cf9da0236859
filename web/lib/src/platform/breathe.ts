/**
 * Lets the event loop take a turn: events, messages, a page's next frame. A timer would do, but nested timers wait for 4 ms, and for a second in
 * a page that is not looked at. Worklets have neither.
 */
export function breathe(): Promise<void> {
  return new Promise((resolve) => {
    if (typeof MessageChannel === 'undefined') return typeof setTimeout === 'undefined' ? resolve() : void setTimeout(resolve);
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(0);
  });
}

/** For a loop over pieces that may all be there already: gives the event loop a turn when it has had none for a while. */
export function takingTurns(): () => Promise<void> {
  let last = Date.now();
  return async () => {
    if (Date.now() - last < 30) return;
    await breathe();
    last = Date.now();
  };
}
