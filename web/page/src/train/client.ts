/** The worker that trains, from the page's side. It is asked for when it is first used: a page that does not train does not load it. */
import type { Command, Report } from './messages.ts';
import workerUrl from './worker.ts?worker&url';

interface Policy {
  createScriptURL(url: string): string;
}
declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

/** The page's CSP lets scripts be started through named policies only. This one is made at once, so that nobody else makes it, and knows one address. */
const policy = typeof trustedTypes === 'undefined' ? undefined : trustedTypes.createPolicy('page#train', { createScriptURL: () => workerUrl });

export interface Client {
  tell(command: Command): void;
  end(): void;
}

/** Starts it; it can be told things once it is ready, and earlier ones wait. */
export function connect(hear: (report: Report) => void): Client {
  const worker = new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: 'train' });
  let waiting: Command[] | undefined = [];
  worker.addEventListener('message', ({ data }: MessageEvent<Report>) => {
    if (data.kind === 'ready') {
      waiting?.forEach((command) => worker.postMessage(command));
      waiting = undefined;
    }
    hear(data);
  });
  worker.addEventListener('error', (event) => {
    event.preventDefault();
    hear({ kind: 'failed', why: event.message || 'Its script could not be loaded.' });
  });
  return {
    tell: (command) => (waiting ? waiting.push(command) : worker.postMessage(command)),
    end: () => worker.terminate(),
  };
}
