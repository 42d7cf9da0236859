/** Works under require-trusted-types-for 'script', and from packages on another origin. */
import { AttnError } from '../args/error.js';
import { noWorkers, assetUrl } from './asset_urls.js';

interface Policy {
  createScriptURL(url: string): string;
}

declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

let policy: Policy | undefined;

/** Records the arguments of Worker; undefined if globals cannot be replaced. */
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
 * Workers must have the page's origin, but may import from others. Sandboxed frames have no origin, and Chromium does
 * not start module workers from their blobs.
 */
function importing(url: string): string {
  const text = `import ${JSON.stringify(url)};`;
  const type = 'text/javascript';
  return globalThis.origin === 'null' ? `data:${type},${encodeURIComponent(text)}` : URL.createObjectURL(new Blob([text], { type }));
}

/**
 * `start` is `new Worker(new URL('./file.js', import.meta.url), { … })`, the only expression by which bundlers
 * recognise a worker. But Trusted Types require a URL from a policy, and another origin an importing script, so it runs
 * with a fake Worker that records the URL.
 */
export function startWorker(start: () => Worker): { worker: Worker; help: string } {
  if (typeof Worker !== 'function') throw new AttnError('ENVIRONMENT', `load: ${noWorkers}`, { op: 'load' });
  const heard = listen(start);
  const help = 'If a bundler has left out attn/dist/worker-host.js, copy it next to the bundle';
  if (!heard) return { worker: start(), help };
  const { url, options } = heard;
  let trusted: (url: string) => string = (given) => given;
  if (typeof trustedTypes !== 'undefined')
    try {
      policy ??= trustedTypes.createPolicy('attn#worker', { createScriptURL: (given) => given });
      const { createScriptURL } = policy;
      trusted = createScriptURL.bind(policy);
    } catch {
      // The page's policies do not include this one. The plain form may still work.
    }
  if (!isElsewhere(url)) return { worker: new Worker(trusted(url), options), help };
  const line = importing(url);
  const worker = new Worker(trusted(line), options);
  // The script has loaded by the first event.
  for (const type of ['message', 'error']) worker.addEventListener(type, () => URL.revokeObjectURL(line), { once: true });
  return {
    worker,
    help: "Its origin is not the page's. Allow worker-src blob: in the Content-Security-Policy (in a sandboxed frame data:) and CORS on its server",
  };
}

export function asThread({ worker }: { worker: Worker }, onError: (message: string) => void): Worker {
  worker.addEventListener('error', (event) => {
    // Otherwise the error would also end the worker that started the thread.
    event.preventDefault();
    onError(event.message || 'its script could not be loaded');
  });
  return worker;
}
