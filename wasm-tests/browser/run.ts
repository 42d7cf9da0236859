/** Runs the suites under mocha and posts what happened to the test server. */
import 'mocha/mocha.js';

interface Counts {
  setup: string;
  isolated: boolean;
  passed: number;
  failed: number;
  failures: { title: string; error: string }[];
  notes: string[];
  current: string;
  done: boolean;
}

export async function runSuites(query: URLSearchParams): Promise<void> {
  const counts: Counts = {
    setup: query.toString(),
    isolated: crossOriginIsolated,
    passed: 0,
    failed: 0,
    failures: [],
    notes: [],
    current: 'importing the suites',
    done: false,
  };
  const post = () => fetch('/results', { method: 'POST', body: JSON.stringify(counts) });
  try {
    const threads = Number(query.get('threads') ?? 1);
    const variant = query.get('variant') === 'relaxed' ? 'relaxed' : 'simd';
    const takesRelaxed = query.get('relaxed') === 'yes';
    globalThis.attnHost = {
      engine: query.get('engine') ?? 'browser',
      variant,
      threads,
      canThread: threads > 1,
      takesRelaxed,
      build: 'release',
      complete: threads > 1 && (variant === 'relaxed') === takesRelaxed,
      server: location.origin + '/',
      note: (text) => void counts.notes.push(text),
    };
    const runner = mocha;
    runner.setup({ ui: 'bdd', reporter: class {} as never, timeout: 60000 });
    await import('../suites/index.ts');
    await new Promise<void>((done) => {
      const run = runner.run(() => done());
      let last = performance.now();
      // A running count, so that a browser that hangs can be told where.
      run.on('test', (test) => {
        counts.current = test.fullTitle();
        if (performance.now() - last > 1000) void ((last = performance.now()), post());
      });
      run.on('pass', () => counts.passed++);
      run.on('fail', (test, error) => {
        counts.failed++;
        counts.failures.push({
          title: test.fullTitle(),
          error: String(error?.stack?.includes(error.message) ? error.stack : `${error} ${error?.stack ?? ''}`),
        });
      });
    });
  } catch (error) {
    counts.failed++;
    counts.failures.push({ title: counts.current, error: String((error as Error)?.stack ?? error) });
  }
  counts.done = true;
  await post();
}
