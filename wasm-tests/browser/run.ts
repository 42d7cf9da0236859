/** Runs the suites in mocha and posts the results to the test server. */
import 'mocha/mocha.js';
import { isComplete } from '../suites/suite_matrix.mjs';

interface Results {
  setup: string;
  isolated: boolean;
  /** Finished tests. */
  tests: { title: string; seconds: number; error?: string }[];
  notes: string[];
  current: string;
  done: boolean;
}

export async function runSuites(query: URLSearchParams): Promise<void> {
  const results: Results = {
    setup: query.toString(),
    isolated: crossOriginIsolated,
    tests: [],
    notes: [],
    current: 'importing the suites',
    done: false,
  };
  const post = () => fetch('/results', { method: 'POST', body: JSON.stringify(results) });
  try {
    const engine = query.get('engine') ?? 'chromium';
    const threads = Number(query.get('threads') ?? 1);
    const variant = query.get('variant') === 'relaxed' ? 'relaxed' : 'simd';
    const takesRelaxed = query.get('relaxed') === 'yes';
    globalThis.attnHost = {
      engine,
      variant,
      threads,
      canThread: threads > 1,
      takesRelaxed,
      build: 'release',
      complete: isComplete({ engine, variant, threads }),
      server: location.origin + '/',
      note: (text) => void results.notes.push(text),
    };
    const runner = mocha;
    // The time limit stops hanging tests, not slow ones.
    runner.setup({ ui: 'bdd', reporter: class {} as never, timeout: 600_000, ...(query.has('names') && { grep: new RegExp(query.get('names')!) }) });
    const { importSuites } = await import('../suites/index.ts');
    await importSuites(query.get('suites')?.split(',') ?? []);
    await new Promise<void>((done) => {
      const run = runner.run(() => done());
      let last = performance.now();
      // Reports the current test, to locate a hang.
      run.on('test', (test) => {
        results.current = test.fullTitle();
        if (performance.now() - last > 1000) void ((last = performance.now()), post());
      });
      run.on('pass', (test) => {
        results.tests.push({ title: test.fullTitle(), seconds: (test.duration ?? 0) / 1000 });
      });
      run.on('fail', (test, error) => {
        const text = String(error?.stack?.includes(error.message) ? error.stack : `${error} ${error?.stack ?? ''}`);
        results.tests.push({ title: test.fullTitle(), seconds: (test.duration ?? 0) / 1000, error: text });
      });
    });
  } catch (error) {
    results.tests.push({ title: results.current, seconds: 0, error: String((error as Error)?.stack ?? error) });
  }
  results.done = true;
  await post();
}
