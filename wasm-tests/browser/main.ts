/** Runs the suites here, or in a worker if the address requests it (threads may block only there). */
import workerUrl from './worker.ts?worker&url';

const query = new URLSearchParams(location.search);

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL(url: string): string }): { createScriptURL(url: string): string };
}

function post(results: unknown): void {
  void fetch('/results', { method: 'POST', body: JSON.stringify(results) });
}

addEventListener('securitypolicyviolation', (e) => post({ fatal: `CSP: ${e.violatedDirective} blocked ${e.blockedURI} ${e.sample}` }));
addEventListener('unhandledrejection', (e) => post({ fatal: `unhandled rejection: ${String(e.reason?.stack ?? e.reason)}` }));

if (query.has('worker')) {
  const types = (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes;
  const policy = types?.createPolicy('attn-tests', { createScriptURL: (url) => url });
  const worker = new Worker(policy?.createScriptURL(workerUrl) ?? workerUrl, { type: 'module', name: location.search });
  worker.onerror = (e) => post({ fatal: `test worker: ${e.message} ${e.filename}:${e.lineno}` });
} else {
  const { runSuites } = await import('./run.ts');
  await runSuites(query);
}
