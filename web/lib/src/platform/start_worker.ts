/**
 * Starts workers on pages with require-trusted-types-for 'script', and from a package on another origin than the page.
 */
import { AttnError } from '../args/error.js';
import { noWorkers, assetUrl } from './asset_urls.js';

interface Policy {
  createScriptURL(url: string): string;
}

declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

let policy: Policy | undefined;

/**
 * Finds the URL and options that `start` passes to Worker, without starting it; undefined if globals cannot be
 * replaced.
 */
function listen(start: () => Worker): { url: string; options: WorkerOptions | undefined } | undefined {
  const RealWorker = globalThis.Worker;
  let heard: ReturnType<typeof listen>;
  try {
    globalThis.Worker = function (this: unknown, url: string | URL, options?: WorkerOptions) {
      heard = { url: assetUrl(String(url)), options };
    } as unknown as typeof Worker;
  } catch {
    return undefined;
  }
  try {
    start();
  } finally {
    globalThis.Worker = RealWorker;
  }
  return heard;
}

function isElsewhere(url: string): boolean {
  try {
    const { origin, protocol } = new URL(url);
    return /^https?:$/.test(protocol) && origin !== globalThis.origin;
  } catch {
    return false; // a relative URL
  }
}

/**
 * Browsers start workers of the page's own origin only, but those may import from elsewhere. Sandboxed frames have no
 * origin, and Chromium does not start module workers from their blobs.
 */
function importing(url: string): string {
  const text = `import ${JSON.stringify(url)};`;
  const type = 'text/javascript';
  return globalThis.origin === 'null' ? `data:${type},${encodeURIComponent(text)}` : URL.createObjectURL(new Blob([text], { type }));
}

/**
 * Starts the worker of `start`, which consists of `new Worker(new URL('./file.js', import.meta.url), { … })`. Under
 * require-trusted-types-for 'script' the URL has to pass through a policy, and a script of another origin has to be
 * imported by a script of this one. But bundlers recognise a worker by exactly that expression. So `start` runs with a
 * fake Worker that records the URL which the bundler has inserted.
 */
export function startWorker(start: () => Worker): { worker: Worker; help: string } {
  if (typeof Worker !== 'function') throw new AttnError('ENVIRONMENT', `load: ${noWorkers}`, { op: 'load' });
  const heard = listen(start);
  const help = 'a bundler may have left out attn/dist/worker-host.js: copy it packageFile the bundle';
  if (!heard) return { worker: start(), help };
  const { url, options } = heard;
  let trusted: (url: string) => string = (given) => given;
  if (typeof trustedTypes !== 'undefined')
    try {
      policy ??= trustedTypes.createPolicy('attn#worker', { createScriptURL: (given) => given });
      const { createScriptURL } = policy;
      trusted = createScriptURL.bind(policy);
    } catch {
      // The page's Content-Security-Policy does not list this policy. The plain form may still work.
    }
  if (!isElsewhere(url)) return { worker: new Worker(trusted(url), options), help };
  const line = importing(url);
  const worker = new Worker(trusted(line), options);
  // The script has loaded by the first event, so its URL can be revoked.
  for (const type of ['message', 'error']) worker.addEventListener(type, () => URL.revokeObjectURL(line), { once: true });
  return {
    worker,
    help: 'it is of another origin than the page: a Content-Security-Policy needs worker-src blob: (in a sandboxed frame data:), and its server has to allow it (CORS)',
  };
}

/** Prepares a worker to run a thread. */
export function asThread({ worker }: { worker: Worker }, onError: (message: string) => void): Worker {
  worker.addEventListener('error', (event) => {
    // Without this the error would also end the worker that started the thread.
    event.preventDefault();
    onError(event.message || 'its script could not be loaded');
  });
  return worker;
}
