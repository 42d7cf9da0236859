/** Workers on pages with require-trusted-types-for 'script', and of a package that lies on another origin than the page. */
import { AttnError } from '../args/error.js';
import { noWorkers, assetUrl } from './asset_urls.js';

interface Policy {
  createScriptURL(url: string): string;
}

declare const trustedTypes: undefined | { createPolicy(name: string, rules: Policy): Policy };

let policy: Policy | undefined;

/** The URL that `start` gives to its worker, and the options. Nothing is started; undefined where globals cannot be changed. */
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
    return false; // relative
  }
}

/**
 * Browsers start workers from the page's origin alone, but what those import may come from elsewhere. Sandboxed frames have no origin: from a blob of
 * theirs Chromium starts no module.
 */
function importing(url: string): string {
  const text = `import ${JSON.stringify(url)};`;
  const type = 'text/javascript';
  return globalThis.origin === 'null' ? `data:${type},${encodeURIComponent(text)}` : URL.createObjectURL(new Blob([text], { type }));
}

/**
 * Runs `start`, whose only worker is written out as `new Worker(new URL('./file.js', import.meta.url), { … })`.
 *
 * Under require-trusted-types-for 'script' a worker takes its URL through a policy only, and there is no asking whether
 * that is so; and a script of another origin takes one line of ours that imports it. But bundlers know a worker by exactly that expression: with
 * anything else in it they would leave the script out. So it runs with a Worker that only listens which URL the bundler has put there.
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
      // A page whose policies are a closed list without ours: only the plain form may work.
    }
  if (!isElsewhere(url)) return { worker: new Worker(trusted(url), options), help };
  const line = importing(url);
  const worker = new Worker(trusted(line), options);
  // By then it has been read.
  for (const type of ['message', 'error']) worker.addEventListener(type, () => URL.revokeObjectURL(line), { once: true });
  return {
    worker,
    help: 'it is of another origin than the page: a Content-Security-Policy needs worker-src blob: (in a sandboxed frame data:), and its server has to allow it (CORS)',
  };
}

/** A worker as a thread. */
export function asThread({ worker }: { worker: Worker }, onError: (message: string) => void): Worker {
  worker.addEventListener('error', (event) => {
    // Else it would be an error of the worker that started this one, too, and end it.
    event.preventDefault();
    onError(event.message || 'its script could not be loaded');
  });
  return worker;
}
