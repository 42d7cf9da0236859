/** Workers on pages with require-trusted-types-for 'script'. */

interface Policy {
  createScriptURL(url: string): string;
}

declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

let policy: Policy | undefined;

/**
 * Runs `start`, whose only worker is written out as `new Worker(new URL('./file.js', import.meta.url), { … })`.
 *
 * Under require-trusted-types-for 'script' a worker takes its URL through a policy only, and there is no asking whether
 * that is so. But bundlers know a worker by exactly that expression: with a policy in it they would leave the script out.
 * So it runs with a Worker that only listens which URL the bundler has put there.
 */
export function startWorker(start: () => Worker): Worker {
  if (typeof trustedTypes === 'undefined') return start();
  try {
    policy ??= trustedTypes.createPolicy('attn#worker', { createScriptURL: (url) => url });
  } catch {
    // A page whose policies are a closed list without ours: only the plain form may work.
    return start();
  }
  const RealWorker = globalThis.Worker;
  let url = '';
  let options: WorkerOptions | undefined;
  globalThis.Worker = function (this: unknown, heardUrl: string | URL, heardOptions?: WorkerOptions) {
    url = String(heardUrl);
    options = heardOptions;
  } as unknown as typeof Worker;
  try {
    start();
  } finally {
    globalThis.Worker = RealWorker;
  }
  return new RealWorker(policy.createScriptURL(url), options);
}
