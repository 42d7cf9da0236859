/** Runs the suites under mocha and posts what happened to the test server. */
import 'mocha/mocha.js';
import { isComplete } from '../suites/table.mjs';

interface Counts {
  setup: string;
  isolated: boolean;
  passed: number;
  failed: number;
  failures: { title: string; error: string }[];
  notes: string[];
  current: string;
  /** The slowest tests so far: title and seconds. */
  slowest: [string, number][];
  done: boolean;
}

const slowest = (all: Counts['slowest']) => all.sort((a, b) => b[1] - a[1]).slice(0, 10);

export async function runSuites(query: URLSearchParams): Promise<void> {
  const counts: Counts = {
    setup: query.toString(),
    isolated: crossOriginIsolated,
    passed: 0,
    failed: 0,
    failures: [],
    notes: [],
    current: 'importing the suites',
    slowest: [],
    done: false,
  };
  const post = () => fetch('/results', { method: 'POST', body: JSON.stringify(counts) });
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
      note: (text) => void counts.notes.push(text),
    };
    const runner = mocha;
    runner.setup({ ui: 'bdd', reporter: class {} as never, timeout: 60000 });
    const { importSuites } = await import('../suites/index.ts');
    await importSuites(query.get('suites')?.split(',') ?? []);
    await new Promise<void>((done) => {
      const run = runner.run(() => done());
      let last = performance.now();
      // A running count, so that a browser that hangs can be told where.
      run.on('test', (test) => {
        counts.current = test.fullTitle();
        if (performance.now() - last > 1000) void ((last = performance.now()), post());
      });
      run.on('pass', (test) => {
        counts.passed++;
        counts.slowest.push([test.fullTitle(), (test.duration ?? 0) / 1000]);
        if (counts.slowest.length > 100) counts.slowest = slowest(counts.slowest);
      });
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
  counts.slowest = slowest(counts.slowest);
  counts.done = true;
  await post();
}
