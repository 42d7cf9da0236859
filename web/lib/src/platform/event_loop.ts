/** Uses messages, because nested timers would wait 4 ms, or a second in a hidden page. Worklets have neither messages nor timers. */
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

/** Waiting calls by priority. */
const waiting: readonly [urgent: (() => void)[], others: (() => void)[]] = [[], []];
let isLetting = false;

/**
 * Urgent calls continue first. All calls share one message, because a later call could not overtake messages that are
 * already queued.
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

/** For loops over data that may already be there. */
export function yieldEvery30ms(turn = yieldToEventLoop): () => Promise<void> {
  let last = Date.now();
  return async () => {
    if (Date.now() - last < 30) return;
    await turn();
    last = Date.now();
  };
}
