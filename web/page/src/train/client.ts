/** The page's side of the training worker, which is loaded on first use. */
import type { Command, Report } from './messages.ts';
import workerUrl from './worker.ts?worker&url';

interface Policy {
  createScriptURL(url: string): string;
}
declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

/**
 * The CSP allows only named policies. Created at once, so that no other script can create it; accepts only one address.
 */
const policy = typeof trustedTypes === 'undefined' ? undefined : trustedTypes.createPolicy('page#train', { createScriptURL: () => workerUrl });

export interface Client {
  tell(command: Command): void;
  end(): void;
}

/** Commands wait until the worker is ready. */
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
