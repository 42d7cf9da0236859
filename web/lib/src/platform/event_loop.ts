/**
 * Lets the event loop take a turn: events, messages, a page's next frame. A timer would do, but nested timers wait for 4 ms, and for a second in
 * a page that is not looked at. Worklets have neither.
 */
export function yieldToEventLoop(): Promise<void> {
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

/** Calls that wait for their turn: urgent ones, and the others. */
const waiting: readonly [urgent: (() => void)[], others: (() => void)[]] = [[], []];
let isLetting = false;

/**
 * Like `breathe()`, for calls that compute at the same time: they take turns, urgent ones first. Only one message is under way for all of them,
 * because a call that arrives later could not overtake the work behind messages that were sent before.
 */
export async function takeTurn(isUrgent: boolean): Promise<void> {
  const turn = new Promise<void>((go) => waiting[isUrgent ? 0 : 1].push(go));
  if (!isLetting) void letIn();
  return turn;
}

async function letIn(): Promise<void> {
  isLetting = true;
  for (;;) {
    await yieldToEventLoop();
    const next = waiting[0].shift() ?? waiting[1].shift();
    if (!next) break;
    next();
  }
  isLetting = false;
}

/** For a loop over pieces that may all be there already: gives the event loop a turn when it has had none for a while. */
export function yieldEvery30ms(turn = yieldToEventLoop): () => Promise<void> {
  let last = Date.now();
  return async () => {
    if (Date.now() - last < 30) return;
    await turn();
    last = Date.now();
  };
}
